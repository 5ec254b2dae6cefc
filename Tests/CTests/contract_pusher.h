/* Shared by the contract programs of Pusher connections. Their peer is Tests/Support/pusher_server,
 * with the key "demo" and the secret "demo-secret". */
#ifndef CONTRACT_PUSHER_H
#define CONTRACT_PUSHER_H

#include "contract_control.h"

/* The URL of an endpoint on the server. */
static inline const char *endpoint(const char *server, const char *path) {
  static char url[256];
  snprintf(url, sizeof url, "http%s%s", server + 2, path);
  return url;
}

/* What a connection's callbacks have received. */
typedef struct heard {
  rt_pusher *pusher;
  rt_loop *loop;
  char text[4096];
  char states[64];
  int connected, subscribed, failed, errors, added, removed, counts, undecrypted, lines;
  int signed_in, refused, watched, pushes, destroyed;
  int32_t last_code;
  rt_status last_status;
  int32_t http_status;
  int64_t count, retry_in_ms;
} heard;

static inline void note(heard *h, const char *text, size_t length) {
  size_t used = strlen(h->text);
  snprintf(h->text + used, sizeof h->text - used, "%.*s", (int)length, text);
}

static inline void heard_state(const rt_pusher_state_change *change, void *user) {
  heard *h = user;
  size_t used = strlen(h->states);
  CHECK(change->struct_bytes == sizeof *change && change->old_state != change->new_state);
  CHECK(rt_pusher_get_state(h->pusher) == change->new_state);
  CHECK((change->status == RT_OK) == (change->message[0] == '\0'));
  snprintf(h->states + used, sizeof h->states - used, "%d", (int)change->new_state);
  h->connected += change->new_state == RT_STATE_OPEN;
  h->last_status = change->status;
  h->retry_in_ms = change->retry_in_ms;
  if (change->close_code) h->last_code = change->close_code;
}

static inline void heard_error(const rt_pusher_error *error, void *user) {
  heard *h = user;
  CHECK(error->struct_bytes == sizeof *error && (error->has_code || error->code == 0));
  h->last_code = error->code;
  h->errors++;
}

static inline void heard_subscribed(const rt_pusher_subscription *subscription, void *user) {
  heard *h = user;
  CHECK(subscription->struct_bytes == sizeof *subscription && subscription->status == RT_OK);
  CHECK(subscription->message[0] == '\0' && subscription->channel_number > 0);
  h->subscribed++;
}

static inline void heard_failed(const rt_pusher_subscription *subscription, void *user) {
  heard *h = user;
  CHECK(subscription->status < 0 && subscription->message[0] != '\0');
  CHECK(subscription->body[subscription->body_length] == '\0');
  h->last_status = subscription->status;
  h->http_status = subscription->http_status;
  h->failed++;
}

static inline void heard_count(const rt_pusher_subscription *subscription, void *user) {
  heard *h = user;
  CHECK(subscription->status == RT_OK);
  h->count = subscription->count;
  h->counts++;
}

static inline void heard_debug(const char *line, void *user) {
  CHECK(strncmp(line, "[PUSHER DEBUG]", 14) == 0 && strchr(line, '\n') == NULL);
  CHECK(strstr(line, "demo-secret") == NULL);
  ((heard *)user)->lines++;
}

/* A connection to the server with the callbacks above. */
static inline rt_pusher *new_pusher(heard *h, rt_loop *loop, const char *server) {
  memset(h, 0, sizeof *h);
  h->loop = loop;
  CHECK_OK(rt_pusher_new(loop, "demo", &h->pusher));
  CHECK_OK(rt_pusher_set_host(h->pusher, "127.0.0.1"));
  CHECK_OK(rt_pusher_set_port(h->pusher, (uint32_t)atoi(strrchr(server, ':') + 1)));
  CHECK_OK(rt_pusher_set_use_tls(h->pusher, false));
  CHECK_OK(rt_pusher_on_state(h->pusher, heard_state, h, NULL));
  CHECK_OK(rt_pusher_on_error(h->pusher, heard_error, h, NULL));
  CHECK_OK(rt_pusher_on_subscribed(h->pusher, heard_subscribed, h, NULL));
  CHECK_OK(rt_pusher_on_subscription_failed(h->pusher, heard_failed, h, NULL));
  CHECK_OK(rt_pusher_on_subscription_count(h->pusher, heard_count, h, NULL));
  CHECK_OK(rt_pusher_on_debug(h->pusher, heard_debug, h, NULL));
  return h->pusher;
}

/* Notes the event and its data. */
static inline void heard_event(const rt_pusher_event *event, void *user) {
  heard *h = user;
  CHECK(event->struct_bytes == sizeof *event && event->user_id && event->message);
  CHECK((event->data_kind == RT_PUSHER_DATA_NONE) <= (event->data_length == 0));
  note(h, event->event, event->event_length);
  note(h, "=", 1);
  note(h, event->data, event->data_length);
  note(h, ";", 1);
}

static inline rt_pusher_channel *subscribe(rt_pusher *pusher, const char *name) {
  rt_pusher_channel *channel = NULL;
  CHECK_OK(rt_pusher_subscribe(pusher, name, &channel));
  CHECK(channel != NULL);
  return channel;
}

static inline void disconnect(heard *h) {
  CHECK_OK(rt_pusher_close(h->pusher));
  TURN_UNTIL(h->loop, rt_pusher_get_state(h->pusher) == RT_STATE_CLOSED);
}

#endif
