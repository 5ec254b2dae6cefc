#include "shim_hash.h"

#include <limits.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

_Bool shim_sha1(const uint8_t *data, size_t length, uint8_t digest[20]) {
  return EVP_Digest(data, length, digest, NULL, EVP_sha1(), NULL) == 1;
}

_Bool shim_hmac_sha256(const uint8_t *key, size_t key_length, const uint8_t *data, size_t length,
                       uint8_t code[32]) {
  // An empty key must have an address.
  if (!key) key = (const uint8_t *)"";
  return key_length <= INT_MAX &&
         HMAC(EVP_sha256(), key, (int)key_length, data, length, code, NULL) != NULL;
}

_Bool shim_sha256(const uint8_t *first, size_t first_length, const uint8_t *second,
                  size_t second_length, uint8_t digest[32]) {
  EVP_MD_CTX *context = EVP_MD_CTX_new();
  _Bool succeeded = context && EVP_DigestInit_ex(context, EVP_sha256(), NULL) == 1 &&
                    EVP_DigestUpdate(context, first, first_length) == 1 &&
                    EVP_DigestUpdate(context, second, second_length) == 1 &&
                    EVP_DigestFinal_ex(context, digest, NULL) == 1;
  EVP_MD_CTX_free(context);
  return succeeded;
}

void shim_base64(const uint8_t *data, size_t length, uint8_t *text) {
  EVP_EncodeBlock(text, data, (int)length);
}
