/* The kernel reuses the descriptor number of a closed socket: events for the old socket must not
 * affect the new one. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "contract.h"

enum { FILLERS = 8 };

/* A port where connecting never succeeds or fails: its accept queue is full. */
static int make_full_port(int *listener, int fillers[FILLERS]) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  int index;
  *listener = socket(AF_INET, SOCK_STREAM, 0);
  CHECK(bind(*listener, (struct sockaddr *)&address, sizeof address) == 0);
  CHECK(listen(*listener, 0) == 0);
  CHECK(getsockname(*listener, (struct sockaddr *)&address, &length) == 0);
  for (index = 0; index < FILLERS; index++) {
    fillers[index] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    connect(fillers[index], (struct sockaddr *)&address, sizeof address);
  }
  return ntohs(address.sin_port);
}

static void on_done(rt_rest_response *response, void *user) {
  *(rt_status *)user = rt_rest_response_error(response);
}

/* Cancels a request while it connects; the next connection gets its descriptor number. */
static void a_reused_number_is_watched(rt_loop *loop, const char *server, int port) {
  char url[64];
  uint64_t id;
  int expected, got;
  rt_status ended = RT_OK;
  rt_rest *rest;
  rt_rest_request *request;
  rt_websocket *websocket;
  events told = {0};
  snprintf(url, sizeof url, "http://127.0.0.1:%d/", port);
  CHECK_OK(rt_rest_new(loop, url, &rest));
  settle(loop);
  expected = dup(0);
  close(expected);
  CHECK_OK(rt_rest_request_new(rest, "GET", "/", &request));
  CHECK_OK(rt_rest_request_send(request, on_done, &ended, NULL, &id, NULL));
  rt_rest_request_free(request);
  settle(loop);
  got = dup(0);
  close(got);
  CHECK(got > expected);
  CHECK_OK(rt_rest_cancel(rest, id));
  websocket = new_websocket(loop, server, "/echo");
  listen_to(websocket, &told);
  CHECK_OK(rt_websocket_start(websocket));
  TURN_UNTIL(loop, ended == RT_ERROR_CANCELLED && told.opened);
  CHECK_OK(rt_websocket_send_text(websocket, "hello", 5));
  TURN_UNTIL(loop, told.messages == 1);
  rt_websocket_free(websocket);
  rt_rest_free(rest);
}

int main(int argc, char **argv) {
  rt_loop *loop = new_loop();
  int listener, fillers[FILLERS], port, index;
  CHECK(argc == 2);
  port = make_full_port(&listener, fillers);
  for (index = 0; index < 5; index++) a_reused_number_is_watched(loop, argv[1], port);
  rt_loop_free(loop);
  for (index = 0; index < FILLERS; index++) close(fillers[index]);
  close(listener);
  return 0;
}
