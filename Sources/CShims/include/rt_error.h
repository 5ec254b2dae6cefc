// The text of the last failed call on a thread, for rt_last_error().
#ifndef RT_ERROR_H
#define RT_ERROR_H

#include <stddef.h>

/// Keeps the first 1,023 bytes, cut at a character's border.
void rt_error_set(const char *text, size_t length);
/// NUL-terminated; "" when no call has failed.
const char *rt_error_get(void);

#endif
