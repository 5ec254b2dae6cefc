// The server's floods: frames that are built before the measurement.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Frames in a row, and their sums.
struct frames {
  uint8_t *bytes;
  size_t count;
  /// count + 1 values each, running totals from 0.
  size_t *wire;
  uint64_t *payload;
  uint64_t *checksum;
};

/// A flood sends `first` once, then `again` forever. They differ if the compressor keeps its
/// context: `again` refers back to the text before it, which is the same after either.
struct flood {
  struct frames first;
  struct frames again;
  bool is_compressed;
  bool has_context;
  /// Events of an HTTP stream instead of frames.
  bool is_events;
};

/// Bytes on the wire, bytes of payload and the sum of the last bytes of `count` messages.
struct totals {
  uint64_t wire, payload, checksum;
};

/// The flood with this name, built at its first use; NULL if there is none.
const struct flood *flood_named(const char *name);
struct totals flood_totals(const struct flood *flood, uint64_t count);

/// A reproducible number for field `field` of record `i` (splitmix64).
static inline uint64_t chance(size_t i, unsigned field) {
  uint64_t z = (i * 16 + field + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

/// Byte i of every payload that clients send.
static inline uint8_t pattern_at(size_t i) { return (uint8_t)(i * 7 + 3); }
