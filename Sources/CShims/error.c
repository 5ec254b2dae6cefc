#include "shim_error.h"

#include <string.h>

static _Thread_local char last_error[1024];

void shim_error_set(const char *text, size_t length) {
  if (length >= sizeof last_error) {
    length = sizeof last_error - 1;
    // Do not cut inside a UTF-8 sequence.
    while (length > 0 && ((unsigned char)text[length] & 0xC0) == 0x80) length--;
  }
  memcpy(last_error, text, length);
  last_error[length] = 0;
}

const char *shim_error_get(void) { return last_error; }
