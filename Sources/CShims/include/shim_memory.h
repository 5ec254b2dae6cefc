// Storage that grows in place, and the end of secrets.
#ifndef SHIM_MEMORY_H
#define SHIM_MEMORY_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

/// realloc(), but ends the process if there is no memory, like every allocation in Swift.
void *shim_grow(void *storage, size_t size);

/// Whether the system would give this process so much more memory: a limit of its address space
/// (RLIMIT_AS), or strict accounting, may refuse. Not by malloc(), which would keep larger blocks
/// for itself from then on.
bool shim_has_memory(size_t size);

/// The error when it would not.
enum { shim_no_memory = ENOMEM };

/// Frees memory from shim_grow(); NULL is allowed.
void shim_free(void *storage);

/// Overwrites memory that holds a secret with zeros, even if it is not read again.
void shim_wipe(void *memory, size_t length);

#endif
