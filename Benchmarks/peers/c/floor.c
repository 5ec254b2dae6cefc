// The floor: only the cost of the kernel, a header parser and a UTF-8 check. No library can do less
// on such a socket, so every figure is given as a multiple of it.
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "../../server/wire.h"
#include "floor_connect.h"
#include "meter.h"
#include "utf8.h"

enum { PLAIN_READ = 256 << 10, SMALL_READ = 64 << 10, BATCH = 64 << 10, RECEIVE_BYTES = 256 << 10 };

/// One masked frame. \returns its size.
static size_t put_frame(uint8_t *out, uint8_t opcode, const uint8_t *data, size_t length) {
  size_t header = ws_put_header(out, WS_FIN | opcode, length, WS_MASKED);
  uint32_t key = link_mask_key();
  memcpy(out + header, &key, 4);
  ws_mask(out + header + 4, data, length, key);
  return header + 4 + length;
}

static void go(struct link *link) {
  uint8_t frame[16];
  link_write(link, frame, put_frame(frame, WS_TEXT, (const uint8_t *)"go", 2));
}

// MARK: Receiving

/// Reads and drops a frame that is too large to keep. `have` of its `length` bytes were already
/// read.
static bool skip_large(
    struct link *link, uint8_t *buffer, size_t size, size_t have, size_t length) {
  uint8_t last = 0;
  for (size_t left = length - have; left > 0;) {
    ssize_t got = link_read(link, buffer, left < size ? left : size);
    if (got <= 0) meter_fail("the flood ended early");
    left -= (size_t)got;
    last = buffer[got - 1];
  }
  meter.bytes += length - 1;
  return meter_message(&last, 1);
}

static bool parse(struct link *link, uint8_t *buffer, size_t size, size_t *have) {
  size_t at = 0;
  bool is_last = false;
  while (!is_last) {
    uint64_t length = 0;
    size_t header = ws_get_header(buffer + at, *have - at, &length);
    if (!header) break;
    size_t there = *have - at - header;
    if (there < length) {
      if (length < size / 2) break;
      is_last = skip_large(link, buffer, size, there, (size_t)length);
      at = *have;
      break;
    }
    const uint8_t *payload = buffer + at + header;
    if ((buffer[at] & 15) == WS_TEXT && !utf8_is_valid(payload, (size_t)length)) {
      meter_fail("a text is not UTF-8");
    }
    is_last = meter_message(payload, (size_t)length);
    at += header + (size_t)length;
  }
  memmove(buffer, buffer + at, *have - at);
  *have -= at;
  return is_last;
}

static void receive(size_t size, int receive_bytes) {
  uint8_t *buffer = malloc(size);
  struct link link;
  size_t have = link_open(&link, receive_bytes, "", buffer, size);
  meter_start();
  go(&link);
  do {
    ssize_t got = link_read(&link, buffer + have, size - have);
    if (got <= 0) meter_fail("the flood ended early");
    have += (size_t)got;
  } while (!parse(&link, buffer, size, &have));
  meter_stop();
}

/// Inflates one message (RFC 7692 §7.2.2). `in` has room for four more bytes at its end.
static bool inflate_message(z_stream *stream, uint8_t *in, size_t length, bool has_context) {
  static uint8_t out[1 << 16];
  static const uint8_t tail[4] = {0, 0, 0xff, 0xff};
  uint8_t kept[4];
  memcpy(kept, in + length, 4);
  memcpy(in + length, tail, 4);
  if (!has_context) inflateReset(stream);
  stream->next_in = in;
  stream->avail_in = (uInt)length + 4;
  stream->next_out = out;
  stream->avail_out = sizeof out;
  if (inflate(stream, Z_SYNC_FLUSH) != Z_OK || stream->avail_in) meter_fail("not deflate");
  memcpy(in + length, kept, 4);
  size_t size = sizeof out - stream->avail_out;
  if (!utf8_is_valid(out, size)) meter_fail("a text is not UTF-8");
  return meter_message(out, size);
}

static void receive_deflate(void) {
  bool has_context = strstr(task.path, "-kept") != NULL;
  uint8_t *buffer = malloc(PLAIN_READ + 4);
  struct link link;
  z_stream stream = {0};
  inflateInit2(&stream, -15);
  size_t have = link_open(
      &link, 0, "Sec-WebSocket-Extensions: permessage-deflate\r\n", buffer, PLAIN_READ);
  meter_start();
  go(&link);
  for (bool is_last = false; !is_last;) {
    ssize_t got = link_read(&link, buffer + have, PLAIN_READ - have);
    if (got <= 0) meter_fail("the flood ended early");
    have += (size_t)got;
    size_t at = 0;
    for (; !is_last;) {
      uint64_t length = 0;
      size_t header = ws_get_header(buffer + at, have - at, &length);
      if (!header || have - at - header < length) break;
      is_last = inflate_message(&stream, buffer + at + header, (size_t)length, has_context);
      at += header + (size_t)length;
    }
    memmove(buffer, buffer + at, have - at);
    have -= at;
  }
  meter_stop();
}

// MARK: Sending

/// Waits for the server's result, one short text frame.
static void finish_sending(struct link *link) {
  uint8_t answer[128];
  ssize_t got = link_read(link, answer, sizeof answer);
  meter_stop();
  if (got < 3 || answer[0] != (WS_FIN | WS_TEXT)) meter_fail("no verdict came");
  meter_sent((const char *)answer + 2, (size_t)got - 2);
}

/// Frames below the batch size are written together; larger ones are masked and written in pieces.
static void send_all(size_t batch) {
  uint8_t *payload = meter_payload(), *out = malloc(2 * BATCH + WS_MAX_HEADER);
  struct link link;
  link_open(&link, 0, "", NULL, 0);
  meter_start();
  size_t used = 0;
  for (uint64_t i = 0; i < task.count; i++) {
    if (task.size <= BATCH) {
      used += put_frame(out + used, WS_BINARY, payload, task.size);
    } else {
      used += ws_put_header(out + used, WS_FIN | WS_BINARY, task.size, WS_MASKED);
      uint32_t key = link_mask_key();
      memcpy(out + used, &key, 4);
      used += 4;
      for (size_t at = 0; at < task.size;) {
        size_t part = task.size - at < BATCH ? task.size - at : BATCH;
        ws_mask(out + used, payload + at, part, key);
        link_write(&link, out, used + part);
        at += part;
        used = 0;
      }
    }
    if (used >= batch) {
      link_write(&link, out, used);
      used = 0;
    }
  }
  link_write(&link, out, used);
  finish_sending(&link);
}

static void echo(void) {
  uint8_t *payload = meter_payload(), *frame = malloc(task.size + WS_MAX_HEADER + 1);
  struct link link;
  link_open(&link, 0, "", NULL, 0);
  meter_start();
  size_t header;
  do {
    meter_ask();
    link_write(&link, frame, put_frame(frame, WS_BINARY, payload, task.size));
    size_t have = 0;
    uint64_t length = 0;
    do {
      ssize_t got = link_read(&link, frame + have, task.size + WS_MAX_HEADER - have);
      if (got <= 0) meter_fail("the echo ended early");
      have += (size_t)got;
      header = ws_get_header(frame, have, &length);
    } while (!header || have < header + length);
  } while (!meter_answer(frame + header, task.size));
  meter_stop();
}

// MARK: Connecting

static void connect_in_turn(void) {
  meter_start();
  while (meter.messages < task.count) {
    struct link link;
    link_open(&link, 0, "", NULL, 0);
    link_close(&link);
    meter.messages++;
  }
  meter_stop();
}

static void idle(void) {
  struct link link;
  link_open(&link, 0, "", NULL, 0);
  meter_idle_before();
  for (; meter.messages < task.count; meter.messages++) link_open(&link, 0, "", NULL, 0);
  meter_idle_after();
}

int main(int argc, char **argv) {
  task_read(argc, argv);
  if (task_is("receive")) {
    receive(PLAIN_READ, 0);
  } else if (task_is("receive-rcvbuf")) {
    receive(SMALL_READ, RECEIVE_BYTES);
  } else if (task_is("deflate")) {
    receive_deflate();
  } else if (task_is("send")) {
    send_all(BATCH);
  } else if (task_is("send-each")) {
    send_all(1);
  } else if (task_is("echo")) {
    echo();
  } else if (task_is("connect")) {
    connect_in_turn();
  } else if (task_is("idle")) {
    idle();
  } else {
    return NOT_SUPPORTED;
  }
  meter_report();
}
