/* Long polls: order, credentials, which options can be set when, pauses, and calls from callbacks.
 * */
#include "contract.h"

typedef struct heard {
  char text[1024];
  rt_longpoll *poll;
  int opens, messages, errors, requests, fatal, destroyed;
  int pause_at, close_at, free_at;
  rt_reachability *reachability;
  rt_credentials credentials;
} heard;

static rt_longpoll *new_longpoll(rt_loop *loop, const char *server, const char *path) {
  char url[256];
  rt_longpoll *poll = NULL;
  snprintf(url, sizeof url, "http%s%s", server + 2, path);
  CHECK_OK(rt_longpoll_new(loop, url, &poll));
  CHECK(poll != NULL);
  return poll;
}

static void on_open(const rt_opened *opened, void *user) {
  (void)opened;
  ((heard *)user)->opens++;
}

static void on_message(const rt_event *event, void *user) {
  heard *h = user;
  size_t used = strlen(h->text);
  CHECK(event->id[event->id_length] == '\0' && event->data[event->data_length] == '\0'
        && event->had_id);
  CHECK(strncmp(event->content_type, "text/plain", 10) == 0);
  snprintf(h->text + used, sizeof h->text - used, "%s:%s;", event->id, (const char *)event->data);
  h->messages++;
  CHECK_STATUS(rt_longpoll_set_interval_ms(h->poll, 1), RT_ERROR_STATE);
  if (h->messages == h->pause_at) CHECK_OK(rt_longpoll_pause(h->poll));
  if (h->messages == h->close_at) CHECK_OK(rt_longpoll_close(h->poll));
  if (h->messages == h->free_at) rt_longpoll_free(h->poll);
}

static void on_error(const rt_failure *failure, void *user) {
  heard *h = user;
  size_t used = strlen(h->text);
  CHECK(strstr(failure->message, "127.0.0.1") != NULL);
  bool waits = strstr(failure->message, "no network reaches it") != NULL;
  CHECK(failure->fatal || waits ? failure->retry_in_ms == -1 : failure->retry_in_ms >= 0
        && failure->attempt > 0);
  snprintf(h->text + used, sizeof h->text - used, "%s %d;", rt_status_name(failure->status),
           (int)failure->http_status);
  h->errors++;
  h->fatal += failure->fatal;
}

static bool on_request(uint32_t attempt, void *user) {
  heard *h = user;
  CHECK(attempt >= 1);
  CHECK_OK(rt_longpoll_set_interval_ms(h->poll, 20));
  CHECK_STATUS(rt_longpoll_set_last_event_id(h->poll, "1"), RT_ERROR_STATE);
  if (h->reachability) CHECK_OK(rt_longpoll_set_reachability(h->poll, h->reachability));
  return ++h->requests < 1000;
}

static rt_credentials on_credentials(const rt_failure *refusal, void *user) {
  heard *h = user;
  CHECK(refusal->http_status == 401);
  if (h->credentials == RT_CREDENTIALS_READY)
    CHECK_OK(rt_longpoll_set_bearer_token(h->poll, "good"));
  return h->credentials;
}

static rt_longpoll *listen(heard *h, rt_loop *loop, const char *server, const char *path) {
  memset(h, 0, sizeof *h);
  h->poll = new_longpoll(loop, server, path);
  CHECK_OK(rt_longpoll_on_open(h->poll, on_open, h, NULL));
  CHECK_OK(rt_longpoll_on_message(h->poll, on_message, h, NULL));
  CHECK_OK(rt_longpoll_on_error(h->poll, on_error, h, NULL));
  CHECK_OK(rt_longpoll_on_request(h->poll, on_request, h, NULL));
  CHECK_OK(rt_longpoll_on_credentials(h->poll, on_credentials, h, NULL));
  CHECK_OK(rt_longpoll_set_cursor(h->poll, RT_LONGPOLL_CURSOR_HEADER_ID, NULL));
  return h->poll;
}

static void check_id(rt_longpoll *poll, const char *expected) {
  char id[16];
  size_t length;
  CHECK_OK(rt_longpoll_get_last_event_id(poll, id, sizeof id, &length));
  CHECK(length == strlen(expected) && strcmp(id, expected) == 0);
}

static void messages_come_in_order(rt_loop *loop, const char *server) {
  heard h;
  rt_longpoll *poll = listen(&h, loop, server, "/poll/4");
  h.credentials = RT_CREDENTIALS_READY;
  h.pause_at = 2;
  CHECK_STATUS(rt_longpoll_restart(poll), RT_ERROR_STATE);
  CHECK_OK(rt_longpoll_set_last_event_id(poll, "1"));
  CHECK_OK(rt_longpoll_start(poll));
  CHECK_STATUS(rt_longpoll_start(poll), RT_ERROR_STATE);
  CHECK(h.requests == 0 && rt_longpoll_get_state(poll) == RT_STATE_CONNECTING);
  TURN_UNTIL(loop, h.messages == 2);
  /* The next message arrives and waits. */
  TURN_UNTIL(loop, h.requests >= 3);
  settle(loop);
  CHECK(h.messages == 2 && h.opens == 1);
  check_id(poll, "3");
  CHECK_OK(rt_longpoll_resume(poll));
  /* Handlers are only called by turns. */
  CHECK(h.messages == 2);
  TURN_UNTIL(loop, h.messages == 3 && h.requests >= 6);
  CHECK(strcmp(h.text, "2:message 2;3:message 3;4:message 4;") == 0);
  CHECK(rt_longpoll_get_state(poll) == RT_STATE_OPEN);
  CHECK_OK(rt_longpoll_restart(poll));
  check_id(poll, "4");
  CHECK_OK(rt_longpoll_close(poll));
  CHECK_OK(rt_longpoll_close(poll));
  CHECK(rt_longpoll_get_state(poll) == RT_STATE_CLOSED && h.errors == 0);
  CHECK_STATUS(rt_longpoll_restart(poll), RT_ERROR_CLOSED);
  rt_longpoll_free(poll);
}

typedef struct counted {
  int messages, ids, errors, pause_at, restart_at;
  rt_longpoll *poll;
} counted;

static void on_part(const rt_event *event, void *user) {
  counted *c = user;
  CHECK(event->content_type[0] == '\0' && event->data[0] == '\0' && event->data_length == 0);
  c->ids += event->had_id;
  /* The id stays the same for messages without one. */
  CHECK(c->ids > 0 ? strcmp(event->id, "7") == 0 : event->id_length == 0);
  if (++c->messages == c->pause_at) CHECK_OK(rt_longpoll_pause(c->poll));
  if (c->messages == c->restart_at) CHECK_OK(rt_longpoll_restart(c->poll));
}

static void on_malformed(const rt_failure *failure, void *user) {
  CHECK(failure->status == RT_ERROR_PROTOCOL && !failure->fatal && failure->http_status == 0
        && failure->attempt > 0);
  CHECK(strstr(failure->message, "multipart") != NULL && failure->retry_in_ms > 0);
  ((counted *)user)->errors++;
}

static void begin_batch(counted *c, rt_loop *loop, const char *server, const char *path,
                        rt_longpoll_cursor cursor) {
  c->poll = new_longpoll(loop, server, path);
  CHECK_OK(rt_longpoll_on_message(c->poll, on_part, c, NULL));
  CHECK_OK(rt_longpoll_on_error(c->poll, on_malformed, c, NULL));
  CHECK_OK(rt_longpoll_set_cursor(c->poll, cursor, NULL));
  CHECK_OK(rt_longpoll_start(c->poll));
}

/* A batch of many messages does not keep the loop from other work: each turn delivers a part of it.
 * If a batch is cut short, none of it is delivered. */
static void a_large_batch_takes_several_turns(rt_loop *loop, const char *server) {
  counted c = {.pause_at = 2000};
  int before, most = 0;
  begin_batch(&c, loop, server, "/batch/5000", RT_LONGPOLL_CURSOR_HEADER_ID);
  for (int turns = 0; c.messages < 2000 && turns < 100000; turns++) {
    before = c.messages;
    CHECK_OK(rt_loop_dispatch(loop, 10));
    if (c.messages - before > most) most = c.messages - before;
  }
  CHECK(most > 0 && most <= 1024);
  settle(loop);
  CHECK(c.messages == 2000);
  CHECK_OK(rt_longpoll_resume(c.poll));
  TURN_UNTIL(loop, c.messages == 5000);
  settle(loop);
  CHECK(c.messages == 5000 && c.ids == 1 && c.errors == 0);
  check_id(c.poll, "7");
  rt_longpoll_free(c.poll);

  c = (counted){0};
  begin_batch(&c, loop, server, "/batch/-5000", RT_LONGPOLL_CURSOR_HEADER_ID);
  TURN_UNTIL(loop, c.errors == 1);
  CHECK(c.messages == 0 && rt_longpoll_get_state(c.poll) == RT_STATE_WAITING);
  rt_longpoll_free(c.poll);
}

/* A restart while an answer is being delivered, or waits in a pause, is not lost: the next poll
 * begins after the delivery. Without it, an interval would follow the sixth identical answer. */
static void a_restart_waits_for_the_delivery(rt_loop *loop, const char *server) {
  counted c = {.restart_at = 28, .pause_at = 33};
  begin_batch(&c, loop, server, "/batch/5", RT_LONGPOLL_CURSOR_NONE);
  TURN_UNTIL(loop, c.messages == 33);
  CHECK_OK(rt_longpoll_restart(c.poll));
  settle(loop);
  CHECK(c.messages == 33);
  CHECK_OK(rt_longpoll_resume(c.poll));
  TURN_UNTIL(loop, c.messages == 40);
  settle(loop);
  CHECK(c.messages == 40 && c.ids == 8 && c.errors == 0);
  rt_longpoll_free(c.poll);
}

static void credentials_may_be_missing_or_late(rt_loop *loop, const char *server) {
  heard h;
  rt_longpoll *poll = listen(&h, loop, server, "/poll/1");
  CHECK_OK(rt_longpoll_start(poll));
  TURN_UNTIL(loop, h.fatal);
  CHECK(strcmp(h.text, "RT_ERROR_HTTP_STATUS 401;") == 0);
  rt_longpoll_free(poll);

  poll = listen(&h, loop, server, "/poll/1");
  h.credentials = RT_CREDENTIALS_LATER;
  h.close_at = 1;
  CHECK_OK(rt_longpoll_start(poll));
  TURN_UNTIL(loop, rt_longpoll_set_bearer_token(poll, "good") == RT_OK);
  CHECK_OK(rt_longpoll_credentials_ready(poll, true));
  TURN_UNTIL(loop, h.messages == 1);
  settle(loop);
  CHECK(strcmp(h.text, "1:message 1;") == 0);
  rt_longpoll_free(poll);
}

static void callbacks_may_free(rt_loop *loop, const char *server) {
  heard h;
  rt_longpoll *poll = listen(&h, loop, server, "/poll/9");
  CHECK_OK(rt_longpoll_set_bearer_token(poll, "good"));
  CHECK_OK(rt_longpoll_on_open(poll, NULL, &h.destroyed, count_up));
  h.free_at = 2;
  CHECK_OK(rt_longpoll_start(poll));
  TURN_UNTIL(loop, h.messages == 2);
  settle(loop);
  CHECK(h.messages == 2 && h.destroyed == 1 && h.errors == 0);
}

static void gone_resets_the_cursor_or_ends(rt_loop *loop, const char *server) {
  heard h;
  rt_longpoll *poll = listen(&h, loop, server, "/gone");
  /* Kept for a callback that is set later. */
  CHECK_OK(rt_longpoll_on_error(poll, NULL, NULL, NULL));
  CHECK_OK(rt_longpoll_start(poll));
  TURN_UNTIL(loop, h.requests >= 2);
  CHECK_OK(rt_longpoll_on_error(poll, on_error, &h, NULL));
  TURN_UNTIL(loop, h.errors >= 2);
  CHECK(strncmp(h.text, "RT_ERROR_GONE 410;RT_ERROR_GONE 410;", 36) == 0 && !h.fatal);
  rt_longpoll_free(poll);
  poll = listen(&h, loop, server, "/gone");
  CHECK_OK(rt_longpoll_set_fail_when_gone(poll, true));
  CHECK_OK(rt_longpoll_start(poll));
  TURN_UNTIL(loop, h.fatal);
  CHECK(strcmp(h.text, "RT_ERROR_GONE 410;") == 0 && h.requests == 1);
  rt_longpoll_free(poll);
}

static void waits_for_the_network(rt_loop *loop, const char *server) {
  heard h;
  rt_loop *other = new_loop();
  rt_reachability *offline, *foreign;
  rt_longpoll *poll = listen(&h, loop, server, "/poll/1");
  CHECK_OK(rt_longpoll_set_bearer_token(poll, "good"));
  CHECK_OK(rt_reachability_new(loop, RT_REACHABILITY_MANUAL, &offline));
  CHECK_OK(rt_reachability_new(other, RT_REACHABILITY_MANUAL, &foreign));
  CHECK_STATUS(rt_longpoll_set_reachability(poll, foreign), RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_longpoll_set_reachability(poll, offline));
  CHECK_OK(rt_reachability_set_online(offline, false));
  CHECK_OK(rt_longpoll_start(poll));
  settle(loop);
  CHECK(h.requests == 0 && h.errors == 1 && h.fatal == 0);
  CHECK_OK(rt_reachability_set_online(offline, true));
  TURN_UNTIL(loop, h.messages == 1);
  rt_longpoll_free(poll);
  /* An interval that is set when a poll begins applies to it. */
  poll = listen(&h, loop, server, "/poll/1");
  CHECK_OK(rt_longpoll_set_bearer_token(poll, "good"));
  h.reachability = offline;
  CHECK_OK(rt_reachability_set_online(offline, false));
  CHECK_OK(rt_longpoll_start(poll));
  TURN_UNTIL(loop, h.requests == 1);
  settle(loop);
  CHECK(h.requests == 1 && h.opens == 0 && h.errors == 1);
  CHECK_OK(rt_reachability_set_online(offline, true));
  TURN_UNTIL(loop, h.messages == 1);
  rt_longpoll_free(poll);
  rt_reachability_free(offline);
  rt_reachability_free(foreign);
  rt_loop_free(other);
}

static void options_are_checked(rt_loop *loop, const char *server) {
  rt_longpoll *poll = new_longpoll(loop, server, "/poll/1");
  rt_network *network = NULL;
  char url[64];
  size_t length;
  CHECK_OK(rt_longpoll_get_url(poll, url, sizeof url, &length));
  CHECK(length == strlen(url) && strcmp(url + length - 7, "/poll/1") == 0);
  CHECK_OK(rt_network_new(&network));
  CHECK_OK(rt_longpoll_set_network(poll, network));
  rt_network_free(network);
  CHECK_STATUS(rt_longpoll_set_url(poll, "ws://h"), RT_ERROR_UNSUPPORTED_SCHEME);
  CHECK_OK(rt_longpoll_set_header(poll, "Accept", "text/plain"));
  CHECK_STATUS(
      rt_longpoll_add_header(poll, "Accept", "text/event-stream"), RT_ERROR_INVALID_HEADER);
  CHECK_OK(rt_longpoll_clear_headers(poll));
  CHECK_OK(rt_longpoll_set_basic_auth(poll, "user", "word"));
  CHECK_STATUS(rt_longpoll_set_basic_auth(poll, "u:ser", "word"), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_longpoll_set_bearer_token(poll, ""), RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_longpoll_set_cursor(poll, RT_LONGPOLL_CURSOR_QUERY_ID, "since"));
  CHECK_STATUS(rt_longpoll_set_cursor(poll, 4, NULL), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(
      rt_longpoll_set_cursor(poll, RT_LONGPOLL_CURSOR_NONE, ""), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_longpoll_set_last_event_id(poll, "a\n"), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_longpoll_set_interval_ms(poll, -1), RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_longpoll_set_poll_timeout_ms(poll, 30000));
  CHECK_OK(rt_longpoll_set_min_hold_ms(poll, 500));
  CHECK_OK(rt_longpoll_set_connect_timeout_ms(poll, 5000));
  CHECK_OK(rt_longpoll_set_max_delay_ms(poll, 10000));
  CHECK_OK(rt_longpoll_set_compression(poll, false));
  CHECK_OK(rt_longpoll_set_http2(poll, false));
  CHECK_OK(rt_longpoll_set_max_body_bytes(poll, 1 << 20));
  CHECK_STATUS(rt_longpoll_set_max_redirects(poll, 21), RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_longpoll_set_allow_insecure_redirects(poll, true));
  CHECK_STATUS(rt_longpoll_add_safe_header(poll, "a b"), RT_ERROR_INVALID_HEADER);
  CHECK_STATUS(rt_longpoll_add_redirect_origin(poll, "h"), RT_ERROR_INVALID_URL);
  CHECK_OK(rt_longpoll_set_cursor(poll, RT_LONGPOLL_CURSOR_VALIDATORS, NULL));
  CHECK_OK(rt_longpoll_set_last_event_id(poll, "any"));
  CHECK_STATUS(rt_longpoll_start(poll), RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_longpoll_set_last_event_id(poll, "784111777:0"));
  check_id(poll, "784111777:0");
  CHECK_OK(rt_longpoll_start(poll));
  CHECK_STATUS(rt_longpoll_set_http2(poll, true), RT_ERROR_STATE);
  rt_longpoll_free(poll);
  CHECK_STATUS(rt_longpoll_new(loop, "http://", &poll), RT_ERROR_INVALID_URL);
  CHECK_STATUS(rt_longpoll_start(NULL), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_longpoll_get_state(NULL), RT_ERROR_INVALID_ARGUMENT);
  rt_longpoll_free(NULL);
}

int main(int argc, char **argv) {
  rt_loop *loop;
  CHECK(argc == 2);
  loop = new_loop();
  messages_come_in_order(loop, argv[1]);
  a_large_batch_takes_several_turns(loop, argv[1]);
  a_restart_waits_for_the_delivery(loop, argv[1]);
  credentials_may_be_missing_or_late(loop, argv[1]);
  callbacks_may_free(loop, argv[1]);
  gone_resets_the_cursor_or_ends(loop, argv[1]);
  waits_for_the_network(loop, argv[1]);
  options_are_checked(loop, argv[1]);
  rt_loop_free(loop);
  return 0;
}
