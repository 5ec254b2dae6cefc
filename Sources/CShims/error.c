#include "shim_error.h"

#include <string.h>

static _Thread_local char last_error[1024];

/// Copies `length` bytes and a NUL to `room`, cut to `size` bytes, but not inside a UTF-8 sequence.
static void copy_text(char *room, size_t size, const char *text, size_t length) {
  if (length >= size) {
    length = size - 1;
    while (length > 0 && ((unsigned char)text[length] & 0xC0) == 0x80) length--;
  }
  memcpy(room, text, length);
  room[length] = 0;
}

void shim_error_set(const char *text, size_t length) {
  copy_text(last_error, sizeof last_error, text, length);
}

size_t shim_text_copy(const char *text, char *buffer, size_t size) {
  size_t length = strlen(text);
  if (buffer && size > 0) copy_text(buffer, size, text, length);
  return length;
}

const char *shim_error_get(void) { return last_error; }
