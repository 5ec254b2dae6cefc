// The plain structs of the C ABI. Swift structs cannot appear in @convention(c) types, so these are
// written in C; abigen copies them into realtime.h and into every binding's table.
#ifndef RT_TYPES_H
#define RT_TYPES_H

#include <stdint.h>

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
