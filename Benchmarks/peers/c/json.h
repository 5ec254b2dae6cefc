// A small reader of JSON, for C clients whose library delivers JSON as text: it finds a member of
// an object in one pass, without storage.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// An unsigned integer that is a member of an object of strings and numbers. \returns 0 if there is
/// none, or the text is not such an object.
uint64_t json_number(const char *text, size_t length, const char *name);
