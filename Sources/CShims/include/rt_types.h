// The plain structs of the C ABI. Swift structs cannot appear in @convention(c) types, so these are
// written in C; abigen copies them into realtime.h and into every binding's table.
#ifndef RT_TYPES_H
#define RT_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// The response that opened a connection, and the connection itself. Since 0.1.
typedef struct rt_opened {
  /// The size of the struct in the library that filled it.
  size_t struct_bytes;
  /// The response's status: 101 for a WebSocket, 200 for an event stream. 0 for a long poll whose
  /// first request the server holds without a response.
  int32_t http_status;
  /// 10, 11, 20 or 30 for HTTP/1.0, 1.1, 2 and 3; 0 without a response.
  int32_t http_version;
  /// The reason phrase of the status line, as the server sent it; "" for none. Need not be UTF-8.
  const char *http_reason;
  /// The response's headers: "Name: value" lines, each ended by LF, in the order received. Values
  /// need not be UTF-8.
  const char *headers;
  /// Their length in bytes.
  size_t headers_length;
  /// The subprotocol that the server selected; "" for none.
  const char *subprotocol;
  /// The response's Sec-WebSocket-Extensions; "" for none.
  const char *extensions;
  /// The address of the peer, or of the proxy if there is one: "192.0.2.1:443", "[::1]:443" or the
  /// path of a Unix socket.
  const char *remote_address;
  /// The local address, in the same form.
  const char *local_address;
  /// The TLS version, such as "TLSv1.3"; "" without TLS.
  const char *tls_version;
  /// The cipher suite, such as "TLS_AES_256_GCM_SHA384"; "" without TLS.
  const char *tls_cipher;
  /// Spreadbot: the `rt_spreadbot_transport` of the connection. 0 otherwise.
  int32_t transport;
  /// Spreadbot: whether the connection continues after the last id, so that no messages are
  /// missing. False if there was no id; it then starts wherever the server starts.
  bool resumed;
} rt_opened;

/// A failure and its consequences. Since 0.1.
typedef struct rt_failure {
  /// The size of the struct in the library that filled it.
  size_t struct_bytes;
  /// The error, an `rt_status`.
  int32_t status;
  /// The status of the server's response, or of a proxy's instead; 0 without a response.
  int32_t http_status;
  /// A sentence that names the host and the cause.
  const char *message;
  /// The reason phrase of the status line, as it was sent; "" for none. Need not be UTF-8.
  const char *http_reason;
  /// The response's headers: "Name: value" lines, each ended by LF, in the order received. Values
  /// need not be UTF-8.
  const char *headers;
  /// Their length in bytes.
  size_t headers_length;
  /// The beginning of the response's body, which often explains the refusal: the part that arrived
  /// within two seconds, at most 64 KiB, decoded from its content coding.
  const uint8_t *body;
  /// Its length in bytes.
  size_t body_length;
  /// The time until the next attempt; -1 if there is none, or if it waits for a network or for
  /// credentials.
  int64_t retry_in_ms;
  /// The number of the next attempt since the last stable connection, from 1; 0 for none.
  uint32_t attempt;
  /// The operating system's error, an `errno`; 0 for none.
  int32_t system_error;
  /// Spreadbot: the `rt_spreadbot_transport` that failed. 0 otherwise.
  int32_t transport;
  /// Whether this ends the object. Otherwise another attempt follows, or the connection continues.
  bool fatal;
  /// WebSocket: the peer's close code, or 1006 without a close frame. 0 otherwise.
  uint16_t close_code;
  /// WebSocket: the reason in the peer's close frame, UTF-8.
  const char *close_reason;
  /// Its length in bytes.
  size_t close_reason_length;
} rt_failure;

/// The end of a connection. Since 0.1.
typedef struct rt_closed {
  /// The size of the struct in the library that filled it.
  size_t struct_bytes;
  /// RT_OK if the caller closed it, or the peer closed it in order; otherwise the failure that
  /// ended it, an `rt_status`.
  int32_t status;
  /// WebSocket: the peer's close code, 1005 if its close frame had none, 1006 without a close
  /// frame; after an error of the peer, the code that was sent to it. 0 otherwise.
  uint16_t code;
  /// WebSocket: whether both close frames were exchanged.
  bool clean;
  /// A sentence about the failure; "" for none.
  const char *message;
  /// WebSocket: the reason in the peer's close frame, UTF-8.
  const char *reason;
  /// Its length in bytes.
  size_t reason_length;
} rt_closed;

/// A message of an event source, a long poll or a Spreadbot connection. Since 0.1.
typedef struct rt_event {
  /// The size of the struct in the library that filled it.
  size_t struct_bytes;
  /// The last event id, which stays the same until a message has another one. UTF-8; "" before the
  /// first.
  const char *id;
  /// Its length in bytes.
  size_t id_length;
  /// The event's type, UTF-8. If the server sent none: "message" for an event source, the path of
  /// `rt_spreadbot_start` for Spreadbot, "" for a long poll.
  const char *event;
  /// Its length in bytes.
  size_t event_length;
  /// The message: UTF-8 for an event source, but that of a long poll need not be UTF-8. In a
  /// callback of a Spreadbot connection no NUL follows it.
  const char *data;
  /// Its length in bytes.
  size_t data_length;
  /// Long poll: the response's content type, "" if the server sent none; need not be UTF-8. ""
  /// otherwise.
  const char *content_type;
  /// Whether this message has an id of its own. Among the parts of a long poll's multipart
  /// response, only the last one has.
  bool had_id;
} rt_event;

/// Events or messages that one call has taken together. They and their texts live until the batch
/// is freed. Since 0.1.
typedef struct rt_event_batch {
  /// The size of the struct in the library that filled it.
  size_t struct_bytes;
  /// The events, in the order received.
  const rt_event *events;
  /// How many there are, at least one.
  size_t event_count;
} rt_event_batch;

/// The progress of an exchange, in bytes of the bodies on the wire, chunk framing included. It
/// restarts with each attempt. Since 0.1.
typedef struct rt_rest_progress {
  /// The size of the struct in the library that filled it.
  size_t struct_bytes;
  /// Bytes sent of the request's body.
  uint64_t sent;
  /// Bytes to send in all; 0 if not known.
  uint64_t to_send;
  /// Bytes received of the response's body.
  uint64_t received;
  /// Bytes to receive in all; 0 if not known.
  uint64_t to_receive;
} rt_rest_progress;

typedef struct rt_rest_response rt_rest_response;

/// The result of a send on a Spreadbot connection. Since 0.1.
typedef struct rt_spreadbot_sent {
  /// The size of the struct in the library that filled it.
  size_t struct_bytes;
  /// The number that the send returned.
  uint64_t number;
  /// An `rt_status`: RT_OK if the server has it. RT_ERROR_CONNECTION_LOST if it was written to a
  /// connection that was lost before the server confirmed it: it may or may not have arrived.
  int32_t status;
  /// A sentence about the failure; "" for none.
  const char *message;
  /// The response to a POST; NULL for a message by WebSocket, and without a response.
  rt_rest_response *response;
} rt_spreadbot_sent;

/// A piece of a message. Since 0.1.
typedef struct rt_websocket_piece {
  /// The size of the struct in the library that filled it.
  size_t struct_bytes;
  /// An `rt_message_kind`: RT_MESSAGE_TEXT or RT_MESSAGE_BINARY.
  int32_t kind;
  /// Whether this is the first piece of a message.
  bool first;
  /// Whether this is the last piece. A small message is a single piece, both first and last.
  bool last;
  /// Never NULL; no NUL follows it. Text is cut between characters: each piece is valid UTF-8.
  const uint8_t *data;
  /// Its length in bytes.
  size_t data_length;
} rt_websocket_piece;

/// One message of a batch. Since 0.1.
typedef struct rt_message {
  /// The offset of its bytes from the batch's base pointer.
  uint64_t offset;
  /// Its length in bytes.
  uint64_t length;
  /// An `rt_message_kind`: RT_MESSAGE_TEXT or RT_MESSAGE_BINARY.
  int32_t kind;
  /// Zero.
  int32_t reserved;
} rt_message;

/// A message returned by a call, in its own memory. Since 0.1.
typedef struct rt_received {
  /// The size of the struct in the library that filled it.
  size_t struct_bytes;
  /// An `rt_message_kind`: RT_MESSAGE_TEXT or RT_MESSAGE_BINARY.
  int32_t kind;
  /// Always 0.
  uint32_t reserved;
  /// The message, followed by a NUL that is not part of it.
  const uint8_t *data;
  /// Its length in bytes.
  size_t length;
} rt_received;

/// Messages that one call has taken together. They and their texts live until the batch is freed.
/// Since 0.1.
typedef struct rt_received_batch {
  /// The size of the struct in the library that filled it.
  size_t struct_bytes;
  /// The messages, in the order received.
  const rt_received *messages;
  /// How many there are, at least one.
  size_t message_count;
} rt_received_batch;

/// The statistics of a WebSocket since its start, over all its connections, up to the loop's last
/// turn. Since 0.1.
typedef struct rt_websocket_statistics {
  /// Messages passed to the connection: framed and queued, or written.
  uint64_t messages_sent;
  /// Messages received completely.
  uint64_t messages_received;
  /// Bytes of the messages sent, before compression.
  uint64_t payload_bytes_sent;
  /// Bytes of the messages received, after decompression.
  uint64_t payload_bytes_received;
  /// Bytes that the kernel or TLS accepted: frames with headers, without the handshake.
  uint64_t wire_bytes_sent;
  /// Bytes read from the kernel or TLS, including the handshake's response.
  uint64_t wire_bytes_received;
  /// Pings sent, automatically or by the caller.
  uint64_t pings_sent;
  /// Pongs received, including unsolicited ones.
  uint64_t pongs_received;
  /// How often it was opened; the number of reconnections is one less.
  uint64_t connections;
  /// The last ping's round-trip time in microseconds; -1 before the first pong.
  int64_t round_trip_us;
} rt_websocket_statistics;

/// The statistics of a loop since its creation, up to its last turn. Since 0.1.
typedef struct rt_loop_statistics {
  /// Turns of the loop.
  uint64_t turns;
  /// Descriptors that were ready.
  uint64_t events;
  /// Jobs run, whether posted by the program or by calls on other threads.
  uint64_t jobs;
  /// WebSockets opened, including reconnections.
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
