/* The program says that the network is back: an attempt that waits is made at once, whether it
 * waits for its time or for a network. Nobody listens on port 1, so that each attempt fails. */
#include "contract.h"

enum { HOUR_MS = 3600000 };

/* The attempts that failed. */
typedef struct failures {
  int attempts;
} failures;

static void on_error(const rt_failure *failure, void *user) {
  failures *f = user;
  CHECK(failure->struct_bytes == sizeof *failure && !failure->fatal);
  CHECK(failure->status == RT_ERROR_CONNECT);
  /* A wait for a network is reported, too. */
  if (!strstr(failure->message, "no network reaches it")) f->attempts++;
}

typedef struct object {
  void *handle;
  rt_status (*retry_now)(void *handle);
  int32_t (*get_state)(void *handle);
  rt_status (*start)(void *handle);
  void (*free)(void *handle);
} object;

#define OBJECT(kind, retries, starts, frees)                                          \
  static rt_status kind##_retry_now(void *handle) { return retries; }                 \
  static int32_t kind##_state(void *handle) { return rt_##kind##_get_state(handle); } \
  static rt_status kind##_start(void *handle) { return starts; }                      \
  static void kind##_free(void *handle) { frees(handle); }                            \
  static object kind##_object(rt_##kind *handle) {                                    \
    return (object){handle, kind##_retry_now, kind##_state, kind##_start,             \
                    kind##_free};                                                     \
  }

OBJECT(websocket, rt_websocket_retry_now(handle), rt_websocket_start(handle), rt_websocket_free)
OBJECT(eventsource, rt_eventsource_retry_now(handle), rt_eventsource_start(handle),
       rt_eventsource_free)
OBJECT(longpoll, rt_longpoll_retry_now(handle), rt_longpoll_start(handle), rt_longpoll_free)
OBJECT(spreadbot, rt_spreadbot_retry_now(handle), rt_spreadbot_start(handle, "path"),
       rt_spreadbot_free)

static rt_backoff *long_backoff(void) {
  rt_backoff *backoff = NULL;
  CHECK_OK(rt_backoff_new(&backoff));
  CHECK_OK(rt_backoff_set_max_delay_ms(backoff, HOUR_MS));
  CHECK_OK(rt_backoff_set_initial_delay_ms(backoff, HOUR_MS));
  return backoff;
}

static object websocket_on(
    rt_loop *loop, rt_backoff *backoff, rt_reachability *network, failures *f) {
  rt_websocket *websocket = NULL;
  CHECK_OK(rt_websocket_new(loop, "ws://127.0.0.1:1", &websocket));
  CHECK_OK(rt_websocket_set_reconnect(websocket, backoff));
  CHECK_OK(rt_websocket_set_reachability(websocket, network));
  CHECK_OK(rt_websocket_on_error(websocket, on_error, f, NULL));
  return websocket_object(websocket);
}

static object eventsource_on(
    rt_loop *loop, rt_backoff *backoff, rt_reachability *network, failures *f) {
  rt_eventsource *source = NULL;
  CHECK_OK(rt_eventsource_new(loop, "http://127.0.0.1:1", &source));
  CHECK_OK(rt_eventsource_set_backoff(source, backoff));
  CHECK_OK(rt_eventsource_set_reachability(source, network));
  CHECK_OK(rt_eventsource_on_error(source, on_error, f, NULL));
  return eventsource_object(source);
}

static object longpoll_on(
    rt_loop *loop, rt_backoff *backoff, rt_reachability *network, failures *f) {
  rt_longpoll *poll = NULL;
  CHECK_OK(rt_longpoll_new(loop, "http://127.0.0.1:1", &poll));
  CHECK_OK(rt_longpoll_set_backoff(poll, backoff));
  CHECK_OK(rt_longpoll_set_reachability(poll, network));
  CHECK_OK(rt_longpoll_on_error(poll, on_error, f, NULL));
  return longpoll_object(poll);
}

static object spreadbot_on(
    rt_loop *loop, rt_backoff *backoff, rt_reachability *network, failures *f) {
  const int32_t transports[] = {RT_SPREADBOT_TRANSPORT_SSE};
  rt_spreadbot *spreadbot = NULL;
  CHECK_OK(rt_spreadbot_new(loop, "http://127.0.0.1:1", &spreadbot));
  CHECK_OK(rt_spreadbot_set_transports(spreadbot, transports, 1));
  CHECK_OK(rt_spreadbot_set_backoff(spreadbot, backoff));
  CHECK_OK(rt_spreadbot_set_reachability(spreadbot, network));
  CHECK_OK(rt_spreadbot_on_error(spreadbot, on_error, f, NULL));
  return spreadbot_object(spreadbot);
}

typedef object make(rt_loop *loop, rt_backoff *backoff, rt_reachability *network, failures *f);

static void retries(rt_loop *loop, rt_backoff *backoff, make *make) {
  failures f = {0};
  rt_reachability *network = NULL;
  object o;
  CHECK_OK(rt_reachability_new(loop, RT_REACHABILITY_MANUAL, &network));
  o = make(loop, backoff, network, &f);
  CHECK_STATUS(o.retry_now(NULL), RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(o.retry_now(o.handle));
  CHECK(o.get_state(o.handle) == RT_STATE_IDLE);
  CHECK_OK(o.start(o.handle));
  TURN_UNTIL(loop, f.attempts == 1);
  /* The next one would follow in an hour. */
  CHECK(o.get_state(o.handle) == RT_STATE_WAITING);
  CHECK_OK(o.retry_now(o.handle));
  CHECK(f.attempts == 1);
  TURN_UNTIL(loop, f.attempts == 2);
  CHECK_OK(rt_reachability_set_online(network, false));
  settle(loop);
  CHECK_OK(o.retry_now(o.handle));
  TURN_UNTIL(loop, f.attempts == 3);
  o.free(o.handle);
  rt_reachability_free(network);
}

static void ignored_after_the_end(rt_loop *loop) {
  rt_longpoll *poll = NULL;
  CHECK_OK(rt_longpoll_new(loop, "http://127.0.0.1:1", &poll));
  CHECK_OK(rt_longpoll_start(poll));
  CHECK_OK(rt_longpoll_close(poll));
  CHECK_OK(rt_longpoll_retry_now(poll));
  settle(loop);
  CHECK(rt_longpoll_get_state(poll) == RT_STATE_CLOSED);
  rt_longpoll_free(poll);
}

static void checks_by_a_ping(rt_loop *loop, const char *server) {
  events e = {0};
  rt_websocket_statistics statistics;
  rt_websocket *websocket = new_websocket(loop, server, "/echo");
  CHECK_OK(rt_websocket_set_ping_interval_ms(websocket, 0));
  listen_to(websocket, &e);
  CHECK_OK(rt_websocket_start(websocket));
  TURN_UNTIL(loop, e.opened);
  CHECK_OK(rt_websocket_retry_now(websocket));
  TURN_UNTIL(loop, rt_websocket_round_trip_us(websocket) >= 0);
  CHECK_OK(rt_websocket_get_statistics(websocket, &statistics, sizeof statistics));
  CHECK(statistics.pings_sent == 1);
  rt_websocket_free(websocket);
}

int main(int argc, char **argv) {
  rt_loop *loop = new_loop();
  rt_backoff *backoff = long_backoff();
  CHECK(argc == 2);
  retries(loop, backoff, websocket_on);
  retries(loop, backoff, eventsource_on);
  retries(loop, backoff, longpoll_on);
  retries(loop, backoff, spreadbot_on);
  ignored_after_the_end(loop);
  checks_by_a_ping(loop, argv[1]);
  rt_backoff_free(backoff);
  rt_loop_free(loop);
  return 0;
}
