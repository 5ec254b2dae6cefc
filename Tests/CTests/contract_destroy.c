/* Each user data pointer is destroyed exactly once, whether its call succeeds or fails. */
#include "contract.h"

static int times[64];
static int handed;

/* New user data; `times[i]` counts how often it is destroyed. */
static void *datum(void) {
  CHECK(handed < 64);
  return &times[handed++];
}

static void all_destroyed_once(void) {
  int i;
  for (i = 0; i < handed; i++) CHECK(times[i] == 1);
  memset(times, 0, sizeof times);
  handed = 0;
}

static void none_destroyed(void) {
  int i;
  for (i = 0; i < handed; i++) CHECK(times[i] == 0);
}

static void do_nothing(void *user) { (void)user; }

static void on_log(rt_log_level level, const char *message, void *user) {
  (void)level;
  (void)message;
  (void)user;
}

static void on_message(rt_message_kind kind, const uint8_t *data, size_t length, void *user) {
  (void)kind;
  (void)data;
  (void)length;
  (void)user;
}

static void on_messages(
    const uint8_t *base, const rt_message *messages, size_t count, void *user) {
  (void)base;
  (void)messages;
  (void)count;
  (void)user;
}

static void on_pong(int64_t round_trip_us, void *user) {
  (void)round_trip_us;
  (void)user;
}

/* A setter that fails destroys it before it returns. */
static void failed_setters(rt_loop *loop, const char *server) {
  const rt_status bad = RT_ERROR_INVALID_ARGUMENT;
  rt_websocket *websocket;
  CHECK_STATUS(rt_set_log(99, on_log, datum(), count_up), bad);
  CHECK_STATUS(rt_loop_post(NULL, do_nothing, datum(), count_up), bad);
  CHECK_STATUS(rt_loop_post(loop, NULL, datum(), count_up), bad);
  CHECK_STATUS(rt_loop_add_timer(NULL, 0, 0, do_nothing, datum(), count_up, NULL), bad);
  CHECK_STATUS(rt_loop_add_timer(loop, 0, 0, NULL, datum(), count_up, NULL), bad);
  CHECK_STATUS(rt_loop_add_timer(loop, -1, 0, do_nothing, datum(), count_up, NULL), bad);
  CHECK_STATUS(rt_websocket_on_open(NULL, events_open, datum(), count_up), bad);
  CHECK_STATUS(rt_websocket_on_message(NULL, on_message, datum(), count_up), bad);
  CHECK_STATUS(rt_websocket_on_messages(NULL, on_messages, datum(), count_up), bad);
  CHECK_STATUS(rt_websocket_on_error(NULL, events_error, datum(), count_up), bad);
  CHECK_STATUS(rt_websocket_on_closed(NULL, events_close, datum(), count_up), bad);
  CHECK_STATUS(rt_websocket_on_drained(NULL, do_nothing, datum(), count_up), bad);
  CHECK_STATUS(rt_websocket_on_pong(NULL, on_pong, datum(), count_up), bad);
  all_destroyed_once();

  websocket = new_websocket(loop, server, "/echo");
  CHECK_OK(rt_websocket_start(websocket));
  CHECK_STATUS(rt_websocket_set_open_timeout_ms(websocket, 1), RT_ERROR_STATE);
  rt_websocket_free(websocket);
}

/* Replaced, removed, or released by freeing a handle that was never started. */
static void replaced_setters(rt_loop *loop, const char *server) {
  rt_websocket *websocket = new_websocket(loop, server, "/echo");
  CHECK_OK(rt_websocket_on_message(websocket, on_message, datum(), count_up));
  none_destroyed();
  CHECK_OK(rt_websocket_on_message(websocket, on_message, datum(), count_up));
  CHECK(times[0] == 1 && times[1] == 0);
  /* The batch callback replaces the callback for single messages. */
  CHECK_OK(rt_websocket_on_messages(websocket, on_messages, datum(), count_up));
  CHECK(times[1] == 1 && times[2] == 0);
  CHECK_OK(rt_websocket_on_messages(websocket, NULL, NULL, NULL));
  all_destroyed_once();

  /* Without a function there will be no call, so it is destroyed at once. */
  CHECK_OK(rt_websocket_on_closed(websocket, NULL, datum(), count_up));
  all_destroyed_once();

  CHECK_OK(rt_websocket_on_open(websocket, events_open, datum(), count_up));
  CHECK_OK(rt_websocket_on_drained(websocket, do_nothing, datum(), count_up));
  none_destroyed();
  rt_websocket_free(websocket);
  all_destroyed_once();
}

/* The same on a started connection, before it is open and afterwards. */
static void replaced_later(rt_loop *loop, const char *server) {
  rt_websocket *websocket = new_websocket(loop, server, "/echo");
  events e = {0};
  CHECK_OK(rt_websocket_on_pong(websocket, on_pong, datum(), count_up));
  CHECK_OK(rt_websocket_start(websocket));
  CHECK_OK(rt_websocket_on_pong(websocket, on_pong, datum(), count_up));
  CHECK(times[0] == 1 && times[1] == 0);
  CHECK_OK(rt_websocket_on_open(websocket, events_open, &e, NULL));
  TURN_UNTIL(loop, e.opened);
  CHECK_OK(rt_websocket_on_message(websocket, on_message, datum(), count_up));
  CHECK_OK(rt_websocket_on_messages(websocket, on_messages, datum(), count_up));
  CHECK(times[1] == 0 && times[2] == 1 && times[3] == 0);
  CHECK_OK(rt_websocket_on_pong(websocket, NULL, NULL, NULL));
  CHECK(times[1] == 1);
  CHECK_OK(rt_websocket_on_messages(websocket, NULL, datum(), count_up));
  all_destroyed_once();
  CHECK_OK(rt_websocket_on_drained(websocket, do_nothing, datum(), count_up));
  CHECK_OK(rt_websocket_on_closed(websocket, events_close, &e, NULL));
  CHECK_OK(rt_websocket_close(websocket, 1000, NULL));
  TURN_UNTIL(loop, e.closed);
  settle(loop);
  /* No callback will follow. */
  CHECK_OK(rt_websocket_on_pong(websocket, on_pong, datum(), count_up));
  settle(loop);
  all_destroyed_once();
  rt_websocket_free(websocket);
}

typedef struct leaving {
  rt_websocket *websocket;
  int calls, destroyed;
  bool is_inside;
} leaving;

static void left(void *user) {
  leaving *l = user;
  CHECK(!l->is_inside);
  l->destroyed++;
  /* The destroy function may also set callbacks. */
  CHECK_OK(rt_websocket_on_pong(l->websocket, on_pong, datum(), count_up));
}

static void leave_message(rt_message_kind kind, const uint8_t *data, size_t length, void *user) {
  leaving *l = user;
  (void)kind, (void)data, (void)length;
  l->is_inside = true;
  CHECK_OK(rt_websocket_on_message(l->websocket, NULL, NULL, NULL));
  l->calls++;
  l->is_inside = false;
}

static void leave_open(const rt_opened *opened, void *user) {
  leaving *l = user;
  (void)opened;
  l->is_inside = true;
  CHECK_OK(rt_websocket_on_open(l->websocket, NULL, NULL, NULL));
  l->calls++;
  l->is_inside = false;
}

static void leave_close(const rt_closed *closed, void *user) {
  leaving *l = user;
  (void)closed;
  l->is_inside = true;
  CHECK_OK(rt_websocket_on_closed(l->websocket, NULL, NULL, NULL));
  l->calls++;
  l->is_inside = false;
}

/* A callback removes itself: its data lives until it has returned. */
static void removed_inside(rt_loop *loop, const char *server) {
  rt_websocket *websocket = new_websocket(loop, server, "/push/100");
  leaving open = {websocket, 0, 0, false}, message = open, close = open;
  CHECK_OK(rt_websocket_on_open(websocket, leave_open, &open, left));
  CHECK_OK(rt_websocket_on_message(websocket, leave_message, &message, left));
  CHECK_OK(rt_websocket_on_closed(websocket, leave_close, &close, left));
  CHECK_OK(rt_websocket_start(websocket));
  TURN_UNTIL(loop, open.destroyed && message.destroyed);
  CHECK_OK(rt_websocket_close(websocket, 1000, NULL));
  TURN_UNTIL(loop, close.destroyed);
  CHECK(open.calls == 1 && message.calls == 1 && close.calls == 1);
  CHECK(open.destroyed == 1 && message.destroyed == 1 && close.destroyed == 1);
  rt_websocket_free(websocket);
  all_destroyed_once();
}

static void jobs_and_timers(void) {
  rt_loop *loop = new_loop();
  uint64_t id = 0;
  int done = 0;
  CHECK_OK(rt_loop_post(loop, do_nothing, datum(), count_up));
  CHECK_OK(rt_loop_add_timer(loop, 0, 0, do_nothing, datum(), count_up, NULL));
  CHECK_OK(rt_loop_add_timer(loop, 60000, 0, do_nothing, datum(), count_up, &id));
  none_destroyed();
  CHECK_OK(rt_loop_cancel_timer(loop, id));
  CHECK_OK(rt_loop_add_timer(loop, 1, 0, contract_flag, &done, NULL, NULL));
  TURN_UNTIL(loop, done);
  settle(loop);
  all_destroyed_once();

  /* Freeing the loop destroys the data of its queued jobs. */
  CHECK_OK(rt_loop_post(loop, do_nothing, datum(), count_up));
  CHECK_OK(rt_loop_add_timer(loop, 60000, 1, do_nothing, datum(), count_up, NULL));
  none_destroyed();
  rt_loop_free(loop);
  all_destroyed_once();
}

static void log_receiver(void) {
  CHECK_OK(rt_set_log(RT_LOG_ERROR, on_log, datum(), count_up));
  none_destroyed();
  CHECK_OK(rt_set_log(RT_LOG_ERROR, on_log, datum(), count_up));
  CHECK(times[0] == 1 && times[1] == 0);
  CHECK_OK(rt_set_log(RT_LOG_ERROR, NULL, datum(), count_up));
  all_destroyed_once();
}

/* A closed connection keeps its callbacks' data until it is freed or the callbacks are replaced. */
static void after_close(rt_loop *loop, const char *server) {
  rt_websocket *websocket = new_websocket(loop, server, "/close/1000");
  events e = {0};
  listen_to(websocket, &e);
  CHECK_OK(rt_websocket_start(websocket));
  TURN_UNTIL(loop, e.closed);
  settle(loop);
  CHECK(e.destroyed <= EVENT_SETTERS);
  rt_websocket_free(websocket);
  settle(loop);
  CHECK(e.destroyed == EVENT_SETTERS);
}

int main(int argc, char **argv) {
  rt_loop *loop;
  CHECK(argc == 2);
  loop = new_loop();
  failed_setters(loop, argv[1]);
  replaced_setters(loop, argv[1]);
  replaced_later(loop, argv[1]);
  removed_inside(loop, argv[1]);
  jobs_and_timers();
  log_receiver();
  after_close(loop, argv[1]);
  rt_loop_free(loop);
  return 0;
}
