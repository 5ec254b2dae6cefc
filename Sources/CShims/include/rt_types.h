// The plain structs of the C ABI. Swift structs cannot appear in @convention(c) types, so these are
// written in C; abigen copies them into realtime.h and into every binding's table.
#ifndef RT_TYPES_H
#define RT_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// What a server answered when it opened a connection, and by which connection. Since 0.1.
typedef struct rt_opened {
  /// The size of the struct in the library that made it.
  size_t struct_bytes;
  /// The answer's status: 101 to a WebSocket, 200 to an event stream. 0 for a long poll whose first
  /// request the server holds without an answer.
  int32_t http_status;
  /// 10, 11, 20 or 30 for HTTP/1.0, 1.1, 2 and 3; 0 without an answer.
  int32_t http_version;
  /// The reason of the status line, as the server sent it; "" without.
  const char *http_reason;
  /// The answer's headers: "Name: value" lines, each ended by LF, in the order they came.
  const char *headers;
  /// Their length in bytes.
  size_t headers_length;
  /// The subprotocol that the server selected; "" for none.
  const char *subprotocol;
  /// The answer's Sec-WebSocket-Extensions; "" for none.
  const char *extensions;
  /// The other end of the connection, which a proxy is where there is one: "192.0.2.1:443",
  /// "[::1]:443" or the path of a Unix socket.
  const char *remote_address;
  /// This end of it, in the same form.
  const char *local_address;
  /// The version of TLS, such as "TLSv1.3"; "" without TLS.
  const char *tls_version;
  /// The cipher suite, such as "TLS_AES_256_GCM_SHA384"; "" without TLS.
  const char *tls_cipher;
  /// Of a Spreadbot connection: the `rt_spreadbot_transport` that it is connected by; 0 otherwise.
  int32_t transport;
  /// Of a Spreadbot connection: whether it continues behind the last id, so that nothing is
  /// missing. False when there was no id, and it begins wherever the server begins.
  bool resumed;
} rt_opened;

/// What went wrong, and what follows from it. Since 0.1.
typedef struct rt_failure {
  /// The size of the struct in the library that made it.
  size_t struct_bytes;
  /// What went wrong: an `rt_status`.
  int32_t status;
  /// The status of the answer, the server's or that of a proxy in its place; 0 without an answer.
  int32_t http_status;
  /// A sentence that names host and cause.
  const char *message;
  /// The reason of the answer's status line, as it was sent; "" without.
  const char *http_reason;
  /// The answer's headers: "Name: value" lines, each ended by LF, in the order they came.
  const char *headers;
  /// Their length in bytes.
  size_t headers_length;
  /// The beginning of the answer's body, which often explains the refusal: what came of it within
  /// two seconds, at most 64 KiB, decoded from its content coding.
  const uint8_t *body;
  /// Its length in bytes.
  size_t body_length;
  /// The time until the next attempt; -1 when there is none, or when it waits for a network or for
  /// credentials.
  int64_t retry_in_ms;
  /// The number of the next attempt, from 1 since the last connection that was stable; 0 for none.
  uint32_t attempt;
  /// The operating system's error, an `errno`; 0 for none.
  int32_t system_error;
  /// Of a Spreadbot connection: the `rt_spreadbot_transport` that failed; 0 otherwise.
  int32_t transport;
  /// Whether this is the end. Otherwise another attempt follows, or the connection lasts.
  bool fatal;
  /// Of a WebSocket: the peer's close code, or 1006 without a close frame. 0 otherwise.
  uint16_t close_code;
  /// Of a WebSocket: the reason in the peer's close frame, UTF-8.
  const char *close_reason;
  /// Its length in bytes.
  size_t close_reason_length;
} rt_failure;

/// How a connection ended. Since 0.1.
typedef struct rt_closed {
  /// The size of the struct in the library that made it.
  size_t struct_bytes;
  /// RT_OK when it was closed by the caller or, in order, by the peer; otherwise the failure that
  /// ended it, an `rt_status`.
  int32_t status;
  /// Of a WebSocket: the peer's close code, 1005 when its close frame had none, 1006 when there was
  /// no close frame; after a failure of the peer's the code that was sent to it. 0 otherwise.
  uint16_t code;
  /// Of a WebSocket: both close frames were exchanged.
  bool clean;
  /// A sentence about the failure; "" without.
  const char *message;
  /// Of a WebSocket: the reason in the peer's close frame, UTF-8.
  const char *reason;
  /// Its length in bytes.
  size_t reason_length;
} rt_closed;

/// A message of an event source, a long poll or a Spreadbot connection. Since 0.1.
typedef struct rt_event {
  /// The size of the struct in the library that made it.
  size_t struct_bytes;
  /// How far the messages have come: the last event id, which stays until another comes. UTF-8; ""
  /// before the first.
  const char *id;
  /// Its length in bytes.
  size_t id_length;
  /// What the server named the event, UTF-8. Without a name: "message" of an event source, the path
  /// of `rt_spreadbot_establish`, "" of a long poll.
  const char *event;
  /// Its length in bytes.
  size_t event_length;
  /// The message; UTF-8 of an event source. In a callback of a Spreadbot connection no NUL follows
  /// it.
  const char *data;
  /// Its length in bytes.
  size_t data_length;
  /// Of a long poll: the answer's content type; "" when the server did not say, and otherwise.
  const char *content_type;
  /// Whether this message has an id of its own. Of the parts of a long poll's multipart answer only
  /// the last one has.
  bool had_id;
} rt_event;

/// How far an exchange of a request has come, in bytes of bodies as they go over the wire, the
/// framing of chunks included. It begins anew with each attempt. Since 0.1.
typedef struct rt_rest_progress {
  /// The size of the struct in the library that made it.
  size_t struct_bytes;
  /// What was sent of the request's body.
  uint64_t sent;
  /// All that is to be sent; 0 while it is not known.
  uint64_t to_send;
  /// What was received of the answer's body.
  uint64_t received;
  /// All that is to be received; 0 while it is not known.
  uint64_t to_receive;
} rt_rest_progress;

typedef struct rt_rest_response rt_rest_response;

/// How a send of a Spreadbot connection ended. Since 0.1.
typedef struct rt_spreadbot_sent {
  /// The size of the struct in the library that made it.
  size_t struct_bytes;
  /// What the send returned.
  uint64_t number;
  /// RT_OK when the server has it. RT_ERROR_CONNECTION_LOST says that it was written to a
  /// connection that was lost before the server confirmed it: it may have arrived, or not.
  int32_t status;
  /// A sentence about the failure; "" without.
  const char *message;
  /// The answer to a POST; NULL for a message by the WebSocket, and where no answer came.
  rt_rest_response *response;
} rt_spreadbot_sent;

/// A piece of a message, as it came. Since 0.1.
typedef struct rt_websocket_piece {
  /// The size of the struct in the library that made it.
  size_t struct_bytes;
  /// An `rt_message_kind`: RT_MESSAGE_TEXT or RT_MESSAGE_BINARY.
  int32_t kind;
  /// Whether it begins a message.
  bool first;
  /// Whether it ends one. A small message is a single piece, the first and the last.
  bool last;
  /// Never NULL; no NUL follows. Text is cut between characters: each piece is valid UTF-8.
  const uint8_t *data;
  /// Its length in bytes.
  size_t data_length;
} rt_websocket_piece;

/// One message of a batch. Since 0.1.
typedef struct rt_message {
  /// Where its bytes begin, counted from the batch's base pointer.
  uint64_t offset;
  /// Its length in bytes.
  uint64_t length;
  /// An `rt_message_kind`: RT_MESSAGE_TEXT or RT_MESSAGE_BINARY.
  int32_t kind;
  /// Zero.
  int32_t reserved;
} rt_message;

/// A message that a call took, in memory of its own. Since 0.1.
typedef struct rt_received {
  /// The size of the struct in the library that made it.
  size_t struct_bytes;
  /// An `rt_message_kind`: RT_MESSAGE_TEXT or RT_MESSAGE_BINARY.
  int32_t kind;
  /// Always 0.
  uint32_t reserved;
  /// The message, with a NUL behind it, which is not part of it.
  const uint8_t *data;
  /// Its length in bytes.
  size_t length;
} rt_received;

/// What went through a WebSocket since it was started, over all its connections, up to the loop's
/// last turn. Since 0.1.
typedef struct rt_websocket_statistics {
  /// Messages handed to the connection: framed and queued, or written.
  uint64_t messages_sent;
  /// Messages that came whole, or whose last piece came.
  uint64_t messages_received;
  /// Bytes of the messages sent, before compression.
  uint64_t payload_bytes_sent;
  /// Bytes of the messages received, after decompression.
  uint64_t payload_bytes_received;
  /// Bytes the kernel or TLS took: frames and their headers, without the handshake.
  uint64_t wire_bytes_sent;
  /// Bytes that came from the kernel or TLS, the handshake's answer among them.
  uint64_t wire_bytes_received;
  /// Pings sent, by the interval or the caller.
  uint64_t pings_sent;
  /// Pongs received, unasked ones among them.
  uint64_t pongs_received;
  /// How often it was opened; reconnections are one fewer.
  uint64_t connections;
  /// The last round trip in microseconds; -1 before the first.
  int64_t round_trip_us;
} rt_websocket_statistics;

/// What went through a loop since it was made, up to its last turn. Since 0.1.
typedef struct rt_loop_statistics {
  /// Turns of the loop: waits that ended.
  uint64_t turns;
  /// Descriptors that were ready.
  uint64_t events;
  /// Jobs run, posted by the caller or by calls on other threads.
  uint64_t jobs;
  /// WebSockets opened, reconnections among them.
  uint64_t connections;
  /// As in rt_websocket_statistics, over all connections of the loop.
  uint64_t messages_sent;
  /// As in rt_websocket_statistics, over all connections of the loop.
  uint64_t messages_received;
  /// As in rt_websocket_statistics, over all connections of the loop.
  uint64_t payload_bytes_sent;
  /// As in rt_websocket_statistics, over all connections of the loop.
  uint64_t payload_bytes_received;
  /// As in rt_websocket_statistics, over all connections of the loop.
  uint64_t wire_bytes_sent;
  /// As in rt_websocket_statistics, over all connections of the loop.
  uint64_t wire_bytes_received;
} rt_loop_statistics;

#endif
