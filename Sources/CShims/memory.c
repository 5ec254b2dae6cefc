#include "shim_memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

void *shim_grow(void *storage, size_t size) {
  void *grown = realloc(storage, size);
  if (!grown) abort();
  return grown;
}

bool shim_has_memory(size_t size) {
  void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return false;
  munmap(pages, size);
  return true;
}

void shim_free(void *storage) { free(storage); }

void shim_wipe(void *memory, size_t length) { explicit_bzero(memory, length); }
