/* The views that callbacks receive: the details of an opened connection; and of a refusal, with its
 * headers and the beginning of its body, for each kind of object. */
#include <errno.h>

#include "contract.h"

static const char *server;

/* What was reported to one object. */
typedef struct told {
  int opens, failures, ends;
  int32_t opened_status, http_status, status, system_error, transport;
  size_t body_length;
  char body[256];
} told;

static bool has_line(const char *headers, size_t length, const char *line) {
  const char *found = strstr(headers, line);
  CHECK(headers[length] == '\0' && (length == 0 || headers[length - 1] == '\n'));
  return found && found < headers + length;
}

static void on_open(const rt_opened *opened, void *user) {
  told *t = user;
  CHECK(opened->struct_bytes == sizeof *opened);
  CHECK(opened->http_version == 11 && opened->http_reason[0] != '\0');
  CHECK(has_line(opened->headers, opened->headers_length, "Server: Python/"));
  CHECK(strcmp(opened->remote_address, server + strlen("ws://")) == 0);
  CHECK(strncmp(opened->local_address, "127.0.0.1:", 10) == 0);
  CHECK(strcmp(opened->local_address, opened->remote_address) != 0);
  CHECK(opened->subprotocol[0] == '\0');
  CHECK(opened->tls_version[0] == '\0' && opened->tls_cipher[0] == '\0' && !opened->resumed);
  t->opened_status = opened->http_status;
  t->transport = opened->transport;
  t->opens++;
}

static void on_failure(const rt_failure *failure, void *user) {
  told *t = user;
  size_t copied = failure->body_length < sizeof t->body ? failure->body_length : 255;
  CHECK(failure->struct_bytes == sizeof *failure && failure->body != NULL);
  CHECK(failure->body[failure->body_length] == '\0');
  if (failure->http_status == 403) {
    CHECK(strcmp(failure->http_reason, "Forbidden") == 0);
    CHECK(has_line(failure->headers, failure->headers_length, "X-Why: full\n"));
    CHECK(has_line(failure->headers, failure->headers_length, "Content-Type: application/json\n"));
    CHECK(strstr(failure->message, "403") != NULL);
  } else {
    CHECK(failure->headers_length == 0 && failure->headers[0] == '\0');
    CHECK(failure->body_length == 0 && failure->http_reason[0] == '\0');
  }
  memcpy(t->body, failure->body, copied);
  t->body[copied] = '\0';
  t->body_length = failure->body_length;
  t->http_status = failure->http_status;
  t->status = failure->status;
  t->system_error = failure->system_error;
  t->transport = failure->transport;
  t->failures++;
}

static void make_url(char url[256], const char *path) {
  CHECK(snprintf(url, 256, "http%s%s", server + 2, path) < 256);
}

static rt_eventsource *new_source(rt_loop *loop, const char *path, told *t) {
  char url[256];
  rt_eventsource *source = NULL;
  make_url(url, path);
  memset(t, 0, sizeof *t);
  CHECK_OK(rt_eventsource_new(loop, url, &source));
  CHECK_OK(rt_eventsource_on_open(source, on_open, t, NULL));
  CHECK_OK(rt_eventsource_on_error(source, on_failure, t, NULL));
  return source;
}

static rt_longpoll *new_poll(rt_loop *loop, const char *path, told *t) {
  char url[256];
  rt_longpoll *poll = NULL;
  make_url(url, path);
  memset(t, 0, sizeof *t);
  CHECK_OK(rt_longpoll_new(loop, url, &poll));
  CHECK_OK(rt_longpoll_set_bearer_token(poll, "good"));
  CHECK_OK(rt_longpoll_on_open(poll, on_open, t, NULL));
  CHECK_OK(rt_longpoll_on_error(poll, on_failure, t, NULL));
  return poll;
}

static void opened_describes_the_connection(rt_loop *loop) {
  told t;
  rt_eventsource *source = new_source(loop, "/events/1", &t);
  CHECK_OK(rt_eventsource_start(source));
  TURN_UNTIL(loop, t.opens == 1);
  CHECK(t.opened_status == 200 && t.transport == 0);
  rt_eventsource_free(source);

  rt_longpoll *poll = new_poll(loop, "/poll/1", &t);
  CHECK_OK(rt_longpoll_start(poll));
  TURN_UNTIL(loop, t.opens == 1);
  CHECK(t.opened_status == 200);
  rt_longpoll_free(poll);

  rt_websocket *websocket = new_websocket(loop, server, "/echo");
  memset(&t, 0, sizeof t);
  CHECK_OK(rt_websocket_on_open(websocket, on_open, &t, NULL));
  CHECK_OK(rt_websocket_start(websocket));
  TURN_UNTIL(loop, t.opens == 1);
  CHECK(t.opened_status == 101);
  rt_websocket_free(websocket);
}

static void a_refusal_has_its_body(rt_loop *loop) {
  told t;
  rt_eventsource *source = new_source(loop, "/explain/0", &t);
  CHECK_OK(rt_eventsource_start(source));
  TURN_UNTIL(loop, t.failures == 1);
  CHECK(t.status == RT_ERROR_HTTP_STATUS && t.http_status == 403 && t.system_error == 0);
  CHECK(strcmp(t.body, "{\"error\": \"no seat is free\"}") == 0);
  rt_eventsource_free(source);

  /* A pause holds events back, but not the error that explains why there are none. */
  source = new_source(loop, "/explain/0", &t);
  CHECK_OK(rt_eventsource_pause(source));
  CHECK_OK(rt_eventsource_start(source));
  TURN_UNTIL(loop, t.failures == 1);
  CHECK(strcmp(t.body, "{\"error\": \"no seat is free\"}") == 0);
  rt_eventsource_free(source);

  rt_longpoll *poll = new_poll(loop, "/explain/0", &t);
  CHECK_OK(rt_longpoll_start(poll));
  TURN_UNTIL(loop, t.failures == 1);
  CHECK(t.status == RT_ERROR_HTTP_STATUS && t.http_status == 403);
  CHECK(strcmp(t.body, "{\"error\": \"no seat is free\"}") == 0);
  rt_longpoll_free(poll);
}

static void on_close(const rt_closed *closed, void *user) {
  told *t = user;
  CHECK(closed->struct_bytes == sizeof *closed && closed->code == 1006 && !closed->clean);
  CHECK(closed->reason[0] == '\0' && closed->reason_length == 0);
  CHECK(t->failures == 1 && closed->status == t->status && closed->message[0] != '\0');
  t->ends++;
}

static void a_websocket_reports_the_same(rt_loop *loop) {
  told t;
  memset(&t, 0, sizeof t);
  rt_websocket *websocket = new_websocket(loop, server, "/explain/0");
  CHECK_OK(rt_websocket_on_error(websocket, on_failure, &t, NULL));
  CHECK_OK(rt_websocket_on_closed(websocket, on_close, &t, NULL));
  CHECK_OK(rt_websocket_start(websocket));
  TURN_UNTIL(loop, t.ends == 1);
  CHECK(t.status == RT_ERROR_HTTP_STATUS && t.http_status == 403);
  CHECK(strcmp(t.body, "{\"error\": \"no seat is free\"}") == 0);
  rt_websocket_free(websocket);

  memset(&t, 0, sizeof t);
  websocket = new_websocket(loop, "ws://127.0.0.1:1", "/");
  CHECK_OK(rt_websocket_on_error(websocket, on_failure, &t, NULL));
  CHECK_OK(rt_websocket_on_closed(websocket, on_close, &t, NULL));
  CHECK_OK(rt_websocket_start(websocket));
  TURN_UNTIL(loop, t.ends == 1);
  CHECK(t.status == RT_ERROR_CONNECT && t.system_error == ECONNREFUSED && t.http_status == 0);
  rt_websocket_free(websocket);
}

static void a_body_is_kept_up_to_a_limit(rt_loop *loop) {
  const size_t most = 64 << 10;
  told t;
  rt_eventsource *source = new_source(loop, "/explain/1000000", &t);
  CHECK_OK(rt_eventsource_start(source));
  TURN_UNTIL(loop, t.failures == 1);
  CHECK(t.body_length == most && strncmp(t.body, "{\"error\"", 8) == 0);
  rt_eventsource_free(source);

  rt_longpoll *poll = new_poll(loop, "/explain/1000000", &t);
  CHECK_OK(rt_longpoll_start(poll));
  TURN_UNTIL(loop, t.failures == 1);
  CHECK(t.body_length == most);
  rt_longpoll_free(poll);
}

static rt_credentials on_credentials(const rt_failure *refusal, void *user) {
  CHECK(refusal->http_status == 401 && refusal->status == RT_ERROR_HTTP_STATUS);
  CHECK(has_line(refusal->headers, refusal->headers_length, "Content-Type: text/plain"));
  CHECK(strcmp((const char *)refusal->body, "a token is needed\n") == 0);
  ++*(int *)user;
  return RT_CREDENTIALS_NONE;
}

static void on_end(const rt_failure *failure, void *user) {
  CHECK(failure->fatal && failure->http_status == 401);
  CHECK(strcmp((const char *)failure->body, "a token is needed\n") == 0);
  ++*(int *)user;
}

static void credentials_are_asked_for_with_the_answer(rt_loop *loop) {
  told t;
  int asked = 0, ended = 0;
  rt_eventsource *source = new_source(loop, "/tokens", &t);
  CHECK_OK(rt_eventsource_on_credentials(source, on_credentials, &asked, NULL));
  CHECK_OK(rt_eventsource_on_error(source, on_end, &ended, NULL));
  CHECK_OK(rt_eventsource_start(source));
  TURN_UNTIL(loop, ended == 1);
  CHECK(asked == 1);
  rt_eventsource_free(source);
}

/* A port that was free a moment ago: the system's error is reported. */
static void the_systems_error_is_reported(rt_loop *loop) {
  told t;
  rt_eventsource *source = NULL;
  memset(&t, 0, sizeof t);
  CHECK_OK(rt_eventsource_new(loop, "http://127.0.0.1:1/", &source));
  CHECK_OK(rt_eventsource_set_reconnect(source, false));
  CHECK_OK(rt_eventsource_on_error(source, on_failure, &t, NULL));
  CHECK_OK(rt_eventsource_start(source));
  TURN_UNTIL(loop, t.failures == 1);
  CHECK(t.status == RT_ERROR_CONNECT && t.system_error == ECONNREFUSED && t.http_status == 0);
  rt_eventsource_free(source);
}

int main(int argc, char **argv) {
  CHECK(argc == 2);
  server = argv[1];
  rt_loop *loop = new_loop();
  opened_describes_the_connection(loop);
  a_refusal_has_its_body(loop);
  a_websocket_reports_the_same(loop);
  a_body_is_kept_up_to_a_limit(loop);
  credentials_are_asked_for_with_the_answer(loop);
  the_systems_error_is_reported(loop);
  rt_loop_free(loop);
  return 0;
}
