#define _GNU_SOURCE
#include "shim_search.h"

#include <string.h>

size_t shim_find(const uint8_t *text, size_t count, const uint8_t *needle, size_t length) {
  const uint8_t *found = memmem(text, count, needle, length);
  return found ? (size_t)(found - text) : count;
}

// Byte by byte, for the rest of the input.
static inline size_t line_end_bytes(const uint8_t *text, size_t i, size_t count, _Bool *ascii) {
  for (; i < count; i++) {
    if (text[i] == '\n' || text[i] == '\r') return i;
    if (text[i] >= 0x80) *ascii = 0;
  }
  return count;
}

#if defined(__x86_64__)

#include <immintrin.h>

// Evaluates two masks of a block: where the line ends, and whether it is ASCII up to there.
static inline size_t found(uint32_t ends, uint32_t high, size_t i, _Bool *ascii) {
  unsigned place = (unsigned)__builtin_ctz(ends);
  if (high & ((1u << place) - 1)) *ascii = 0;
  return i + place;
}

__attribute__((target("avx2"))) static size_t line_end_avx2(const uint8_t *text, size_t i,
                                                            size_t count, _Bool *ascii) {
  const __m256i lf = _mm256_set1_epi8('\n'), cr = _mm256_set1_epi8('\r');
  __m256i seen = _mm256_setzero_si256();
  for (; count - i >= 64; i += 64) {
    __m256i a = _mm256_loadu_si256((const __m256i *)(text + i));
    __m256i b = _mm256_loadu_si256((const __m256i *)(text + i + 32));
    __m256i ends_a = _mm256_or_si256(_mm256_cmpeq_epi8(a, lf), _mm256_cmpeq_epi8(a, cr));
    __m256i ends_b = _mm256_or_si256(_mm256_cmpeq_epi8(b, lf), _mm256_cmpeq_epi8(b, cr));
    __m256i ends = _mm256_or_si256(ends_a, ends_b);
    if (!_mm256_testz_si256(ends, ends)) {
      if (_mm256_movemask_epi8(seen)) *ascii = 0;
      uint32_t first = (uint32_t)_mm256_movemask_epi8(ends_a);
      if (first) return found(first, (uint32_t)_mm256_movemask_epi8(a), i, ascii);
      if (_mm256_movemask_epi8(a)) *ascii = 0;
      return found((uint32_t)_mm256_movemask_epi8(ends_b), (uint32_t)_mm256_movemask_epi8(b),
                   i + 32, ascii);
    }
    seen = _mm256_or_si256(seen, _mm256_or_si256(a, b));
  }
  if (_mm256_movemask_epi8(seen)) *ascii = 0;
  for (; count - i >= 32; i += 32) {
    __m256i a = _mm256_loadu_si256((const __m256i *)(text + i));
    __m256i ends = _mm256_or_si256(_mm256_cmpeq_epi8(a, lf), _mm256_cmpeq_epi8(a, cr));
    uint32_t mask = (uint32_t)_mm256_movemask_epi8(ends);
    if (mask) return found(mask, (uint32_t)_mm256_movemask_epi8(a), i, ascii);
    if (_mm256_movemask_epi8(a)) *ascii = 0;
  }
  return line_end_bytes(text, i, count, ascii);
}

size_t shim_line_end(const uint8_t *text, size_t count, _Bool *ascii) {
  const __m128i lf = _mm_set1_epi8('\n'), cr = _mm_set1_epi8('\r');
  size_t i = 0;
  for (; count - i >= 16; i += 16) {
    // Most lines are too short for wider registers to pay off.
    if (i == 64 && __builtin_cpu_supports("avx2")) return line_end_avx2(text, i, count, ascii);
    __m128i a = _mm_loadu_si128((const __m128i *)(text + i));
    __m128i ends = _mm_or_si128(_mm_cmpeq_epi8(a, lf), _mm_cmpeq_epi8(a, cr));
    uint32_t mask = (uint32_t)_mm_movemask_epi8(ends);
    uint32_t high = (uint32_t)_mm_movemask_epi8(a);
    if (mask) return found(mask, high, i, ascii);
    if (high) *ascii = 0;
  }
  return line_end_bytes(text, i, count, ascii);
}

#else

// Eight bytes per step: the high bit of a byte is set if it has `value`. Borrows may also set it in
// later bytes, never in earlier ones; the exact position is then found byte by byte.
static inline uint64_t has(uint64_t word, uint8_t value) {
  const uint64_t ones = 0x0101010101010101u;
  uint64_t difference = word ^ ones * value;
  return (difference - ones) & ~difference & ones << 7;
}

size_t shim_line_end(const uint8_t *text, size_t count, _Bool *ascii) {
  size_t i = 0;
  uint64_t seen = 0;
  for (; count - i >= 8; i += 8) {
    uint64_t word;
    memcpy(&word, text + i, 8);
    if (has(word, '\n') | has(word, '\r')) break;
    seen |= word;
  }
  if (seen & 0x8080808080808080u) *ascii = 0;
  return line_end_bytes(text, i, count, ascii);
}

#endif

size_t shim_find_byte(const uint8_t *text, size_t count, uint8_t byte) {
  const uint8_t *found = count ? memchr(text, byte, count) : NULL;
  return found ? (size_t)(found - text) : count;
}

// What the character after a backslash stands for; 0 for characters that are not an escape of one
// character.
static const uint8_t escapes[256] = {
    ['"'] = '"',   ['\\'] = '\\', ['/'] = '/',   ['b'] = '\b',
    ['f'] = '\f', ['n'] = '\n',   ['r'] = '\r', ['t'] = '\t',
};

static inline _Bool is_escape(const uint8_t *text, size_t i, size_t count) {
  return count - i >= 2 && text[i] == '\\' && escapes[text[i + 1]];
}

#if defined(__x86_64__)
static inline uint32_t equal(__m128i block, char byte) {
  return (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(block, _mm_set1_epi8(byte)));
}
#endif

size_t shim_json_string(const uint8_t *text, size_t count, _Bool *plain) {
  size_t i = 0;
#if defined(__x86_64__)
  const __m128i control = _mm_set1_epi8(0x1F);
  while (count - i >= 16) {
    __m128i block = _mm_loadu_si128((const __m128i *)(text + i));
    uint32_t quotes = equal(block, '"'), slashes = equal(block, '\\');
    uint32_t controls = (uint32_t)_mm_movemask_epi8(
        _mm_cmpeq_epi8(_mm_min_epu8(block, control), block));
    if (!controls && quotes == (slashes << 1 & 0xFFFF)) {
      // Each quotation mark is escaped, and nothing else is, as in JSON within JSON. The last
      // backslash may precede the next block.
      if (quotes) *plain = 0;
      i += 16 - (slashes >> 15);
      continue;
    }
    uint32_t found = controls | quotes | slashes;
    size_t next = i + 16;
    while (found) {
      unsigned place = (unsigned)__builtin_ctz(found);
      if (!is_escape(text, i + place, count)) return i + place;
      *plain = 0;
      if (place == 15) next++;
      found &= ~(uint32_t)3 << place;
    }
    i = next;
  }
#endif
  while (i < count) {
    if (is_escape(text, i, count)) {
      *plain = 0;
      i += 2;
    } else if (text[i] < 0x20 || text[i] == '"' || text[i] == '\\') {
      return i;
    } else {
      i++;
    }
  }
  return count;
}

size_t shim_json_unescape(uint8_t *restrict target, const uint8_t *restrict text, size_t count,
                          size_t *read) {
  size_t from = 0, to = 0;
#if defined(__x86_64__)
  // `to` is never above `from`, so a block of the text has room.
  while (count - from > 16) {
    __m128i block = _mm_loadu_si128((const __m128i *)(text + from));
    _mm_storeu_si128((__m128i *)(target + to), block);
    uint32_t slashes = equal(block, '\\');
    size_t length = slashes ? (size_t)__builtin_ctz(slashes) : 16;
    from += length;
    to += length;
    if (!slashes) continue;
    uint8_t character = escapes[text[from + 1]];
    if (!character) break;
    target[to++] = character;
    from += 2;
  }
#endif
  while (from < count) {
    if (text[from] != '\\') {
      target[to++] = text[from++];
    } else if (is_escape(text, from, count)) {
      target[to++] = escapes[text[from + 1]];
      from += 2;
    } else {
      break;
    }
  }
  *read = from;
  return to;
}
