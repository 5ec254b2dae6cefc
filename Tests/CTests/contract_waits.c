/* Without a network, as every object has it: one that repeats its attempts makes none, not even the
 * first, and reports that once, in a later turn; with the network the attempt follows, and at once
 * if the program asks for it. One that does not repeat them makes its only one. Nothing listens at
 * the address, so that each attempt fails. */
#include <pthread.h>

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
  rt_rest_request *request;
  rt_spreadbot *spreadbot;
  rt_pusher *pusher;
  rt_ddp *ddp;
} client;

static void make_websocket(client *c, rt_loop *loop, rt_reachability *net, told *t, bool repeats) {
  rt_backoff *backoff = NULL;
  CHECK_OK(rt_websocket_new(loop, "ws://" PLACE "/", &c->websocket));
  CHECK_OK(rt_websocket_on_error(c->websocket, on_failure, t, NULL));
  if (repeats) {
    CHECK_OK(rt_backoff_new(&backoff));
    CHECK_OK(rt_websocket_set_reconnect(c->websocket, backoff));
    rt_backoff_free(backoff);
  }
  CHECK_OK(rt_websocket_set_reachability(c->websocket, net));
}

static void make_source(client *c, rt_loop *loop, rt_reachability *net, told *t, bool repeats) {
  CHECK_OK(rt_eventsource_new(loop, "http://" PLACE "/", &c->source));
  CHECK_OK(rt_eventsource_on_error(c->source, on_failure, t, NULL));
  CHECK_OK(rt_eventsource_set_reconnect(c->source, repeats));
  CHECK_OK(rt_eventsource_set_reachability(c->source, net));
}

static void make_poll(client *c, rt_loop *loop, rt_reachability *net, told *t, bool repeats) {
  (void)repeats;
  CHECK_OK(rt_longpoll_new(loop, "http://" PLACE "/", &c->poll));
  CHECK_OK(rt_longpoll_on_error(c->poll, on_failure, t, NULL));
  CHECK_OK(rt_longpoll_set_reachability(c->poll, net));
}

static void make_rest(client *c, rt_loop *loop, rt_reachability *net, told *t, bool repeats) {
  (void)repeats;
  CHECK_OK(rt_rest_new(loop, "http://" PLACE "/", &c->rest));
  CHECK_OK(rt_rest_set_reachability(c->rest, net));
  CHECK_OK(rt_rest_request_new(c->rest, "GET", "", &c->request));
  CHECK_OK(rt_rest_request_on_retry(c->request, on_failure, t, NULL));
}

static void make_spreadbot(client *c, rt_loop *loop, rt_reachability *net, told *t, bool repeats) {
  (void)repeats;
  CHECK_OK(rt_spreadbot_new(loop, "http://" PLACE, &c->spreadbot));
  CHECK_OK(rt_spreadbot_on_error(c->spreadbot, on_failure, t, NULL));
  CHECK_OK(rt_spreadbot_set_reachability(c->spreadbot, net));
}

static void make_pusher(client *c, rt_loop *loop, rt_reachability *net, told *t, bool repeats) {
  CHECK_OK(rt_pusher_new(loop, "key", &c->pusher));
  CHECK_OK(rt_pusher_on_state(c->pusher, on_state, t, NULL));
  CHECK_OK(rt_pusher_set_host(c->pusher, "127.0.0.1"));
  CHECK_OK(rt_pusher_set_port(c->pusher, 1));
  CHECK_OK(rt_pusher_set_use_tls(c->pusher, false));
  CHECK_OK(rt_pusher_set_auto_reconnect(c->pusher, repeats));
  CHECK_OK(rt_pusher_set_reachability(c->pusher, net));
}

static void make_ddp(client *c, rt_loop *loop, rt_reachability *net, told *t, bool repeats) {
  CHECK_OK(rt_ddp_new(loop, "ws://" PLACE "/websocket", &c->ddp));
  CHECK_OK(rt_ddp_on_status(c->ddp, on_status, t, NULL));
  CHECK_OK(rt_ddp_set_sockjs_fallback(c->ddp, false));
  CHECK_OK(rt_ddp_set_auto_reconnect(c->ddp, repeats));
  CHECK_OK(rt_ddp_set_reachability(c->ddp, net));
}

typedef struct kind {
  void (*make)(client *, rt_loop *, rt_reachability *, told *, bool repeats);
  rt_status (*start)(client *);
  rt_status (*connect)(client *, int64_t timeout_ms);
  rt_status (*retry_now)(client *);
  int32_t (*get_state)(client *);
} kind;

#define KIND(name, start, connect, retry_now, get_state)                        \
  static rt_status start_##name(client *c) { return start; }                    \
  static rt_status connect_##name(client *c, int64_t ms) { return connect; }    \
  static rt_status retry_##name(client *c) { return retry_now; }                \
  static int32_t state_of_##name(client *c) { return get_state; }               \
  static const kind name = {make_##name, start_##name, connect_##name,          \
                            retry_##name, state_of_##name};

KIND(websocket, rt_websocket_start(c->websocket), rt_websocket_connect(c->websocket, ms),
     rt_websocket_retry_now(c->websocket), rt_websocket_get_state(c->websocket))
KIND(source, rt_eventsource_start(c->source), rt_eventsource_connect(c->source, ms),
     rt_eventsource_retry_now(c->source), rt_eventsource_get_state(c->source))
KIND(poll, rt_longpoll_start(c->poll), rt_longpoll_connect(c->poll, ms),
     rt_longpoll_retry_now(c->poll), rt_longpoll_get_state(c->poll))
KIND(spreadbot, rt_spreadbot_start(c->spreadbot, "news"),
     rt_spreadbot_connect(c->spreadbot, "news", ms), rt_spreadbot_retry_now(c->spreadbot),
     rt_spreadbot_get_state(c->spreadbot))
KIND(pusher, rt_pusher_start(c->pusher), rt_pusher_connect(c->pusher, ms),
     rt_pusher_retry_now(c->pusher), rt_pusher_get_state(c->pusher))
KIND(ddp, rt_ddp_start(c->ddp), rt_ddp_connect(c->ddp, ms), rt_ddp_retry_now(c->ddp),
     rt_ddp_get_state(c->ddp))

static rt_status send_request(client *c) {
  return rt_rest_request_send(c->request, on_response, c, NULL, NULL, NULL);
}

/* Its requests wait, and not the client. */
static const kind rest = {make_rest, send_request, NULL, NULL, NULL};

static void free_client(client *c) {
  rt_websocket_free(c->websocket);
  rt_eventsource_free(c->source);
  rt_longpoll_free(c->poll);
  rt_rest_request_free(c->request);
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
static void waits(rt_loop *loop, const kind *kind) {
  client c = {0};
  told t = {0};
  int round;
  rt_reachability *net = offline(loop);
  kind->make(&c, loop, net, &t, true);
  CHECK_OK(kind->start(&c));
  /* Not inside the call. */
  CHECK(t.waits == 0 && t.failures == 0);
  TURN_UNTIL(loop, t.waits == 1);
  settle(loop);
  CHECK(t.waits == 1 && t.failures == 0);
  if (kind->get_state) CHECK(kind->get_state(&c) == RT_STATE_WAITING);
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

/* Although the monitor finds no network. Then it counts again. */
static void is_tried_at_once(rt_loop *loop, const kind *kind) {
  client c = {0};
  told t = {0};
  int round;
  rt_reachability *net = offline(loop);
  kind->make(&c, loop, net, &t, true);
  CHECK_OK(kind->start(&c));
  TURN_UNTIL(loop, t.waits == 1);
  for (round = 1; round < 4; round++) {
    CHECK_OK(kind->retry_now(&c));
    CHECK(t.failures == round - 1);
    TURN_UNTIL(loop, t.failures == round);
    settle(loop);
    CHECK(t.waits == 1 && t.failures == round && t.delayed == 0);
    CHECK(kind->get_state(&c) == RT_STATE_WAITING);
  }
  CHECK_OK(rt_reachability_set_online(net, true));
  TURN_UNTIL(loop, t.delayed > 0);
  free_client(&c);
  rt_reachability_free(net);
}

typedef struct call {
  const kind *kind;
  client *client;
  rt_loop *loop;
  int64_t timeout_ms;
  rt_status status;
  bool is_over;
} call;

static void on_over(void *user) { ((call *)user)->is_over = true; }

static void *connect_here(void *user) {
  call *a = user;
  a->status = a->kind->connect(a->client, a->timeout_ms);
  CHECK(*rt_last_error());
  CHECK_OK(rt_loop_post(a->loop, on_over, a, NULL));
  return NULL;
}

/* On another thread, while this one runs the loop. */
static rt_status connect_on(rt_loop *loop, const kind *kind, client *c, int64_t timeout_ms) {
  call a = {kind, c, loop, timeout_ms, RT_OK, false};
  pthread_t thread;
  CHECK(!pthread_create(&thread, NULL, connect_here, &a));
  TURN_UNTIL(loop, a.is_over);
  CHECK(!pthread_join(thread, NULL));
  return a.status;
}

/* The time limit of the call counts during the wait. */
static void connect_waits(rt_loop *loop, const kind *kind) {
  client c = {0};
  told t = {0};
  rt_reachability *net = offline(loop);
  kind->make(&c, loop, net, &t, true);
  CHECK(connect_on(loop, kind, &c, 0) == RT_ERROR_TIMEOUT);
  TURN_UNTIL(loop, t.waits == 1);
  CHECK(connect_on(loop, kind, &c, 5) == RT_ERROR_TIMEOUT);
  settle(loop);
  CHECK(t.waits == 1 && t.failures == 0 && kind->get_state(&c) == RT_STATE_WAITING);
  free_client(&c);
  rt_reachability_free(net);
}

static void connect_fails(rt_loop *loop, const kind *kind) {
  client c = {0};
  told t = {0};
  rt_reachability *net = offline(loop);
  kind->make(&c, loop, net, &t, false);
  CHECK(connect_on(loop, kind, &c, -1) == RT_ERROR_CONNECT);
  settle(loop);
  CHECK(t.failures == 1 && t.waits == 0 && kind->get_state(&c) == RT_STATE_CLOSED);
  free_client(&c);
  rt_reachability_free(net);
}

static void is_tried_once(rt_loop *loop, const kind *kind) {
  client c = {0};
  told t = {0};
  rt_reachability *net = offline(loop);
  kind->make(&c, loop, net, &t, false);
  CHECK_OK(kind->start(&c));
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
  static const kind *all[] = {&websocket, &source, &poll, &spreadbot, &pusher, &ddp};
  static const kind *single[] = {&websocket, &source, &pusher, &ddp};
  rt_loop *loop = new_loop();
  size_t i;
  for (i = 0; i < sizeof all / sizeof *all; i++) {
    waits(loop, all[i]);
    is_tried_at_once(loop, all[i]);
    connect_waits(loop, all[i]);
  }
  waits(loop, &rest);
  for (i = 0; i < sizeof single / sizeof *single; i++) {
    is_tried_once(loop, single[i]);
    connect_fails(loop, single[i]);
  }
  the_program_reports(loop);
  rt_loop_free(loop);
  return 0;
}
