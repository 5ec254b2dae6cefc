/* Reachability as set by the program, as reported by the kernel, or always online. Each change is
 * reported once. A connection that is lost without a network returns with it, uncounted. */
#include "contract.h"

typedef struct changes {
  int count, destroyed;
  bool online;
} changes;

static void on_change(bool online, void *user) {
  changes *c = user;
  c->count++;
  c->online = online;
}

static void destroyed(void *user) { ((changes *)user)->destroyed++; }

static rt_reachability *new_reachability(rt_loop *loop, rt_reachability_mode mode) {
  rt_reachability *reachability = NULL;
  CHECK_OK(rt_reachability_new(loop, mode, &reachability));
  CHECK(reachability != NULL);
  return reachability;
}

static bool is_online(rt_reachability *reachability) {
  bool online = false;
  CHECK_OK(rt_reachability_is_online(reachability, &online));
  return online;
}

static void arguments(rt_loop *loop) {
  const rt_status bad = RT_ERROR_INVALID_ARGUMENT;
  rt_reachability *reachability = NULL;
  changes c = {0};
  bool online = true;
  CHECK_STATUS(rt_reachability_new(NULL, RT_REACHABILITY_AUTO, &reachability), bad);
  CHECK_STATUS(rt_reachability_new(loop, RT_REACHABILITY_AUTO, NULL), bad);
  CHECK_STATUS(rt_reachability_new(loop, 3, &reachability), bad);
  CHECK(reachability == NULL);
  reachability = new_reachability(loop, RT_REACHABILITY_ALWAYS);
  CHECK_STATUS(rt_reachability_set_mode(reachability, -1), bad);
  CHECK_STATUS(rt_reachability_set_mode(NULL, RT_REACHABILITY_AUTO), bad);
  CHECK_STATUS(rt_reachability_set_online(NULL, true), bad);
  CHECK_STATUS(rt_reachability_is_online(reachability, NULL), bad);
  CHECK_STATUS(rt_reachability_is_online(NULL, &online), bad);
  CHECK_STATUS(rt_reachability_on_change(NULL, on_change, &c, destroyed), bad);
  CHECK(c.destroyed == 1);
  rt_reachability_free(reachability);
  rt_reachability_free(NULL);
}

static void modes(rt_loop *loop) {
  rt_reachability *reachability = new_reachability(loop, RT_REACHABILITY_MANUAL);
  changes c = {0}, second = {0};
  CHECK(is_online(reachability));
  CHECK_OK(rt_reachability_on_change(reachability, on_change, &c, destroyed));
  CHECK_OK(rt_reachability_set_online(reachability, false));
  CHECK(!is_online(reachability));
  /* Reported in a turn, never inside the call. */
  CHECK(c.count == 0);
  TURN_UNTIL(loop, c.count == 1);
  CHECK(!c.online);

  /* Going offline and online again between two turns is not a change. */
  CHECK_OK(rt_reachability_set_online(reachability, true));
  CHECK_OK(rt_reachability_set_online(reachability, false));
  settle(loop);
  CHECK(c.count == 1);

  CHECK_OK(rt_reachability_set_mode(reachability, RT_REACHABILITY_ALWAYS));
  CHECK(is_online(reachability));
  TURN_UNTIL(loop, c.count == 2);
  CHECK(c.online);
  /* In manual mode the value that was set applies again. */
  CHECK_OK(rt_reachability_set_mode(reachability, RT_REACHABILITY_MANUAL));
  CHECK(!is_online(reachability));
  TURN_UNTIL(loop, c.count == 3);

  CHECK(c.destroyed == 0);
  CHECK_OK(rt_reachability_on_change(reachability, on_change, &second, destroyed));
  CHECK(c.destroyed == 1);
  CHECK_OK(rt_reachability_set_online(reachability, true));
  rt_reachability_free(reachability);
  settle(loop);
  CHECK(second.count == 0 && second.destroyed == 1 && c.count == 3);
}

/* Whatever this machine's network is, two monitors agree, and each mode can be set. */
static void automatic(rt_loop *loop) {
  rt_reachability *one = new_reachability(loop, RT_REACHABILITY_AUTO);
  rt_reachability *other = new_reachability(loop, RT_REACHABILITY_MANUAL);
  CHECK_OK(rt_reachability_set_mode(other, RT_REACHABILITY_AUTO));
  CHECK(is_online(one) == is_online(other));
  settle(loop);
  CHECK_OK(rt_reachability_set_mode(one, RT_REACHABILITY_ALWAYS));
  CHECK(is_online(one));
  rt_reachability_free(one);
  rt_reachability_free(other);
}

typedef struct story {
  rt_reachability *reachability;
  int opened, lost, attempts, closed;
  int64_t delay_ms;
  uint32_t attempt;
} story;

static void on_open(const rt_opened *opened, void *user) {
  (void)opened;
  story *s = user;
  /* The server drops the connection at once; by then there is no network. */
  if (s->opened++ == 0) CHECK_OK(rt_reachability_set_online(s->reachability, false));
}

static void on_error(const rt_failure *failure, void *user) {
  story *s = user;
  CHECK(failure->close_code == 1006 && !failure->fatal);
  s->delay_ms = failure->retry_in_ms;
  s->attempt = failure->attempt;
  s->lost++;
}

static bool on_reconnect(uint32_t attempt, void *user) {
  story *s = user;
  CHECK(attempt == s->attempt);
  s->attempts++;
  return true;
}

static void on_close(const rt_closed *closed, void *user) {
  (void)closed;
  ((story *)user)->closed++;
}

static rt_websocket *reconnecting(story *s, rt_loop *loop, const char *server, const char *path) {
  rt_websocket *websocket = new_websocket(loop, server, path);
  rt_backoff *backoff = NULL;
  CHECK_OK(rt_backoff_new(&backoff));
  CHECK_OK(rt_backoff_set_initial_delay_ms(backoff, 1));
  CHECK_OK(rt_backoff_set_max_attempts(backoff, 1));
  CHECK_OK(rt_websocket_set_reconnect(websocket, backoff));
  rt_backoff_free(backoff);
  CHECK_OK(rt_websocket_on_open(websocket, on_open, s, NULL));
  CHECK_OK(rt_websocket_on_error(websocket, on_error, s, NULL));
  CHECK_OK(rt_websocket_on_reconnect(websocket, on_reconnect, s, NULL));
  CHECK_OK(rt_websocket_on_closed(websocket, on_close, s, NULL));
  CHECK_OK(rt_websocket_set_reachability(websocket, s->reachability));
  return websocket;
}

/* The server drops one connection and keeps the next. */
static void reconnects_with_the_network(rt_loop *loop, const char *server) {
  story s = {0};
  rt_websocket *websocket;
  s.reachability = new_reachability(loop, RT_REACHABILITY_MANUAL);
  websocket = reconnecting(&s, loop, server, "/flaky/reachability/1");
  CHECK_OK(rt_websocket_start(websocket));
  CHECK_STATUS(rt_websocket_set_reachability(websocket, NULL), RT_ERROR_STATE);
  TURN_UNTIL(loop, s.lost == 1);
  CHECK(s.delay_ms == -1 && s.attempt == 0);
  settle(loop);
  CHECK(s.attempts == 0 && rt_websocket_get_state(websocket) == RT_STATE_WAITING);
  CHECK_OK(rt_reachability_set_online(s.reachability, true));
  TURN_UNTIL(loop, s.opened == 2);
  CHECK(s.attempts == 1 && s.lost == 1 && s.closed == 0);
  rt_websocket_free(websocket);
  rt_reachability_free(s.reachability);
}

/* Freed while in use: it keeps its last state, and the wait can be ended. */
static void outlives_its_handle(rt_loop *loop, const char *server) {
  story s = {0};
  rt_websocket *websocket;
  rt_reachability *reachability = new_reachability(loop, RT_REACHABILITY_MANUAL);
  s.reachability = reachability;
  websocket = reconnecting(&s, loop, server, "/flaky/outlives/9");
  CHECK_OK(rt_websocket_start(websocket));
  TURN_UNTIL(loop, s.lost == 1);
  rt_reachability_free(reachability);
  settle(loop);
  CHECK(s.attempts == 0 && s.closed == 0);
  CHECK_OK(rt_websocket_close(websocket, 1000, NULL));
  TURN_UNTIL(loop, s.closed == 1);
  rt_websocket_free(websocket);
}

static void belongs_to_its_loop(rt_loop *loop, const char *server) {
  rt_loop *other = new_loop();
  rt_reachability *reachability = new_reachability(other, RT_REACHABILITY_MANUAL);
  rt_websocket *websocket = new_websocket(loop, server, "/echo");
  CHECK_STATUS(
      rt_websocket_set_reachability(websocket, reachability), RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_websocket_set_reachability(websocket, NULL));
  rt_websocket_free(websocket);
  rt_loop_free(other);
  CHECK_STATUS(rt_reachability_set_online(reachability, true), RT_ERROR_CLOSED);
  rt_reachability_free(reachability);
}

/* All of it from a thread that is not the loop's, while callbacks run on the loop's. */
static void from_another_thread(void) {
  rt_loop *loop = new_loop();
  rt_reachability *reachability = new_reachability(loop, RT_REACHABILITY_MANUAL);
  changes c = {0};
  int turn;
  CHECK_OK(rt_reachability_on_change(reachability, on_change, &c, destroyed));
  CHECK_OK(rt_loop_start(loop));
  for (turn = 0; turn < 300; turn++) {
    rt_reachability *other = new_reachability(loop, (rt_reachability_mode)(turn % 3));
    CHECK_OK(rt_reachability_set_online(reachability, turn % 2 == 0));
    CHECK_OK(rt_reachability_set_mode(other, RT_REACHABILITY_AUTO));
    is_online(other);
    CHECK_OK(rt_reachability_on_change(other, on_change, &c, NULL));
    CHECK_OK(rt_reachability_set_mode(other, RT_REACHABILITY_MANUAL));
    rt_reachability_free(other);
  }
  CHECK(!is_online(reachability));
  CHECK_OK(rt_loop_stop_and_wait(loop));
  rt_reachability_free(reachability);
  rt_loop_free(loop);
  CHECK(c.destroyed == 1);
}

int main(int argc, char **argv) {
  rt_loop *loop;
  CHECK(argc == 2);
  loop = new_loop();
  arguments(loop);
  modes(loop);
  automatic(loop);
  reconnects_with_the_network(loop, argv[1]);
  outlives_its_handle(loop, argv[1]);
  belongs_to_its_loop(loop, argv[1]);
  from_another_thread();
  rt_loop_free(loop);
  return 0;
}
