// The parts of RFC 6455 that the server and the floor client share.
#pragma once

#include <openssl/evp.h>
#include <openssl/sha.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { WS_TEXT = 1, WS_BINARY = 2, WS_CLOSE = 8, WS_PING = 9, WS_PONG = 10 };
enum { WS_FIN = 0x80, WS_COMPRESSED = 0x40, WS_MASKED = 0x80, WS_MAX_HEADER = 14 };

/// Writes a frame header without a mask key (RFC 6455 §5.2).
/// \returns its size: 2, 4 or 10.
static inline size_t ws_put_header(uint8_t *out, uint8_t first, uint64_t length, uint8_t mask) {
  out[0] = first;
  if (length < 126) {
    out[1] = (uint8_t)(mask | length);
    return 2;
  }
  size_t bytes = length < 65536 ? 2 : 8;
  out[1] = mask | (bytes == 2 ? 126 : 127);
  for (size_t i = 0; i < bytes; i++) out[2 + i] = (uint8_t)(length >> (8 * (bytes - 1 - i)));
  return 2 + bytes;
}

/// Reads a header without a mask key.
/// \returns its size; 0 if it is incomplete.
static inline size_t ws_get_header(const uint8_t *in, size_t have, uint64_t *length) {
  if (have < 2) return 0;
  uint8_t code = in[1] & 0x7f;
  if (code < 126) {
    *length = code;
    return 2;
  }
  if (code == 126) {
    if (have < 4) return 0;
    *length = (uint64_t)in[2] << 8 | in[3];
    return 4;
  }
  if (have < 10) return 0;
  uint64_t value;
  memcpy(&value, in + 2, 8);
  *length = __builtin_bswap64(value);
  return 10;
}

/// Copies and masks `length` bytes; `key` is in memory order, its first byte is used first.
static inline void ws_mask(
    uint8_t *restrict out, const uint8_t *restrict in, size_t length, uint32_t key) {
  uint64_t wide = (uint64_t)key << 32 | key;
  size_t i = 0;
  for (; i + 8 <= length; i += 8) {
    uint64_t word;
    memcpy(&word, in + i, 8);
    word ^= wide;
    memcpy(out + i, &word, 8);
  }
  for (; i < length; i++) out[i] = in[i] ^ (uint8_t)(wide >> (8 * (i & 7)));
}

/// The value of Sec-WebSocket-Accept for a key (RFC 6455 §4.2.2).
static inline void ws_accept(const char *key, char accept[32]) {
  char text[128];
  uint8_t digest[SHA_DIGEST_LENGTH];
  snprintf(text, sizeof text, "%.60s258EAFA5-E914-47DA-95CA-C5AB0DC85B11", key);
  SHA1((const uint8_t *)text, strlen(text), digest);
  EVP_EncodeBlock((uint8_t *)accept, digest, sizeof digest);
}
