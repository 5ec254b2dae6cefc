#include "shim_codings.h"

#include <dlfcn.h>
#include <pthread.h>

// The parts of brotli/decode.h and zstd.h that we use. Both libraries keep them stable.
typedef struct BrotliDecoderStateStruct BrotliDecoderState;
enum { BROTLI_FAILED, BROTLI_ENDED };

typedef struct ZSTD_DCtx_s ZSTD_DCtx;
typedef struct ZSTD_inBuffer {
  const void *src;
  size_t size;
  size_t pos;
} ZSTD_inBuffer;
typedef struct ZSTD_outBuffer {
  void *dst;
  size_t size;
  size_t pos;
} ZSTD_outBuffer;
enum { ZSTD_WINDOW_LOG_MAX = 100 };

static struct {
  BrotliDecoderState *(*create)(void *allocate, void *release, void *user);
  void (*destroy)(BrotliDecoderState *);
  int (*decode)(BrotliDecoderState *, size_t *input_left, const uint8_t **input,
                size_t *output_left, uint8_t **output, size_t *total);
  int (*error)(const BrotliDecoderState *);
  const char *(*error_text)(int);
  bool is_available;
} brotli;

static struct {
  ZSTD_DCtx *(*create)(void);
  size_t (*destroy)(ZSTD_DCtx *);
  size_t (*set)(ZSTD_DCtx *, int parameter, int value);
  size_t (*decode)(ZSTD_DCtx *, ZSTD_outBuffer *, ZSTD_inBuffer *);
  unsigned (*is_error)(size_t);
  const char *(*error_text)(size_t);
  bool is_available;
} zstd;

static pthread_once_t brotli_once = PTHREAD_ONCE_INIT;
static pthread_once_t zstd_once = PTHREAD_ONCE_INIT;

static bool find(void *library, const char *name, void *function) {
  return (*(void **)function = dlsym(library, name)) != NULL;
}

static void load_brotli(void) {
  void *library = dlopen("libbrotlidec.so.1", RTLD_NOW | RTLD_LOCAL);
  brotli.is_available = library && find(library, "BrotliDecoderCreateInstance", &brotli.create) &&
                        find(library, "BrotliDecoderDestroyInstance", &brotli.destroy) &&
                        find(library, "BrotliDecoderDecompressStream", &brotli.decode) &&
                        find(library, "BrotliDecoderGetErrorCode", &brotli.error) &&
                        find(library, "BrotliDecoderErrorString", &brotli.error_text);
}

static void load_zstd(void) {
  void *library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
  zstd.is_available = library && find(library, "ZSTD_createDCtx", &zstd.create) &&
                      find(library, "ZSTD_freeDCtx", &zstd.destroy) &&
                      find(library, "ZSTD_DCtx_setParameter", &zstd.set) &&
                      find(library, "ZSTD_decompressStream", &zstd.decode) &&
                      find(library, "ZSTD_isError", &zstd.is_error) &&
                      find(library, "ZSTD_getErrorName", &zstd.error_text);
}

bool shim_brotli_is_available(void) {
  pthread_once(&brotli_once, load_brotli);
  return brotli.is_available;
}

bool shim_zstd_is_available(void) {
  pthread_once(&zstd_once, load_zstd);
  return zstd.is_available;
}

void *shim_brotli_new(void) {
  return shim_brotli_is_available() ? brotli.create(NULL, NULL, NULL) : NULL;
}

void *shim_zstd_new(int largest_window) {
  ZSTD_DCtx *decoder = shim_zstd_is_available() ? zstd.create() : NULL;
  if (decoder && zstd.is_error(zstd.set(decoder, ZSTD_WINDOW_LOG_MAX, largest_window))) {
    zstd.destroy(decoder);
    return NULL;
  }
  return decoder;
}

void shim_brotli_free(void *decoder) {
  if (decoder) brotli.destroy(decoder);
}

void shim_zstd_free(void *decoder) {
  if (decoder) zstd.destroy(decoder);
}

shim_decoded shim_brotli_decode(void *decoder, const void *input, size_t input_length,
                                void *output, size_t output_length) {
  const uint8_t *next = input;
  uint8_t *room = output;
  size_t input_left = input_length, output_left = output_length;
  int result = brotli.decode(decoder, &input_left, &next, &output_left, &room, NULL);
  shim_decoded decoded = {.consumed = input_length - input_left,
                          .produced = output_length - output_left,
                          .state = SHIM_DECODING_CONTINUES};
  if (result == BROTLI_ENDED) decoded.state = SHIM_DECODING_ENDED;
  if (result == BROTLI_FAILED) {
    decoded.state = SHIM_DECODING_FAILED;
    decoded.failure = brotli.error_text(brotli.error(decoder));
  }
  return decoded;
}

shim_decoded shim_zstd_decode(void *decoder, const void *input, size_t input_length, void *output,
                              size_t output_length) {
  ZSTD_inBuffer from = {.src = input, .size = input_length};
  ZSTD_outBuffer to = {.dst = output, .size = output_length};
  size_t result = zstd.decode(decoder, &to, &from);
  shim_decoded decoded = {
      .consumed = from.pos, .produced = to.pos, .state = SHIM_DECODING_CONTINUES};
  if (result == 0) decoded.state = SHIM_DECODING_ENDED;
  if (zstd.is_error(result)) {
    decoded.state = SHIM_DECODING_FAILED;
    decoded.failure = zstd.error_text(result);
  }
  return decoded;
}
