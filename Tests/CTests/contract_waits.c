/* Without a network, as every object has it: one that repeats its attempts makes none, not even the
 * first, and reports that once, in a later turn; with the network the attempt follows. One that
 * does not repeat them makes its only one. Nothing listens at the address, so that each attempt
 * fails. */
#include "contract.h"

#define PLACE "127.0.0.1:1"

typedef struct told {
  int waits, failures, delayed;
} told;

static void tell(told *t, rt_status status, const char *message, int64_t retry_in_ms) {
  if (strcmp(message, PLACE ": no network reaches it") == 0
      || strcmp(message, "GET http://" PLACE "/: no network reaches it") == 0) {
    CHECK(status == RT_ERROR_CONNECT && retry_in_ms == -1);
    t->waits++;
  } else {
    CHECK(strstr(message, "refused") != NULL);
    t->failures++;
  }
  t->delayed += retry_in_ms >= 0;
}

static void on_failure(const rt_failure *failure, void *user) {
  CHECK(failure->status != RT_ERROR_CONNECT || strstr(failure->message, "no network") == NULL
        || !failure->fatal);
  tell(user, failure->status, failure->message, failure->retry_in_ms);
}

static void on_state(const rt_pusher_state_change *change, void *user) {
  CHECK(change->old_state != change->new_state
        || change->new_state == RT_STATE_WAITING);
  if (change->status != RT_OK) tell(user, change->status, change->message, change->retry_in_ms);
}

static void on_status(const rt_ddp_status_change *change, void *user) {
  if (change->status != RT_OK) tell(user, change->status, change->message, change->retry_in_ms);
}

static void on_response(rt_rest_response *response, void *user) {
  (void)response;
  (void)user;
}

/* One of each kind that was asked for. */
typedef struct client {
  rt_websocket *websocket;
  rt_eventsource *source;
  rt_longpoll *poll;
  rt_rest *rest;
  rt_spreadbot *spreadbot;
  rt_pusher *pusher;
  rt_ddp *ddp;
} client;

static void start_websocket(client *c, rt_loop *loop, rt_reachability *net, told *t, bool repeats) {
  rt_backoff *backoff = NULL;
  CHECK_OK(rt_websocket_new(loop, "ws://" PLACE "/", &c->websocket));
  CHECK_OK(rt_websocket_on_error(c->websocket, on_failure, t, NULL));
  if (repeats) {
    CHECK_OK(rt_backoff_new(&backoff));
    CHECK_OK(rt_websocket_set_reconnect(c->websocket, backoff));
    rt_backoff_free(backoff);
  }
  CHECK_OK(rt_websocket_set_reachability(c->websocket, net));
  CHECK_OK(rt_websocket_start(c->websocket));
}

static void start_source(client *c, rt_loop *loop, rt_reachability *net, told *t, bool repeats) {
  CHECK_OK(rt_eventsource_new(loop, "http://" PLACE "/", &c->source));
  CHECK_OK(rt_eventsource_on_error(c->source, on_failure, t, NULL));
  CHECK_OK(rt_eventsource_set_reconnect(c->source, repeats));
  CHECK_OK(rt_eventsource_set_reachability(c->source, net));
  CHECK_OK(rt_eventsource_start(c->source));
}

static void start_poll(client *c, rt_loop *loop, rt_reachability *net, told *t, bool repeats) {
  (void)repeats;
  CHECK_OK(rt_longpoll_new(loop, "http://" PLACE "/", &c->poll));
  CHECK_OK(rt_longpoll_on_error(c->poll, on_failure, t, NULL));
  CHECK_OK(rt_longpoll_set_reachability(c->poll, net));
  CHECK_OK(rt_longpoll_start(c->poll));
}

static void start_rest(client *c, rt_loop *loop, rt_reachability *net, told *t, bool repeats) {
  rt_rest_request *request = NULL;
  (void)repeats;
  CHECK_OK(rt_rest_new(loop, "http://" PLACE "/", &c->rest));
  CHECK_OK(rt_rest_set_reachability(c->rest, net));
  CHECK_OK(rt_rest_request_new(c->rest, "GET", "", &request));
  CHECK_OK(rt_rest_request_on_retry(request, on_failure, t, NULL));
  CHECK_OK(rt_rest_request_send(request, on_response, t, NULL, NULL));
  rt_rest_request_free(request);
}

static void start_spreadbot(client *c, rt_loop *loop, rt_reachability *net, told *t, bool repeats) {
  (void)repeats;
  CHECK_OK(rt_spreadbot_new(loop, "http://" PLACE, &c->spreadbot));
  CHECK_OK(rt_spreadbot_on_error(c->spreadbot, on_failure, t, NULL));
  CHECK_OK(rt_spreadbot_set_reachability(c->spreadbot, net));
  CHECK_OK(rt_spreadbot_start(c->spreadbot, "news"));
}

static void start_pusher(client *c, rt_loop *loop, rt_reachability *net, told *t, bool repeats) {
  CHECK_OK(rt_pusher_new(loop, "key", &c->pusher));
  CHECK_OK(rt_pusher_on_state(c->pusher, on_state, t, NULL));
  CHECK_OK(rt_pusher_set_host(c->pusher, "127.0.0.1"));
  CHECK_OK(rt_pusher_set_port(c->pusher, 1));
  CHECK_OK(rt_pusher_set_use_tls(c->pusher, false));
  CHECK_OK(rt_pusher_set_auto_reconnect(c->pusher, repeats));
  CHECK_OK(rt_pusher_set_reachability(c->pusher, net));
  CHECK_OK(rt_pusher_start(c->pusher));
}

static void start_ddp(client *c, rt_loop *loop, rt_reachability *net, told *t, bool repeats) {
  CHECK_OK(rt_ddp_new(loop, "ws://" PLACE "/websocket", &c->ddp));
  CHECK_OK(rt_ddp_on_status(c->ddp, on_status, t, NULL));
  CHECK_OK(rt_ddp_set_sockjs_fallback(c->ddp, false));
  CHECK_OK(rt_ddp_set_auto_reconnect(c->ddp, repeats));
  CHECK_OK(rt_ddp_set_reachability(c->ddp, net));
  CHECK_OK(rt_ddp_start(c->ddp));
}

typedef void (*starter)(client *, rt_loop *, rt_reachability *, told *, bool);

static void free_client(client *c) {
  rt_websocket_free(c->websocket);
  rt_eventsource_free(c->source);
  rt_longpoll_free(c->poll);
  rt_rest_free(c->rest);
  rt_spreadbot_free(c->spreadbot);
  rt_pusher_free(c->pusher);
  rt_ddp_free(c->ddp);
}

static rt_reachability *offline(rt_loop *loop) {
  rt_reachability *net = NULL;
  CHECK_OK(rt_reachability_new(loop, RT_REACHABILITY_MANUAL, &net));
  CHECK_OK(rt_reachability_set_online(net, false));
  return net;
}

/* Also a network that goes while an object waits for its next attempt. */
static void waits(rt_loop *loop, starter start) {
  client c = {0};
  told t = {0};
  int round;
  rt_reachability *net = offline(loop);
  start(&c, loop, net, &t, true);
  /* Not inside the call. */
  CHECK(t.waits == 0 && t.failures == 0);
  TURN_UNTIL(loop, t.waits == 1);
  settle(loop);
  CHECK(t.waits == 1 && t.failures == 0);
  for (round = 2; round < 4; round++) {
    t.delayed = 0;
    CHECK_OK(rt_reachability_set_online(net, true));
    TURN_UNTIL(loop, t.delayed > 0);
    CHECK(t.failures > 0 && t.waits == round - 1);
    CHECK_OK(rt_reachability_set_online(net, false));
    settle(loop);
    /* A delay of DDP and of Pusher is so short that its attempt may have begun, and a request
     * waits for the network only when its delay is over. */
    TURN_UNTIL(loop, t.waits == round || t.failures > t.delayed);
    if (t.waits < round) break;
  }
  free_client(&c);
  rt_reachability_free(net);
}

static void is_tried_once(rt_loop *loop, starter start) {
  client c = {0};
  told t = {0};
  rt_reachability *net = offline(loop);
  start(&c, loop, net, &t, false);
  TURN_UNTIL(loop, t.failures == 1);
  settle(loop);
  CHECK(t.failures == 1 && t.waits == 0 && t.delayed == 0);
  free_client(&c);
  rt_reachability_free(net);
}

/* The program says whether there is a network; the loop's monitor knows that there is one. */
static void the_program_reports(rt_loop *loop) {
  client c = {0};
  told t = {0};
  rt_reachability *net = NULL;
  CHECK_OK(rt_reachability_new(loop, RT_REACHABILITY_ALWAYS, &net));
  CHECK_OK(rt_pusher_new(loop, "key", &c.pusher));
  CHECK_OK(rt_pusher_on_state(c.pusher, on_state, &t, NULL));
  CHECK_OK(rt_pusher_set_host(c.pusher, "127.0.0.1"));
  CHECK_OK(rt_pusher_set_port(c.pusher, 1));
  CHECK_OK(rt_pusher_set_use_tls(c.pusher, false));
  CHECK_OK(rt_pusher_set_reachability(c.pusher, net));
  CHECK_OK(rt_pusher_network_changed(c.pusher, false));
  CHECK_OK(rt_pusher_start(c.pusher));
  TURN_UNTIL(loop, t.waits == 1);
  settle(loop);
  CHECK(rt_pusher_get_state(c.pusher) == RT_STATE_WAITING && t.failures == 0);
  CHECK_OK(rt_pusher_network_changed(c.pusher, true));
  TURN_UNTIL(loop, t.failures == 1);
  free_client(&c);

  memset(&c, 0, sizeof c);
  memset(&t, 0, sizeof t);
  CHECK_OK(rt_ddp_new(loop, "ws://" PLACE "/websocket", &c.ddp));
  CHECK_OK(rt_ddp_on_status(c.ddp, on_status, &t, NULL));
  CHECK_OK(rt_ddp_set_reachability(c.ddp, net));
  CHECK_OK(rt_ddp_network_changed(c.ddp, false));
  CHECK_OK(rt_ddp_start(c.ddp));
  TURN_UNTIL(loop, t.waits == 1);
  settle(loop);
  CHECK(rt_ddp_get_status(c.ddp) == RT_DDP_OFFLINE && t.failures == 0);
  CHECK_OK(rt_ddp_network_changed(c.ddp, true));
  TURN_UNTIL(loop, t.failures == 1);
  free_client(&c);
  rt_reachability_free(net);
}

int main(void) {
  static const starter all[] = {start_websocket, start_source, start_poll, start_rest,
                                start_spreadbot, start_pusher, start_ddp};
  static const starter single[] = {start_websocket, start_source, start_pusher, start_ddp};
  rt_loop *loop = new_loop();
  size_t i;
  for (i = 0; i < sizeof all / sizeof *all; i++) waits(loop, all[i]);
  for (i = 0; i < sizeof single / sizeof *single; i++) is_tried_once(loop, single[i]);
  the_program_reports(loop);
  rt_loop_free(loop);
  return 0;
}
