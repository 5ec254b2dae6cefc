// NaCl's secretbox by libsodium, which is loaded with dlopen() when one of these functions is first
// called. Programs that never use it do not need libsodium.
#ifndef SHIM_SODIUM_H
#define SHIM_SODIUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Whether libsodium is installed and usable.
bool shim_sodium_is_available(void);

/// Decrypts in place. `box` is the tag of 16 bytes, followed by `length` encrypted bytes, which the
/// plaintext replaces. Returns false if the tag does not match; the bytes are unchanged then. Call
/// only if libsodium is available.
bool shim_secretbox_open(uint8_t *box, size_t length, const uint8_t nonce[24],
                         const uint8_t key[32]);

#endif
