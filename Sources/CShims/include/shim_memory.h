// Storage that grows in place, and the end of secrets.
#ifndef SHIM_MEMORY_H
#define SHIM_MEMORY_H

#include <stddef.h>

/// realloc(), but ends the process if there is no memory, like every allocation in Swift.
void *shim_grow(void *storage, size_t size);

/// Frees memory from shim_grow(); NULL is allowed.
void shim_free(void *storage);

/// Overwrites memory that holds a secret with zeros, even if it is not read again.
void shim_wipe(void *memory, size_t length);

#endif
