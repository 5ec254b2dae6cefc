#include "shim_sodium.h"

#include <dlfcn.h>
#include <pthread.h>

enum { TAG_BYTES = 16 };

static int (*open_box)(unsigned char *text, const unsigned char *encrypted,
                       const unsigned char *tag, unsigned long long length,
                       const unsigned char *nonce, const unsigned char *key);
static bool is_available;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load(void) {
  void *library = dlopen("libsodium.so.26", RTLD_NOW | RTLD_LOCAL);
  if (!library) library = dlopen("libsodium.so.23", RTLD_NOW | RTLD_LOCAL);
  if (!library) return;
  int (*initialize)(void);
  *(void **)&initialize = dlsym(library, "sodium_init");
  *(void **)&open_box = dlsym(library, "crypto_secretbox_open_detached");
  // Returns 1 if another part of the process has initialized it.
  is_available = initialize && open_box && initialize() >= 0;
}

bool shim_sodium_is_available(void) {
  pthread_once(&once, load);
  return is_available;
}

bool shim_secretbox_open(uint8_t *box, size_t length, const uint8_t nonce[24],
                         const uint8_t key[32]) {
  uint8_t *text = box + TAG_BYTES;
  return open_box(text, text, box, length, nonce, key) == 0;
}
