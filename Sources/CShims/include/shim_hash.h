// libcrypto's digests, authentication codes and base64, without exposing its headers to Swift.
#ifndef SHIM_HASH_H
#define SHIM_HASH_H

#include <stddef.h>
#include <stdint.h>

/// Writes the SHA-1 of `data`. Returns false if libcrypto fails (no memory, or a policy forbids
/// it).
_Bool shim_sha1(const uint8_t *data, size_t length, uint8_t digest[20]);

/// Writes the HMAC with SHA-256 (RFC 2104) of `data`. Returns false if libcrypto fails.
_Bool shim_hmac_sha256(const uint8_t *key, size_t key_length, const uint8_t *data, size_t length,
                       uint8_t code[32]);

/// Writes the SHA-256 of `first` followed by `second`. Returns false if libcrypto fails.
_Bool shim_sha256(const uint8_t *first, size_t first_length, const uint8_t *second,
                  size_t second_length, uint8_t digest[32]);

/// Encodes at most INT_MAX bytes with padding: writes 4 * ((length + 2) / 3) characters and a NUL.
void shim_base64(const uint8_t *data, size_t length, uint8_t *text);

#endif
