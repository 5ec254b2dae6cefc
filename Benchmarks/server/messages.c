#include "messages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "wire.h"

enum { LOOP_BYTES = 1 << 20, MAX_PAYLOAD = 1 << 20 };

/// Writes message `i` into `out`. Returns its length.
typedef size_t (*writer)(uint8_t *out, size_t size, size_t i);

static void *allocate(size_t bytes) {
  void *memory = malloc(bytes);
  if (!memory) {
    fprintf(stderr, "server: out of memory\n");
    exit(1);
  }
  return memory;
}

// MARK: Payloads. The last byte differs between messages, because clients add them up.

static size_t write_ascii(uint8_t *out, size_t size, size_t i) {
  for (size_t at = 0; at < size; at++) out[at] = (uint8_t)("the quick brown fox "[at % 20]);
  out[size - 1] = (uint8_t)('a' + i % 26);
  return size;
}

static size_t write_binary(uint8_t *out, size_t size, size_t i) {
  for (size_t at = 0; at < size; at++) out[at] = pattern_at(at);
  out[size - 1] = (uint8_t)(i + 1);
  return size;
}

/// Text with one to four bytes per character, like a chat in several scripts.
static size_t write_unicode(uint8_t *out, size_t size, size_t i) {
  static const char words[] = "Grüße, мир: 実時間の通信 ✓ 😀 ";
  size_t at = 0;
  while (at + sizeof words - 1 < size) {
    memcpy(out + at, words, sizeof words - 1);
    at += sizeof words - 1;
  }
  memset(out + at, '.', size - at);
  out[size - 1] = (uint8_t)('a' + i % 26);
  return size;
}

/// One record of a market feed, about 270 bytes.
static size_t write_record(char *out, size_t room, size_t i) {
  static const char *const symbols[] = {"BTC-EUR", "ETH-EUR", "XMR-BTC", "SOL-USD"};
  unsigned cents = 4300000 + (unsigned)(chance(i, 0) % 20000);
  return (size_t)snprintf(
      out, room,
      "{\"type\":\"ticker\",\"sequence\":%zu,\"product_id\":\"%s\",\"price\":\"%u.%02u\","
      "\"open_24h\":\"42100.10\",\"volume_24h\":\"183%02zu.%08zu\",\"best_bid\":\"%u.%02u\","
      "\"best_ask\":\"%u.%02u\",\"side\":\"%s\",\"time\":\"2026-03-14T09:26:%02zu.%03zuZ\","
      "\"trade_id\":%zu,\"last_size\":\"0.%05zu\"}",
      5000000 + i, symbols[chance(i, 1) % 4], cents / 100, cents % 100,
      (size_t)(chance(i, 4) % 100), (size_t)(chance(i, 5) % 100000000), (cents - 7) / 100,
      (cents - 7) % 100, (cents + 9) / 100, (cents + 9) % 100,
      chance(i, 2) % 2 ? "buy" : "sell", i / 50 % 60, (size_t)(chance(i, 6) % 1000),
      (size_t)(88000000 + chance(i, 7) % 10000000),
      (size_t)(chance(i, 3) % 100000));
}

static size_t write_json(uint8_t *out, size_t size, size_t i) {
  size_t length = write_record((char *)out, size + 1, i);
  // Cut or padded to the row's exact size; we never parse it.
  for (size_t at = length; at < size; at++) out[at] = ' ';
  out[size - 1] = (uint8_t)('a' + i % 26);
  return size;
}

static size_t write_small(uint8_t *out, size_t size, size_t i) {
  return write_record((char *)out, size, i);
}

static size_t write_large(uint8_t *out, size_t size, size_t i) {
  char *text = (char *)out;
  size_t at = (size_t)snprintf(text, size, "{\"channel\":\"book\",\"events\":[");
  for (size_t k = 0; k < 15; k++) {
    at += write_record(text + at, size - at, i * 15 + k);
    at += (size_t)snprintf(text + at, size - at, k < 14 ? "," : "]}");
  }
  return at;
}

/// The numbers that clients add up in place of last bytes if they read the data of Pusher events.
static unsigned quantity(size_t i) { return 1 + (unsigned)(chance(i, 8) % 250); }

/// The data of a Pusher event, which is JSON itself.
static size_t write_price(uint8_t *out, size_t size, size_t i) {
  static const char *const symbols[] = {"BTC-EUR", "ETH-EUR", "XMR-BTC", "SOL-USD"};
  unsigned cents = 4300000 + (unsigned)(chance(i, 0) % 20000);
  return (size_t)snprintf(
      (char *)out, size,
      "{\"symbol\":\"%s\",\"price\":%u.%02u,\"quantity\":%u,\"side\":\"%s\","
      "\"time\":\"2026-03-14T09:26:%02zu.%03zuZ\",\"trade\":%zu,\"bid\":%u.%02u,"
      "\"ask\":%u.%02u,\"currency\":\"EUR\"}",
      symbols[chance(i, 1) % 4], cents / 100, cents % 100, quantity(i),
      chance(i, 2) % 2 ? "buy" : "sell", i / 50 % 60, (size_t)(chance(i, 6) % 1000),
      (size_t)(88000000 + chance(i, 7) % 10000000), (cents - 7) / 100, (cents - 7) % 100,
      (cents + 9) / 100, (cents + 9) % 100);
}

/// The message of a Pusher event with this data.
static size_t write_message(uint8_t *out, const uint8_t *data, size_t length) {
  size_t at = (size_t)sprintf(
      (char *)out, "{\"event\":\"new-price\",\"channel\":\"chat\",\"data\":\"");
  for (size_t i = 0; i < length; i++) {
    if (data[i] == '"') out[at++] = '\\';
    out[at++] = data[i];
  }
  memcpy(out + at, "\"}", 2);
  return at + 2;
}

// MARK: Frames

struct kind {
  const char *name;
  writer write;
  size_t size;
  uint8_t opcode;
  /// Messages before the flood repeats itself; 0 means as many as fit into LOOP_BYTES.
  size_t count;
  bool is_compressed, has_context, is_pusher;
};

/// Instead of an opcode: the message is the data of an event, without a type or with the type
/// "tick".
enum { EVENT = 0, TICK = 3 };

static const struct kind kinds[] = {
    {"text64", write_ascii, 64, WS_TEXT, 0, false, false, false},
    {"json256", write_json, 256, WS_TEXT, 0, false, false, false},
    {"unicode256", write_unicode, 256, WS_TEXT, 0, false, false, false},
    {"bin4k", write_binary, 4096, WS_BINARY, 0, false, false, false},
    {"bin64k", write_binary, 65536, WS_BINARY, 0, false, false, false},
    {"bin1m", write_binary, 1 << 20, WS_BINARY, 0, false, false, false},
    {"json270-kept", write_small, 512, WS_TEXT, 4096, true, true, false},
    {"json270-reset", write_small, 512, WS_TEXT, 4096, true, false, false},
    {"json4k-kept", write_large, 8192, WS_TEXT, 512, true, true, false},
    {"json4k-reset", write_large, 8192, WS_TEXT, 512, true, false, false},
    {"event228", write_json, 228, EVENT, 0, false, false, false},
    {"event4k", write_json, 4096, EVENT, 0, false, false, false},
    {"tick64", write_ascii, 64, TICK, 0, false, false, false},
    {"price", write_price, 512, WS_TEXT, 4096, false, false, true},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

enum { MAX_EVENT_HEAD = 64 };

static bool is_event(const struct kind *kind) {
  return kind->opcode == EVENT || kind->opcode == TICK;
}

static void append_event(
    struct frames *to, size_t i, const uint8_t *payload, size_t length, bool is_tick) {
  char *at = (char *)to->bytes + to->wire[i];
  int head = sprintf(at, "id: %zu\n%sdata: ", i + 1, is_tick ? "event: tick\n" : "");
  memcpy(at + head, payload, length);
  memcpy(at + head + length, "\n\n", 2);
  to->wire[i + 1] = to->wire[i] + (size_t)head + length + 2;
  to->payload[i + 1] = to->payload[i] + length;
  to->checksum[i + 1] = to->checksum[i] + payload[length - 1];
}

static void append(
    struct frames *to, size_t i, const uint8_t *payload, size_t length, const uint8_t *wire,
    size_t wire_length, uint8_t first) {
  size_t at = to->wire[i];
  at += ws_put_header(to->bytes + at, first, wire_length, 0);
  memcpy(to->bytes + at, wire, wire_length);
  to->wire[i + 1] = at + wire_length;
  to->payload[i + 1] = to->payload[i] + length;
  to->checksum[i + 1] = to->checksum[i] + payload[length - 1];
}

/// RFC 7692 §7.2.1: a sync flush, without its last four bytes.
static size_t compress_message(
    z_stream *stream, const uint8_t *in, size_t length, uint8_t *out, size_t room) {
  stream->next_in = (Bytef *)in;
  stream->avail_in = (uInt)length;
  stream->next_out = out;
  stream->avail_out = (uInt)room;
  if (deflate(stream, Z_SYNC_FLUSH) != Z_OK || stream->avail_out == 0) {
    fprintf(stderr, "server: a message does not compress\n");
    exit(1);
  }
  return room - stream->avail_out - 4;
}

static struct frames build(const struct kind *kind, size_t count, z_stream *stream) {
  static uint8_t payload[MAX_PAYLOAD + 1], packed[MAX_PAYLOAD];
  struct frames made = {
      .bytes = allocate(count * (kind->size + WS_MAX_HEADER + MAX_EVENT_HEAD)),
      .count = count,
      .wire = allocate((count + 1) * sizeof *made.wire),
      .payload = allocate((count + 1) * sizeof *made.payload),
      .checksum = allocate((count + 1) * sizeof *made.checksum),
  };
  made.wire[0] = made.payload[0] = made.checksum[0] = 0;
  uint8_t first = WS_FIN | kind->opcode;
  for (size_t i = 0; i < count; i++) {
    size_t length = kind->write(payload, kind->size, i);
    if (is_event(kind)) {
      append_event(&made, i, payload, length, kind->opcode == TICK);
      continue;
    }
    if (kind->is_pusher) {
      size_t size = write_message(packed, payload, length);
      append(&made, i, payload, length, packed, size, first);
      made.checksum[i + 1] = made.checksum[i] + quantity(i);
      continue;
    }
    if (!kind->is_compressed) {
      append(&made, i, payload, length, payload, length, first);
      continue;
    }
    if (!kind->has_context) deflateReset(stream);
    size_t size = compress_message(stream, payload, length, packed, sizeof packed);
    append(&made, i, payload, length, packed, size, first | WS_COMPRESSED);
  }
  return made;
}

static void make(struct flood *flood, const struct kind *kind) {
  size_t count = kind->count;
  if (!count) count = LOOP_BYTES / (kind->size + 4);
  if (!count) count = 1;
  flood->is_compressed = kind->is_compressed;
  flood->has_context = kind->has_context;
  flood->is_events = is_event(kind);
  z_stream stream = {0};
  if (deflateInit2(&stream, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) != Z_OK) exit(1);
  flood->first = build(kind, count, &stream);
  // With context, the second round refers back to the first round's text, and so does the third.
  flood->again = kind->has_context ? build(kind, count, &stream) : flood->first;
  deflateEnd(&stream);
}

const struct flood *flood_named(const char *name) {
  static struct flood made[KINDS];
  for (size_t i = 0; i < KINDS; i++) {
    if (strcmp(kinds[i].name, name) != 0) continue;
    if (!made[i].first.count) make(&made[i], &kinds[i]);
    return &made[i];
  }
  return NULL;
}

static struct totals until(const struct frames *frames, size_t count) {
  return (struct totals){frames->wire[count], frames->payload[count], frames->checksum[count]};
}

struct totals flood_totals(const struct flood *flood, uint64_t count) {
  size_t size = flood->first.count;
  if (count <= size) return until(&flood->first, (size_t)count);
  struct totals start = until(&flood->first, size), whole = until(&flood->again, size);
  struct totals rest = until(&flood->again, (size_t)(count % size));
  uint64_t rounds = count / size - 1;
  return (struct totals){
      start.wire + rounds * whole.wire + rest.wire,
      start.payload + rounds * whole.payload + rest.payload,
      start.checksum + rounds * whole.checksum + rest.checksum,
  };
}
