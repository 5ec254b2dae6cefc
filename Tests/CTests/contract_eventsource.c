/* An event source delivers events in order, calls listeners in the order in which they were added,
 * and calls nothing after its end. Its callbacks may close, restart or free it. Each callback's
 * user data is destroyed once. */
#include <unistd.h>

#include "contract.h"

static const char *server;

typedef struct seen {
  rt_eventsource *source;
  uint64_t listener;
  int opened, messages, odd, any, comments, retries, errors, fatal, asked, stored, names, destroyed;
  int close_after, restart_after, free_after, pause_after, retry_max;
  rt_reachability *reachability;
  rt_status status;
  int32_t http_status;
  char last_id[32], order[256];
} seen;

static void on_destroy(void *user) { ((seen *)user)->destroyed++; }

static void on_open(const rt_opened *opened, void *user) {
  CHECK(opened->struct_bytes == sizeof *opened && opened->http_status == 200);
  ((seen *)user)->opened++;
}

static void note(seen *s, char what) {
  size_t length = strlen(s->order);
  if (length + 1 < sizeof s->order) s->order[length] = what;
}

static void act(seen *s) {
  int count = s->messages + s->odd;
  if (s->close_after && count == s->close_after) CHECK_OK(rt_eventsource_close(s->source));
  if (s->pause_after && count == s->pause_after) CHECK_OK(rt_eventsource_pause(s->source));
  if (s->restart_after && count == s->restart_after) {
    s->restart_after = 0;
    CHECK_OK(rt_eventsource_restart(s->source));
  }
  if (s->free_after && count == s->free_after) rt_eventsource_free(s->source);
}

static void check_event(const rt_event *event) {
  CHECK(event->struct_bytes == sizeof *event && event->content_type[0] == '\0');
  CHECK(event->id[event->id_length] == '\0' && event->event[event->event_length] == '\0');
  CHECK(event->data[event->data_length] == '\0');
  CHECK(strlen(event->id) == event->id_length && event->had_id);
  CHECK(strncmp(event->data, "number\n", 7) == 0 && strcmp(event->data + 7, event->id) == 0);
}

static void on_message(const rt_event *event, void *user) {
  seen *s = user;
  check_event(event);
  CHECK(strcmp(event->event, "message") == 0);
  s->messages++;
  note(s, 'm');
  strcpy(s->last_id, event->id);
  act(s);
  check_event(event);
}

static void on_odd(const rt_event *event, void *user) {
  seen *s = user;
  check_event(event);
  CHECK(strcmp(event->event, "odd") == 0);
  s->odd++;
  note(s, 'o');
  strcpy(s->last_id, event->id);
  act(s);
  check_event(event);
}

/* A listener that removes itself. */
static void once(const rt_event *event, void *user) {
  seen *s = user;
  check_event(event);
  note(s, '1');
  CHECK_OK(rt_eventsource_remove_listener(s->source, s->listener));
  CHECK_STATUS(rt_eventsource_remove_listener(s->source, s->listener), RT_ERROR_NOT_FOUND);
}

static void on_any(const rt_event *event, void *user) {
  check_event(event);
  ((seen *)user)->any++;
  note(user, 'a');
}

static void on_comment(const char *comment, size_t length, void *user) {
  CHECK(length >= 2 && comment[0] == ' ');
  ((seen *)user)->comments++;
}

static void on_retry(int64_t time_ms, void *user) {
  seen *s = user;
  CHECK(time_ms == 10 && rt_eventsource_get_reconnection_time_ms(s->source) == 10);
  s->retries++;
}

static void on_error(const rt_failure *failure, void *user) {
  seen *s = user;
  CHECK(failure->status < 0 && failure->message[0] != '\0' && s->fatal == 0);
  CHECK(failure->fatal || strstr(failure->message, "no network") ? failure->retry_in_ms == -1
        : failure->retry_in_ms >= 10 && failure->attempt >= 1);
  CHECK(rt_eventsource_get_state(s->source)
        == (failure->fatal ? RT_STATE_CLOSED : RT_STATE_WAITING));
  s->errors++;
  s->fatal += failure->fatal;
  s->status = failure->status;
  s->http_status = failure->http_status;
}

static bool on_request(uint32_t attempt, void *user) {
  seen *s = user;
  CHECK(attempt >= 1);
  s->asked++;
  CHECK_OK(rt_eventsource_set_header(s->source, "X-Attempt", "1"));
  /* Options that take effect at the start cannot be changed here. */
  CHECK_STATUS(rt_eventsource_set_last_event_id(s->source, "1"), RT_ERROR_STATE);
  CHECK_STATUS(rt_eventsource_set_id_file(s->source, "ids", NULL), RT_ERROR_STATE);
  CHECK_STATUS(rt_eventsource_set_reconnection_time_ms(s->source, 1), RT_ERROR_STATE);
  CHECK_STATUS(rt_eventsource_set_max_line_bytes(s->source, 1), RT_ERROR_STATE);
  CHECK_STATUS(rt_eventsource_set_max_event_bytes(s->source, 1), RT_ERROR_STATE);
  CHECK_STATUS(rt_eventsource_set_max_name_bytes(s->source, 1), RT_ERROR_STATE);
  if (s->reachability) CHECK_OK(rt_eventsource_set_reachability(s->source, s->reachability));
  return s->asked <= s->retry_max;
}

static rt_credentials give(const rt_failure *refusal, void *user) {
  seen *s = user;
  CHECK(refusal->http_status == 401);
  s->asked++;
  CHECK_OK(rt_eventsource_set_bearer_token(s->source, "good"));
  return RT_CREDENTIALS_READY;
}

static rt_credentials give_later(const rt_failure *refusal, void *user) {
  (void)refusal;
  ((seen *)user)->asked++;
  return RT_CREDENTIALS_LATER;
}

static void on_store(const char *key, const char *id, size_t id_length, void *user) {
  CHECK(strcmp(key, "my place") == 0);
  CHECK(strlen(id) == id_length);
  ((seen *)user)->stored++;
}

static void on_name(const char *event, size_t length, void *user) {
  static const char *const sorted[] = {"a", "message", "odd"};
  seen *s = user;
  CHECK(s->names < 3 && strcmp(event, sorted[s->names]) == 0 && length == strlen(event));
  s->names++;
}

static rt_eventsource *make(rt_loop *loop, const char *path, seen *s) {
  char url[256];
  memset(s, 0, sizeof *s);
  CHECK(snprintf(url, sizeof url, "http%s%s", server + 2, path) < (int)sizeof url);
  CHECK_OK(rt_eventsource_new(loop, url, &s->source));
  CHECK_OK(rt_eventsource_on_open(s->source, on_open, s, on_destroy));
  CHECK_OK(rt_eventsource_on_message(s->source, on_message, s, on_destroy));
  CHECK_OK(rt_eventsource_add_listener(s->source, "odd", on_odd, s, on_destroy, NULL));
  CHECK_OK(rt_eventsource_on_error(s->source, on_error, s, on_destroy));
  return s->source;
}

enum { SETTERS = 4 };

static void end(rt_loop *loop, seen *s, int setters) {
  rt_eventsource_free(s->source);
  settle(loop);
  CHECK(s->destroyed == setters);
}

static void arguments(rt_loop *loop) {
  const rt_status bad = RT_ERROR_INVALID_ARGUMENT;
  seen s;
  rt_eventsource *source = NULL;
  rt_network *network;
  CHECK_STATUS(rt_eventsource_new(loop, "ws://host/", &source), RT_ERROR_UNSUPPORTED_SCHEME);
  CHECK_STATUS(rt_eventsource_new(loop, "http://", &source), RT_ERROR_INVALID_URL);
  CHECK_STATUS(rt_eventsource_new(loop, NULL, &source), bad);
  CHECK(source == NULL);
  source = make(loop, "/events/1", &s);
  CHECK_STATUS(rt_eventsource_set_url(source, "no url"), RT_ERROR_INVALID_URL);
  CHECK_STATUS(rt_eventsource_set_method(source, "HEAD"), bad);
  CHECK_STATUS(rt_eventsource_set_method(source, "a b"), bad);
  CHECK_STATUS(rt_eventsource_add_header(source, "Host", "a b"), RT_ERROR_INVALID_HEADER);
  CHECK_STATUS(rt_eventsource_set_header(source, "X", "a\r\nb"), RT_ERROR_INVALID_HEADER);
  CHECK_STATUS(rt_eventsource_set_header(source, "expect", "x"), RT_ERROR_INVALID_HEADER);
  CHECK_STATUS(rt_eventsource_set_basic_auth(source, "a:b", "c"), bad);
  CHECK_STATUS(rt_eventsource_set_bearer_token(source, ""), bad);
  CHECK_OK(rt_eventsource_set_network(source, NULL));
  CHECK_STATUS(rt_eventsource_set_last_event_id(source, "a\nb"), bad);
  CHECK_STATUS(rt_eventsource_set_id_file(source, "", NULL), bad);
  CHECK_STATUS(rt_eventsource_set_id_file(source, NULL, ""), bad);
  CHECK_STATUS(rt_eventsource_set_reconnection_time_ms(source, -1), bad);
  CHECK_STATUS(rt_eventsource_set_reconnection_time_ms(source, INT64_MAX), bad);
  CHECK_STATUS(rt_eventsource_add_retry_status(source, 401), bad);
  CHECK_STATUS(rt_eventsource_set_max_redirects(source, 21), bad);
  CHECK_STATUS(rt_eventsource_add_safe_header(source, "a b"), RT_ERROR_INVALID_HEADER);
  CHECK_STATUS(rt_eventsource_add_redirect_origin(source, "http://h/a"), RT_ERROR_INVALID_URL);
  CHECK_STATUS(rt_eventsource_add_listener(source, "", on_odd, &s, on_destroy, NULL), bad);
  CHECK_STATUS(rt_eventsource_add_listener(source, "x", NULL, &s, on_destroy, NULL), bad);
  CHECK(s.destroyed == 2);
  CHECK_STATUS(rt_eventsource_confirm_id(source, "1\r\nX-Evil: yes"), bad);
  CHECK_STATUS(rt_eventsource_confirm_id(source, "1\n2"), bad);
  CHECK_STATUS(rt_eventsource_restart(source), RT_ERROR_STATE);
  CHECK_STATUS(rt_eventsource_reset_stored_id(source), RT_ERROR_STATE);
  CHECK(rt_eventsource_get_reconnection_time_ms(NULL) == -1);
  /* Every option can be set. */
  CHECK_OK(rt_network_new(&network));
  CHECK_OK(rt_eventsource_set_network(source, network));
  rt_network_free(network);
  CHECK_OK(rt_eventsource_set_method(source, "REPORT"));
  CHECK_OK(rt_eventsource_set_body(source, (const uint8_t *)"x", 1));
  CHECK_OK(rt_eventsource_set_body(source, NULL, 0));
  CHECK_OK(rt_eventsource_set_id_query_parameter(source, "id"));
  CHECK_OK(rt_eventsource_set_max_reconnects(source, 5));
  CHECK_OK(rt_eventsource_set_retry_unsafe(source, true));
  CHECK_OK(rt_eventsource_set_reconnection_time_ms(source, 1234));
  CHECK_OK(rt_eventsource_set_max_delay_ms(source, 10));
  CHECK_OK(rt_eventsource_set_stable_time_ms(source, 10));
  CHECK_OK(rt_eventsource_set_connect_timeout_ms(source, 0));
  CHECK_OK(rt_eventsource_set_response_timeout_ms(source, 1));
  CHECK_OK(rt_eventsource_set_idle_timeout_ms(source, 1));
  CHECK_OK(rt_eventsource_set_resilient(source));
  CHECK_OK(rt_eventsource_set_compression(source, false));
  CHECK_OK(rt_eventsource_set_http2(source, false));
  CHECK_OK(rt_eventsource_set_allow_insecure_redirects(source, true));
  CHECK_OK(rt_eventsource_set_max_line_bytes(source, 0));
  CHECK_OK(rt_eventsource_set_max_event_bytes(source, 100));
  CHECK_OK(rt_eventsource_set_max_name_bytes(source, 0));
  CHECK(rt_eventsource_get_reconnection_time_ms(source) == 1234);
  CHECK(rt_eventsource_get_state(source) == RT_STATE_IDLE);
  CHECK_OK(rt_eventsource_close(source));
  CHECK_OK(rt_eventsource_close(source));
  CHECK_STATUS(rt_eventsource_start(source), RT_ERROR_CLOSED);
  CHECK(rt_eventsource_get_state(source) == RT_STATE_CLOSED);
  end(loop, &s, SETTERS + 2);
}

static void events_come_in_order(rt_loop *loop) {
  seen s;
  char text[64];
  size_t length;
  rt_eventsource *source = make(loop, "/events/4", &s);
  CHECK_OK(rt_eventsource_on_any(source, on_any, &s, on_destroy));
  CHECK_OK(rt_eventsource_on_comment(source, on_comment, &s, on_destroy));
  CHECK_OK(rt_eventsource_on_retry(source, on_retry, &s, on_destroy));
  CHECK_OK(rt_eventsource_set_min_reconnection_time_ms(source, 10));
  CHECK_OK(rt_eventsource_on_store(source, on_store, &s, on_destroy));
  CHECK_OK(rt_eventsource_set_id_file(source, NULL, "my place"));
  CHECK_OK(rt_eventsource_add_listener(source, "message", once, &s, on_destroy, &s.listener));
  CHECK_OK(rt_eventsource_add_listener(source, "a", on_any, &s, on_destroy, NULL));
  CHECK_OK(rt_eventsource_event_names(source, on_name, &s));
  CHECK(s.names == 3);
  CHECK_OK(rt_eventsource_remove_listeners(source, "a"));
  s.close_after = 8;
  CHECK_OK(rt_eventsource_start(source));
  CHECK(s.opened == 0 && s.errors == 0);
  CHECK_STATUS(rt_eventsource_start(source), RT_ERROR_STATE);
  CHECK_STATUS(rt_eventsource_set_method(source, "GET"), RT_ERROR_STATE);
  TURN_UNTIL(loop, s.messages + s.odd == 8);
  settle(loop);
  /* The second stream continued. The last event reached only its message handler, which closed. */
  CHECK(strcmp(s.order, "oam1aoamaoamaoam") == 0);
  CHECK(s.opened == 2 && s.errors == 1 && s.status == RT_ERROR_CLOSED && s.comments == 8);
  CHECK(s.retries == 2);
  CHECK(s.stored >= 1 && strcmp(s.last_id, "8") == 0);
  CHECK_OK(rt_eventsource_get_last_event_id(source, text, sizeof text, &length));
  CHECK(length == 1 && strcmp(text, "8") == 0);
  CHECK_OK(rt_eventsource_get_origin(source, text, 5, &length));
  CHECK(length > 5 && strcmp(text, "http") == 0);
  CHECK_OK(rt_eventsource_get_origin(source, NULL, 0, &length));
  CHECK_OK(rt_eventsource_get_url(source, text, sizeof text, &length));
  CHECK(length == strlen(text) && strncmp(text, "http://127.0.0.1:", 17) == 0);
  CHECK(strcmp(text + length - 9, "/events/4") == 0);
  CHECK(rt_eventsource_get_reconnection_time_ms(source) == 10);
  end(loop, &s, SETTERS + 6);
}

static void handlers_may_do_anything(rt_loop *loop) {
  seen s;
  rt_eventsource *source = make(loop, "/events/4", &s);
  s.restart_after = 2;
  s.free_after = 5;
  CHECK_OK(rt_eventsource_start(source));
  TURN_UNTIL(loop, s.messages + s.odd == 5);
  settle(loop);
  /* After the restart it continued where it was: no event came twice, none is missing. */
  CHECK(s.messages + s.odd == 5 && strcmp(s.last_id, "5") == 0);
  CHECK(s.errors == 0 && s.opened == 2 && s.destroyed == SETTERS);

  source = make(loop, "/events/3", &s);
  s.pause_after = 1;
  CHECK_OK(rt_eventsource_start(source));
  TURN_UNTIL(loop, s.odd == 1);
  settle(loop);
  CHECK(s.messages == 0 && s.odd == 1);
  CHECK_OK(rt_eventsource_resume(source));
  /* Held events are delivered in later turns, never inside a call. */
  CHECK(s.messages == 0 && s.odd == 1);
  TURN_UNTIL(loop, s.errors == 1);
  CHECK(s.messages == 1 && s.odd == 2);
  end(loop, &s, SETTERS);
}

static void attempts_are_asked_for(rt_loop *loop) {
  seen s;
  rt_eventsource *source = make(loop, "/events/1", &s);
  CHECK_OK(rt_eventsource_on_request(source, on_request, &s, on_destroy));
  s.retry_max = 2;
  CHECK_OK(rt_eventsource_start(source));
  TURN_UNTIL(loop, rt_eventsource_get_state(source) == RT_STATE_CLOSED);
  CHECK(s.asked == 3 && s.messages + s.odd == 2);
  end(loop, &s, SETTERS + 1);

  source = make(loop, "/tokens", &s);
  CHECK_OK(rt_eventsource_on_credentials(source, give, &s, on_destroy));
  CHECK_OK(rt_eventsource_start(source));
  TURN_UNTIL(loop, s.odd == 1);
  CHECK(s.asked == 1 && s.fatal == 0);
  end(loop, &s, SETTERS + 1);

  source = make(loop, "/tokens", &s);
  CHECK_OK(rt_eventsource_on_credentials(source, give_later, &s, on_destroy));
  CHECK_OK(rt_eventsource_start(source));
  TURN_UNTIL(loop, s.asked == 1);
  settle(loop);
  CHECK_OK(rt_eventsource_set_bearer_token(source, "good"));
  CHECK_OK(rt_eventsource_credentials_ready(source, true));
  TURN_UNTIL(loop, s.odd == 1);
  CHECK(s.asked == 1 && s.fatal == 0);
  end(loop, &s, SETTERS + 1);

  source = make(loop, "/tokens", &s);
  CHECK_OK(rt_eventsource_on_credentials(source, give_later, &s, on_destroy));
  CHECK_STATUS(rt_eventsource_credentials_ready(source, true), RT_ERROR_STATE);
  CHECK_OK(rt_eventsource_start(source));
  TURN_UNTIL(loop, s.asked == 1);
  CHECK_OK(rt_eventsource_credentials_ready(source, false));
  CHECK(s.fatal == 0);
  TURN_UNTIL(loop, s.fatal == 1);
  CHECK(s.status == RT_ERROR_HTTP_STATUS && s.http_status == 401 && s.odd == 0);
  end(loop, &s, SETTERS + 1);
}

static void waits_for_the_network(rt_loop *loop) {
  seen s;
  rt_loop *other = new_loop();
  rt_reachability *offline, *foreign;
  rt_eventsource *source = make(loop, "/events/2", &s);
  CHECK_OK(rt_reachability_new(loop, RT_REACHABILITY_MANUAL, &offline));
  CHECK_OK(rt_reachability_new(other, RT_REACHABILITY_MANUAL, &foreign));
  CHECK_STATUS(rt_eventsource_set_reachability(source, foreign), RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_reachability_set_online(offline, false));
  CHECK_OK(rt_eventsource_set_reachability(source, NULL));
  CHECK_OK(rt_eventsource_set_reachability(source, offline));
  CHECK_OK(rt_eventsource_on_request(source, on_request, &s, on_destroy));
  s.retry_max = 1;
  CHECK_OK(rt_eventsource_start(source));
  settle(loop);
  CHECK(s.asked == 0 && s.errors == 1 && s.fatal == 0 && s.status == RT_ERROR_CONNECT);
  CHECK_OK(rt_reachability_set_online(offline, true));
  TURN_UNTIL(loop, s.messages + s.odd == 2);
  CHECK(s.asked == 1);
  end(loop, &s, SETTERS + 1);
  /* A reconnection time that is set when an attempt begins applies to it. */
  source = make(loop, "/events/2", &s);
  s.reachability = offline;
  s.retry_max = 9;
  CHECK_OK(rt_reachability_set_online(offline, false));
  CHECK_OK(rt_eventsource_on_request(source, on_request, &s, on_destroy));
  CHECK_OK(rt_eventsource_start(source));
  TURN_UNTIL(loop, s.asked == 1);
  settle(loop);
  CHECK(s.asked == 1 && s.opened == 0 && s.errors == 1);
  CHECK_OK(rt_reachability_set_online(offline, true));
  TURN_UNTIL(loop, s.messages + s.odd == 2);
  end(loop, &s, SETTERS + 1);
  rt_reachability_free(offline);
  rt_reachability_free(foreign);
  rt_loop_free(other);
}

static void errors_are_kept_for_their_handler(rt_loop *loop) {
  seen s;
  rt_eventsource *source = make(loop, "/tokens", &s);
  CHECK_OK(rt_eventsource_on_error(source, NULL, NULL, NULL));
  CHECK_OK(rt_eventsource_start(source));
  TURN_UNTIL(loop, rt_eventsource_get_state(source) == RT_STATE_CLOSED);
  settle(loop);
  CHECK_OK(rt_eventsource_on_error(source, on_error, &s, on_destroy));
  CHECK(s.errors == 0);
  settle(loop);
  CHECK(s.fatal == 1 && s.status == RT_ERROR_HTTP_STATUS && s.http_status == 401);
  CHECK_STATUS(rt_eventsource_restart(source), RT_ERROR_CLOSED);
  end(loop, &s, SETTERS + 1);
}

static void ids_survive_a_run(rt_loop *loop) {
  char path[64];
  seen s;
  rt_eventsource *source;
  CHECK(snprintf(path, sizeof path, "/tmp/contract_ids.%d", (int)getpid()) > 0);
  unlink(path);
  source = make(loop, "/events/3", &s);
  CHECK_OK(rt_eventsource_set_id_file(source, path, "mine"));
  s.close_after = 2;
  CHECK_OK(rt_eventsource_start(source));
  TURN_UNTIL(loop, s.messages + s.odd == 2);
  end(loop, &s, SETTERS);
  source = make(loop, "/events/3", &s);
  CHECK_OK(rt_eventsource_set_id_file(source, path, "mine"));
  CHECK_OK(rt_eventsource_start(source));
  TURN_UNTIL(loop, s.messages + s.odd == 3);
  CHECK(strcmp(s.last_id, "5") == 0);
  CHECK_OK(rt_eventsource_reset_stored_id(source));
  end(loop, &s, SETTERS);
  /* Only confirmed ids are stored. */
  for (int run = 0; run < 3; run++) {
    source = make(loop, "/events/3", &s);
    CHECK_OK(rt_eventsource_set_id_file(source, path, "mine"));
    CHECK_OK(rt_eventsource_set_confirms_ids(source, true));
    CHECK_OK(rt_eventsource_start(source));
    TURN_UNTIL(loop, s.messages + s.odd == 3);
    CHECK(strcmp(s.last_id, run == 2 ? "5" : "3") == 0);
    if (run == 1) CHECK_OK(rt_eventsource_confirm_id(source, "2"));
    end(loop, &s, SETTERS);
  }
  unlink(path);
  CHECK(strcat(path, ".lock") && unlink(path) == 0);
}

int main(int argc, char **argv) {
  rt_loop *loop = new_loop();
  CHECK(argc == 2);
  server = argv[1];
  arguments(loop);
  events_come_in_order(loop);
  handlers_may_do_anything(loop);
  attempts_are_asked_for(loop);
  waits_for_the_network(loop);
  errors_are_kept_for_their_handler(loop);
  ids_survive_a_run(loop);
  rt_loop_free(loop);
  return 0;
}
