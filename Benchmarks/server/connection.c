#define _GNU_SOURCE
#include "connection.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "ddp.h"
#include "pusher.h"
#include "wire.h"

bool connection_send(struct connection *c, const void *data, size_t length) {
  if (c->tls) return SSL_write(c->tls, data, (int)length) == (int)length;
  return send(c->fd, data, length, MSG_NOSIGNAL) == (ssize_t)length;
}

bool connection_frame(
    struct connection *c, uint8_t opcode, const uint8_t *data, size_t length) {
  static uint8_t out[MAX_TEXT + WS_MAX_HEADER];
  size_t header = ws_put_header(out, WS_FIN | opcode, length, 0);
  memcpy(out + header, data, length);
  return connection_send(c, out, header + length);
}

// MARK: Handshake

/// Builds the response to every request of a connection.
static bool build_answer(struct connection *c, size_t size) {
  char head[256];
  if (size > MAX_TEXT) return false;
  int length = snprintf(
      head, sizeof head,
      "HTTP/1.1 200 OK\r\nServer: bench\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\n"
      "Content-Type: application/octet-stream\r\nContent-Length: %zu\r\n"
      "Connection: keep-alive\r\n\r\n",
      size);
  free(c->answer);
  c->answer_length = (size_t)length + size;
  if (!(c->answer = malloc(c->answer_length))) return false;
  memcpy(c->answer, head, (size_t)length);
  for (size_t i = 0; i < size; i++) c->answer[(size_t)length + i] = pattern_at(i);
  return true;
}

/// A flood, of which a Pusher client's key names the kind.
static bool choose_flood(
    struct connection *c, enum mode mode, const char *kind, unsigned long long count) {
  c->flood = flood_named(kind);
  if (!c->flood) return false;
  c->flood_end = flood_totals(c->flood, count).wire;
  c->mode = mode;
  return true;
}

/// Reads `/flood/KIND/COUNT`, `/sink/SIZE/COUNT`, `/echo`, `/idle`, `/greet`, `/answer/SIZE`,
/// `/app/flood-KIND-COUNT`, `/app/channels-COUNT`, `/auth` or `/ddp-…/websocket`.
static bool choose_mode(struct connection *c, const char *path) {
  char kind[32];
  unsigned long long count, size;
  if (sscanf(path, "/flood/%31[^/]/%llu", kind, &count) == 2) {
    return choose_flood(c, FLOOD, kind, count);
  } else if (sscanf(path, "/app/flood-%31[^-]-%llu", kind, &count) == 2) {
    return choose_flood(c, PUSHER, kind, count);
  } else if (sscanf(path, "/app/channels-%llu", &count) == 1) {
    c->expected = count;
    c->mode = PUSHER;
  } else if (sscanf(path, "/ddp-%31[^/]/websocket", kind) == 1) {
    char name[40];
    snprintf(name, sizeof name, "ddp-%s", kind);
    c->ddp = ddp_data_named(name);
    c->mode = DDP;
    return c->ddp != NULL;
  } else if (strcmp(path, "/auth") == 0) {
    c->mode = AUTHORIZE;
  } else if (sscanf(path, "/sink/%llu/%llu", &size, &count) == 2) {
    c->size = size;
    c->expected = count;
    c->mode = SINK;
  } else if (sscanf(path, "/answer/%llu", &size) == 1) {
    if (!build_answer(c, size)) return false;
    c->mode = ANSWER;
  } else if (strncmp(path, "/echo", 5) == 0) {
    c->mode = ECHO;
  } else if (strncmp(path, "/idle", 5) == 0) {
    c->mode = QUIET;
  } else if (strncmp(path, "/greet", 6) == 0) {
    c->flood = flood_named("json270-kept");
    c->mode = QUIET;
  } else {
    return false;
  }
  return true;
}

/// Sends a whole event stream: it floods at once.
static bool stream_events(struct connection *c) {
  static const char answer[] =
      "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n"
      "Connection: close\r\n\r\n";
  free(c->text);
  c->text = NULL;
  c->text_length = 0;
  return connection_send(c, answer, sizeof answer - 1) && connection_flood(c);
}

/// Answers the complete requests; a GET has no body.
static bool answer_requests(struct connection *c) {
  const char *at = (const char *)c->text, *end = at;
  while ((at = strstr(end, "\r\n\r\n"))) {
    if (!connection_send(c, c->answer, c->answer_length)) return false;
    end = at + 4;
  }
  c->text_length -= (size_t)(end - (const char *)c->text);
  memmove(c->text, end, c->text_length + 1);
  return true;
}

static bool shake_hands(struct connection *c) {
  char path[128], key[64], accept[32], answer[512];
  const char *head = (const char *)c->text;
  const char *found = strcasestr(head, "\r\nSec-WebSocket-Key:");
  if (sscanf(head, "%*s %127s", path) != 1) return false;
  if (!found) {
    if (!choose_mode(c, path)) return false;
    if (c->mode == ANSWER) return answer_requests(c);
    if (c->mode == AUTHORIZE) return pusher_authorize(c);
    if (!c->flood || !c->flood->is_events) return false;
    return stream_events(c);
  }
  if (sscanf(found + 20, " %63[^\r]", key) != 1 || !choose_mode(c, path)) return false;
  ws_accept(key, accept);
  const char *extension = "";
  if (c->flood && c->flood->is_compressed) {
    if (!strcasestr(head, "permessage-deflate")) return false;
    extension = c->flood->has_context
                    ? "Sec-WebSocket-Extensions: permessage-deflate\r\n"
                    : "Sec-WebSocket-Extensions: permessage-deflate; "
                      "server_no_context_takeover\r\n";
  }
  int length = snprintf(
      answer, sizeof answer,
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
      "Sec-WebSocket-Accept: %s\r\n%s\r\n",
      accept, extension);
  free(c->text);
  c->text = NULL;
  c->text_length = 0;
  if (!connection_send(c, answer, (size_t)length)) return false;
  if (c->mode == PUSHER) return pusher_greet(c);
  if (c->mode != QUIET || !c->flood) return true;
  return connection_send(c, c->flood->first.bytes, c->flood->first.wire[1]);
}

static bool keep_text(struct connection *c, const uint8_t *data, size_t length) {
  if (!c->text && !(c->text = malloc(MAX_TEXT + 1))) return false;
  if (length > MAX_TEXT - c->text_length) return false;
  memcpy(c->text + c->text_length, data, length);
  c->text_length += length;
  c->text[c->text_length] = 0;
  return true;
}

static bool read_request(struct connection *c, const uint8_t *data, size_t length) {
  // A client waits for the response before it sends more, so nothing follows the head.
  if (!keep_text(c, data, length)) return false;
  return !strstr((const char *)c->text, "\r\n\r\n") || shake_hands(c);
}

// MARK: Frames

/// Compares every 61st message completely, of the others the first eight bytes.
static void compare(struct connection *c, const uint8_t *data, size_t length) {
  uint64_t start = c->message_at;
  if (c->messages % 61 != 0) {
    if (start >= 8) return;
    if (length > 8 - start) length = 8 - (size_t)start;
  }
  for (size_t i = 0; i < length; i++) {
    uint8_t byte = data[i] ^ c->frame.key[(c->frame.at + i) & 3];
    if (byte != pattern_at((size_t)start + i)) {
      c->wrong++;
      return;
    }
  }
}

static bool payload(struct connection *c, const uint8_t *data, size_t length) {
  bool is_control = c->frame.header[0] & 8;
  if (is_control || c->mode == ECHO || c->mode == PUSHER || c->mode == DDP) {
    size_t start = c->text_length;
    if (!keep_text(c, data, length)) return false;
    for (size_t i = start; i < c->text_length; i++) c->text[i] ^= c->frame.key[i & 3];
  } else if (c->mode == SINK) {
    compare(c, data, length);
    c->message_at += length;
  }
  c->frame.at += length;
  return true;
}

static bool end_of_frame(struct connection *c) {
  uint8_t opcode = c->frame.header[0] & 15;
  size_t length = c->text_length;
  c->text_length = 0;
  if (opcode == WS_CLOSE) {
    connection_frame(c, WS_CLOSE, c->text, length < 2 ? 0 : length);
    return false;
  }
  if (opcode == WS_PING) return connection_frame(c, WS_PONG, c->text, length);
  if (opcode == WS_PONG) return true;
  if (c->mode == ECHO) return connection_frame(c, opcode, c->text, length);
  if (c->mode == FLOOD) return connection_flood(c);
  if (c->mode == PUSHER) return pusher_message(c);
  if (c->mode == DDP) return ddp_message(c);
  if (c->mode != SINK) return true;
  if (!(c->frame.header[0] & WS_FIN)) return true;
  c->bytes += c->message_at;
  if (c->message_at != c->size) c->wrong++;
  c->message_at = 0;
  if (++c->messages != c->expected) return true;
  char text[96];
  int size = snprintf(
      text, sizeof text, "%llu %llu %llu", (unsigned long long)c->messages,
      (unsigned long long)c->bytes, (unsigned long long)c->wrong);
  return connection_frame(c, WS_TEXT, (uint8_t *)text, (size_t)size);
}

/// Reads header bytes until the header is complete. \returns how many were used.
static size_t take_header(struct incoming *frame, const uint8_t *data, size_t length) {
  size_t used = 0;
  if (frame->need == 0) frame->need = 2;
  while (used < length && frame->have < frame->need) {
    frame->header[frame->have++] = data[used++];
    if (frame->have != 2) continue;
    uint8_t code = frame->header[1] & 0x7f;
    frame->need = 2 + 4 + (code < 126 ? 0 : code == 126 ? 2 : 8);
  }
  return used;
}

bool connection_received(struct connection *c, const uint8_t *data, size_t length) {
  if (c->mode == HANDSHAKE) return read_request(c, data, length);
  if (c->mode == ANSWER) return keep_text(c, data, length) && answer_requests(c);
  if (c->mode == AUTHORIZE) return keep_text(c, data, length) && pusher_authorize(c);
  struct incoming *frame = &c->frame;
  while (length > 0 || (frame->have == frame->need && frame->need)) {
    if (frame->have < frame->need || frame->need == 0) {
      size_t used = take_header(frame, data, length);
      data += used;
      length -= used;
      if (frame->have < frame->need) return true;
      if (!(frame->header[1] & WS_MASKED)) return false;
      ws_get_header(frame->header, frame->have, &frame->length);
      memcpy(frame->key, frame->header + frame->need - 4, 4);
      frame->at = 0;
    }
    size_t part = length;
    if (part > frame->length - frame->at) part = (size_t)(frame->length - frame->at);
    if (part && !payload(c, data, part)) return false;
    data += part;
    length -= part;
    if (frame->at < frame->length) return true;
    frame->have = frame->need = 0;
    if (!end_of_frame(c)) return false;
  }
  return true;
}

// MARK: Flood

bool connection_flood(struct connection *c) {
  if (c->mode == DDP) return ddp_flood(c);
  const struct frames *first = &c->flood->first, *again = &c->flood->again;
  size_t first_size = first->wire[first->count], again_size = again->wire[again->count];
  while (c->flood_at < c->flood_end) {
    const uint8_t *from = first->bytes + c->flood_at;
    size_t part = first_size - (size_t)c->flood_at;
    if (c->flood_at >= first_size) {
      size_t at = (size_t)((c->flood_at - first_size) % again_size);
      from = again->bytes + at;
      part = again_size - at;
    }
    if (part > c->flood_end - c->flood_at) part = (size_t)(c->flood_end - c->flood_at);
    ssize_t sent = send(c->fd, from, part, MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN;
    c->flood_at += (uint64_t)sent;
  }
  return true;
}
