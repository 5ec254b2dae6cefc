// zlib's init calls, which are macros that contain the library's version, as functions.
#ifndef SHIM_DEFLATE_H
#define SHIM_DEFLATE_H

#include <zlib.h>

/// inflateInit2 for raw deflate (RFC 1951), with a window of 2^bits bytes, 8 to 15 bits.
int shim_inflate_init(z_stream *stream, int window_bits);

/// inflateInit2 with zlib's own numbers: 31 for gzip, 15 for zlib, -15 for raw deflate.
int shim_inflate_init_format(z_stream *stream, int format);

/// deflateInit2 for raw deflate, with a window of 2^bits bytes, 9 to 15 bits.
int shim_deflate_init(z_stream *stream, int level, int window_bits, int memory_level);

#endif
