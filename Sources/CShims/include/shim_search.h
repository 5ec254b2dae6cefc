// Searches in data that a server sent.
#ifndef SHIM_SEARCH_H
#define SHIM_SEARCH_H

#include <stddef.h>
#include <stdint.h>

/// The end of a line in an event stream: the index of the first LF or CR in `text`, or `count`.
/// Sets `ascii` to false if a byte before it has its high bit set; never sets it to true. Two calls
/// of memchr would read everything twice, and for each line the whole input again if one of the two
/// bytes is rare.
size_t shim_line_end(const uint8_t *text, size_t count, _Bool *ascii);

/// The index of the first `needle` in `text`, or `count` if there is none; in linear time.
size_t shim_find(const uint8_t *text, size_t count, const uint8_t *needle, size_t length);

/// Parses a number in the C locale. `text` must be a valid number. Returns the nearest double, or
/// infinity.
double shim_double(const char *text);

/// The index of the first such byte in `text`, or `count` if there is none.
size_t shim_find_byte(const uint8_t *text, size_t count, uint8_t byte);

/// Skips the content of a JSON string with its escapes of one character, such as \n: the index of
/// the first byte in `text` that is a quotation mark, a control character or the backslash of
/// another escape, or `count`. Sets `plain` to false if it skips an escape; never sets it to true.
size_t shim_json_string(const uint8_t *text, size_t count, _Bool *plain);

/// Copies the content of a JSON string and decodes its escapes of one character, up to another
/// escape or the end. `target` has room for `count` bytes. Sets `read` to the number of bytes that
/// were decoded. Returns the number that were written.
size_t shim_json_unescape(uint8_t *restrict target, const uint8_t *restrict text, size_t count,
                          size_t *read);

#endif
