/* Shared by the contract programs. Each of them tests one rule; it prints nothing and exits with 0
 * if the rule holds. The first failed check prints its place and ends the program. */
#ifndef CONTRACT_H
#define CONTRACT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "realtime.h"

#define CHECK(condition)                                                         \
  do {                                                                           \
    if (!(condition)) {                                                          \
      printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);             \
      exit(1);                                                                   \
    }                                                                            \
  } while (0)

/* `call` must return `expected`; if that is an error, rt_last_error() must have a text. */
#define CHECK_STATUS(call, expected) check_status((call), (expected), __FILE__, __LINE__, #call)
#define CHECK_OK(call) CHECK_STATUS(call, RT_OK)

static inline void check_status(
    int32_t got, int32_t expected, const char *file, int line, const char *call) {
  if (got != expected) {
    printf("%s:%d: %s: %d %s (%s), not %s\n", file, line, call, (int)got, rt_status_name(got),
           got < 0 ? rt_last_error() : "", rt_status_name(expected));
    exit(1);
  }
  if (got < 0 && rt_last_error()[0] == '\0') {
    printf("%s:%d: %s: no text in rt_last_error()\n", file, line, call);
    exit(1);
  }
}

/* For threads that wait for a call until its object is freed, or until the wait is ended. */
static inline void *wait_until_closed(void *call) {
  CHECK_STATUS(rt_call_wait(call, -1), RT_ERROR_CLOSED);
  return NULL;
}

static inline void *wait_until_cancelled(void *call) {
  CHECK_STATUS(rt_call_wait(call, -1), RT_ERROR_CANCELLED);
  return NULL;
}

/* Milliseconds of the monotonic clock. */
static inline int64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* A guard against hanging, far above what any step needs on a busy machine. */
enum { PATIENCE_MS = 60000 };

/* Dispatches until `condition` holds; fails after PATIENCE_MS. */
#define TURN_UNTIL(loop, condition)                                              \
  do {                                                                           \
    int64_t end_ms = now_ms() + PATIENCE_MS;                                     \
    while (!(condition)) {                                                       \
      CHECK(now_ms() < end_ms && #condition);                                    \
      CHECK_OK(rt_loop_dispatch((loop), 100));                                   \
    }                                                                            \
  } while (0)

/* Dispatches until the jobs posted before this call have run. */
static inline void contract_flag(void *user) { *(int *)user = 1; }

static inline void settle(rt_loop *loop) {
  int turn;
  for (turn = 0; turn < 3; turn++) {
    int done = 0;
    CHECK_OK(rt_loop_post(loop, contract_flag, &done, NULL));
    TURN_UNTIL(loop, done);
  }
}

/* Whether the thread with this number (gettid) is blocked. */
static inline bool sleeps(int thread) {
  char path[64], state = 0;
  FILE *file;
  CHECK(snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread) < (int)sizeof path);
  file = fopen(path, "r");
  CHECK(file && fscanf(file, "%*d (%*[^)]) %c", &state) == 1);
  fclose(file);
  return state == 'S';
}

/* Counts calls of a destroy function. */
static inline void count_up(void *user) { ++*(int *)user; }

/* A new loop; fails if there is none. */
static inline rt_loop *new_loop(void) {
  rt_loop *loop = NULL;
  CHECK_OK(rt_loop_new(&loop));
  CHECK(loop != NULL);
  return loop;
}

/* A connection to `path` on `server`, which is the program's argument, "ws://127.0.0.1:PORT". */
static inline rt_websocket *new_websocket(rt_loop *loop, const char *server, const char *path) {
  char url[256];
  rt_websocket *websocket = NULL;
  CHECK(snprintf(url, sizeof url, "%s%s", server, path) < (int)sizeof url);
  CHECK_OK(rt_websocket_new(loop, url, &websocket));
  CHECK(websocket != NULL);
  return websocket;
}

/* Counts all callbacks of a connection and checks the order that the contract promises. */
typedef struct events {
  int opened, messages, errors, closed, pongs, drained, destroyed;
  int32_t error_status;
  uint16_t close_code;
  bool clean;
  char reason[128];
} events;

static inline void events_open(const rt_opened *opened, void *user) {
  events *e = user;
  CHECK(opened->subprotocol != NULL && opened->extensions != NULL);
  CHECK(e->opened == 0 && e->messages == 0 && e->errors == 0 && e->closed == 0);
  e->opened++;
}

static inline void events_message(
    rt_message_kind kind, const uint8_t *data, size_t length, void *user) {
  events *e = user;
  (void)length;
  CHECK(kind == RT_MESSAGE_TEXT || kind == RT_MESSAGE_BINARY);
  CHECK(data != NULL);
  CHECK(e->opened == 1 && e->errors == 0 && e->closed == 0);
  e->messages++;
}

static inline void events_error(const rt_failure *failure, void *user) {
  events *e = user;
  CHECK(failure->status < 0 && failure->message != NULL && failure->message[0] != '\0');
  CHECK(e->errors == 0 && e->closed == 0);
  e->errors++;
  e->error_status = failure->status;
}

static inline void events_close(const rt_closed *closed, void *user) {
  events *e = user;
  CHECK(e->closed == 0);
  CHECK(closed->reason != NULL && closed->reason[closed->reason_length] == '\0'
        && closed->reason_length <= 123);
  memcpy(e->reason, closed->reason, closed->reason_length + 1);
  e->closed++;
  e->close_code = closed->code;
  e->clean = closed->clean;
}

static inline void events_destroy(void *user) { ((events *)user)->destroyed++; }

/* The number of setters that `listen_to` calls, and so of the destroys in the end. */
enum { EVENT_SETTERS = 4 };

static inline void listen_to(rt_websocket *websocket, events *e) {
  CHECK_OK(rt_websocket_on_open(websocket, events_open, e, events_destroy));
  CHECK_OK(rt_websocket_on_message(websocket, events_message, e, events_destroy));
  CHECK_OK(rt_websocket_on_error(websocket, events_error, e, events_destroy));
  CHECK_OK(rt_websocket_on_closed(websocket, events_close, e, events_destroy));
}

#endif
