// One client of the neutral server.
#pragma once

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "messages.h"

enum mode {
  /// The request's head is incomplete.
  HANDSHAKE,
  /// Answers only pings and close.
  QUIET,
  /// Floods once the client has sent a message.
  FLOOD,
  /// Sends each message back.
  ECHO,
  /// Counts and compares messages, and reports after the last one.
  SINK,
  /// Answers each HTTP request.
  ANSWER,
  /// A Pusher server's WebSocket.
  PUSHER,
  /// A Pusher server's authorization endpoint.
  AUTHORIZE,
  /// A Meteor server.
  DDP,
};

/// A client frame, parsed as its bytes arrive.
struct incoming {
  uint8_t header[14];
  uint8_t have;
  uint8_t need;
  uint8_t key[4];
  uint64_t length;
  uint64_t at;
};

struct connection {
  int fd;
  SSL *tls;
  enum mode mode;
  struct incoming frame;

  /// The incomplete request; the payload of a control frame or of a message to echo.
  uint8_t *text;
  size_t text_length;

  /// The response to each request: a head and `size` bytes; what follows a Meteor server's flood.
  uint8_t *answer;
  size_t answer_length;
  uint64_t answer_at;

  const struct flood *flood;
  const struct ddp_data *ddp;
  uint64_t flood_at;
  uint64_t flood_end;

  uint64_t expected;
  uint64_t size;
  uint64_t messages;
  uint64_t message_at;
  uint64_t bytes;
  uint64_t wrong;
};

enum { MAX_TEXT = 1 << 16 };

/// Continues with received bytes. \returns false if the connection is over.
bool connection_received(struct connection *c, const uint8_t *data, size_t length);
/// Continues to send. \returns false if the connection is over.
bool connection_flood(struct connection *c);
/// Sends a short answer; if it does not fit into the socket's buffer, the connection is over.
bool connection_send(struct connection *c, const void *data, size_t length);
bool connection_frame(
    struct connection *c, uint8_t opcode, const uint8_t *data, size_t length);
