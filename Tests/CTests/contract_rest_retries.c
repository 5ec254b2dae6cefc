/* REST: a request reports each attempt that failed and is followed by another. */
#include "contract.h"

typedef struct story {
  int retries, done, destroyed;
  uint32_t last_attempt;
  rt_status error, cause;
  int32_t http_status;
  rt_rest *cancels;
  uint64_t id;
} story;

static void on_retry(const rt_failure *failure, void *user) {
  story *s = user;
  CHECK(failure->struct_bytes == sizeof *failure && !failure->fatal && s->done == 0);
  CHECK(failure->message[0] != '\0');
  CHECK(failure->retry_in_ms >= 0 && failure->retry_in_ms <= 10);
  CHECK(failure->attempt == (uint32_t)s->retries + 2);
  CHECK((failure->http_status == 0) == (failure->headers_length == 0));
  CHECK(failure->body_length == 0);
  s->retries += 1;
  s->cause = failure->status;
  s->http_status = failure->http_status;
  if (s->cancels) CHECK_OK(rt_rest_cancel(s->cancels, s->id));
}

static void on_done(rt_rest_response *response, void *user) {
  story *s = user;
  s->done += 1;
  s->error = rt_rest_response_error(response);
  s->last_attempt = rt_rest_response_attempts(response);
}

static void on_destroy(void *user) { ((story *)user)->destroyed += 1; }

/* Sends the request, and frees it before it ends. */
static void run(rt_loop *loop, rt_rest *rest, const char *path, story *s) {
  rt_rest_request *request;
  CHECK_OK(rt_rest_request_new(rest, "GET", path, &request));
  CHECK_OK(rt_rest_request_on_retry(request, on_retry, s, on_destroy));
  CHECK_OK(rt_rest_request_send(request, on_done, s, NULL, &s->id, NULL));
  rt_rest_request_free(request);
  TURN_UNTIL(loop, s->done == 1);
  TURN_UNTIL(loop, s->destroyed == 1);
}

int main(int argc, char **argv) {
  story refused = {0}, lost = {0}, fine = {0}, cancelled = {0}, removed = {0};
  rt_loop *loop = new_loop();
  rt_rest_request *request;
  rt_rest *rest;
  CHECK(argc == 2);
  CHECK_STATUS(rt_rest_request_on_retry(NULL, on_retry, &fine, NULL), RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_rest_new(loop, argv[1], &rest));
  CHECK_OK(rt_rest_set_base_delay_ms(rest, 2));
  CHECK_OK(rt_rest_set_max_delay_ms(rest, 10));
  run(loop, rest, "/flaky/refused/2", &refused);
  CHECK(refused.retries == 2 && refused.error == RT_OK && refused.last_attempt == 3);
  CHECK(refused.cause == RT_ERROR_HTTP_STATUS && refused.http_status == 503);
  run(loop, rest, "http://127.0.0.1:1/", &lost);
  CHECK(lost.retries == (int)lost.last_attempt - 1 && lost.retries > 0);
  CHECK(lost.cause == RT_ERROR_CONNECT && lost.error == RT_ERROR_CONNECT);
  CHECK(lost.http_status == 0);
  run(loop, rest, "/echo", &fine);
  CHECK(fine.retries == 0 && fine.error == RT_OK);
  cancelled.cancels = rest;
  run(loop, rest, "/flaky/cancelled/2", &cancelled);
  CHECK(cancelled.retries == 1 && cancelled.error == RT_ERROR_CANCELLED);
  /* NULL removes it. */
  CHECK_OK(rt_rest_request_new(rest, "GET", "/flaky/removed/1", &request));
  CHECK_OK(rt_rest_request_on_retry(request, on_retry, &removed, on_destroy));
  CHECK_OK(rt_rest_request_on_retry(request, NULL, NULL, NULL));
  CHECK(removed.destroyed == 1);
  CHECK_OK(rt_rest_request_send(request, on_done, &removed, NULL, NULL, NULL));
  rt_rest_request_free(request);
  TURN_UNTIL(loop, removed.done == 1);
  CHECK(removed.retries == 0 && removed.last_attempt == 2);
  rt_rest_free(rest);
  rt_loop_free(loop);
  return 0;
}
