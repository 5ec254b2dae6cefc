// The fastest UTF-8 validation for the machine: the floor's check of text.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool utf8_is_valid(const uint8_t *text, size_t length);
