/* Before a connection is open: redirects are followed within an origin, and a refusal is
 * reported with its status, headers and body. */
#include "contract.h"

typedef struct story {
  int opened, refused, errors, closed;
  rt_status status;
  char text[4096], error[512];
} story;

static void on_open(const rt_opened *opened, void *user) {
  (void)opened;
  ((story *)user)->opened++;
}

static void on_text(rt_message_kind kind, const uint8_t *data, size_t length, void *user) {
  story *s = user;
  (void)kind;
  CHECK(length < sizeof s->text);
  memcpy(s->text, data, length);
  s->text[length] = '\0';
}

static void on_error(const rt_failure *failure, void *user) {
  story *s = user;
  s->errors++;
  s->status = failure->status;
  snprintf(s->error, sizeof s->error, "%s", failure->message);
  CHECK(failure->fatal && failure->retry_in_ms == -1);
  if (failure->http_status == 0) return;
  CHECK(failure->http_status == 404 && strcmp(failure->http_reason, "Not Found") == 0);
  CHECK(strlen(failure->headers) == failure->headers_length);
  CHECK(strstr(failure->headers, "Content-Length: 9\n") != NULL);
  CHECK(failure->body_length == 9 && memcmp(failure->body, "not here\n", 9) == 0);
  s->refused++;
}

static void on_close(const rt_closed *closed, void *user) {
  (void)closed;
  ((story *)user)->closed++;
}

static rt_websocket *told(rt_loop *loop, const char *server, const char *path, story *s) {
  rt_websocket *websocket = new_websocket(loop, server, path);
  CHECK_OK(rt_websocket_on_open(websocket, on_open, s, NULL));
  CHECK_OK(rt_websocket_on_message(websocket, on_text, s, NULL));
  CHECK_OK(rt_websocket_on_error(websocket, on_error, s, NULL));
  CHECK_OK(rt_websocket_on_closed(websocket, on_close, s, NULL));
  return websocket;
}

static void refusals(rt_loop *loop, const char *server) {
  story s = {0};
  rt_websocket *websocket = told(loop, server, "/refuse", &s);
  CHECK_OK(rt_websocket_start(websocket));
  TURN_UNTIL(loop, s.closed);
  CHECK(s.opened == 0 && s.refused == 1 && s.errors == 1);
  CHECK(s.status == RT_ERROR_HTTP_STATUS && strstr(s.error, "404") != NULL);
  rt_websocket_free(websocket);
}

static void redirects(rt_loop *loop, const char *server) {
  story s = {0}, many = {0};
  rt_websocket *websocket = told(loop, server, "/redirect/4", &s);
  CHECK_STATUS(rt_websocket_set_max_redirects(websocket, -1), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_websocket_set_max_redirects(websocket, 21), RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_websocket_set_allow_insecure_redirects(websocket, false));
  CHECK_OK(rt_websocket_start(websocket));
  TURN_UNTIL(loop, s.opened);
  CHECK(s.errors == 0 && s.refused == 0);
  rt_websocket_free(websocket);

  websocket = told(loop, server, "/redirect/5", &many);
  CHECK_OK(rt_websocket_start(websocket));
  TURN_UNTIL(loop, many.closed);
  CHECK(many.status == RT_ERROR_REDIRECT && strstr(many.error, "max_redirects") != NULL);
  rt_websocket_free(websocket);
}

/* A redirect to another origin: credentials and messages stay, unless the program allows it. */
static rt_websocket *sent_away(rt_loop *loop, const char *server, const char *origin, story *s) {
  rt_websocket *websocket = told(loop, server, "/away", s);
  CHECK_OK(rt_websocket_set_bearer_token(websocket, "secret"));
  if (origin) CHECK_OK(rt_websocket_add_redirect_origin(websocket, origin));
  CHECK_OK(rt_websocket_start(websocket));
  TURN_UNTIL(loop, s->text[0] != '\0' || s->closed);
  return websocket;
}

static void credentials_stay(rt_loop *loop, const char *server) {
  story refused = {0}, other = {0}, allowed = {0};
  char origin[100];
  rt_websocket_free(sent_away(loop, server, NULL, &refused));
  CHECK(refused.status == RT_ERROR_REDIRECT && refused.opened == 0);
  CHECK(strstr(refused.error, "rt_websocket_add_redirect_origin") != NULL);
  rt_websocket_free(sent_away(loop, server, "http://localhost:1", &other));
  CHECK(other.status == RT_ERROR_REDIRECT && other.opened == 0);
  snprintf(origin, sizeof origin, "ws://localhost%s", strrchr(server, ':'));
  rt_websocket_free(sent_away(loop, server, origin, &allowed));
  CHECK(allowed.errors == 0 && strstr(allowed.text, "Host: localhost:") != NULL);
  CHECK(strstr(allowed.text, "secret") != NULL);
}

int main(int argc, char **argv) {
  rt_loop *loop;
  CHECK(argc == 2);
  loop = new_loop();
  refusals(loop, argv[1]);
  redirects(loop, argv[1]);
  credentials_stay(loop, argv[1]);
  rt_loop_free(loop);
  return 0;
}
