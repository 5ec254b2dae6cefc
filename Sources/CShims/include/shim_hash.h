// libcrypto's digests, and base64, without its headers in Swift's sight.
#ifndef SHIM_HASH_H
#define SHIM_HASH_H

#include <stddef.h>
#include <stdint.h>

/// SHA-1 of `data` into 20 bytes. False when libcrypto cannot (no memory, or a policy forbids it).
_Bool shim_sha1(const uint8_t *data, size_t length, uint8_t digest[20]);

/// Base64 with padding of at most INT_MAX bytes: 4 * ((length + 2) / 3) characters and a NUL.
void shim_base64(const uint8_t *data, size_t length, uint8_t *text);

#endif
