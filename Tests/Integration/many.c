/*
 * COUNT connections on one loop and one thread: all are opened, each sends a message and waits for
 * its echo, and each is closed normally.
 *
 *   many URL COUNT
 *
 * If the limit of descriptors forbids COUNT, it makes as many as the limit allows, and prints that.
 */
#include <realtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { CONNECTING_AT_ONCE = 100, SPARE_DESCRIPTORS = 64 };

struct connection {
  struct crowd *crowd;
  rt_websocket *websocket;
  int number;
};

struct crowd {
  rt_loop *loop;
  struct connection *connections;
  const char *url;
  int count, started, open, echoed, closed, failed;
};

static void start_more(struct crowd *crowd);

static void on_open(const rt_opened *opened, void *user) {
  (void)opened;
  struct connection *connection = user;
  struct crowd *crowd = connection->crowd;
  crowd->open += 1;
  start_more(crowd);
  if (crowd->open < crowd->count) return;
  printf("%d connections are open\n", crowd->open);
  for (int i = 0; i < crowd->count; i++) {
    char text[16];
    int length = snprintf(text, sizeof text, "%d", i);
    rt_websocket_send_text(crowd->connections[i].websocket, text, (size_t)length);
  }
}

static void on_message(rt_message_kind kind, const uint8_t *data, size_t length, void *user) {
  (void)kind;
  struct connection *connection = user;
  char text[16];
  int expected = snprintf(text, sizeof text, "%d", connection->number);
  if (length == (size_t)expected && memcmp(data, text, length) == 0)
    connection->crowd->echoed += 1;
  else
    connection->crowd->failed += 1;
  rt_websocket_close(connection->websocket, 1000, NULL);
}

static void on_error(const rt_failure *failure, void *user) {
  struct connection *connection = user;
  if (connection->crowd->failed++ < 10)
    fprintf(stderr, "connection %d: %s: %s\n", connection->number, rt_status_name(failure->status),
            failure->message);
}

static void on_close(const rt_closed *closed, void *user) {
  (void)closed;
  struct crowd *crowd = ((struct connection *)user)->crowd;
  crowd->closed += 1;
  /* One that fails before all are open would leave the others waiting. */
  if (crowd->closed == crowd->count || crowd->open < crowd->count) rt_loop_stop(crowd->loop);
}

static void start_more(struct crowd *crowd) {
  while (crowd->started < crowd->count && crowd->started - crowd->open < CONNECTING_AT_ONCE) {
    struct connection *connection = &crowd->connections[crowd->started];
    *connection = (struct connection){.crowd = crowd, .number = crowd->started};
    crowd->started += 1;
    if (rt_websocket_new(crowd->loop, crowd->url, &connection->websocket) != RT_OK) exit(2);
    rt_websocket *websocket = connection->websocket;
    rt_websocket_on_open(websocket, on_open, connection, NULL);
    rt_websocket_on_message(websocket, on_message, connection, NULL);
    rt_websocket_on_error(websocket, on_error, connection, NULL);
    rt_websocket_on_closed(websocket, on_close, connection, NULL);
    rt_websocket_set_open_timeout_ms(websocket, 60000);
    rt_websocket_set_close_timeout_ms(websocket, 60000);
    if (rt_websocket_start(websocket) != RT_OK) exit(2);
  }
}

static int allowed(int wanted) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted;
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return wanted;
  long long room = (long long)limit.rlim_cur - SPARE_DESCRIPTORS;
  if (room >= wanted) return wanted;
  printf("the limit of %lld descriptors allows %lld of %d connections\n",
         (long long)limit.rlim_cur, room, wanted);
  return room > 0 ? (int)room : 0;
}

int main(int argc, char **argv) {
  struct crowd crowd = {0};
  if (argc != 3 || atoi(argv[2]) <= 0) return 2;
  crowd.url = argv[1];
  crowd.count = allowed(atoi(argv[2]));
  if (crowd.count == 0) return 2;
  crowd.connections = calloc((size_t)crowd.count, sizeof *crowd.connections);
  if (!crowd.connections || rt_loop_new(&crowd.loop) != RT_OK) return 2;
  start_more(&crowd);
  if (rt_loop_run(crowd.loop) != RT_OK) return 2;
  for (int i = 0; i < crowd.count; i++) rt_websocket_free(crowd.connections[i].websocket);
  rt_loop_free(crowd.loop);
  free(crowd.connections);
  printf("%d opened, %d echoed, %d closed, %d failed\n", crowd.open, crowd.echoed, crowd.closed,
         crowd.failed);
  bool all = crowd.open == crowd.count && crowd.echoed == crowd.count &&
             crowd.closed == crowd.count;
  return all && crowd.failed == 0 ? 0 : 1;
}
