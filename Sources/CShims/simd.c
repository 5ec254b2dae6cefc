#include "shim_simd.h"

#include <string.h>

// Eight bytes per step, which compilers turn into the widest registers they may use.
static inline void mask(uint8_t *restrict target, const uint8_t *restrict source, size_t count,
                        uint32_t key) {
  uint64_t wide = (uint64_t)key << 32 | key;
  size_t i = 0;
  for (; count - i >= 8; i += 8) {
    uint64_t word;
    memcpy(&word, source + i, 8);
    word ^= wide;
    memcpy(target + i, &word, 8);
  }
  uint8_t bytes[4];
  memcpy(bytes, &key, 4);
  for (; i < count; i++) target[i] = source[i] ^ bytes[i & 3];
}

#if defined(__x86_64__)

#include <immintrin.h>

__attribute__((target("avx2"))) static void mask_avx2(uint8_t *target, const uint8_t *source,
                                                      size_t count, uint32_t key) {
  const __m256i wide = _mm256_set1_epi32((int)key);
  size_t i = 0;
  for (; count - i >= 128; i += 128) {
    const __m256i *from = (const __m256i *)(source + i);
    __m256i *to = (__m256i *)(target + i);
    __m256i a = _mm256_loadu_si256(from), b = _mm256_loadu_si256(from + 1);
    __m256i c = _mm256_loadu_si256(from + 2), d = _mm256_loadu_si256(from + 3);
    _mm256_storeu_si256(to, _mm256_xor_si256(a, wide));
    _mm256_storeu_si256(to + 1, _mm256_xor_si256(b, wide));
    _mm256_storeu_si256(to + 2, _mm256_xor_si256(c, wide));
    _mm256_storeu_si256(to + 3, _mm256_xor_si256(d, wide));
  }
  // `i` is a multiple of 4, so the key does not need to be rotated.
  mask(target + i, source + i, count - i, key);
}

static _Bool has_avx2(void) { return __builtin_cpu_supports("avx2"); }

void shim_mask(uint8_t *target, const uint8_t *source, size_t count, uint32_t key) {
  if (count >= 128 && has_avx2()) mask_avx2(target, source, count, key);
  else mask(target, source, count, key);
}

_Bool shim_has_utf8_validator(void) { return has_avx2(); }

// Keiser and Lemire, "Validating UTF-8 in less than one instruction per byte" (2021): three
// look-ups of nibbles find the errors that two adjacent bytes can have. Each gives a set of errors;
// those in all three sets are present. Only the length of three- and four-byte sequences needs
// another check.
enum {
  TOO_SHORT = 1 << 0,   // a lead byte not followed by a continuation
  TOO_LONG = 1 << 1,    // ASCII followed by a continuation
  OVERLONG_3 = 1 << 2,  // E0 before 80..9F
  TOO_LARGE = 1 << 3,   // F4 before 90..BF, F5..FF
  SURROGATE = 1 << 4,   // ED before A0..BF
  OVERLONG_2 = 1 << 5,  // C0, C1
  BEYOND = 1 << 6,      // F5..FF before 80..8F, which has the same high nibble as an overlong F0
  OVERLONG_4 = 1 << 6,  // F0 before 80..8F
  TWO_CONTINUATIONS = 1 << 7,
  // Errors that do not depend on the low nibble of the first byte.
  ANY = TOO_SHORT | TOO_LONG | TWO_CONTINUATIONS,
};

#define TABLE(...) _mm256_setr_epi8(__VA_ARGS__, __VA_ARGS__)
#define AVX2 __attribute__((target("avx2"))) static inline

// The block shifted by `n` bytes; the last bytes of the previous block come first.
#define SHIFTED(block, before, n) \
  _mm256_alignr_epi8(block, _mm256_permute2x128_si256(before, block, 0x21), 16 - (n))

AVX2 __m256i pair_errors(__m256i block, __m256i first) {
  const __m256i nibble = _mm256_set1_epi8(0x0F);
  const __m256i first_high = TABLE(
      TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG,
      (char)TWO_CONTINUATIONS, (char)TWO_CONTINUATIONS, (char)TWO_CONTINUATIONS,
      (char)TWO_CONTINUATIONS, TOO_SHORT | OVERLONG_2, TOO_SHORT,
      TOO_SHORT | OVERLONG_3 | SURROGATE, TOO_SHORT | TOO_LARGE | BEYOND | OVERLONG_4);
  const char large = (char)(ANY | TOO_LARGE | BEYOND);
  const __m256i first_low = TABLE(
      (char)(ANY | OVERLONG_3 | OVERLONG_2 | OVERLONG_4), (char)(ANY | OVERLONG_2), (char)ANY,
      (char)ANY, (char)(ANY | TOO_LARGE), large, large, large, large, large, large, large, large,
      (char)(ANY | TOO_LARGE | BEYOND | SURROGATE), large, large);
  const char common = (char)(TOO_LONG | OVERLONG_2 | TWO_CONTINUATIONS);
  const __m256i second_high = TABLE(
      TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT,
      common | OVERLONG_3 | BEYOND | OVERLONG_4, common | OVERLONG_3 | TOO_LARGE,
      common | SURROGATE | TOO_LARGE, common | SURROGATE | TOO_LARGE, TOO_SHORT, TOO_SHORT,
      TOO_SHORT, TOO_SHORT);
  __m256i a = _mm256_and_si256(_mm256_srli_epi16(first, 4), nibble);
  __m256i b = _mm256_and_si256(first, nibble);
  __m256i c = _mm256_and_si256(_mm256_srli_epi16(block, 4), nibble);
  return _mm256_and_si256(
      _mm256_and_si256(_mm256_shuffle_epi8(first_high, a), _mm256_shuffle_epi8(first_low, b)),
      _mm256_shuffle_epi8(second_high, c));
}

// The errors in a block, given the previous one.
AVX2 __m256i block_errors(__m256i block, __m256i before) {
  __m256i pairs = pair_errors(block, SHIFTED(block, before, 1));
  // The third byte after E0..FF and the fourth after F0..FF must be a continuation that follows a
  // continuation. Only there is TWO_CONTINUATIONS correct.
  __m256i third = _mm256_subs_epu8(SHIFTED(block, before, 2), _mm256_set1_epi8(0xE0 - 0x80));
  __m256i fourth = _mm256_subs_epu8(SHIFTED(block, before, 3), _mm256_set1_epi8(0xF0 - 0x80));
  __m256i needed = _mm256_and_si256(_mm256_or_si256(third, fourth), _mm256_set1_epi8((char)0x80));
  return _mm256_xor_si256(pairs, needed);
}

// Not zero if the block ends inside a sequence.
AVX2 __m256i cut_sequence(__m256i block) {
  const __m256i complete = _mm256_setr_epi8(
      -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
      -1, -1, -1, -1, -1, -1, (char)(0xF0 - 1), (char)(0xE0 - 1), (char)(0xC0 - 1));
  return _mm256_subs_epu8(block, complete);
}

AVX2 __m256i block_at(const uint8_t *data) { return _mm256_loadu_si256((const __m256i *)data); }

// How many bytes at the start are ASCII: either all of them, or a number of whole blocks.
AVX2 size_t ascii_length(const uint8_t *data, size_t length) {
  size_t i = 0;
  for (; length - i >= 128; i += 128) {
    __m256i a = _mm256_or_si256(block_at(data + i), block_at(data + i + 32));
    __m256i b = _mm256_or_si256(block_at(data + i + 64), block_at(data + i + 96));
    if (_mm256_movemask_epi8(_mm256_or_si256(a, b))) break;
  }
  for (; length - i >= 32; i += 32) {
    if (_mm256_movemask_epi8(block_at(data + i))) return i;
  }
  // Check the rest as a block that overlaps the previous one.
  if (i == length) return i;
  return length >= 32 && !_mm256_movemask_epi8(block_at(data + length - 32)) ? length : i;
}

__attribute__((target("avx2"))) _Bool shim_is_utf8(const uint8_t *data, size_t length) {
  size_t i = ascii_length(data, length);
  if (i == length) return 1;
  __m256i errors = _mm256_setzero_si256(), before = errors, cut = errors;
  while (i < length) {
    __m256i block;
    if (length - i >= 32) {
      block = _mm256_loadu_si256((const __m256i *)(data + i));
    } else {
      // The NULs after the end are ASCII, so a sequence that is cut there counts as too short.
      uint8_t rest[32] = {0};
      memcpy(rest, data + i, length - i);
      block = _mm256_loadu_si256((const __m256i *)rest);
    }
    if (_mm256_movemask_epi8(block) == 0) {
      errors = _mm256_or_si256(errors, cut);
      cut = _mm256_setzero_si256();
    } else {
      errors = _mm256_or_si256(errors, block_errors(block, before));
      cut = cut_sequence(block);
    }
    before = block;
    i += 32;
  }
  errors = _mm256_or_si256(errors, cut);
  return _mm256_testz_si256(errors, errors);
}

#else

void shim_mask(uint8_t *target, const uint8_t *source, size_t count, uint32_t key) {
  mask(target, source, count, key);
}

_Bool shim_has_utf8_validator(void) { return 0; }

_Bool shim_is_utf8(const uint8_t *data, size_t length) {
  (void)data, (void)length;
  return 0;
}

#endif
