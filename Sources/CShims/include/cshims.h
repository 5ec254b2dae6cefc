// What Swift cannot import from C: variadic functions, macros with casts, and zlib's init macros.
#ifndef CSHIMS_H
#define CSHIMS_H

#include <curl/curl.h>
#include <zlib.h>

#include "rt_codings.h"
#include "rt_error.h"
#include "rt_inherit.h"
#include "rt_memory.h"
#include "rt_netlink.h"
#include "rt_platform.h"
#include "rt_search.h"
#include "rt_simd.h"
#include "rt_tls.h"
#include "rt_types.h"

#endif
