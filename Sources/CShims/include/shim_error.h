// The text of the last failed call on a thread, for rt_last_error().
#ifndef SHIM_ERROR_H
#define SHIM_ERROR_H

#include <stddef.h>

// The version script exports rt_*: these are the library's own, and stay inside.
#pragma GCC visibility push(hidden)

/// Keeps the first 1,023 bytes, cut at a character's border.
void shim_error_set(const char *text, size_t length);
/// NUL-terminated; "" when no call has failed.
const char *shim_error_get(void);

#pragma GCC visibility pop

#endif
