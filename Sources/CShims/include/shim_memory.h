// Storage that grows in place.
#ifndef SHIM_MEMORY_H
#define SHIM_MEMORY_H

#include <stddef.h>

/// realloc(), which ends the process when there is no memory, as every allocation of Swift's does.
void *shim_grow(void *storage, size_t size);

/// Frees what shim_grow() has made; NULL is accepted.
void shim_free(void *storage);

#endif
