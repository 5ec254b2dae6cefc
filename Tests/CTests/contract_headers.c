/* Every object takes tens of thousands of headers: a setter that searched or copied the earlier
 * ones each time would take too long. */
#include "contract.h"

enum { COUNT = 30000 };

#define EACH(call)                                          \
  do {                                                      \
    int number;                                             \
    for (number = 0; number < COUNT; number++) {            \
      char name[32];                                        \
      snprintf(name, sizeof name, "X-Header-%d", number);   \
      CHECK_OK(call);                                       \
    }                                                       \
  } while (0)

static void websocket(rt_loop *loop, const char *server) {
  rt_websocket *websocket = new_websocket(loop, server, "/echo");
  EACH(rt_websocket_add_header(websocket, name, "1"));
  CHECK_OK(rt_websocket_clear_headers(websocket));
  EACH(rt_websocket_set_header(websocket, name, "1"));
  CHECK_OK(rt_websocket_add_safe_header(websocket, "X-Safe"));
  CHECK_STATUS(rt_websocket_add_safe_header(websocket, "no token"), RT_ERROR_INVALID_HEADER);
  CHECK_OK(rt_websocket_set_network(websocket, NULL));
  rt_websocket_free(websocket);
}

static void eventsource(rt_loop *loop) {
  rt_eventsource *source = NULL;
  CHECK_OK(rt_eventsource_new(loop, "http://127.0.0.1/", &source));
  EACH(rt_eventsource_add_header(source, name, "1"));
  CHECK_OK(rt_eventsource_clear_headers(source));
  EACH(rt_eventsource_set_header(source, name, "1"));
  rt_eventsource_free(source);
}

static void longpoll(rt_loop *loop) {
  rt_longpoll *poll = NULL;
  CHECK_OK(rt_longpoll_new(loop, "http://127.0.0.1/", &poll));
  EACH(rt_longpoll_add_header(poll, name, "1"));
  CHECK_OK(rt_longpoll_clear_headers(poll));
  EACH(rt_longpoll_set_header(poll, name, "1"));
  rt_longpoll_free(poll);
}

static void spreadbot(rt_loop *loop) {
  rt_spreadbot *bot = NULL;
  CHECK_OK(rt_spreadbot_new(loop, "http://127.0.0.1/", &bot));
  EACH(rt_spreadbot_add_header(bot, name, "1"));
  CHECK_OK(rt_spreadbot_clear_headers(bot));
  EACH(rt_spreadbot_set_header(bot, name, "1"));
  CHECK_STATUS(rt_spreadbot_set_header(bot, "Accept", "x"), RT_ERROR_INVALID_HEADER);
  CHECK_OK(rt_spreadbot_add_safe_header(bot, "X-Safe"));
  CHECK_STATUS(rt_spreadbot_add_safe_header(bot, "no token"), RT_ERROR_INVALID_HEADER);
  CHECK_STATUS(rt_spreadbot_add_redirect_origin(bot, NULL), RT_ERROR_INVALID_ARGUMENT);
  rt_spreadbot_free(bot);
}

static void on_done(rt_rest_response *response, void *user) {
  (void)response;
  *(int *)user = 1;
}

/* The request's headers replace the client's. */
static void rest(rt_loop *loop) {
  rt_rest *rest = NULL;
  rt_rest_request *request = NULL;
  int done = 0;
  CHECK_OK(rt_rest_new(loop, "http://127.0.0.1:1/", &rest));
  EACH(rt_rest_add_header(rest, name, "1"));
  CHECK_OK(rt_rest_clear_headers(rest));
  CHECK_OK(rt_rest_set_network(rest, NULL));
  CHECK_OK(rt_rest_set_reachability(rest, NULL));
  EACH(rt_rest_set_header(rest, name, "1"));
  CHECK_OK(rt_rest_set_attempts(rest, 1));
  CHECK_OK(rt_rest_request_new(rest, "GET", "/", &request));
  EACH(rt_rest_request_add_header(request, name, "2"));
  CHECK_OK(rt_rest_request_send(request, on_done, &done, NULL, NULL, NULL));
  TURN_UNTIL(loop, done);
  rt_rest_request_free(request);
  CHECK_OK(rt_rest_request_new(rest, "GET", "/", &request));
  EACH(rt_rest_request_set_header(request, name, "2"));
  CHECK_OK(rt_rest_request_clear_headers(request));
  rt_rest_request_free(request);
  rt_rest_free(rest);
}

int main(int argc, char **argv) {
  rt_loop *loop = new_loop();
  CHECK(argc == 2);
  websocket(loop, argv[1]);
  eventsource(loop);
  longpoll(loop);
  spreadbot(loop);
  rest(loop);
  rt_loop_free(loop);
  return 0;
}
