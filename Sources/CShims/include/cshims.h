// What Swift cannot import from C: variadic functions, macros with casts, zlib's init macros.
#ifndef CSHIMS_H
#define CSHIMS_H

#include <curl/curl.h>
#include <zlib.h>

#include "rt_deflate.h"
#include "rt_hash.h"
#include "rt_types.h"

#endif
