/* REST: each request has one terminal callback, never inside the call that sent it. Also options,
 * bodies in both directions, retries, the queue, credentials, cancel and close. */
#include "contract.h"
#include "rest_views.h"

typedef struct ending {
  int count, destroyed, pieces, heads, progress, told_early;
  rt_status error;
  int32_t status;
  uint32_t attempts;
  int64_t retry_after_ms;
  char body[4096], message[256];
  size_t streamed;
  rt_rest *free_inside;
} ending;

static int is_sending;

static void on_done(rt_rest_response *response, void *user) {
  ending *e = user;
  size_t length;
  const uint8_t *body = rt_rest_response_body(response, &length);
  e->count += 1;
  e->told_early += is_sending;
  e->error = rt_rest_response_error(response);
  e->status = rt_rest_response_status(response);
  e->attempts = rt_rest_response_attempts(response);
  e->retry_after_ms = rt_rest_response_retry_after_ms(response);
  CHECK(length < sizeof e->body && body != NULL);
  memcpy(e->body, body, length);
  e->body[length] = '\0';
  snprintf(e->message, sizeof e->message, "%s", rt_rest_response_message(response));
  CHECK((e->message[0] == '\0') == (e->error == RT_OK));
  check_views(response, e->error, e->status, e->body);
  if (e->free_inside != NULL) rt_rest_free(e->free_inside);
}

static void on_destroy(void *user) { ((ending *)user)->destroyed += 1; }

static void on_head(rt_rest_response *response, void *user) {
  ending *e = user;
  CHECK(e->pieces == 0 && rt_rest_response_status(response) == 200);
  e->heads += 1;
}

static void on_body(const uint8_t *data, size_t length, void *user) {
  ending *e = user;
  size_t index;
  for (index = 0; index < length; index++) CHECK(data[index] == (e->streamed + index) % 251);
  e->streamed += length;
  e->pieces += 1;
}

static void on_progress(const rt_rest_progress *progress, void *user) {
  CHECK(progress->struct_bytes == sizeof *progress);
  CHECK(progress->to_send == 0 || progress->sent <= progress->to_send);
  CHECK(progress->to_receive == 0 || progress->received <= progress->to_receive);
  ((ending *)user)->progress += 1;
}

static rt_rest *client(rt_loop *loop, const char *server) {
  rt_rest *rest;
  CHECK_OK(rt_rest_new(loop, server, &rest));
  CHECK_OK(rt_rest_set_base_delay_ms(rest, 2));
  CHECK_OK(rt_rest_set_max_delay_ms(rest, 10));
  return rest;
}

static uint64_t sent(rt_rest_request *request, ending *e) {
  uint64_t id = 0;
  is_sending = 1;
  CHECK_OK(rt_rest_request_send(request, on_done, e, on_destroy, &id, NULL));
  is_sending = 0;
  CHECK(id != 0 && e->count == 0);
  return id;
}

static uint64_t asked(rt_rest *rest, const char *method, const char *path, ending *e) {
  rt_rest_request *request;
  uint64_t id;
  CHECK_OK(rt_rest_request_new(rest, method, path, &request));
  id = sent(request, e);
  rt_rest_request_free(request);
  return id;
}

static void over(rt_loop *loop, ending *e, rt_status error, int32_t status, uint32_t attempts) {
  TURN_UNTIL(loop, e->count > 0 && e->destroyed > 0);
  if (e->error != error || e->status != status) printf("%d %s\n", e->status, e->message);
  CHECK(e->count == 1 && e->destroyed == 1 && e->told_early == 0);
  CHECK(e->error == error && e->status == status && e->attempts == attempts);
}

static void options(rt_loop *loop, const char *server) {
  rt_rest *rest = client(loop, server), *none;
  rt_network *network;
  rt_reachability *reachability;
  CHECK_STATUS(rt_rest_new(loop, NULL, NULL), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_rest_new(loop, "ws://host/", &none), RT_ERROR_UNSUPPORTED_SCHEME);
  CHECK_STATUS(rt_rest_new(loop, "http://host/?q", &none), RT_ERROR_INVALID_URL);
  CHECK_OK(rt_rest_add_header(rest, "X-Kept", "1"));
  CHECK_OK(rt_rest_set_header(rest, "X-Gone", "1"));
  CHECK_OK(rt_rest_set_header(rest, "x-gone", NULL));
  CHECK_STATUS(rt_rest_add_header(rest, "Upgrade", "x"), RT_ERROR_INVALID_HEADER);
  CHECK_OK(rt_rest_add_header(rest, "Host", "x"));
  CHECK_STATUS(rt_rest_add_header(rest, "host", "y"), RT_ERROR_INVALID_HEADER);
  CHECK_OK(rt_rest_set_header(rest, "Host", NULL));
  CHECK_OK(rt_rest_set_attempts(rest, 4));
  CHECK_STATUS(rt_rest_set_attempts(rest, 0), RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_rest_set_attempt_timeout_ms(rest, 5000));
  CHECK_STATUS(rt_rest_set_attempt_timeout_ms(rest, -1), RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_rest_set_connect_timeout_ms(rest, 3000));
  CHECK_OK(rt_rest_set_delay_factor(rest, 1));
  CHECK_STATUS(rt_rest_set_delay_factor(rest, 0.5), RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_rest_set_jitter(rest, RT_JITTER_FULL));
  CHECK_STATUS(rt_rest_set_jitter(rest, 9), RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_rest_set_deadline_ms(rest, 20000));
  CHECK_OK(rt_rest_set_max_retry_after_ms(rest, 1000));
  CHECK_OK(rt_rest_set_queue_ttl_ms(rest, 0));
  CHECK_OK(rt_rest_set_queue_capacity(rest, 2));
  CHECK_OK(rt_rest_set_queue_overflow(rest, RT_REST_OVERFLOW_REJECT_NEW));
  CHECK_STATUS(rt_rest_set_queue_overflow(rest, 2), RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_rest_set_order(rest, RT_REST_ORDER_AUTOMATIC));
  CHECK_STATUS(rt_rest_set_order(rest, 3), RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_rest_set_idempotency_keys(rest, false));
  CHECK_OK(rt_rest_set_retry_unsafe(rest, false));
  CHECK_OK(rt_rest_set_max_body_bytes(rest, 1 << 20));
  CHECK_OK(rt_rest_set_max_redirects(rest, 3));
  CHECK_STATUS(rt_rest_set_max_redirects(rest, 21), RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_rest_set_allow_insecure_redirects(rest, false));
  CHECK_OK(rt_rest_add_safe_header(rest, "X-Safe"));
  CHECK_OK(rt_rest_add_redirect_origin(rest, "*"));
  CHECK_OK(rt_rest_add_credential_origin(rest, "https://files.example.org"));
  CHECK_STATUS(rt_rest_add_credential_origin(rest, "http://h/path"), RT_ERROR_INVALID_URL);
  CHECK_STATUS(rt_rest_add_credential_origin(rest, "ws://h"), RT_ERROR_UNSUPPORTED_SCHEME);
  CHECK_STATUS(rt_rest_add_credential_origin(rest, NULL), RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_rest_set_max_per_host(rest, 2));
  CHECK_STATUS(rt_rest_set_max_per_host(rest, 0), RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_rest_set_compression(rest, true));
  CHECK_OK(rt_rest_set_http2(rest, true));
  CHECK_OK(rt_network_new(&network));
  CHECK_OK(rt_rest_set_network(rest, network));
  rt_network_free(network);
  CHECK_OK(rt_reachability_new(loop, RT_REACHABILITY_ALWAYS, &reachability));
  CHECK_OK(rt_rest_set_reachability(rest, reachability));
  rt_reachability_free(reachability);
  {
    ending e = {0}, many = {0};
    asked(rest, "GET", "/echo?x=1", &e);
    over(loop, &e, RT_OK, 200, 1);
    CHECK(strstr(e.body, "X-Kept") != NULL && strstr(e.body, "X-Gone") == NULL);
    CHECK_STATUS(rt_rest_set_attempts(rest, 3), RT_ERROR_STATE);
    asked(rest, "GET", "/redirect/4", &many);
    over(loop, &many, RT_ERROR_REDIRECT, 302, 1);
  }
  rt_rest_free(rest);
  rt_rest_free(NULL);
}

/* Headers of the client are sent only to the origin of its base URL. */
static void other_origins(rt_loop *loop, const char *server) {
  char path[160];
  int trusted;
  snprintf(path, sizeof path, "http://localhost:%d/echo", atoi(strrchr(server, ':') + 1));
  for (trusted = 0; trusted < 2; trusted++) {
    ending own = {0}, other = {0};
    rt_rest *rest = NULL;
    rt_rest_request *request;
    CHECK_OK(rt_rest_new(loop, server, &rest));
    CHECK_OK(rt_rest_set_bearer_token(rest, "token"));
    CHECK_OK(rt_rest_add_header(rest, "X-Key", "client"));
    CHECK_OK(rt_rest_add_header(rest, "Cookie", "client=1"));
    if (trusted) CHECK_OK(rt_rest_add_credential_origin(rest, "*"));
    asked(rest, "GET", "/echo", &own);
    over(loop, &own, RT_OK, 200, 1);
    CHECK(strstr(own.body, "Bearer token") && strstr(own.body, "X-Key"));
    CHECK_STATUS(rt_rest_request_new(rest, "GET", "../up", &request), RT_ERROR_INVALID_URL);
    CHECK_STATUS(rt_rest_request_new(rest, "GET", "http://a:SECRET#b@h/", &request),
                 RT_ERROR_INVALID_URL);
    CHECK(strstr(rt_last_error(), "SECRET") == NULL);
    CHECK_OK(rt_rest_request_new(rest, "GET", path, &request));
    CHECK_OK(rt_rest_request_set_header(request, "X-Own", "request"));
    sent(request, &other);
    over(loop, &other, RT_OK, 200, 1);
    CHECK(strstr(other.body, "X-Own") != NULL);
    CHECK((strstr(other.body, "Bearer token") != NULL) == trusted);
    CHECK((strstr(other.body, "X-Key") != NULL) == trusted);
    CHECK((strstr(other.body, "client=1") != NULL) == trusted);
    rt_rest_request_free(request);
    rt_rest_free(rest);
  }
}

static void a_request(rt_loop *loop, const char *server) {
  ending e = {0}, again = {0}, large = {0};
  rt_rest *rest = client(loop, server);
  rt_rest_request *request;
  CHECK_STATUS(rt_rest_request_new(rest, "G T", "/", &request), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_rest_request_new(rest, "GET", "ftp://h/", &request),
               RT_ERROR_UNSUPPORTED_SCHEME);
  CHECK_OK(rt_rest_request_new(rest, "POST", "/echo", &request));
  CHECK_OK(rt_rest_request_add_header(request, "X-One", "1"));
  CHECK_OK(rt_rest_request_set_header(request, "x-one", "two"));
  CHECK_STATUS(rt_rest_request_add_header(request, "A B", "1"), RT_ERROR_INVALID_HEADER);
  CHECK_OK(rt_rest_request_add_query(request, "a b", "\xc3\xa9&"));
  CHECK_OK(rt_rest_request_set_body(request, (const uint8_t *)"{}", 2, "application/json"));
  CHECK_OK(rt_rest_request_set_order(request, RT_REST_ORDER_NEVER));
  CHECK_OK(rt_rest_request_set_attempts(request, 2));
  CHECK_OK(rt_rest_request_set_attempt_timeout_ms(request, 8000));
  CHECK_OK(rt_rest_request_set_deadline_ms(request, 9000));
  CHECK_OK(rt_rest_request_set_queue_ttl_ms(request, 9000));
  CHECK_OK(rt_rest_request_set_retry_unsafe(request, true));
  CHECK_OK(rt_rest_request_set_idempotency_keys(request, true));
  CHECK_OK(rt_rest_request_set_connect_timeout_ms(request, 7000));
  CHECK_OK(rt_rest_request_set_max_retry_after_ms(request, 1000));
  CHECK_OK(rt_rest_request_set_allow_insecure_redirects(request, false));
  CHECK_STATUS(rt_rest_request_set_order(request, 3), RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_rest_request_set_max_redirects(request, 0));
  CHECK_OK(rt_rest_request_set_max_body_bytes(request, 4000));
  sent(request, &e);
  sent(request, &again);
  rt_rest_request_free(request);
  over(loop, &e, RT_OK, 200, 1);
  over(loop, &again, RT_OK, 200, 1);
  CHECK(strstr(e.body, "/echo?a%20b=%C3%A9%26") != NULL && strstr(e.body, "\"{}\"") != NULL);
  CHECK(strstr(e.body, "x-one") != NULL && strstr(e.body, "X-One") == NULL);
  CHECK(strstr(e.body, "Idempotency-Key") != NULL && strcmp(e.body, again.body) != 0);
  CHECK_OK(rt_rest_request_new(rest, "GET", "/bytes/5000", &request));
  CHECK_OK(rt_rest_request_set_max_body_bytes(request, 4999));
  sent(request, &large);
  rt_rest_request_free(request);
  over(loop, &large, RT_ERROR_TOO_LARGE, 200, 1);
  rt_rest_free(rest);
}

static void retries(rt_loop *loop, const char *server) {
  ending flaky = {0}, post = {0}, waits = {0}, gone = {0};
  rt_rest *rest = client(loop, server);
  asked(rest, "GET", "/flaky/one/2", &flaky);
  over(loop, &flaky, RT_OK, 200, 3);
  asked(rest, "POST", "/flaky/two/1/500", &post);
  over(loop, &post, RT_ERROR_HTTP_STATUS, 500, 1);
  CHECK(strcmp(post.body, "not yet\n") == 0);
  asked(rest, "GET", "/status/503?retry_after=100", &waits);
  over(loop, &waits, RT_ERROR_HTTP_STATUS, 503, 1);
  CHECK(waits.retry_after_ms == 100000);
  asked(rest, "POST", "http://127.0.0.1:1/", &gone);
  over(loop, &gone, RT_ERROR_CONNECT, 0, 3);
  CHECK(gone.retry_after_ms == -1);
  rt_rest_free(rest);
}

typedef struct source {
  ending *told;
  int left, waited, rewound, fails;
  bool may_rewind;
} source;

static int64_t on_source(uint8_t *buffer, size_t capacity, void *user) {
  source *s = user;
  CHECK(capacity >= 16384);
  if (s->fails) return RT_REST_BODY_FAIL;
  if (s->left == 0) return RT_REST_BODY_END;
  if (s->left == 2 && !s->waited) {
    s->waited = 1;
    return RT_REST_BODY_WAIT;
  }
  s->left -= 1;
  memcpy(buffer, "abc", 3);
  return 3;
}

static bool on_rewind(void *user) {
  source *s = user;
  s->rewound += 1;
  s->left = 3;
  return s->may_rewind;
}

static void sources_done(void *user) { ((source *)user)->told->streamed += 1; }

static void a_body_from_a_callback(rt_loop *loop, const char *server, const char *path, source s,
                                   bool rewinds, int64_t length, rt_status error,
                                   int32_t status, uint32_t attempts) {
  ending e = {0};
  uint64_t id;
  rt_rest *rest = client(loop, server);
  rt_rest_request *request;
  s.told = &e;
  CHECK_OK(rt_rest_request_new(rest, "PUT", path, &request));
  CHECK_STATUS(rt_rest_request_set_body_source(request, -2, on_source, NULL, &s, NULL),
               RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_rest_request_set_body_source(
      request, length, on_source, rewinds ? on_rewind : NULL, &s, sources_done));
  CHECK_OK(rt_rest_request_on_progress(request, on_progress, &e, NULL));
  id = sent(request, &e);
  rt_rest_request_free(request);
  if (!s.fails) {
    TURN_UNTIL(loop, s.waited || e.count);
    CHECK_OK(rt_rest_resume_body(rest, id));
  }
  over(loop, &e, error, status, attempts);
  CHECK(e.streamed == 1 && (error != RT_OK || strstr(e.body, "\"abcabcabc\"") != NULL));
  CHECK(error != RT_OK || s.rewound == (attempts > 1 ? 1 : 0));
  CHECK(error != RT_OK || e.progress > 0);
  rt_rest_free(rest);
}

static void streamed(rt_loop *loop, const char *server) {
  ending e = {0};
  uint64_t id;
  rt_rest *rest = client(loop, server);
  rt_rest_request *request;
  CHECK_OK(rt_rest_request_new(rest, "GET", "/bytes/3000000", &request));
  CHECK_OK(rt_rest_request_on_head(request, on_head, &e, NULL));
  CHECK_OK(rt_rest_request_on_body(request, on_body, &e, NULL));
  CHECK_OK(rt_rest_request_on_progress(request, on_progress, &e, NULL));
  id = sent(request, &e);
  rt_rest_request_free(request);
  TURN_UNTIL(loop, e.pieces > 0);
  CHECK_OK(rt_rest_pause(rest, id));
  {
    int pieces = e.pieces, turn;
    for (turn = 0; turn < 20; turn++) CHECK_OK(rt_loop_dispatch(loop, 5));
    CHECK(e.pieces == pieces && e.count == 0);
  }
  CHECK_OK(rt_rest_resume(rest, id));
  over(loop, &e, RT_OK, 200, 1);
  CHECK(e.heads == 1 && e.streamed == 3000000 && e.body[0] == '\0');
  rt_rest_free(rest);
}

static void a_queue(rt_loop *loop, const char *server) {
  ending e[4] = {{0}, {0}, {0}, {0}};
  rt_rest *rest = client(loop, "http://192.0.2.1/");
  rt_reachability *reachability;
  int index;
  CHECK_OK(rt_reachability_new(loop, RT_REACHABILITY_MANUAL, &reachability));
  CHECK_OK(rt_reachability_set_online(reachability, false));
  CHECK_OK(rt_rest_set_reachability(rest, reachability));
  CHECK_OK(rt_rest_set_queue_capacity(rest, 3));
  for (index = 0; index < 4; index++) asked(rest, "POST", "/echo", &e[index]);
  over(loop, &e[3], RT_ERROR_QUEUE_FULL, 0, 0);
  CHECK_OK(rt_rest_cancel(rest, 1));
  over(loop, &e[0], RT_ERROR_CANCELLED, 0, 0);
  CHECK(e[1].count == 0 && e[2].count == 0);
  CHECK_OK(rt_rest_close(rest));
  /* Nobody runs the loop, so close reports the end inside the call. */
  CHECK(e[1].count == 1 && e[1].error == RT_ERROR_CLOSED);
  CHECK(e[2].count == 1 && e[2].error == RT_ERROR_CLOSED);
  {
    rt_rest_request *request;
    int destroyed_before = e[0].destroyed;
    CHECK_OK(rt_rest_request_new(rest, "GET", server, &request));
    CHECK_STATUS(rt_rest_request_send(request, on_done, &e[0], on_destroy, NULL, NULL),
                 RT_ERROR_CLOSED);
    CHECK(e[0].count == 1 && e[0].destroyed == destroyed_before + 1);
    rt_rest_request_free(request);
  }
  rt_reachability_free(reachability);
  rt_rest_free(rest);
}

typedef struct keyring {
  rt_rest *rest;
  int asked;
  rt_credentials answer;
} keyring;

static rt_credentials on_credentials(const rt_failure *refusal, void *user) {
  keyring *k = user;
  CHECK(refusal->struct_bytes == sizeof *refusal && refusal->status == RT_ERROR_HTTP_STATUS);
  CHECK(refusal->http_status == 401 && refusal->headers_length > 0);
  k->asked += 1;
  if (k->answer == RT_CREDENTIALS_READY) CHECK_OK(rt_rest_set_bearer_token(k->rest, "good"));
  return k->answer;
}

static void credentials(rt_loop *loop, const char *server, rt_credentials answer) {
  ending one = {0}, two = {0};
  keyring k = {0};
  rt_rest *rest = client(loop, server);
  k.rest = rest;
  k.answer = answer;
  CHECK_STATUS(rt_rest_set_bearer_token(rest, ""), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_rest_set_basic_auth(rest, "a:b", "c"), RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_rest_set_basic_auth(rest, "user", "secret"));
  CHECK_OK(rt_rest_on_credentials(rest, on_credentials, &k, NULL));
  asked(rest, "GET", "/token", &one);
  asked(rest, "GET", "/token", &two);
  if (answer == RT_CREDENTIALS_LATER) {
    TURN_UNTIL(loop, k.asked);
    CHECK_OK(rt_rest_set_bearer_token(rest, "good"));
    CHECK_OK(rt_rest_credentials_ready(rest, true));
  }
  over(loop, &one, answer ? RT_OK : RT_ERROR_AUTH, answer ? 200 : 401, 1);
  over(loop, &two, answer ? RT_OK : RT_ERROR_AUTH, answer ? 200 : 401, 1);
  /* A second refusal may come after the first answer; the program is not asked about it again. */
  CHECK(k.asked == 1 || (answer == RT_CREDENTIALS_NONE && k.asked == 2));
  rt_rest_free(rest);
}

static void endings(const char *server) {
  ending inside = {0}, freed = {0}, other = {0};
  rt_loop *loop;
  rt_rest *rest;
  CHECK_OK(rt_loop_new(&loop));
  rest = client(loop, server);
  inside.free_inside = rest;
  asked(rest, "GET", "/echo", &inside);
  asked(rest, "GET", "/silent/x/1", &other);
  over(loop, &inside, RT_OK, 200, 1);
  CHECK(other.count == 1 && other.error == RT_ERROR_CLOSED);
  rest = client(loop, server);
  asked(rest, "GET", "/silent/y/1", &freed);
  settle(loop);
  /* The loop is freed first: unfinished requests are reported before it is gone. */
  rt_loop_free(loop);
  CHECK(freed.count == 1 && freed.error == RT_ERROR_CLOSED);
  rt_rest_free(rest);
  CHECK(freed.count == 1 && freed.destroyed == 1);
}

int main(int argc, char **argv) {
  const source plain = {NULL, 3, 0, 0, 0, true}, stuck = {NULL, 3, 0, 0, 0, false};
  const source failing = {NULL, 3, 0, 0, 1, true};
  rt_loop *loop;
  CHECK(argc == 2);
  CHECK_OK(rt_loop_new(&loop));
  options(loop, argv[1]);
  other_origins(loop, argv[1]);
  a_request(loop, argv[1]);
  retries(loop, argv[1]);
  a_body_from_a_callback(loop, argv[1], "/echo", plain, false, -1, RT_OK, 200, 1);
  a_body_from_a_callback(loop, argv[1], "/echo", plain, false, 9, RT_OK, 200, 1);
  a_body_from_a_callback(loop, argv[1], "/flaky/a/1", plain, true, 9, RT_OK, 200, 2);
  a_body_from_a_callback(
      loop, argv[1], "/flaky/b/1", plain, false, 9, RT_ERROR_HTTP_STATUS, 503, 1);
  a_body_from_a_callback(
      loop, argv[1], "/flaky/c/1", stuck, true, 9, RT_ERROR_CANCELLED, 0, 2);
  a_body_from_a_callback(loop, argv[1], "/echo", failing, true, 9, RT_ERROR_CANCELLED, 0, 1);
  streamed(loop, argv[1]);
  a_queue(loop, argv[1]);
  credentials(loop, argv[1], RT_CREDENTIALS_READY);
  credentials(loop, argv[1], RT_CREDENTIALS_LATER);
  credentials(loop, argv[1], RT_CREDENTIALS_NONE);
  endings(argv[1]);
  rt_loop_free(loop);
  return 0;
}
