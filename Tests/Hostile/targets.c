/* The attacked objects: one function for each transport, and its callbacks. */
#include "victim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_OBJECTS = 256 };

/* The latest object of each kind. */
static rt_websocket *websocket;
static rt_eventsource *events;
static rt_longpoll *longpoll;
static rt_spreadbot *spreadbot;
static rt_rest *rest;
static rt_pusher *pusher;
static rt_ddp *ddp;

static struct {
  void *object;
  void (*free)(void *object);
} made[MAX_OBJECTS];
static int made_count;

static void keep(void *object, void (*free)(void *object)) {
  made[made_count].object = object;
  made[made_count++].free = free;
}

static void free_websocket(void *object) { rt_websocket_free(object); }
static void free_events(void *object) { rt_eventsource_free(object); }
static void free_poll(void *object) { rt_longpoll_free(object); }
static void free_rest(void *object) { rt_rest_free(object); }
static void free_spreadbot(void *object) { rt_spreadbot_free(object); }

static void free_pusher(void *object) { rt_pusher_free(object); }
static void free_ddp(void *object) { rt_ddp_free(object); }

static rt_network *network_of(const struct victim *victim) {
  rt_network *network = NULL;
  check(rt_network_new(&network), "rt_network_new");
  const char *ca = option(victim, "ca", NULL), *proxy = option(victim, "proxy", NULL);
  if (ca) check(rt_network_set_ca_file(network, ca), "rt_network_set_ca_file");
  if (proxy) check(rt_network_set_proxy(network, proxy), "rt_network_set_proxy");
  return network;
}

/* WebSocket. */

static void on_websocket_open(const rt_opened *opened, void *user) {
  (void)opened;
  struct victim *victim = user;
  victim->opens += 1;
  if (option(victim, "close", NULL)) rt_websocket_close(websocket, 1000, "");
}

static void on_websocket_message(rt_message_kind kind, const uint8_t *data, size_t length,
                                 void *user) {
  (void)kind, (void)data;
  struct victim *victim = user;
  victim->messages += 1;
  victim->bytes += length;
}

static void on_websocket_piece(const rt_websocket_piece *piece, void *user) {
  struct victim *victim = user;
  victim->messages += piece->last;
  victim->bytes += piece->data_length;
}

static void on_websocket_error(const rt_failure *failure, void *user) {
  report(user, "error", failure->status, 0, false, failure->message);
}

static void on_websocket_close(const rt_closed *closed, void *user) {
  char text[160];
  const char *how = closed->clean ? "clean" : "not clean";
  snprintf(text, sizeof text, "close %u, %s: %.120s", closed->code, how, closed->reason);
  report(user, "close", RT_OK, 0, true, text);
}

static bool on_websocket_reconnect(uint32_t attempt, void *user) {
  (void)attempt;
  ((struct victim *)user)->attempts += 1;
  return true;
}

static void attack_websocket(struct victim *victim, const char *url) {
  check(rt_websocket_new(victim->loop, url, &websocket), "rt_websocket_new");
  keep(websocket, free_websocket);
  rt_network *network = network_of(victim);
  check(rt_websocket_set_network(websocket, network), "rt_websocket_set_network");
  rt_network_free(network);
  long long timeout = number(victim, "timeout", 1000);
  long long open_timeout = number(victim, "open_timeout", timeout);
  check(rt_websocket_set_open_timeout_ms(websocket, open_timeout), "open_timeout");
  check(rt_websocket_set_close_timeout_ms(websocket, timeout), "close_timeout");
  if (option(victim, "max", NULL))
    check(rt_websocket_set_max_message_bytes(websocket, (size_t)number(victim, "max", 0)), "max");
  if (option(victim, "reconnect", NULL)) {
    rt_backoff *backoff = NULL;
    check(rt_backoff_new(&backoff), "rt_backoff_new");
    check(rt_websocket_set_reconnect(websocket, backoff), "rt_websocket_set_reconnect");
    rt_backoff_free(backoff);
  }
  check(rt_websocket_on_open(websocket, on_websocket_open, victim, NULL), "on_open");
  if (option(victim, "pieces", NULL))
    check(rt_websocket_on_piece(websocket, on_websocket_piece, victim, NULL), "on_piece");
  else
    check(rt_websocket_on_message(websocket, on_websocket_message, victim, NULL), "on_message");
  check(rt_websocket_on_error(websocket, on_websocket_error, victim, NULL), "on_error");
  check(rt_websocket_on_closed(websocket, on_websocket_close, victim, NULL), "on_close");
  check(rt_websocket_on_reconnect(websocket, on_websocket_reconnect, victim, NULL),
        "on_reconnect");
  check(rt_websocket_start(websocket), "rt_websocket_start");
}

/* Event source. */

static void on_source_open(const rt_opened *opened, void *user) {
  (void)opened;
  ((struct victim *)user)->opens += 1;
}

static void on_event(const rt_event *event, void *user) {
  struct victim *victim = user;
  victim->messages += 1;
  victim->bytes += event->data_length;
}

static void on_source_error(const rt_failure *failure, void *user) {
  report(user, "error", failure->status, failure->http_status, failure->fatal, failure->message);
}

static bool on_source_request(uint32_t attempt, void *user) {
  (void)attempt;
  ((struct victim *)user)->attempts += 1;
  return true;
}

static rt_credentials on_source_credentials(const rt_failure *refusal, void *user) {
  (void)refusal, (void)user;
  return RT_CREDENTIALS_READY;
}

static void attack_events(struct victim *victim, const char *url) {
  check(rt_eventsource_new(victim->loop, url, &events), "rt_eventsource_new");
  keep(events, free_events);
  rt_network *network = network_of(victim);
  check(rt_eventsource_set_network(events, network), "rt_eventsource_set_network");
  rt_network_free(network);
  long long timeout = number(victim, "timeout", 1000);
  check(rt_eventsource_set_connect_timeout_ms(events, timeout), "connect_timeout");
  check(rt_eventsource_set_response_timeout_ms(events, timeout), "response_timeout");
  check(rt_eventsource_set_http2(events, number(victim, "http2", 1)), "http2");
  if (option(victim, "credentials", NULL))
    check(rt_eventsource_on_credentials(events, on_source_credentials, victim, NULL),
          "on_credentials");
  if (option(victim, "resilient", NULL))
    check(rt_eventsource_set_resilient(events), "rt_eventsource_set_resilient");
  check(rt_eventsource_on_open(events, on_source_open, victim, NULL), "on_open");
  check(rt_eventsource_on_any(events, on_event, victim, NULL), "on_any");
  check(rt_eventsource_on_error(events, on_source_error, victim, NULL), "on_error");
  check(rt_eventsource_on_request(events, on_source_request, victim, NULL), "on_request");
  check(rt_eventsource_start(events), "rt_eventsource_start");
}

/* Long poll. */

static void on_poll_message(const rt_event *event, void *user) {
  struct victim *victim = user;
  victim->messages += 1;
  victim->bytes += event->data_length;
}

static void attack_poll(struct victim *victim, const char *url) {
  check(rt_longpoll_new(victim->loop, url, &longpoll), "rt_longpoll_new");
  keep(longpoll, free_poll);
  rt_network *network = network_of(victim);
  check(rt_longpoll_set_network(longpoll, network), "rt_longpoll_set_network");
  rt_network_free(network);
  long long timeout = number(victim, "timeout", 1000);
  check(rt_longpoll_set_connect_timeout_ms(longpoll, timeout), "connect_timeout");
  check(rt_longpoll_set_poll_timeout_ms(longpoll, timeout), "poll_timeout");
  check(rt_longpoll_set_http2(longpoll, number(victim, "http2", 1)), "http2");
  check(rt_longpoll_set_cursor(longpoll, (int)number(victim, "cursor", 0), NULL), "cursor");
  if (option(victim, "max", NULL))
    check(rt_longpoll_set_max_body_bytes(longpoll, (size_t)number(victim, "max", 0)), "max");
  if (option(victim, "credentials", NULL))
    check(rt_longpoll_on_credentials(longpoll, on_source_credentials, victim, NULL),
          "on_credentials");
  check(rt_longpoll_on_open(longpoll, on_source_open, victim, NULL), "on_open");
  check(rt_longpoll_on_message(longpoll, on_poll_message, victim, NULL), "on_message");
  check(rt_longpoll_on_error(longpoll, on_source_error, victim, NULL), "on_error");
  check(rt_longpoll_on_request(longpoll, on_source_request, victim, NULL), "on_request");
  check(rt_longpoll_start(longpoll), "rt_longpoll_start");
}

/* Requests. */

static void on_done(rt_rest_response *response, void *user) {
  struct victim *victim = user;
  size_t length = 0;
  char text[TEXT_BYTES];
  const uint8_t *body = rt_rest_response_body(response, &length);
  rt_status status = rt_rest_response_error(response);
  if (status == RT_OK) {
    victim->messages += 1;
    victim->bytes += length;
    snprintf(text, sizeof text, "%zu bytes: %.*s", length, (int)(length > 80 ? 80 : length),
             length ? (const char *)body : "");
  } else {
    snprintf(text, sizeof text, "%s", rt_rest_response_message(response));
  }
  victim->attempts += rt_rest_response_attempts(response);
  report(victim, "done", status, rt_rest_response_status(response), true, text);
}

static rt_credentials on_rest_credentials(const rt_failure *refusal, void *user) {
  (void)refusal;
  (void)user;
  return RT_CREDENTIALS_READY;
}

static void on_body(const uint8_t *data, size_t length, void *user) {
  (void)data;
  ((struct victim *)user)->bytes += length;
}

static void send_request(struct victim *victim, unsigned index) {
  rt_rest_request *request = NULL;
  char path[32];
  const char *body = option(victim, "body", NULL);
  snprintf(path, sizeof path, "%u", index);
  check(rt_rest_request_new(rest, option(victim, "method", "GET"), path, &request), "request_new");
  if (body)
    check(rt_rest_request_set_body(request, (const uint8_t *)body, strlen(body), "text/plain"),
          "set_body");
  if (option(victim, "stream", NULL))
    check(rt_rest_request_on_body(request, on_body, victim, NULL), "on_body");
  check(rt_rest_request_send(request, on_done, victim, NULL, NULL, NULL), "rt_rest_request_send");
  rt_rest_request_free(request);
}

void send_late(struct victim *victim) {
  send_request(victim, (unsigned)number(victim, "requests", 1));
}

static void attack_rest(struct victim *victim, const char *url) {
  check(rt_rest_new(victim->loop, url, &rest), "rt_rest_new");
  keep(rest, free_rest);
  rt_network *network = network_of(victim);
  check(rt_rest_set_network(rest, network), "rt_rest_set_network");
  rt_network_free(network);
  long long timeout = number(victim, "timeout", 1000);
  check(rt_rest_set_attempt_timeout_ms(rest, timeout), "attempt_timeout");
  check(rt_rest_set_attempts(rest, (unsigned)number(victim, "attempts", 1)), "attempts");
  check(rt_rest_set_http2(rest, number(victim, "http2", 1)), "http2");
  if (option(victim, "max", NULL))
    check(rt_rest_set_max_body_bytes(rest, (size_t)number(victim, "max", 0)), "max");
  if (option(victim, "credentials", NULL))
    check(rt_rest_on_credentials(rest, on_rest_credentials, victim, NULL), "on_credentials");
  int count = (int)number(victim, "requests", 1), late = (int)number(victim, "late", 0);
  victim->unfinished = count;
  for (int i = 1; i <= count - late; i++) send_request(victim, (unsigned)i);
}

/* Spreadbot. */

static void on_bot_open(const rt_opened *opened, void *user) {
  (void)opened;
  ((struct victim *)user)->opens += 1;
}

static void on_bot_error(const rt_failure *failure, void *user) {
  char text[TEXT_BYTES];
  snprintf(text, sizeof text, "leg %d: %.350s", failure->transport, failure->message);
  report(user, "error", failure->status, failure->http_status, false, text);
}

static void on_bot_message(const rt_event *event, void *user) {
  on_poll_message(event, user);
}

static void on_disconnected(const rt_closed *closed, void *user) {
  report(user, "close", closed->status, 0, true, closed->message);
}

static void attack_spreadbot(struct victim *victim, const char *url) {
  check(rt_spreadbot_new(victim->loop, url, &spreadbot), "rt_spreadbot_new");
  keep(spreadbot, free_spreadbot);
  rt_network *network = network_of(victim);
  check(rt_spreadbot_set_network(spreadbot, network), "rt_spreadbot_set_network");
  rt_network_free(network);
  long long timeout = number(victim, "timeout", 1000);
  check(rt_spreadbot_set_connect_timeout_ms(spreadbot, timeout), "connect_timeout");
  check(rt_spreadbot_set_answer_timeout_ms(spreadbot, timeout), "answer_timeout");
  check(rt_spreadbot_set_poll_timeout_ms(spreadbot, timeout), "poll_timeout");
  check(rt_spreadbot_set_http2(spreadbot, number(victim, "http2", 1)), "http2");
  const char *auth = option(victim, "auth", NULL);
  if (auth) check(rt_spreadbot_set_auth(spreadbot, auth, "YTpi"), "rt_spreadbot_set_auth");
  check(rt_spreadbot_set_tokens(spreadbot, "access", "refresh"), "rt_spreadbot_set_tokens");
  check(rt_spreadbot_on_open(spreadbot, on_bot_open, victim, NULL), "on_open");
  check(rt_spreadbot_on_message(spreadbot, on_bot_message, victim, NULL), "on_message");
  check(rt_spreadbot_on_error(spreadbot, on_bot_error, victim, NULL), "on_error");
  check(rt_spreadbot_on_closed(spreadbot, on_disconnected, victim, NULL), "disconnected");
  check(rt_spreadbot_start(spreadbot, "news"), "rt_spreadbot_start");
}

/* Pusher. */

static void on_pusher_state(const rt_pusher_state_change *change, void *user) {
  struct victim *victim = user;
  victim->opens += change->new_state == RT_STATE_OPEN;
  if (change->status == RT_OK) return;
  bool is_final = change->new_state == RT_STATE_CLOSED;
  report(victim, "state", change->status, 0, is_final, change->message);
}

static void on_pusher_event(const rt_pusher_event *event, void *user) {
  struct victim *victim = user;
  victim->messages += 1;
  victim->bytes += event->data_length;
}

/* `channel`, or `channels` many whose names begin with it. The attacker authorizes them. */
static void subscribe_channels(struct victim *victim, const char *url) {
  const char *channel = option(victim, "channel", NULL);
  if (!channel) return;
  check(rt_pusher_set_auth_endpoint(pusher, url), "rt_pusher_set_auth_endpoint");
  check(rt_pusher_bind(pusher, NULL, on_pusher_event, victim, NULL, NULL), "rt_pusher_bind");
  long long count = number(victim, "channels", 0);
  if (!count) check(rt_pusher_subscribe(pusher, channel, NULL), "rt_pusher_subscribe");
  for (long long index = 0; index < count; index++) {
    char name[64];
    snprintf(name, sizeof name, "%s%lld", channel, index);
    check(rt_pusher_subscribe(pusher, name, NULL), "rt_pusher_subscribe");
  }
}

static void attack_pusher(struct victim *victim, const char *url) {
  check(rt_pusher_new(victim->loop, "key", &pusher), "rt_pusher_new");
  keep(pusher, free_pusher);
  check(rt_pusher_set_host(pusher, "127.0.0.1"), "rt_pusher_set_host");
  check(rt_pusher_set_port(pusher, (uint32_t)atoi(strrchr(url, ':') + 1)), "rt_pusher_set_port");
  check(rt_pusher_set_use_tls(pusher, false), "rt_pusher_set_use_tls");
  check(rt_pusher_on_state(pusher, on_pusher_state, victim, NULL), "rt_pusher_on_state");
  subscribe_channels(victim, url);
  check(rt_pusher_start(pusher), "rt_pusher_start");
}

/* Meteor. */

static void on_ddp_status(const rt_ddp_status_change *change, void *user) {
  struct victim *victim = user;
  bool is_final = change->new_status == RT_DDP_FAILED;
  victim->opens += change->new_status == RT_DDP_CONNECTED;
  victim->attempts += change->new_status == RT_DDP_CONNECTING;
  if (change->status == RT_OK && !is_final) return;
  const char *text = *change->message ? change->message : change->reason;
  report(victim, "status", change->status, 0, is_final, text);
}

static void on_ddp_change(const rt_ddp_change *change, void *user) {
  struct victim *victim = user;
  victim->messages += 1;
  victim->bytes += change->fields_length;
  if (!strcmp(change->collection, "last")) report(victim, "last", RT_OK, 0, false, "");
}

static void on_query_end(const rt_ddp_query_end *end, void *user) {
  report(user, "query", end->status, 0, false, end->message);
}

static void on_indexes(const rt_ddp_index_changes *changes, void *user) {
  (void)changes;
  (void)user;
}

/* Live queries and writes of the program itself, which make a server's documents cost more. */
static void use_documents(struct victim *victim) {
  uint64_t query = 0;
  const char *selector = option(victim, "find", NULL), *options = option(victim, "with", NULL);
  if (selector || options)
    check(rt_ddp_observe(ddp, "c", selector, options, on_ddp_change, victim, NULL, &query),
          "observe");
  if (number(victim, "indexes", 0))
    check(rt_ddp_observe_indexes(ddp, "c", NULL, options, on_indexes, victim, NULL, &query),
          "observe_indexes");
  for (long long count = number(victim, "inserts", 0); count > 0; count--)
    check(rt_ddp_insert(ddp, "c", "{\"n\":1}", NULL, NULL, NULL, NULL, NULL), "insert");
}

static void attack_ddp(struct victim *victim, const char *url) {
  check(rt_ddp_new(victim->loop, url, &ddp), "rt_ddp_new");
  keep(ddp, free_ddp);
  rt_network *network = network_of(victim);
  check(rt_ddp_set_network(ddp, network), "rt_ddp_set_network");
  rt_network_free(network);
  check(rt_ddp_set_connect_timeout_ms(ddp, number(victim, "timeout", 1000)), "connect_timeout");
  check(rt_ddp_set_sockjs_fallback(ddp, number(victim, "sockjs", 0)), "sockjs_fallback");
  if (option(victim, "max", NULL))
    check(rt_ddp_set_max_message_bytes(ddp, (size_t)number(victim, "max", 0)), "max");
  if (option(victim, "documents", NULL))
    check(rt_ddp_set_max_document_bytes(ddp, (size_t)number(victim, "documents", 0)), "documents");
  if (option(victim, "unsent", NULL))
    check(rt_ddp_set_max_unsent_bytes(ddp, (size_t)number(victim, "unsent", 0)), "unsent");
  if (option(victim, "interval", NULL))
    check(rt_ddp_set_buffer_interval_ms(ddp, number(victim, "interval", 0)), "buffer_interval");
  check(rt_ddp_on_status(ddp, on_ddp_status, victim, NULL), "on_status");
  check(rt_ddp_on_change(ddp, on_ddp_change, victim, NULL), "on_change");
  check(rt_ddp_on_query_end(ddp, on_query_end, victim, NULL), "on_query_end");
  uint64_t subscription = 0;
  check(rt_ddp_subscribe(ddp, "attack", NULL, -1, NULL, NULL, NULL, &subscription, NULL),
        "subscribe");
  check(rt_ddp_call(ddp, "attack", NULL, NULL, NULL, NULL, NULL, NULL), "rt_ddp_call");
  use_documents(victim);
  check(rt_ddp_start(ddp), "rt_ddp_start");
}

bool attack(struct victim *victim, const char *transport, const char *url) {
  static const struct {
    const char *name;
    void (*attack)(struct victim *victim, const char *url);
  } all[] = {{"websocket", attack_websocket},
             {"events", attack_events},
             {"poll", attack_poll},
             {"rest", attack_rest},
             {"spreadbot", attack_spreadbot},
             {"pusher", attack_pusher},
             {"ddp", attack_ddp}};
  int count = (int)number(victim, "count", 1);
  if (count > MAX_OBJECTS) return false;
  victim->unfinished = count;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    if (strcmp(all[i].name, transport)) continue;
    while (made_count < count) all[i].attack(victim, url);
    return true;
  }
  return false;
}

void release(void) {
  for (int i = 0; i < made_count; i++) made[i].free(made[i].object);
}
