/* The rules for headers are the same for every object: NULL removes a header, adding one needs a
 * value, and Expect is only allowed for single requests. A raw socket shows which headers are sent.
 * */
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "contract.h"

typedef struct peer {
  rt_loop *loop;
  int listener;
  int port;
  char head[8192];
} peer;

static void listen_on_loopback(peer *p) {
  struct sockaddr_in address = {.sin_family = AF_INET};
  socklen_t length = sizeof address;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  p->loop = new_loop();
  p->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  CHECK(bind(p->listener, (struct sockaddr *)&address, length) == 0);
  CHECK(listen(p->listener, 8) == 0);
  CHECK(getsockname(p->listener, (struct sockaddr *)&address, &length) == 0);
  p->port = ntohs(address.sin_port);
}

static const char *url(peer *p, const char *scheme) {
  static char text[64];
  snprintf(text, sizeof text, "%s://127.0.0.1:%d/", scheme, p->port);
  return text;
}

static bool has_head(peer *p, int connection) {
  size_t length = strlen(p->head);
  ssize_t count = recv(connection, p->head + length, sizeof p->head - length - 1, MSG_DONTWAIT);
  if (count > 0) p->head[length + (size_t)count] = '\0';
  return strstr(p->head, "\r\n\r\n") != NULL;
}

/* Reads the head of the next request. */
static void read_head(peer *p) {
  int connection = -1;
  TURN_UNTIL(p->loop, (connection = accept(p->listener, NULL, NULL)) >= 0);
  p->head[0] = '\0';
  TURN_UNTIL(p->loop, has_head(p, connection));
  close(connection);
  CHECK(strstr(p->head, "X-Kept: 1\r\n") != NULL);
  CHECK(strstr(p->head, "X-Gone") == NULL && strstr(p->head, "x-gone") == NULL);
  CHECK(strstr(p->head, "X-Null") == NULL);
}

#define SET_HEADERS(object, handle)                                                          \
  do {                                                                                       \
    CHECK_OK(rt_##object##_add_header(handle, "X-Gone", "0"));                               \
    CHECK_OK(rt_##object##_clear_headers(handle));                                           \
    CHECK_OK(rt_##object##_add_header(handle, "X-Kept", "1"));                               \
    CHECK_OK(rt_##object##_add_header(handle, "X-Gone", "1"));                               \
    CHECK_OK(rt_##object##_add_header(handle, "X-Gone", "2"));                               \
    CHECK_OK(rt_##object##_set_header(handle, "x-gone", NULL));                              \
    CHECK_OK(rt_##object##_set_header(handle, "X-Null", NULL));                              \
    CHECK_STATUS(rt_##object##_add_header(handle, "X-Null", NULL), RT_ERROR_INVALID_ARGUMENT); \
    CHECK_STATUS(rt_##object##_set_header(handle, NULL, NULL), RT_ERROR_INVALID_ARGUMENT);   \
    CHECK_STATUS(rt_##object##_set_header(handle, "no token", NULL), RT_ERROR_INVALID_HEADER); \
  } while (0)

#define REFUSE_EXPECT(object, handle)                                                           \
  do {                                                                                          \
    CHECK_STATUS(                                                                               \
        rt_##object##_add_header(handle, "Expect", "100-continue"), RT_ERROR_INVALID_HEADER);   \
    CHECK_STATUS(                                                                               \
        rt_##object##_set_header(handle, "expect", "100-continue"), RT_ERROR_INVALID_HEADER);   \
  } while (0)

/* Sets each kind of credentials, and removes it by either setter. */
enum { TOKEN, USER, NO_TOKEN, NO_USER, CREDENTIALS };

#define SET_CREDENTIAL(object, handle, credential)                                             \
  do {                                                                                         \
    if ((credential) == USER || (credential) == NO_TOKEN) {                                    \
      CHECK_OK(rt_##object##_set_basic_auth(handle, "user", "secret"));                        \
    } else {                                                                                   \
      CHECK_OK(rt_##object##_set_bearer_token(handle, "token"));                               \
    }                                                                                          \
    if ((credential) == NO_TOKEN) CHECK_OK(rt_##object##_set_bearer_token(handle, NULL));      \
    if ((credential) == NO_USER) CHECK_OK(rt_##object##_set_basic_auth(handle, NULL, NULL));   \
    CHECK_STATUS(                                                                              \
        rt_##object##_set_basic_auth(handle, "user", NULL), RT_ERROR_INVALID_ARGUMENT);        \
    CHECK_STATUS(rt_##object##_set_bearer_token(handle, ""), RT_ERROR_INVALID_ARGUMENT);       \
  } while (0)

static void check_credential(peer *p, int credential) {
  const char *expected[] = {"\r\nAuthorization: Bearer token\r\n",
                            "\r\nAuthorization: Basic dXNlcjpzZWNyZXQ=\r\n", NULL, NULL};
  read_head(p);
  if (expected[credential] != NULL) {
    CHECK(strstr(p->head, expected[credential]) != NULL);
  } else {
    CHECK(strstr(p->head, "Authorization") == NULL);
  }
}

static void websocket(peer *p, int credential) {
  rt_websocket *websocket = NULL;
  CHECK_OK(rt_websocket_new(p->loop, url(p, "ws"), &websocket));
  SET_HEADERS(websocket, websocket);
  REFUSE_EXPECT(websocket, websocket);
  SET_CREDENTIAL(websocket, websocket, credential);
  CHECK_OK(rt_websocket_set_origin(websocket, "http://example.org"));
  CHECK_OK(rt_websocket_set_origin(websocket, NULL));
  CHECK_OK(rt_websocket_set_cookie(websocket, "a=b"));
  CHECK_OK(rt_websocket_set_cookie(websocket, NULL));
  CHECK_OK(rt_websocket_set_user_agent(websocket, "mine"));
  CHECK_OK(rt_websocket_set_user_agent(websocket, NULL));
  CHECK_OK(rt_websocket_start(websocket));
  check_credential(p, credential);
  CHECK(strstr(p->head, "Origin") == NULL && strstr(p->head, "Cookie") == NULL);
  CHECK(strstr(p->head, "User-Agent: librealtime/") != NULL);
  rt_websocket_free(websocket);
}

static void eventsource(peer *p, int credential) {
  rt_eventsource *source = NULL;
  CHECK_OK(rt_eventsource_new(p->loop, url(p, "http"), &source));
  SET_HEADERS(eventsource, source);
  REFUSE_EXPECT(eventsource, source);
  SET_CREDENTIAL(eventsource, source, credential);
  CHECK_OK(rt_eventsource_start(source));
  check_credential(p, credential);
  rt_eventsource_free(source);
}

static void longpoll(peer *p, int credential) {
  rt_longpoll *poll = NULL;
  CHECK_OK(rt_longpoll_new(p->loop, url(p, "http"), &poll));
  SET_HEADERS(longpoll, poll);
  REFUSE_EXPECT(longpoll, poll);
  SET_CREDENTIAL(longpoll, poll, credential);
  CHECK_OK(rt_longpoll_start(poll));
  check_credential(p, credential);
  rt_longpoll_free(poll);
}

static void spreadbot(peer *p) {
  rt_spreadbot *spreadbot = NULL;
  CHECK_OK(rt_spreadbot_new(p->loop, url(p, "http"), &spreadbot));
  SET_HEADERS(spreadbot, spreadbot);
  REFUSE_EXPECT(spreadbot, spreadbot);
  CHECK_OK(rt_spreadbot_start(spreadbot, "/"));
  read_head(p);
  rt_spreadbot_free(spreadbot);
}

/* The headers of the client, or of a single request. */
static void rest(peer *p, int credential, bool is_own) {
  rt_rest *rest = NULL;
  rt_rest_request *request = NULL;
  CHECK_OK(rt_rest_new(p->loop, url(p, "http"), &rest));
  REFUSE_EXPECT(rest, rest);
  SET_CREDENTIAL(rest, rest, credential);
  if (!is_own) SET_HEADERS(rest, rest);
  CHECK_OK(rt_rest_request_new(rest, "POST", "/", &request));
  if (is_own) {
    SET_HEADERS(rest_request, request);
    CHECK_OK(rt_rest_request_set_header(request, "Expect", "100-continue"));
    CHECK_OK(rt_rest_request_set_body(request, (const uint8_t *)"body", 4, NULL));
  }
  CHECK_OK(rt_rest_request_send(request, NULL, NULL, NULL, NULL, NULL));
  check_credential(p, credential);
  CHECK((strstr(p->head, "Expect: 100-continue\r\n") != NULL) == is_own);
  rt_rest_request_free(request);
  rt_rest_free(rest);
}

int main(void) {
  peer p;
  int credential;
  listen_on_loopback(&p);
  spreadbot(&p);
  for (credential = 0; credential < CREDENTIALS; credential++) {
    websocket(&p, credential);
    eventsource(&p, credential);
    longpoll(&p, credential);
    rest(&p, credential, false);
    rest(&p, credential, true);
  }
  close(p.listener);
  rt_loop_free(p.loop);
  return 0;
}
