#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "shim_idna.h"

static int (*lookup)(const uint8_t *name, uint8_t **out, int flags);
static pthread_once_t once = PTHREAD_ONCE_INIT;

/// libcurl uses this library, so it is seldom missing. libcurl's own functions take the name in the
/// locale's encoding, which is ASCII in a program that does not call setlocale().
static void load(void) {
  void *library = dlopen("libidn2.so.0", RTLD_NOW | RTLD_LOCAL);
  if (library) *(void **)&lookup = dlsym(library, "idn2_lookup_u8");
}

int shim_idna(const char *name, char *out, size_t size) {
  // IDN2_NFC_INPUT and IDN2_NONTRANSITIONAL, as browsers do (UTS 46 §4).
  enum { FLAGS = 1 | 8 };
  uint8_t *found = NULL;
  pthread_once(&once, load);
  if (!lookup) return SHIM_IDNA_MISSING;
  if (lookup((const uint8_t *)name, &found, FLAGS)) return SHIM_IDNA_INVALID;
  size_t length = strlen((char *)found);
  if (length < size) memcpy(out, found, length + 1);
  free(found);
  return length < size ? SHIM_IDNA_OK : SHIM_IDNA_INVALID;
}
