// The text of the last failed call on a thread, for rt_last_error().
#ifndef SHIM_ERROR_H
#define SHIM_ERROR_H

#include <stddef.h>

// Internal: the version script exports only rt_*.
#pragma GCC visibility push(hidden)

/// Keeps the first 1,023 bytes, without a partial character at the end.
void shim_error_set(const char *text, size_t length);
/// NUL-terminated; "" if no call has failed.
const char *shim_error_get(void);
/// Copies a text, cut to `size` bytes with its NUL and without a partial character at the end.
/// Copies nothing if `buffer` is NULL or `size` is 0. Returns the length of the whole text.
size_t shim_text_copy(const char *text, char *buffer, size_t size);

#pragma GCC visibility pop

#endif
