#include "shim_deflate.h"

int shim_inflate_init(z_stream *stream, int window_bits) {
  return inflateInit2(stream, -window_bits);
}

int shim_inflate_init_format(z_stream *stream, int format) {
  return inflateInit2(stream, format);
}

int shim_deflate_init(z_stream *stream, int level, int window_bits, int memory_level) {
  return deflateInit2(stream, level, Z_DEFLATED, -window_bits, memory_level, Z_DEFAULT_STRATEGY);
}
