/* Every object delays its attempts by its backoff. Nobody listens at the address, so each attempt
 * fails at once. */
#include "contract.h"

#define NOBODY "http://127.0.0.1:1/"

typedef struct story {
  int errors, fatal, done;
  uint32_t attempts;
} story;

/* One attempt may follow a failure; then the object ends. */
static void note(story *s, rt_status status, bool fatal, int64_t retry_in_ms, int64_t delay_ms) {
  s->errors++;
  s->fatal += fatal;
  CHECK(status == (fatal ? RT_ERROR_RECONNECTS_EXHAUSTED : RT_ERROR_CONNECT));
  CHECK(retry_in_ms == (fatal ? -1 : delay_ms));
}

static void on_error(const rt_failure *failure, void *user) {
  note(user, failure->status, failure->fatal, failure->retry_in_ms, 7);
}

static void on_leg_error(const rt_failure *failure, void *user) {
  CHECK(failure->transport == RT_SPREADBOT_TRANSPORT_POLL);
  note(user, failure->status, failure->fatal, failure->retry_in_ms, 7);
}

static void on_done(rt_rest_response *response, void *user) {
  story *s = user;
  CHECK(rt_rest_response_error(response) == RT_ERROR_CONNECT);
  s->attempts = rt_rest_response_attempts(response);
  s->done = 1;
}

static rt_backoff *seven_milliseconds(void) {
  rt_backoff *backoff = NULL;
  CHECK_OK(rt_backoff_new(&backoff));
  CHECK_OK(rt_backoff_set_initial_delay_ms(backoff, 7));
  CHECK_OK(rt_backoff_set_jitter(backoff, RT_JITTER_NONE));
  CHECK_OK(rt_backoff_set_max_attempts(backoff, 1));
  return backoff;
}

static void event_source(rt_loop *loop, rt_backoff *backoff) {
  story s = {0};
  rt_eventsource *source = NULL;
  CHECK_OK(rt_eventsource_new(loop, NOBODY, &source));
  CHECK_OK(rt_eventsource_set_backoff(source, backoff));
  CHECK_OK(rt_eventsource_on_error(source, on_error, &s, NULL));
  CHECK_OK(rt_eventsource_start(source));
  CHECK_STATUS(rt_eventsource_set_backoff(source, NULL), RT_ERROR_STATE);
  TURN_UNTIL(loop, s.fatal);
  CHECK(s.errors == 2);
  rt_eventsource_free(source);
}

static void long_poll(rt_loop *loop, rt_backoff *backoff) {
  story s = {0};
  rt_longpoll *poll = NULL;
  CHECK_OK(rt_longpoll_new(loop, NOBODY, &poll));
  CHECK_OK(rt_longpoll_set_backoff(poll, backoff));
  CHECK_OK(rt_longpoll_on_error(poll, on_error, &s, NULL));
  CHECK_OK(rt_longpoll_start(poll));
  CHECK_STATUS(rt_longpoll_set_backoff(poll, NULL), RT_ERROR_STATE);
  TURN_UNTIL(loop, s.fatal);
  CHECK(s.errors == 2);
  rt_longpoll_free(poll);
}

/* Spreadbot has its own options for the number of attempts. */
static void spreadbot(rt_loop *loop, rt_backoff *backoff) {
  const rt_spreadbot_transport polls[] = {RT_SPREADBOT_TRANSPORT_POLL};
  story s = {0};
  rt_spreadbot *spreadbot = NULL;
  CHECK_OK(rt_spreadbot_new(loop, NOBODY, &spreadbot));
  CHECK_OK(rt_spreadbot_set_transports(spreadbot, polls, 1));
  CHECK_OK(rt_spreadbot_set_backoff(spreadbot, backoff));
  CHECK_OK(rt_spreadbot_set_max_reconnects(spreadbot, 1));
  CHECK_OK(rt_spreadbot_on_error(spreadbot, on_leg_error, &s, NULL));
  CHECK_OK(rt_spreadbot_start(spreadbot, "path"));
  CHECK_STATUS(rt_spreadbot_set_backoff(spreadbot, NULL), RT_ERROR_STATE);
  TURN_UNTIL(loop, s.fatal);
  CHECK(s.errors == 2);
  rt_spreadbot_free(spreadbot);
}

static void rest(rt_loop *loop, rt_backoff *backoff) {
  story s = {0};
  rt_rest *rest = NULL;
  rt_rest_request *request = NULL;
  CHECK_OK(rt_rest_new(loop, NOBODY, &rest));
  CHECK_OK(rt_rest_set_backoff(rest, NULL));
  CHECK_OK(rt_rest_set_backoff(rest, backoff));
  CHECK_OK(rt_rest_set_attempts(rest, 4));
  CHECK_OK(rt_rest_request_new(rest, "GET", "path", &request));
  CHECK_OK(rt_rest_request_send(request, on_done, &s, NULL, NULL, NULL));
  rt_rest_request_free(request);
  CHECK_STATUS(rt_rest_set_backoff(rest, NULL), RT_ERROR_STATE);
  TURN_UNTIL(loop, s.done);
  CHECK(s.attempts == 4);
  rt_rest_free(rest);
}

int main(void) {
  rt_loop *loop = new_loop();
  rt_backoff *backoff = seven_milliseconds();
  event_source(loop, backoff);
  long_poll(loop, backoff);
  spreadbot(loop, backoff);
  rest(loop, backoff);
  rt_backoff_free(backoff);
  rt_loop_free(loop);
  return 0;
}
