#include "shim_hash.h"

#include <openssl/evp.h>

_Bool shim_sha1(const uint8_t *data, size_t length, uint8_t digest[20]) {
  return EVP_Digest(data, length, digest, NULL, EVP_sha1(), NULL) == 1;
}

void shim_base64(const uint8_t *data, size_t length, uint8_t *text) {
  EVP_EncodeBlock(text, data, (int)length);
}
