// UTF-8 validation as fast as the machine does it: the floor's check of text.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool utf8_is_valid(const uint8_t *text, size_t length);
