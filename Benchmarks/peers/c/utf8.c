// With AVX2: the table look-up of Keiser and Lemire, "Validating UTF-8 In Less Than One Instruction
// Per Byte" (2021). Three look-ups classify each byte: by the high and the low half of the byte
// before it, and by its own high half; a bit that is set in all three is an error. Without AVX2,
// and for the ends of short texts: eight ASCII bytes per step, then RFC 3629's table byte by byte.
#include "utf8.h"

#include <string.h>

static bool scalar_is_valid(const uint8_t *p, size_t length) {
  const uint8_t *end = p + length;
  while (p < end) {
    uint64_t word;
    if (end - p >= 8 && (memcpy(&word, p, 8), !(word & 0x8080808080808080))) {
      p += 8;
      continue;
    }
    uint8_t first = *p++;
    if (first < 0x80) continue;
    if (first < 0xc2 || first > 0xf4) return false;
    ptrdiff_t more = first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
    if (end - p < more) return false;
    // Overlong forms, surrogates and values above U+10FFFF show in the second byte.
    uint8_t low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    uint8_t high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    if (*p < low || *p > high) return false;
    for (p++; --more > 0; p++) {
      if ((*p & 0xc0) != 0x80) return false;
    }
  }
  return true;
}

#if defined(__x86_64__)
#include <immintrin.h>

enum {
  TOO_SHORT = 1, TOO_LONG = 2, OVERLONG_3 = 4, TOO_LARGE = 8, SURROGATE = 16, OVERLONG_2 = 32,
  TOO_LARGE_1000 = 64, OVERLONG_4 = 64, TWO_CONTS = 128, CARRY = TOO_SHORT | TOO_LONG | TWO_CONTS,
};
#define BOTH(...) _mm256_setr_epi8(__VA_ARGS__, __VA_ARGS__)
#define AVX2 __attribute__((target("avx2")))

AVX2 static inline __m256i previous(__m256i now, __m256i before, int n) {
  __m256i joined = _mm256_permute2x128_si256(before, now, 0x21);
  return n == 1   ? _mm256_alignr_epi8(now, joined, 15)
         : n == 2 ? _mm256_alignr_epi8(now, joined, 14)
                  : _mm256_alignr_epi8(now, joined, 13);
}

AVX2 static inline __m256i errors(__m256i now, __m256i before) {
  const __m256i before_high = BOTH(
      TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG,
      (char)TWO_CONTS, (char)TWO_CONTS, (char)TWO_CONTS, (char)TWO_CONTS, TOO_SHORT | OVERLONG_2,
      TOO_SHORT, TOO_SHORT | OVERLONG_3 | SURROGATE,
      TOO_SHORT | TOO_LARGE | TOO_LARGE_1000 | OVERLONG_4);
  const __m256i before_low = BOTH(
      (char)(CARRY | OVERLONG_3 | OVERLONG_2 | OVERLONG_4), (char)(CARRY | OVERLONG_2),
      (char)CARRY, (char)CARRY, (char)(CARRY | TOO_LARGE),
      (char)(CARRY | TOO_LARGE | TOO_LARGE_1000), (char)(CARRY | TOO_LARGE | TOO_LARGE_1000),
      (char)(CARRY | TOO_LARGE | TOO_LARGE_1000), (char)(CARRY | TOO_LARGE | TOO_LARGE_1000),
      (char)(CARRY | TOO_LARGE | TOO_LARGE_1000), (char)(CARRY | TOO_LARGE | TOO_LARGE_1000),
      (char)(CARRY | TOO_LARGE | TOO_LARGE_1000), (char)(CARRY | TOO_LARGE | TOO_LARGE_1000),
      (char)(CARRY | TOO_LARGE | TOO_LARGE_1000 | SURROGATE),
      (char)(CARRY | TOO_LARGE | TOO_LARGE_1000), (char)(CARRY | TOO_LARGE | TOO_LARGE_1000));
  const __m256i own_high = BOTH(
      TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT,
      (char)(TOO_LONG | OVERLONG_2 | TWO_CONTS | OVERLONG_3 | TOO_LARGE_1000 | OVERLONG_4),
      (char)(TOO_LONG | OVERLONG_2 | TWO_CONTS | OVERLONG_3 | TOO_LARGE),
      (char)(TOO_LONG | OVERLONG_2 | TWO_CONTS | SURROGATE | TOO_LARGE),
      (char)(TOO_LONG | OVERLONG_2 | TWO_CONTS | SURROGATE | TOO_LARGE), TOO_SHORT, TOO_SHORT,
      TOO_SHORT, TOO_SHORT);
  const __m256i nibble = _mm256_set1_epi8(15);
  __m256i one = previous(now, before, 1);
  __m256i special = _mm256_and_si256(
      _mm256_and_si256(
          _mm256_shuffle_epi8(
              before_high, _mm256_and_si256(_mm256_srli_epi16(one, 4), nibble)),
          _mm256_shuffle_epi8(before_low, _mm256_and_si256(one, nibble))),
      _mm256_shuffle_epi8(own_high, _mm256_and_si256(_mm256_srli_epi16(now, 4), nibble)));
  // Third and fourth bytes must be continuations, and only they may be second continuations.
  __m256i third = _mm256_subs_epu8(previous(now, before, 2), _mm256_set1_epi8((char)0x60));
  __m256i fourth = _mm256_subs_epu8(previous(now, before, 3), _mm256_set1_epi8((char)0x70));
  __m256i must = _mm256_and_si256(
      _mm256_or_si256(third, fourth), _mm256_set1_epi8((char)0x80));
  return _mm256_xor_si256(must, special);
}

AVX2 static bool avx2_is_valid(const uint8_t *text, size_t length) {
  __m256i wrong = _mm256_setzero_si256(), before = _mm256_setzero_si256();
  // A block that ends inside a character has one of its last bytes above these.
  const __m256i highest = _mm256_setr_epi8(
      -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
      -1, -1, -1, -1, -1, -1, (char)0xef, (char)0xdf, (char)0xbf);
  __m256i open = _mm256_setzero_si256();
  for (size_t i = 0; i < length; i += 32) {
    uint8_t tail[32] = {0};
    const uint8_t *from = text + i;
    if (length - i < 32) from = memcpy(tail, from, length - i);
    __m256i now = _mm256_loadu_si256((const __m256i *)(const void *)from);
    if (_mm256_movemask_epi8(now)) {
      wrong = _mm256_or_si256(wrong, errors(now, before));
      open = _mm256_subs_epu8(now, highest);
    } else {
      wrong = _mm256_or_si256(wrong, open);
      open = _mm256_setzero_si256();
    }
    before = now;
  }
  wrong = _mm256_or_si256(wrong, open);
  return _mm256_testz_si256(wrong, wrong);
}

bool utf8_is_valid(const uint8_t *text, size_t length) {
  if (__builtin_cpu_supports("avx2")) return avx2_is_valid(text, length);
  return scalar_is_valid(text, length);
}
#else
bool utf8_is_valid(const uint8_t *text, size_t length) { return scalar_is_valid(text, length); }
#endif
