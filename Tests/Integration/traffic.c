/*
 * Sends numbered messages through a bad network to an echo server, reconnects, and checks the rules
 * that must always hold.
 *
 *   traffic URL COUNT [ca=FILE] [timeout_ms=N] [lenient]
 *
 * COUNT messages must come back, whole and in the order that they were sent on their connection;
 * messages on a lost connection may be missing. For each connection: open, messages, at most one
 * error, then either lost or the final close. With `lenient` a message may come back changed, and
 * a close may come before COUNT. It prints a line for each error and a summary; exit code 1 means
 * that a rule was broken.
 */
#include <realtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { IN_FLIGHT = 8, LARGEST = 3000, HEAD = 10, RECONNECT_MS = 2 };

enum stage { CONNECTING, OPEN, FAILED, LOST, CLOSED };

struct traffic {
  rt_loop *loop;
  rt_websocket *websocket;
  enum stage stage;
  bool lenient;
  const char *ca_file;
  int timeout_ms;
  unsigned wanted, sent, received, expected, changed;
  unsigned opened, lost, attempts, errors, closed;
  long resident_kib;
};

static void broken(const char *rule) {
  printf("broken: %s\n", rule);
  exit(1);
}

static void check(bool holds, const char *rule) {
  if (!holds) broken(rule);
}

static long resident_kib(void) {
  long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (!file || fscanf(file, "%*d %ld", &pages) != 1) exit(2);
  fclose(file);
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* Message `number`: its digits, then letters derived from it; compression saves a third. */
static size_t compose(unsigned number, char *text) {
  size_t length = HEAD + (number * 397u) % (LARGEST - HEAD);
  uint32_t state = number;
  snprintf(text, HEAD + 1, "%0*u", HEAD, number);
  for (size_t i = HEAD; i < length; i++) {
    state = state * 1664525 + 1013904223;
    text[i] = (char)('A' + (state >> 24) % 32);
  }
  return length;
}

static void send_more(struct traffic *traffic) {
  char text[LARGEST + 1];
  while (traffic->sent - traffic->expected < IN_FLIGHT) {
    size_t length = compose(traffic->sent, text);
    rt_status status = rt_websocket_send_text(traffic->websocket, text, length);
    /* The peer may have begun to close; that is reported next. */
    if (status == RT_ERROR_CLOSED) return;
    check(status == RT_OK, "an open connection takes messages");
    traffic->sent += 1;
  }
}

static void on_open(const rt_opened *opened, void *user) {
  (void)opened;
  struct traffic *traffic = user;
  check(traffic->stage == CONNECTING, "open comes once for each attempt");
  traffic->stage = OPEN;
  traffic->opened += 1;
  /* Messages in transit are lost. */
  traffic->expected = traffic->sent;
  send_more(traffic);
}

static void on_message(rt_message_kind kind, const uint8_t *data, size_t length, void *user) {
  struct traffic *traffic = user;
  char text[LARGEST + 1];
  check(traffic->stage == OPEN, "messages come while it is open");
  size_t expected = compose(traffic->expected, text);
  if (kind != RT_MESSAGE_TEXT || length != expected || memcmp(data, text, length) != 0) {
    check(traffic->lenient, "messages come back as they were sent, in order");
    traffic->changed += 1;
  }
  traffic->expected += 1;
  traffic->received += 1;
  /* By now start-up has allocated its memory. */
  if (traffic->received == traffic->wanted / 4) traffic->resident_kib = resident_kib();
  if (traffic->received >= traffic->wanted)
    rt_websocket_close(traffic->websocket, 1000, NULL);
  else
    send_more(traffic);
}

static void on_error(const rt_failure *failure, void *user) {
  struct traffic *traffic = user;
  /* A peer that closes with its own code is not a failure. */
  bool is_end = failure->status == RT_ERROR_CLOSED;
  check(failure->message[0] != '\0', "an error has a text");
  check(traffic->stage == OPEN || (!is_end && traffic->stage == CONNECTING),
        "one error for a connection");
  if (!is_end) {
    traffic->errors += 1;
    printf("%s %s\n", rt_status_name(failure->status), failure->message);
  }
  traffic->stage = failure->fatal ? FAILED : LOST;
  if (failure->fatal) return;
  check(failure->retry_in_ms == RECONNECT_MS && failure->attempt > 0,
        "an error tells the delay and the attempt");
  traffic->lost += 1;
}

static bool on_reconnect(uint32_t attempt, void *user) {
  (void)attempt;
  struct traffic *traffic = user;
  check(traffic->stage == LOST, "an attempt follows a loss");
  traffic->stage = CONNECTING;
  traffic->attempts += 1;
  return true;
}

static void on_close(const rt_closed *closed, void *user) {
  struct traffic *traffic = user;
  check(traffic->stage != CLOSED, "close comes once");
  check(traffic->stage != LOST, "a lost connection is not closed");
  check(closed->reason[closed->reason_length] == '\0', "a reason ends in NUL");
  if (traffic->received < traffic->wanted)
    check(traffic->lenient, "it is closed by us alone");
  else if (!traffic->lenient)
    check(closed->code == 1000 && closed->clean, "it closes in order");
  traffic->stage = CLOSED;
  traffic->closed += 1;
  rt_loop_stop(traffic->loop);
}

static void configure(struct traffic *traffic) {
  rt_websocket *websocket = traffic->websocket;
  rt_backoff *backoff = NULL;
  if (rt_backoff_new(&backoff) != RT_OK) exit(2);
  rt_backoff_set_initial_delay_ms(backoff, RECONNECT_MS);
  rt_backoff_set_factor(backoff, 1);
  rt_backoff_set_jitter(backoff, RT_JITTER_NONE);
  rt_websocket_set_reconnect(websocket, backoff);
  rt_backoff_free(backoff);
  rt_websocket_set_open_timeout_ms(websocket, traffic->timeout_ms);
  rt_websocket_set_close_timeout_ms(websocket, traffic->timeout_ms);
  rt_websocket_set_ping_interval_ms(websocket, 100);
  rt_websocket_set_pong_timeout_ms(websocket, traffic->timeout_ms);
  rt_websocket_set_max_message_bytes(websocket, 1 << 20);
  if (traffic->ca_file) rt_websocket_set_ca_file(websocket, traffic->ca_file);
  rt_websocket_on_open(websocket, on_open, traffic, NULL);
  rt_websocket_on_message(websocket, on_message, traffic, NULL);
  rt_websocket_on_error(websocket, on_error, traffic, NULL);
  rt_websocket_on_reconnect(websocket, on_reconnect, traffic, NULL);
  rt_websocket_on_closed(websocket, on_close, traffic, NULL);
}

int main(int argc, char **argv) {
  struct traffic traffic = {.timeout_ms = 20000};
  if (argc < 3 || atoi(argv[2]) <= 0 || rt_loop_new(&traffic.loop) != RT_OK) return 2;
  traffic.wanted = (unsigned)atoi(argv[2]);
  if (rt_websocket_new(traffic.loop, argv[1], &traffic.websocket) != RT_OK) return 2;
  for (int i = 3; i < argc; i++) {
    if (strncmp(argv[i], "ca=", 3) == 0)
      traffic.ca_file = argv[i] + 3;
    else if (strncmp(argv[i], "timeout_ms=", 11) == 0)
      traffic.timeout_ms = atoi(argv[i] + 11);
    else if (strcmp(argv[i], "lenient") == 0)
      traffic.lenient = true;
    else
      return 2;
  }
  configure(&traffic);
  if (rt_websocket_start(traffic.websocket) != RT_OK) return 2;
  if (rt_loop_run(traffic.loop) != RT_OK) return 2;
  /* No callback may follow the close: the rules would notice. */
  for (int i = 0; i < 10; i++)
    if (rt_loop_dispatch(traffic.loop, 2 * RECONNECT_MS) != RT_OK) return 2;
  check(traffic.closed == 1, "close comes");
  check(rt_websocket_buffered_bytes(traffic.websocket) == 0, "nothing is buffered after the end");
  long grown = traffic.resident_kib ? resident_kib() - traffic.resident_kib : 0;
  rt_websocket_free(traffic.websocket);
  rt_loop_free(traffic.loop);
  printf("received %u opened %u lost %u errors %u changed %u grown %ld\n", traffic.received,
         traffic.opened, traffic.lost, traffic.errors, traffic.changed, grown);
  return 0;
}
