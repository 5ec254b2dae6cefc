/*
 * Receives COUNT text messages and checks that they are the decimal numbers 0, 1, ... COUNT-1, each
 * once and in order, as a subscriber of a feed with sequence numbers expects.
 *
 *   subscribe ws://127.0.0.1:8080/feed 50 [CA.pem]
 */
#include <realtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct subscriber {
  rt_loop *loop;
  rt_websocket *websocket;
  long count;
  long next;
  bool failed;
};

static bool check(rt_status status, const char *call) {
  if (status == RT_OK) return true;
  fprintf(stderr, "subscribe: %s: %s: %s\n", call, rt_status_name(status), rt_last_error());
  return false;
}

static void on_message(rt_message_kind kind, const uint8_t *data, size_t length, void *user) {
  struct subscriber *subscriber = user;
  char expected[32];
  size_t expected_length = (size_t)snprintf(expected, sizeof expected, "%ld", subscriber->next);
  if (kind != RT_MESSAGE_TEXT || length != expected_length ||
      memcmp(data, expected, length) != 0) {
    printf("\nexpected %s, received %.*s\n", expected, (int)length, (const char *)data);
    subscriber->failed = true;
  } else {
    printf("%s%c", expected, subscriber->next % 20 == 19 ? '\n' : ' ');
    fflush(stdout);
    subscriber->next += 1;
  }
  if (subscriber->failed || subscriber->next == subscriber->count)
    rt_websocket_close(subscriber->websocket, 1000, NULL);
}

static void on_error(const rt_failure *failure, void *user) {
  struct subscriber *subscriber = user;
  fprintf(stderr, "subscribe: %s: %s\n", rt_status_name(failure->status), failure->message);
  subscriber->failed = true;
}

static void on_close(const rt_closed *closed, void *user) {
  struct subscriber *subscriber = user;
  if (subscriber->next < subscriber->count)
    fprintf(stderr, "subscribe: closed with %d %.*s\n", closed->code, (int)closed->reason_length,
            closed->reason);
  if (!closed->clean) subscriber->failed = true;
  rt_loop_stop(subscriber->loop);
}

static bool run(struct subscriber *subscriber, const char *url, const char *ca_file) {
  if (!check(rt_loop_new(&subscriber->loop), "loop")) return false;
  if (!check(rt_websocket_new(subscriber->loop, url, &subscriber->websocket), url)) return false;
  rt_websocket *websocket = subscriber->websocket;
  if (ca_file && !check(rt_websocket_set_ca_file(websocket, ca_file), ca_file)) return false;
  rt_websocket_on_message(websocket, on_message, subscriber, NULL);
  rt_websocket_on_error(websocket, on_error, subscriber, NULL);
  rt_websocket_on_closed(websocket, on_close, subscriber, NULL);
  return check(rt_websocket_start(websocket), "start") &&
         check(rt_loop_run(subscriber->loop), "run");
}

int main(int argc, char **argv) {
  struct subscriber subscriber = {.count = argc > 2 ? strtol(argv[2], NULL, 10) : 0};
  if (argc < 3 || argc > 4 || subscriber.count <= 0) {
    fprintf(stderr, "usage: subscribe URL COUNT [CA-FILE]\n");
    return 2;
  }
  bool ran = run(&subscriber, argv[1], argc == 4 ? argv[3] : NULL);
  rt_websocket_free(subscriber.websocket);
  rt_loop_free(subscriber.loop);

  bool ok = ran && !subscriber.failed && subscriber.next == subscriber.count;
  if (subscriber.next % 20 != 0) putchar('\n');
  printf("%s: %ld of %ld messages, in order, each once\n", ok ? "ok" : "FAILED", subscriber.next,
         subscriber.count);
  return ok ? 0 : 1;
}
