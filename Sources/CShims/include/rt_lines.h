// The end of a line in an event stream, which has two bytes to look for: two calls of memchr would
// look at everything twice, and at the whole input again for each line when one of them is rare.
#ifndef RT_LINES_H
#define RT_LINES_H

#include <stddef.h>
#include <stdint.h>

/// The index of the first LF or CR in `text`, or `count` when there is none. `ascii` becomes false
/// when one of the bytes before it has its high bit set; it is never made true.
size_t shim_line_end(const uint8_t *text, size_t count, _Bool *ascii);

#endif
