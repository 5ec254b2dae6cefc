// Shared by the C and C++ clients: the task, the counters, and the report.
//
//     client MODE URL COUNT [SIZE] [CA-FILE]
//
// Modes: receive, receive-batch, receive-rcvbuf, deflate, send, echo, connect, idle, greet; the
// clients of events, requests, Pusher and Meteor have others. The URL tells the server what to do.
// A client that does not know a mode exits with NOT_SUPPORTED.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { NOT_SUPPORTED = 3 };

struct task {
  const char *mode;
  const char *url;
  const char *path;
  const char *ca_file;
  char host[64];
  char port[8];
  bool tls;
  uint64_t count;
  size_t size;
};

struct meter {
  uint64_t messages;
  uint64_t bytes;
  /// The sum of each message's last byte.
  uint64_t checksum;
  /// HTTP requests, if the client counts them.
  uint64_t requests;
  /// Documents that the client has kept. If there are any, `checksum` is about them, and otherwise
  /// about all messages.
  uint64_t documents;
};

extern struct task task;
extern struct meter meter;

void task_read(int argc, char **argv);
bool task_is(const char *mode);

/// CPU and wall time are measured from here ...
void meter_start(void);
/// ... to here.
void meter_stop(void);
/// Prints one line of JSON and ends the process.
void meter_report(void) __attribute__((noreturn));
void meter_fail(const char *what) __attribute__((noreturn));

/// Counts one message. \returns true for the last one.
static inline bool meter_message(const void *data, size_t length) {
  meter.bytes += length;
  meter.checksum += ((const uint8_t *)data)[length - 1];
  return ++meter.messages == task.count;
}

/// Takes the server's report about the messages that were sent: `MESSAGES BYTES WRONG`.
void meter_sent(const char *text, size_t length);

/// Call before each message that is echoed, and after its echo. \returns true for the last one.
void meter_ask(void);
bool meter_answer(const void *data, size_t length);

/// Measures user-space memory with one idle connection, which includes the one-time setup, and with
/// `task.count` more.
void meter_idle_before(void);
void meter_idle_after(void);

/// The payload that clients send: `task.size` bytes that the server knows.
uint8_t *meter_payload(void);

#ifdef __cplusplus
}
#endif
