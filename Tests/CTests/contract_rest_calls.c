/* Requests without callbacks: a thread waits for the answer of a call. What ends such a wait, and
 * how long a response lives. */
#include <pthread.h>

#include "contract.h"

/* The call that was begun last. */
static rt_call *call;

static rt_rest *new_client(rt_loop *loop, const char *server) {
  rt_rest *rest = NULL;
  CHECK_OK(rt_rest_new(loop, server, &rest));
  CHECK_OK(rt_rest_set_attempts(rest, 1));
  return rest;
}

static void get(rt_rest *rest, const char *path) {
  rt_rest_request *request = NULL;
  rt_call_free(call);
  call = NULL;
  CHECK_OK(rt_rest_request_new(rest, "GET", path, &request));
  CHECK_OK(rt_rest_request_send(request, NULL, NULL, NULL, NULL, &call));
  CHECK(call != NULL);
  rt_rest_request_free(request);
}

static void the_status_is_the_answers(rt_loop *loop, const char *server) {
  size_t length = 7;
  rt_rest *rest = new_client(loop, server);
  get(rest, "/bytes/1000");
  CHECK_OK(rt_call_wait(call, PATIENCE_MS));
  CHECK(rt_rest_response_status(rt_call_response(call)) == 200);
  CHECK(rt_rest_response_body(rt_call_response(call), &length)[250] == 250 && length == 1000);
  CHECK(rt_call_outcome(call) == NULL);
  CHECK_OK(rt_call_wait(call, 0));
  get(rest, "/status/404?length=5");
  CHECK_STATUS(rt_call_wait(call, PATIENCE_MS), RT_ERROR_HTTP_STATUS);
  CHECK(strcmp(rt_rest_response_message(rt_call_response(call)), rt_last_error()) == 0);
  CHECK(rt_rest_response_status(rt_call_response(call)) == 404);
  rt_rest_response_body(rt_call_response(call), &length);
  CHECK(length == 5);
  get(rest, "http://127.0.0.1:1/");
  CHECK_STATUS(rt_call_wait(call, PATIENCE_MS), RT_ERROR_CONNECT);
  CHECK(rt_rest_response_status(rt_call_response(call)) == 0);
  rt_rest_free(rest);
}

/* Without a response there is nothing to read. */
static void no_response(void) {
  size_t length = 7;
  CHECK(rt_rest_response_body(NULL, &length) != NULL && length == 0);
  length = 7;
  CHECK(rt_rest_response_headers(NULL, &length)[0] == '\0' && length == 0);
  CHECK(rt_rest_response_retain(NULL) == NULL);
  rt_rest_response_free(NULL);
  rt_call_free(NULL);
}

static void requests_outlive_their_timeout(rt_loop *loop, const char *server) {
  rt_rest *rest = new_client(loop, server);
  CHECK_OK(rt_rest_set_attempt_timeout_ms(rest, 0));
  get(rest, "/silent/wait/2");
  CHECK_STATUS(rt_call_wait(call, 0), RT_ERROR_TIMEOUT);
  CHECK_STATUS(rt_call_wait(call, 5), RT_ERROR_TIMEOUT);
  CHECK(rt_call_response(call) == NULL);
  get(rest, "/slow/50");
  CHECK_STATUS(rt_call_wait(call, 1), RT_ERROR_TIMEOUT);
  CHECK_OK(rt_call_wait(call, PATIENCE_MS));
  CHECK_STATUS(rt_call_wait(call, -2), RT_ERROR_INVALID_ARGUMENT);
  rt_rest_free(rest);
}

/* A retained response outlives its call, its client and the loop. */
static void responses_are_retained(rt_loop *loop, const char *server) {
  rt_rest_response *response;
  rt_rest *rest = new_client(loop, server);
  size_t length;
  get(rest, "/bytes/100000");
  CHECK_OK(rt_call_wait(call, PATIENCE_MS));
  response = rt_rest_response_retain(rt_call_response(call));
  CHECK(response == rt_call_response(call));
  CHECK(rt_rest_response_retain(response) == response);
  rt_rest_response_free(response);
  rt_call_free(call);
  call = NULL;
  rt_rest_free(rest);
  CHECK(rt_rest_response_body(response, &length)[99999] == 99999 % 251 && length == 100000);
  CHECK(rt_rest_response_opened(response)->http_status == 200);
  CHECK(rt_rest_response_header(response, "transfer-encoding") != NULL);
  rt_rest_response_free(response);
}

typedef struct kept {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  rt_rest_response *response;
  rt_status wait, poll;
} kept;

static void keep_response(rt_rest_response *response, void *user) {
  kept *k = user;
  k->poll = rt_call_wait(call, 0);
  k->wait = rt_call_wait(call, -1);
  pthread_mutex_lock(&k->mutex);
  k->response = rt_rest_response_retain(response);
  pthread_cond_signal(&k->changed);
  pthread_mutex_unlock(&k->mutex);
}

/* A callback cannot wait; it may keep what it gets. */
static void callbacks_keep_responses(rt_loop *loop, const char *server) {
  kept k = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
  rt_rest_request *request = NULL;
  rt_rest *rest = new_client(loop, server);
  get(rest, "/silent/keep/2");
  CHECK_OK(rt_rest_request_new(rest, "GET", "/bytes/10", &request));
  CHECK_OK(rt_rest_request_send(request, keep_response, &k, NULL, NULL, NULL));
  pthread_mutex_lock(&k.mutex);
  while (k.response == NULL) pthread_cond_wait(&k.changed, &k.mutex);
  pthread_mutex_unlock(&k.mutex);
  CHECK(k.poll == RT_ERROR_TIMEOUT && k.wait == RT_ERROR_REENTRANT);
  CHECK(rt_rest_response_body(k.response, NULL)[9] == 9);
  rt_rest_response_free(k.response);
  rt_rest_request_free(request);
  rt_rest_free(rest);
}

static void ends_end_waits(const char *server) {
  pthread_t thread;
  rt_loop *loop = new_loop();
  rt_rest_request *request = NULL;
  uint64_t id = 0;
  rt_rest *rest = new_client(NULL, server);
  /* The client is freed. */
  get(rest, "/silent/free/1");
  CHECK(pthread_create(&thread, NULL, wait_until_closed, call) == 0);
  rt_rest_free(rest);
  CHECK(pthread_join(thread, NULL) == 0);
  /* The loop is freed. */
  CHECK_OK(rt_loop_start(loop));
  rest = new_client(loop, server);
  get(rest, "/silent/loop/1");
  CHECK(pthread_create(&thread, NULL, wait_until_closed, call) == 0);
  rt_loop_free(loop);
  CHECK(pthread_join(thread, NULL) == 0);
  rt_rest_free(rest);
  /* The request is cancelled, or only the wait for it. */
  rest = new_client(NULL, server);
  rt_call_free(call);
  CHECK_OK(rt_rest_request_new(rest, "GET", "/silent/cancel/1", &request));
  CHECK_OK(rt_rest_request_send(request, NULL, NULL, NULL, &id, &call));
  rt_rest_request_free(request);
  CHECK(pthread_create(&thread, NULL, wait_until_cancelled, call) == 0);
  CHECK_OK(rt_call_interrupt(call));
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK(rt_call_response(call) == NULL);
  CHECK_OK(rt_rest_cancel(rest, id));
  CHECK_STATUS(rt_call_wait(call, PATIENCE_MS), RT_ERROR_CANCELLED);
  CHECK(rt_rest_response_error(rt_call_response(call)) == RT_ERROR_CANCELLED);
  rt_rest_free(rest);
}

static void all(rt_loop *loop, const char *server) {
  the_status_is_the_answers(loop, server);
  requests_outlive_their_timeout(loop, server);
  responses_are_retained(loop, server);
  callbacks_keep_responses(loop, server);
}

int main(int argc, char **argv) {
  rt_loop *loop;
  CHECK(argc == 2);
  no_response();
  all(NULL, argv[1]);
  loop = new_loop();
  CHECK_OK(rt_loop_start(loop));
  all(loop, argv[1]);
  rt_loop_free(loop);
  ends_end_waits(argv[1]);
  rt_call_free(call);
  return 0;
}
