/* Bodies of requests. A body from a callback has the promised length, and serves one request at a
 * time. */
#include "contract.h"

typedef struct ending {
  int count;
  rt_status error;
  int32_t status;
  char body[1024], message[256];
} ending;

static void on_done(rt_rest_response *response, void *user) {
  ending *e = user;
  size_t length;
  const uint8_t *body = rt_rest_response_body(response, &length);
  e->count += 1;
  e->error = rt_rest_response_error(response);
  e->status = rt_rest_response_status(response);
  CHECK(length < sizeof e->body);
  memcpy(e->body, body, length);
  e->body[length] = '\0';
  snprintf(e->message, sizeof e->message, "%s", rt_rest_response_message(response));
}

typedef struct source {
  int taken, rewound, destroyed;
  bool refuses;
} source;

static int64_t on_source(uint8_t *buffer, size_t capacity, void *user) {
  source *s = user;
  CHECK(capacity >= 5);
  if (s->taken) return RT_REST_BODY_END;
  s->taken = 1;
  memcpy(buffer, "hello", 5);
  return 5;
}

static bool on_rewind(void *user) {
  source *s = user;
  s->rewound += 1;
  s->taken = 0;
  return !s->refuses;
}

static void on_destroy(void *user) { ((source *)user)->destroyed += 1; }

static rt_rest_request *request(rt_rest *rest, const char *method, source *s, bool rewinds,
                                int64_t length) {
  rt_rest_request *request;
  CHECK_OK(rt_rest_request_new(rest, method, "/echo", &request));
  CHECK_OK(rt_rest_request_set_body_source(
      request, length, on_source, rewinds ? on_rewind : NULL, s, on_destroy));
  return request;
}

static void send(rt_rest_request *request, ending *e) {
  memset(e, 0, sizeof *e);
  CHECK_OK(rt_rest_request_send(request, on_done, e, NULL, NULL, NULL));
}

static void over(rt_loop *loop, ending *e, rt_status error) {
  TURN_UNTIL(loop, e->count);
  if (e->error != error) printf("%d %s\n", e->status, e->message);
  CHECK(e->error == error);
  CHECK(error != RT_OK || (e->status == 200 && strstr(e->body, "\"hello\"") != NULL));
}

/* Sends the same request several times, one after the other. */
static void again(rt_loop *loop, rt_rest *rest) {
  source s = {0};
  ending e;
  int index;
  rt_rest_request *post = request(rest, "POST", &s, true, -1);
  for (index = 0; index < 3; index++) {
    send(post, &e);
    CHECK_STATUS(rt_rest_request_send(post, on_done, &e, NULL, NULL, NULL), RT_ERROR_STATE);
    over(loop, &e, RT_OK);
    CHECK(s.rewound == index);
  }
  s.refuses = true;
  send(post, &e);
  over(loop, &e, RT_ERROR_CANCELLED);
  CHECK(strstr(e.message, "cannot be read again") != NULL && s.destroyed == 0);
  rt_rest_request_free(post);
  CHECK(s.destroyed == 1);
}

/* Without a rewind function it can be sent once, until another source is set. */
static void once(rt_loop *loop, rt_rest *rest) {
  source s = {0}, other = {0};
  ending e;
  rt_rest_request *post = request(rest, "POST", &s, false, 5);
  send(post, &e);
  over(loop, &e, RT_OK);
  CHECK_STATUS(rt_rest_request_send(post, on_done, &e, NULL, NULL, NULL), RT_ERROR_STATE);
  CHECK_OK(rt_rest_request_set_body_source(post, 5, on_source, NULL, &other, on_destroy));
  CHECK(s.destroyed == 1);
  send(post, &e);
  over(loop, &e, RT_OK);
  CHECK_OK(rt_rest_request_set_body(post, (const uint8_t *)"hello", 5, NULL));
  send(post, &e);
  over(loop, &e, RT_OK);
  rt_rest_request_free(post);
  CHECK(other.destroyed == 1);
}

/* If the body is too short, the server does not wait for the rest; if it is too long, the excess
 * does not become the next request. */
static void lengths(rt_loop *loop, rt_rest *rest) {
  const char *faults[] = {"is longer than its 4 bytes", "ended after 5 of 6 bytes"};
  int index;
  for (index = 0; index < 2; index++) {
    source s = {0};
    ending e;
    rt_rest_request *put = request(rest, "PUT", &s, true, index ? 6 : 4);
    send(put, &e);
    over(loop, &e, RT_ERROR_INVALID_ARGUMENT);
    CHECK(strstr(e.message, faults[index]) != NULL && s.rewound == 0);
    rt_rest_request_free(put);
  }
}

/* The parameters of a form follow each other; another body has none. */
static void forms(rt_loop *loop, rt_rest *rest) {
  source s = {0};
  ending e;
  rt_rest_request *post;
  CHECK_OK(rt_rest_request_new(rest, "POST", "/echo", &post));
  CHECK_OK(rt_rest_request_add_form_parameter(post, "a b", "\xc3\xa9&"));
  CHECK_OK(rt_rest_request_add_form_parameter(post, "c", ""));
  send(post, &e);
  TURN_UNTIL(loop, e.count);
  CHECK(strstr(e.body, "\"a%20b=%C3%A9%26&c=\"") != NULL);
  CHECK(strstr(e.body, "application/x-www-form-urlencoded\"") != NULL);
  CHECK_OK(rt_rest_request_set_body(post, (const uint8_t *)"d=1", 3,
                                    "Application/X-WWW-Form-Urlencoded; charset=utf-8"));
  CHECK_OK(rt_rest_request_add_form_parameter(post, "e", "2"));
  send(post, &e);
  TURN_UNTIL(loop, e.count);
  CHECK(strstr(e.body, "\"d=1&e=2\"") != NULL && strstr(e.body, "charset=utf-8") != NULL);
  CHECK_OK(rt_rest_request_set_body(post, (const uint8_t *)"{}", 2, "application/json"));
  CHECK_STATUS(rt_rest_request_add_form_parameter(post, "e", "2"), RT_ERROR_STATE);
  CHECK_OK(rt_rest_request_set_body_source(post, 5, on_source, NULL, &s, on_destroy));
  CHECK_STATUS(rt_rest_request_add_form_parameter(post, "e", "2"), RT_ERROR_STATE);
  rt_rest_request_free(post);
}

int main(int argc, char **argv) {
  rt_loop *loop = new_loop();
  rt_rest *rest;
  CHECK(argc == 2);
  CHECK_OK(rt_rest_new(loop, argv[1], &rest));
  CHECK_OK(rt_rest_set_base_delay_ms(rest, 2));
  again(loop, rest);
  once(loop, rest);
  lengths(loop, rest);
  forms(loop, rest);
  rt_rest_free(rest);
  rt_loop_free(loop);
  return 0;
}
