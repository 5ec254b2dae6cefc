// C features that Swift cannot import: variadic functions, macros with casts, and zlib's init
// macros.
#ifndef CSHIMS_H
#define CSHIMS_H

#include <curl/curl.h>
#include <zlib.h>

#include "rt_types.h"
#include "rt_types_ddp.h"
#include "rt_types_pusher.h"
#include "shim_codings.h"
#include "shim_dial.h"
#include "shim_error.h"
#include "shim_idna.h"
#include "shim_inherit.h"
#include "shim_memory.h"
#include "shim_netlink.h"
#include "shim_platform.h"
#include "shim_search.h"
#include "shim_simd.h"
#include "shim_sodium.h"
#include "shim_tls.h"
#include "shim_watch.h"

#endif
