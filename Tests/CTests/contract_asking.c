/* What an object asks its program between attempts: credentials after a refusal, once an attempt,
 * and whether to make the next attempt. Both answers may come later, from any thread. Statuses that
 * are set to be retried are. */
#include "contract.h"

static const char *server;

typedef struct story {
  rt_websocket *websocket;
  rt_eventsource *source;
  rt_longpoll *poll;
  rt_credentials answer;
  const char *token;
  bool defers;
  int opened, asked, deferred, lost, fatal, closed, messages, destroyed;
  int32_t refused, status, http_status;
} story;

static void on_destroy(void *user) { ((story *)user)->destroyed++; }

static void on_open(const rt_opened *opened, void *user) {
  (void)opened;
  ((story *)user)->opened++;
}

static void on_error(const rt_failure *failure, void *user) {
  story *s = user;
  s->status = failure->status;
  s->http_status = failure->http_status;
  if (failure->fatal)
    s->fatal++;
  else
    s->lost++;
}

static void on_close(const rt_closed *closed, void *user) {
  (void)closed;
  ((story *)user)->closed++;
}

static void on_event(const rt_event *event, void *user) {
  (void)event;
  ((story *)user)->messages++;
}

static rt_credentials on_credentials(const rt_failure *refusal, void *user) {
  story *s = user;
  s->asked++;
  s->refused = refusal->http_status;
  if (s->answer == RT_CREDENTIALS_READY)
    CHECK_OK(rt_websocket_set_bearer_token(s->websocket, s->token));
  return s->answer;
}

static bool on_attempt(uint32_t attempt, void *user) {
  story *s = user;
  CHECK(attempt >= 1);
  if (!s->defers) return true;
  s->deferred++;
  if (s->websocket) CHECK_OK(rt_websocket_defer_attempt(s->websocket));
  if (s->source) CHECK_OK(rt_eventsource_defer_attempt(s->source));
  if (s->poll) CHECK_OK(rt_longpoll_defer_attempt(s->poll));
  return true;
}

/* The URL of a path by HTTP; valid until the next call. */
static const char *http(const char *path) {
  static char url[256];
  CHECK(snprintf(url, sizeof url, "http%s%s", server + 2, path) < (int)sizeof url);
  return url;
}

static void make(story *s, rt_loop *loop, const char *path, bool reconnects) {
  s->websocket = new_websocket(loop, server, path);
  if (s->token == NULL) s->token = "good";
  if (reconnects) {
    rt_backoff *backoff = NULL;
    CHECK_OK(rt_backoff_new(&backoff));
    CHECK_OK(rt_backoff_set_initial_delay_ms(backoff, 1));
    CHECK_OK(rt_backoff_set_jitter(backoff, RT_JITTER_NONE));
    CHECK_OK(rt_websocket_set_reconnect(s->websocket, backoff));
    rt_backoff_free(backoff);
  }
  CHECK_OK(rt_websocket_on_open(s->websocket, on_open, s, on_destroy));
  CHECK_OK(rt_websocket_on_error(s->websocket, on_error, s, on_destroy));
  CHECK_OK(rt_websocket_on_closed(s->websocket, on_close, s, on_destroy));
  CHECK_OK(rt_websocket_on_reconnect(s->websocket, on_attempt, s, on_destroy));
  CHECK_OK(rt_websocket_on_credentials(s->websocket, on_credentials, s, on_destroy));
}

static void end(story *s) {
  rt_websocket_free(s->websocket);
  CHECK(s->destroyed == 5);
}

static void a_refused_handshake_is_repeated_with_credentials(rt_loop *loop) {
  static const char *const paths[] = {"/guarded/401", "/guarded/403"};
  for (size_t i = 0; i < 2; i++) {
    story s = {.answer = RT_CREDENTIALS_READY};
    make(&s, loop, paths[i], false);
    CHECK_OK(rt_websocket_start(s.websocket));
    TURN_UNTIL(loop, s.opened == 1);
    CHECK(s.asked == 1 && s.refused == (i ? 403 : 401) && s.lost == 0 && s.fatal == 0);
    end(&s);
  }
}

static void credentials_may_come_later(rt_loop *loop) {
  story s = {.answer = RT_CREDENTIALS_LATER}, none = s, closed = s;
  make(&s, loop, "/guarded/401", true);
  CHECK_STATUS(rt_websocket_credentials_ready(s.websocket, true), RT_ERROR_STATE);
  CHECK_OK(rt_websocket_start(s.websocket));
  TURN_UNTIL(loop, s.asked == 1);
  settle(loop);
  CHECK(rt_websocket_get_state(s.websocket) == RT_STATE_CONNECTING && s.lost == 0);
  CHECK_OK(rt_websocket_set_bearer_token(s.websocket, "good"));
  CHECK_OK(rt_websocket_credentials_ready(s.websocket, true));
  TURN_UNTIL(loop, s.opened == 1);
  /* Nobody asks any more. */
  CHECK_OK(rt_websocket_credentials_ready(s.websocket, false));
  settle(loop);
  CHECK(s.lost == 0 && s.fatal == 0);
  end(&s);

  make(&none, loop, "/guarded/401", true);
  CHECK_OK(rt_websocket_start(none.websocket));
  TURN_UNTIL(loop, none.asked == 1);
  CHECK_OK(rt_websocket_credentials_ready(none.websocket, false));
  CHECK(none.fatal == 0);
  TURN_UNTIL(loop, none.closed == 1);
  CHECK(none.fatal == 1 && none.lost == 0 && none.http_status == 401);
  CHECK(none.status == RT_ERROR_HTTP_STATUS);
  end(&none);

  make(&closed, loop, "/guarded/401", true);
  CHECK_OK(rt_websocket_start(closed.websocket));
  TURN_UNTIL(loop, closed.asked == 1);
  CHECK_OK(rt_websocket_close(closed.websocket, 1000, NULL));
  TURN_UNTIL(loop, closed.closed == 1);
  CHECK(closed.fatal == 0);
  end(&closed);
}

/* Wrong credentials are refused again, which is final; so is the lack of them. */
static void credentials_are_asked_for_once(rt_loop *loop) {
  static const rt_credentials answers[] = {RT_CREDENTIALS_READY, RT_CREDENTIALS_NONE};
  for (size_t i = 0; i < 2; i++) {
    story s = {.answer = answers[i], .token = "bad"};
    make(&s, loop, "/guarded/401", true);
    CHECK_OK(rt_websocket_start(s.websocket));
    TURN_UNTIL(loop, s.closed == 1);
    CHECK(s.asked == 1 && s.fatal == 1 && s.lost == 0 && s.http_status == 401);
    end(&s);
  }
}

static void more_statuses_are_retried(rt_loop *loop) {
  story s = {.answer = RT_CREDENTIALS_NONE}, twice = s;
  make(&s, loop, "/refuse", true);
  CHECK_STATUS(rt_websocket_add_retry_status(s.websocket, 399), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_websocket_add_retry_status(s.websocket, 401), RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_websocket_add_retry_status(s.websocket, 404));
  CHECK_OK(rt_websocket_start(s.websocket));
  TURN_UNTIL(loop, s.lost == 2);
  CHECK(s.fatal == 0 && s.http_status == 404);
  end(&s);

  make(&twice, loop, "/refuse", true);
  CHECK_OK(rt_websocket_start(twice.websocket));
  TURN_UNTIL(loop, twice.closed == 1);
  CHECK(twice.lost == 0 && twice.fatal == 1);
  end(&twice);
}

static void an_attempt_may_wait_for_its_decision(rt_loop *loop) {
  story s = {.defers = true}, declined = s;
  make(&s, loop, "/flaky/deferred/1", true);
  CHECK_STATUS(rt_websocket_defer_attempt(s.websocket), RT_ERROR_STATE);
  CHECK_OK(rt_websocket_start(s.websocket));
  CHECK_STATUS(rt_websocket_defer_attempt(s.websocket), RT_ERROR_STATE);
  TURN_UNTIL(loop, s.deferred == 1);
  settle(loop);
  CHECK(s.deferred == 1 && s.opened == 1);
  CHECK(rt_websocket_get_state(s.websocket) == RT_STATE_WAITING);
  CHECK_OK(rt_websocket_set_bearer_token(s.websocket, "good"));
  CHECK_OK(rt_websocket_attempt_ready(s.websocket, true));
  TURN_UNTIL(loop, s.opened == 2);
  CHECK_OK(rt_websocket_attempt_ready(s.websocket, false));
  settle(loop);
  CHECK(s.closed == 0);
  end(&s);

  make(&declined, loop, "/drop", true);
  CHECK_OK(rt_websocket_start(declined.websocket));
  TURN_UNTIL(loop, declined.deferred == 1);
  CHECK_OK(rt_websocket_attempt_ready(declined.websocket, false));
  TURN_UNTIL(loop, declined.closed == 1);
  CHECK(declined.opened == 1 && declined.deferred == 1);
  end(&declined);
}

static void requests_may_wait_for_their_decision(rt_loop *loop) {
  story s = {.defers = true}, p = s;
  CHECK_OK(rt_eventsource_new(loop, http("/tokens"), &s.source));
  CHECK_OK(rt_eventsource_on_request(s.source, on_attempt, &s, on_destroy));
  CHECK_OK(rt_eventsource_on_any(s.source, on_event, &s, NULL));
  CHECK_OK(rt_eventsource_start(s.source));
  CHECK_STATUS(rt_eventsource_defer_attempt(s.source), RT_ERROR_STATE);
  TURN_UNTIL(loop, s.deferred == 1);
  CHECK_OK(rt_eventsource_restart(s.source));
  settle(loop);
  CHECK(s.deferred == 1);
  CHECK_OK(rt_eventsource_set_bearer_token(s.source, "good"));
  CHECK_OK(rt_eventsource_attempt_ready(s.source, true));
  TURN_UNTIL(loop, s.messages == 1);
  TURN_UNTIL(loop, s.deferred == 2);
  CHECK_OK(rt_eventsource_attempt_ready(s.source, false));
  TURN_UNTIL(loop, rt_eventsource_get_state(s.source) == RT_STATE_CLOSED);
  rt_eventsource_free(s.source);
  CHECK(s.destroyed == 1);

  CHECK_OK(rt_longpoll_new(loop, http("/poll/1"), &p.poll));
  CHECK_OK(rt_longpoll_on_request(p.poll, on_attempt, &p, on_destroy));
  CHECK_OK(rt_longpoll_on_message(p.poll, on_event, &p, NULL));
  CHECK_OK(rt_longpoll_set_cursor(p.poll, RT_LONGPOLL_CURSOR_HEADER_ID, NULL));
  CHECK_OK(rt_longpoll_start(p.poll));
  CHECK_STATUS(rt_longpoll_defer_attempt(p.poll), RT_ERROR_STATE);
  TURN_UNTIL(loop, p.deferred == 1);
  CHECK_OK(rt_longpoll_set_bearer_token(p.poll, "good"));
  CHECK_OK(rt_longpoll_attempt_ready(p.poll, true));
  TURN_UNTIL(loop, p.messages == 1 && p.deferred == 2);
  rt_longpoll_free(p.poll);
  CHECK(p.destroyed == 1);
}

int main(int argc, char **argv) {
  rt_loop *loop = new_loop();
  CHECK(argc == 2);
  server = argv[1];
  a_refused_handshake_is_repeated_with_credentials(loop);
  credentials_may_come_later(loop);
  credentials_are_asked_for_once(loop);
  more_statuses_are_retried(loop);
  an_attempt_may_wait_for_its_decision(loop);
  requests_may_wait_for_their_decision(loop);
  rt_loop_free(loop);
  return 0;
}
