// Decoders for the content codings br and zstd. libbrotlidec and libzstd are loaded with dlopen()
// when one of these functions is first called. Most programs have them loaded already, through
// libcurl; others work without them.
#ifndef SHIM_CODINGS_H
#define SHIM_CODINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Whether the decoder's library is installed.
bool shim_brotli_is_available(void);
bool shim_zstd_is_available(void);

/// Returns a decoder, or NULL if its library is missing or there is no memory. `largest_window` is
/// the base-2 logarithm of the largest window that a zstd frame may use.
void *shim_brotli_new(void);
void *shim_zstd_new(int largest_window);

void shim_brotli_free(void *decoder);
void shim_zstd_free(void *decoder);

typedef enum shim_decoding {
  SHIM_DECODING_FAILED,
  /// The decoder needs more input, or more room for output.
  SHIM_DECODING_CONTINUES,
  /// The coded data is complete: the stream for brotli, a frame for zstd.
  SHIM_DECODING_ENDED,
} shim_decoding;

typedef struct shim_decoded {
  size_t consumed;
  size_t produced;
  shim_decoding state;
  /// If it failed, the library's description; then never NULL.
  const char *failure;
} shim_decoded;

/// Decodes until the input or the room for output is used up.
shim_decoded shim_brotli_decode(void *decoder, const void *input, size_t input_length,
                                void *output, size_t output_length);
shim_decoded shim_zstd_decode(void *decoder, const void *input, size_t input_length, void *output,
                              size_t output_length);

#endif
