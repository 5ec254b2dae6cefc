/* Pusher connections: states, channels, events and their order, members, client events, and which
 * arguments and options are refused. */
#include <pthread.h>
#include <unistd.h>

#include "contract_pusher.h"

static void on_opened(const rt_opened *opened, void *user) {
  CHECK(opened->struct_bytes == sizeof *opened && opened->http_status == 101);
  CHECK(strncmp(opened->remote_address, "127.0.0.1:", 10) == 0);
  ++*(int *)user;
}

static void connects_and_disconnects(rt_loop *loop, const char *server) {
  heard h;
  char text[128];
  size_t length;
  int opened = 0;
  rt_pusher *pusher = new_pusher(&h, loop, server);
  CHECK_STATUS(rt_pusher_get_opened(pusher, on_opened, &opened), RT_ERROR_NOT_FOUND);
  CHECK_OK(rt_pusher_get_url(pusher, text, sizeof text, &length));
  CHECK(strncmp(text, server, strlen(server)) == 0 && strstr(text, "/app/demo?") != NULL);
  CHECK(length == strlen(text));
  CHECK_OK(rt_pusher_get_socket_id(pusher, text, sizeof text, &length));
  CHECK(length == 0 && rt_pusher_get_state(pusher) == RT_STATE_IDLE);
  CHECK_OK(rt_pusher_close(pusher));
  CHECK_OK(rt_pusher_start(pusher));
  CHECK_OK(rt_pusher_start(pusher));
  CHECK(h.states[0] == '\0');
  TURN_UNTIL(loop, h.connected == 1);
  CHECK_OK(rt_pusher_get_opened(pusher, on_opened, &opened));
  CHECK(opened == 1);
  CHECK_OK(rt_pusher_get_socket_id(pusher, text, 4, &length));
  CHECK(length > 4 && strlen(text) == 3);
  CHECK(rt_pusher_get_reconnect_attempts(pusher) == 0);
  CHECK_STATUS(rt_pusher_set_cluster(pusher, "eu"), RT_ERROR_STATE);
  CHECK_OK(rt_pusher_network_changed(pusher, true));
  CHECK_OK(rt_pusher_retry_now(pusher));
  CHECK_OK(rt_pusher_set_reconnect_limits(pusher, 3, 0));
  disconnect(&h);
  CHECK(strcmp(h.states, "1245") == 0 && h.last_status == RT_OK && h.lines > 0);
  CHECK_OK(rt_pusher_start(pusher));
  TURN_UNTIL(loop, h.connected == 2);
  rt_pusher_free(pusher);
  settle(loop);
  CHECK(strcmp(h.states, "124512") == 0);
}

/* Without callbacks. */
static rt_pusher *waiting_pusher(rt_loop *loop, const char *server) {
  rt_pusher *pusher = NULL;
  CHECK_OK(rt_pusher_new(loop, "demo", &pusher));
  CHECK_OK(rt_pusher_set_host(pusher, "127.0.0.1"));
  CHECK_OK(rt_pusher_set_port(pusher, (uint32_t)atoi(strrchr(server, ':') + 1)));
  CHECK_OK(rt_pusher_set_use_tls(pusher, false));
  return pusher;
}

typedef struct waiter {
  rt_pusher *pusher;
  bool is_over;
} waiter;

static void *connect_without_limit(void *user) {
  waiter *w = user;
  CHECK_STATUS(rt_pusher_connect(w->pusher, -1), RT_ERROR_CLOSED);
  __atomic_store_n(&w->is_over, true, __ATOMIC_SEQ_CST);
  return NULL;
}

static void waits_until_connected(const char *server) {
  pthread_t thread;
  waiter w = {0};
  rt_pusher *pusher = waiting_pusher(NULL, server);
  CHECK_STATUS(rt_pusher_connect(NULL, 0), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_pusher_connect(pusher, -2), RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_pusher_connect(pusher, -1));
  CHECK(rt_pusher_get_state(pusher) == RT_STATE_OPEN);
  CHECK_OK(rt_pusher_connect(pusher, 0));
  /* Also during the closing handshake. */
  CHECK_OK(rt_pusher_close(pusher));
  CHECK_OK(rt_pusher_connect(pusher, PATIENCE_MS));
  rt_pusher_free(pusher);
  /* Nobody listens on port 1. */
  pusher = waiting_pusher(NULL, "ws://127.0.0.1:1");
  CHECK_STATUS(rt_pusher_connect(pusher, 0), RT_ERROR_TIMEOUT);
  CHECK_STATUS(rt_pusher_connect(pusher, 5), RT_ERROR_TIMEOUT);
  w.pusher = pusher;
  CHECK(!pthread_create(&thread, NULL, connect_without_limit, &w));
  /* The thread may call only after this. */
  while (!__atomic_load_n(&w.is_over, __ATOMIC_SEQ_CST)) {
    CHECK_OK(rt_pusher_close(pusher));
    usleep(1000);
  }
  CHECK(!pthread_join(thread, NULL));
  rt_pusher_free(pusher);
  pusher = waiting_pusher(NULL, "ws://127.0.0.1:1");
  CHECK_OK(rt_pusher_set_auto_reconnect(pusher, false));
  CHECK_STATUS(rt_pusher_connect(pusher, -1), RT_ERROR_CONNECT);
  rt_pusher_free(pusher);
}

static void reconnects(rt_loop *loop, const char *server) {
  heard h;
  rt_pusher *pusher = new_pusher(&h, loop, server);
  rt_pusher_channel *channel = subscribe(pusher, "news");
  CHECK_OK(rt_pusher_channel_bind(channel, "e", heard_event, &h, NULL, NULL));
  CHECK_OK(rt_pusher_start(pusher));
  TURN_UNTIL(loop, h.subscribed == 1);
  control(server, "close", "{'code': 4200, 'reason': 'again'}");
  TURN_UNTIL(loop, h.subscribed == 2);
  CHECK(strcmp(h.states, "12312") == 0 && h.last_code == 4200);
  control(server, "publish", "{'channel': 'news', 'event': 'e', 'data': 1}");
  TURN_UNTIL(loop, h.text[0]);
  CHECK(strcmp(h.text, "e=1;") == 0);
  control(server, "close", "{'code': 4001, 'reason': 'no such app'}");
  TURN_UNTIL(loop, rt_pusher_get_state(pusher) == RT_STATE_CLOSED);
  CHECK(h.last_code == 4001 && h.last_status < 0);
  CHECK(rt_pusher_channel_get_state(channel) == RT_PUSHER_CHANNEL_IDLE);
  rt_pusher_channel_free(channel);
  rt_pusher_free(pusher);
}

/* Bindings of one event, which note their letter, and change the others. */
typedef struct binding {
  heard *h;
  char letter;
  uint64_t id, other;
  rt_pusher_channel *channel;
} binding;

static void on_bound(const rt_pusher_event *event, void *user) {
  binding *b = user;
  CHECK(event->channel_length == 4 && memcmp(event->channel, "news", 4) == 0);
  CHECK(event->channel_number == rt_pusher_channel_get_number(b->channel));
  note(b->h, &b->letter, 1);
  if (b->letter == 'b') CHECK_OK(rt_pusher_unbind(b->h->pusher, b->other));
  if (b->letter == 'd') CHECK_OK(rt_pusher_channel_unbind(b->channel, b->id));
}

static void calls_bindings_in_order(rt_loop *loop, const char *server) {
  heard h;
  rt_pusher *pusher = new_pusher(&h, loop, server);
  rt_pusher_channel *channel = subscribe(pusher, "news");
  binding b[6];
  int i;
  for (i = 0; i < 6; i++) b[i] = (binding){&h, (char)('a' + i), 0, 0, channel};
  /* The channel's binding comes last, although it was added first; "c" is removed by "b". */
  CHECK_OK(rt_pusher_channel_bind(channel, "e", on_bound, &b[3], NULL, &b[3].id));
  CHECK_OK(rt_pusher_channel_bind(channel, NULL, on_bound, &b[4], NULL, &b[4].id));
  CHECK_OK(rt_pusher_bind(pusher, "e", on_bound, &b[0], count_up, &b[0].id));
  CHECK_OK(rt_pusher_bind(pusher, NULL, on_bound, &b[1], NULL, &b[1].id));
  CHECK_OK(rt_pusher_bind(pusher, "e", on_bound, &b[2], NULL, &b[1].other));
  CHECK_OK(rt_pusher_bind(pusher, "other", on_bound, &b[5], NULL, NULL));
  CHECK_OK(rt_pusher_unbind(pusher, b[0].id));
  CHECK_STATUS(rt_pusher_unbind(pusher, b[0].id), RT_ERROR_NOT_FOUND);
  CHECK_STATUS(rt_pusher_channel_unbind(channel, b[1].id), RT_ERROR_NOT_FOUND);
  CHECK_OK(rt_pusher_start(pusher));
  TURN_UNTIL(loop, h.subscribed);
  /* "pusher:subscription_succeeded" reached those that take every event. */
  CHECK(strcmp(h.text, "be") == 0);
  h.text[0] = '\0';
  CHECK_OK(rt_pusher_bind(pusher, "e", on_bound, &b[2], NULL, &b[1].other));
  control(server, "publish", "{'channel': 'news', 'event': 'e'}");
  TURN_UNTIL(loop, strchr(h.text, 'e'));
  CHECK(strcmp(h.text, "bde") == 0);
  CHECK_OK(rt_pusher_unbind_all(pusher));
  CHECK_OK(rt_pusher_channel_unbind_event(channel, "e"));
  control(server, "publish", "{'channel': 'news', 'event': 'e'}");
  TURN_UNTIL(loop, strlen(h.text) == 4);
  CHECK(strcmp(h.text, "bdee") == 0);
  CHECK_OK(rt_pusher_channel_unbind_all(channel));
  rt_pusher_channel_free(channel);
  rt_pusher_free(pusher);
}

static void on_property(const rt_pusher_event *event, void *user) {
  heard *h = user;
  const char *json = NULL;
  size_t length = 0;
  CHECK_OK(rt_pusher_event_property(event, "more", &json, &length));
  note(h, json, length);
  CHECK_STATUS(rt_pusher_event_property(event, "none", &json, &length), RT_ERROR_NOT_FOUND);
  CHECK_STATUS(rt_pusher_event_property(event, NULL, &json, &length), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_pusher_event_property(event, "more", NULL, &length), RT_ERROR_INVALID_ARGUMENT);
}

static void on_kind(const rt_pusher_event *event, void *user) {
  char kind = (char)('0' + event->data_kind);
  heard_event(event, user);
  note(user, &kind, 1);
}

static void on_events(
    const uint8_t *base, const rt_pusher_record *events, size_t count, void *user) {
  size_t i;
  for (i = 0; i < count; i++) {
    const char *event = (const char *)base + events[i].event_offset;
    if (events[i].event_length == 1) {
      note(user, event, 1);
      note(user, (const char *)base + events[i].data_offset, events[i].data_length);
      CHECK(base[events[i].message_offset] == '{' && events[i].channel_number > 0);
    }
  }
}

static void delivers_every_form(rt_loop *loop, const char *server) {
  heard h, batches;
  uint64_t id;
  rt_pusher *pusher = new_pusher(&h, loop, server);
  rt_pusher_channel *channel = subscribe(pusher, "news");
  memset(&batches, 0, sizeof batches);
  CHECK_OK(rt_pusher_channel_bind(channel, "e", on_kind, &h, NULL, &id));
  CHECK_OK(rt_pusher_on_events(pusher, on_events, &batches, NULL));
  CHECK_OK(rt_pusher_start(pusher));
  TURN_UNTIL(loop, h.subscribed);
  control(server, "send", "{'text': '{\\\"event\\\":\\\"e\\\",\\\"channel\\\":\\\"news\\\"}'}");
  control(server, "send", "{'text': '{\\\"event\\\":\\\"e\\\",\\\"channel\\\":\\\"news\\\","
                          "\\\"data\\\":[1, 2]}'}");
  control(server, "publish", "{'channel': 'news', 'event': 'e', 'data': 'tab\\there'}");
  TURN_UNTIL(loop, strstr(h.text, "here"));
  CHECK(strcmp(h.text, "e=;0e=[1,2];2e=tab\there;1") == 0);
  CHECK(strcmp(batches.text, "ee[1,2]etab\there") == 0);
  CHECK_OK(rt_pusher_on_events(pusher, NULL, NULL, NULL));
  CHECK_OK(rt_pusher_channel_unbind(channel, id));
  h.text[0] = '\0';
  CHECK_OK(rt_pusher_channel_bind(channel, "e", on_property, &h, NULL, NULL));
  CHECK_OK(rt_pusher_pause(pusher));
  settle(loop);
  control(server, "send", "{'text': '{\\\"event\\\":\\\"e\\\",\\\"channel\\\":\\\"news\\\","
                          "\\\"more\\\":{\\\"a\\\":1}}'}");
  settle(loop);
  CHECK(h.text[0] == '\0');
  CHECK_OK(rt_pusher_resume(pusher));
  TURN_UNTIL(loop, h.text[0]);
  CHECK(strcmp(h.text, "{\"a\":1}") == 0);
  rt_pusher_channel_free(channel);
  rt_pusher_free(pusher);
}

static void note_channel(const char *channel, uint64_t number, void *user) {
  CHECK(number > 0);
  note(user, channel, strlen(channel));
  note(user, " ", 1);
}

static void handles_outlive_the_subscription(rt_loop *loop, const char *server) {
  heard h;
  char name[16];
  size_t length;
  uint64_t count;
  rt_pusher *pusher = new_pusher(&h, loop, server);
  rt_pusher_channel *first = subscribe(pusher, "one"), *second = subscribe(pusher, "private-a"),
                    *same = subscribe(pusher, "one"), *found = NULL;
  CHECK(first == same && rt_pusher_channel_get_number(first) == 1);
  rt_pusher_channel_free(same);
  CHECK_OK(rt_pusher_subscribe(pusher, "presence-a", NULL));
  CHECK_OK(rt_pusher_each_channel(pusher, note_channel, &h));
  CHECK(strcmp(h.text, "one private-a presence-a ") == 0);
  CHECK_OK(rt_pusher_find_channel(pusher, "presence-a", &found));
  CHECK(rt_pusher_channel_get_kind(found) == RT_PUSHER_CHANNEL_KIND_PRESENCE);
  CHECK(rt_pusher_channel_get_kind(first) == RT_PUSHER_CHANNEL_KIND_PUBLIC);
  CHECK_OK(rt_pusher_unsubscribe(pusher, "presence-a"));
  CHECK_STATUS(rt_pusher_unsubscribe(pusher, "presence-a"), RT_ERROR_NOT_FOUND);
  CHECK_STATUS(rt_pusher_find_channel(pusher, "presence-a", &same), RT_ERROR_NOT_FOUND);
  CHECK(rt_pusher_channel_get_state(found) == RT_PUSHER_CHANNEL_UNSUBSCRIBED);
  CHECK_OK(rt_pusher_channel_unsubscribe(found));
  CHECK_STATUS(rt_pusher_channel_bind(found, "e", heard_event, &h, count_up, NULL), RT_ERROR_STATE);
  CHECK_STATUS(rt_pusher_channel_trigger(found, "client-a", "1", 1), RT_ERROR_STATE);
  rt_pusher_channel_free(found);
  CHECK_OK(rt_pusher_channel_unsubscribe(first));
  same = subscribe(pusher, "one");
  CHECK(same != first && rt_pusher_channel_get_number(same) > 3);
  CHECK_OK(rt_pusher_unsubscribe_all(pusher));
  rt_pusher_free(pusher);
  CHECK_OK(rt_pusher_channel_get_name(second, name, sizeof name, &length));
  CHECK(length == 9 && strcmp(name, "private-a") == 0);
  CHECK_STATUS(rt_pusher_channel_get_subscription_count(second, &count), RT_ERROR_NOT_FOUND);
  CHECK_STATUS(rt_pusher_channel_unbind(second, 1), RT_ERROR_NOT_FOUND);
  CHECK_OK(rt_pusher_channel_unsubscribe(second));
  rt_pusher_channel_free(first);
  rt_pusher_channel_free(second);
  rt_pusher_channel_free(same);
}

static void counts_subscribers(rt_loop *loop, const char *server) {
  heard h;
  uint64_t count = 0;
  rt_pusher *pusher = new_pusher(&h, loop, server);
  rt_pusher_channel *channel = subscribe(pusher, "cache-counted");
  control(server, "settings", "{'subscription_count': true}");
  CHECK_OK(rt_pusher_channel_bind(channel, "pusher:cache_miss", heard_event, &h, NULL, NULL));
  CHECK_OK(rt_pusher_start(pusher));
  TURN_UNTIL(loop, h.counts && h.text[0]);
  CHECK_OK(rt_pusher_channel_get_subscription_count(channel, &count));
  CHECK(h.count == 1 && count == 1);
  control(server, "settings", "{'subscription_count': false}");
  rt_pusher_channel_free(channel);
  rt_pusher_free(pusher);
}

static void waits_for_the_network(rt_loop *loop, const char *server) {
  heard h;
  rt_reachability *offline;
  rt_pusher *pusher = new_pusher(&h, loop, server);
  CHECK_OK(rt_reachability_new(loop, RT_REACHABILITY_MANUAL, &offline));
  CHECK_OK(rt_pusher_set_reachability(pusher, offline));
  CHECK_OK(rt_pusher_start(pusher));
  TURN_UNTIL(loop, h.connected);
  CHECK_OK(rt_reachability_set_online(offline, false));
  control(server, "close", "{'code': 4200}");
  TURN_UNTIL(loop, rt_pusher_get_state(pusher) == RT_STATE_WAITING);
  CHECK(h.retry_in_ms == -1);
  CHECK_OK(rt_reachability_set_online(offline, true));
  TURN_UNTIL(loop, h.connected == 2);
  rt_pusher_free(pusher);
  rt_reachability_free(offline);
}

/* Such as those of a variable that is not set: NULL is the default. */
static void empty_options_are_refused(rt_loop *loop) {
  rt_pusher *pusher = NULL;
  const uint8_t key[1] = {0};
  CHECK_STATUS(rt_pusher_new(loop, "", &pusher), RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_pusher_new(loop, "k", &pusher));
  CHECK_STATUS(rt_pusher_set_host(pusher, ""), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_pusher_set_cluster(pusher, ""), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_pusher_set_auth_endpoint(pusher, ""), RT_ERROR_INVALID_URL);
  CHECK_STATUS(rt_pusher_set_user_auth_endpoint(pusher, ""), RT_ERROR_INVALID_URL);
  CHECK_STATUS(rt_pusher_set_push_url(pusher, ""), RT_ERROR_INVALID_URL);
  CHECK_STATUS(rt_pusher_set_auth_parameter(pusher, "", "a"), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_pusher_set_encryption_master_key(pusher, key, 0), RT_ERROR_INVALID_ARGUMENT);
  rt_pusher_free(pusher);
}

static void options_are_checked(rt_loop *loop) {
  rt_pusher *pusher = NULL;
  rt_network *network = NULL;
  const uint8_t key[32] = {1};
  CHECK_STATUS(rt_pusher_new(loop, NULL, &pusher), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_pusher_new(loop, "k", NULL), RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_pusher_new(loop, "k", &pusher));
  CHECK_STATUS(rt_pusher_set_host(pusher, "ws://h"), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_pusher_set_host(pusher, "h/app"), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_pusher_set_cluster(pusher, "eu.x"), RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_pusher_set_cluster(pusher, "eu"));
  CHECK_OK(rt_pusher_set_host(pusher, NULL));
  CHECK_OK(rt_pusher_set_secret(pusher, ""));
  CHECK_OK(rt_pusher_set_secret(pusher, NULL));
  CHECK_STATUS(rt_pusher_set_encryption_master_key(pusher, key, 31), RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_pusher_set_encryption_master_key(pusher, key, 32));
  CHECK_OK(rt_pusher_set_encryption_master_key(pusher, NULL, 0));
  CHECK_STATUS(rt_pusher_set_auth_endpoint(pusher, "/pusher/auth"), RT_ERROR_INVALID_URL);
  CHECK_STATUS(rt_pusher_set_user_auth_endpoint(pusher, "ftp://h"), RT_ERROR_UNSUPPORTED_SCHEME);
  CHECK_OK(rt_pusher_set_auth_endpoint(pusher, NULL));
  CHECK_STATUS(rt_pusher_set_auth_header(pusher, "a b", "c"), RT_ERROR_INVALID_HEADER);
  CHECK_OK(rt_pusher_set_auth_header(pusher, "X-A", NULL));
  CHECK_STATUS(rt_pusher_set_auth_parameter(pusher, "socket_id", "1"), RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_pusher_set_auth_parameter(pusher, "user", "7"));
  CHECK_OK(rt_pusher_set_auth_parameter(pusher, "user", NULL));
  CHECK_STATUS(rt_pusher_set_reconnect_limits(pusher, -2, 0), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_pusher_set_reconnect_limits(pusher, -1, -1), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_pusher_set_port(pusher, 65536), RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_pusher_set_path(pusher, "/ws"));
  CHECK_OK(rt_pusher_set_offer_subprotocol(pusher, true));
  CHECK_OK(rt_pusher_set_upgrade_on_4000(pusher, true));
  CHECK_STATUS(rt_pusher_add_header(pusher, "Sec-WebSocket-Key", "k"), RT_ERROR_INVALID_HEADER);
  CHECK_OK(rt_pusher_set_header(pusher, "X-A", "b"));
  CHECK_STATUS(rt_pusher_set_basic_auth(pusher, "a:b", "c"), RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_pusher_set_bearer_token(pusher, "token"));
  CHECK_OK(rt_pusher_clear_headers(pusher));
  CHECK_STATUS(rt_pusher_set_max_redirects(pusher, 21), RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_pusher_set_allow_insecure_redirects(pusher, true));
  CHECK_STATUS(rt_pusher_add_safe_header(pusher, "a b"), RT_ERROR_INVALID_HEADER);
  CHECK_STATUS(rt_pusher_add_redirect_origin(pusher, "ftp://h"), RT_ERROR_UNSUPPORTED_SCHEME);
  CHECK_OK(rt_pusher_set_compression(pusher, false));
  CHECK_OK(rt_pusher_set_http2(pusher, false));
  CHECK_STATUS(rt_pusher_set_connect_timeout_ms(pusher, -1), RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_pusher_set_activity_timeout_ms(pusher, 0));
  CHECK_OK(rt_pusher_set_pong_timeout_ms(pusher, 1000));
  CHECK_OK(rt_pusher_set_frame_pings(pusher, true));
  CHECK_OK(rt_pusher_set_auto_reconnect(pusher, false));
  CHECK_OK(rt_pusher_set_auth_timeout_ms(pusher, 1000));
  CHECK_STATUS(rt_pusher_set_auth_retries(pusher, 17), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_pusher_set_auth_batch_size(pusher, 0), RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_pusher_set_max_channel_name_length(pusher, 3));
  CHECK_OK(rt_pusher_set_client_event_queue(pusher, 0));
  CHECK_STATUS(rt_pusher_set_client_event_rate(pusher, 1001), RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_pusher_set_max_message_bytes(pusher, 1 << 20));
  CHECK_STATUS(rt_pusher_subscribe(pusher, "four", NULL), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_pusher_subscribe(pusher, "a b", NULL), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_pusher_subscribe(pusher, "#server-to-user-1", NULL), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_pusher_subscribe_with(pusher, "private-a", NULL, NULL, NULL),
               RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_pusher_bind(pusher, "e", NULL, NULL, NULL, NULL), RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_network_new(&network));
  CHECK_OK(rt_pusher_set_network(pusher, network));
  rt_network_free(network);
  rt_pusher_free(pusher);
  rt_pusher_free(NULL);
  rt_pusher_channel_free(NULL);
  rt_pusher_authorization_free(NULL);
  CHECK(rt_pusher_channel_get_number(NULL) == 0);
  CHECK_STATUS(rt_pusher_get_reconnect_attempts(NULL), RT_ERROR_INVALID_ARGUMENT);
}

/* The server does not answer the first subscription, but the ping that follows. */
static void subscribes_again(rt_loop *loop, const char *server) {
  heard h;
  rt_pusher *pusher = new_pusher(&h, loop, server);
  rt_pusher_channel *first = subscribe(pusher, "again"), *second;
  control(server, "fault", "{'point': 'received', 'event': 'pusher:subscribe', 'do': 'ignore'}");
  CHECK_OK(rt_pusher_start(pusher));
  TURN_UNTIL(loop, rt_pusher_channel_get_state(first) == RT_PUSHER_CHANNEL_SENT);
  CHECK_OK(rt_pusher_unsubscribe(pusher, "again"));
  second = subscribe(pusher, "again");
  CHECK(rt_pusher_channel_get_state(second) == RT_PUSHER_CHANNEL_IDLE && h.subscribed == 0);
  TURN_UNTIL(loop, rt_pusher_channel_get_state(second) == RT_PUSHER_CHANNEL_SUBSCRIBED);
  CHECK(rt_pusher_channel_get_state(first) == RT_PUSHER_CHANNEL_UNSUBSCRIBED);
  TURN_UNTIL(loop, h.subscribed == 1);
  CHECK(h.failed == 0 && h.errors == 0);
  control(server, "wait",
          "{'event': 'pusher:subscribe', 'channel': 'again', 'count': 2, 'timeout': 0}");
  rt_pusher_channel_free(first);
  rt_pusher_channel_free(second);
  rt_pusher_free(pusher);
}

int main(int argc, char **argv) {
  rt_loop *loop;
  CHECK(argc == 2);
  loop = new_loop();
  connects_and_disconnects(loop, argv[1]);
  waits_until_connected(argv[1]);
  reconnects(loop, argv[1]);
  calls_bindings_in_order(loop, argv[1]);
  delivers_every_form(loop, argv[1]);
  handles_outlive_the_subscription(loop, argv[1]);
  counts_subscribers(loop, argv[1]);
  subscribes_again(loop, argv[1]);
  waits_for_the_network(loop, argv[1]);
  empty_options_are_refused(loop);
  options_are_checked(loop);
  rt_loop_free(loop);
  return 0;
}
