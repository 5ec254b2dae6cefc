// Searches in what a server sent.
#ifndef SHIM_SEARCH_H
#define SHIM_SEARCH_H

#include <stddef.h>
#include <stdint.h>

/// The end of a line in an event stream: the index of the first LF or CR in `text`, or `count`.
/// `ascii` becomes false when a byte before it has its high bit set; it is never made true. Two
/// calls of memchr would look at everything twice, and at the whole input again for each line when
/// one of the two bytes is rare.
size_t shim_line_end(const uint8_t *text, size_t count, _Bool *ascii);

/// The index of the first `needle` in `text`, or `count` when there is none; in linear time.
size_t shim_find(const uint8_t *text, size_t count, const uint8_t *needle, size_t length);

/// The index of the first such byte in `text`, or `count` when there is none.
/// The number nearest to a text, which must be one, in the C locale; infinity beyond all.
double shim_double(const char *text);
size_t shim_find_byte(const uint8_t *text, size_t count, uint8_t byte);

#endif
