// Storage that grows in place.
#ifndef SHIM_MEMORY_H
#define SHIM_MEMORY_H

#include <stddef.h>

/// realloc(), but ends the process if there is no memory, like every allocation in Swift.
void *shim_grow(void *storage, size_t size);

/// Frees memory from shim_grow(); NULL is allowed.
void shim_free(void *storage);

#endif
