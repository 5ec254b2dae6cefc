// libcrypto's digests and base64, without exposing its headers to Swift.
#ifndef SHIM_HASH_H
#define SHIM_HASH_H

#include <stddef.h>
#include <stdint.h>

/// Writes the SHA-1 of `data`. Returns false if libcrypto fails (no memory, or a policy forbids
/// it).
_Bool shim_sha1(const uint8_t *data, size_t length, uint8_t digest[20]);

/// Encodes at most INT_MAX bytes with padding: writes 4 * ((length + 2) / 3) characters and a NUL.
void shim_base64(const uint8_t *data, size_t length, uint8_t *text);

#endif
