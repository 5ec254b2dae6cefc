// Two loops over payload bytes that are faster with wide registers than the baseline has. The
// version is chosen once, by the processor's features.
#ifndef SHIM_SIMD_H
#define SHIM_SIMD_H

#include <stddef.h>
#include <stdint.h>

/// Copies `count` bytes, each XORed with the key's byte in memory order (RFC 6455 §5.3).
void shim_mask(uint8_t *target, const uint8_t *source, size_t count, uint32_t key);

/// Whether there is a validator that is faster than one that checks byte by byte.
_Bool shim_has_utf8_validator(void);

/// Whether `data` is valid UTF-8 (RFC 3629) from start to end. Call only if there is a validator.
_Bool shim_is_utf8(const uint8_t *data, size_t length);

#endif
