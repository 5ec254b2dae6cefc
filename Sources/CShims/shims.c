#include "cshims.h"
