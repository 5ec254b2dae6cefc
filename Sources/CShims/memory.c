#include "shim_memory.h"

#include <stdlib.h>
#include <string.h>

void *shim_grow(void *storage, size_t size) {
  void *grown = realloc(storage, size);
  if (!grown) abort();
  return grown;
}

void shim_free(void *storage) { free(storage); }

void shim_wipe(void *memory, size_t length) { explicit_bzero(memory, length); }
