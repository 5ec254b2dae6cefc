// What the server floods with: frames built before anything is measured.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Frames one after the other, and what they hold.
struct frames {
  uint8_t *bytes;
  size_t count;
  /// count + 1 values each, running totals from 0.
  size_t *wire;
  uint64_t *payload;
  uint64_t *checksum;
};

/// A flood sends `first` once, then `again` for ever. They differ where a compressor's context is
/// kept: `again` refers back to what came before it, which is the same text after either.
struct flood {
  struct frames first;
  struct frames again;
  bool is_compressed;
  bool has_context;
  /// Events of a stream over HTTP rather than frames.
  bool is_events;
};

/// Bytes on the wire, bytes of payload and the sum of the last byte of each of `count` messages.
struct totals {
  uint64_t wire, payload, checksum;
};

/// The flood of this name, made at its first use; NULL when there is none.
const struct flood *flood_named(const char *name);
struct totals flood_totals(const struct flood *flood, uint64_t count);

/// Position i of every payload that clients send.
static inline uint8_t pattern_at(size_t i) { return (uint8_t)(i * 7 + 3); }
