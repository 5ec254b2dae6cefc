/* Whatever the peer does, a started connection ends in exactly one close, after at most one open
 * and one error. No callback follows, and no signal is raised. contract.h checks the order. */
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "contract.h"

/* Runs a connection to its end; `setup` may be NULL. */
static events outcome(
    const char *server, const char *path, void (*setup)(rt_websocket *), bool close_on_open) {
  rt_loop *loop = new_loop();
  rt_websocket *websocket = new_websocket(loop, server, path);
  events e = {0};
  int64_t end_ms = now_ms() + PATIENCE_MS;
  bool closing = false;
  listen_to(websocket, &e);
  if (setup != NULL) setup(websocket);
  CHECK_OK(rt_websocket_start(websocket));
  CHECK(e.opened + e.errors + e.closed == 0); /* no callback runs inside start */
  while (!e.closed) {
    CHECK(now_ms() < end_ms);
    if (close_on_open && e.opened && !closing) {
      CHECK_OK(rt_websocket_close(websocket, 3000, "done"));
      closing = true;
    }
    CHECK_OK(rt_loop_dispatch(loop, 100));
  }
  CHECK(rt_websocket_get_state(websocket) == RT_STATE_CLOSED);
  settle(loop);
  CHECK_STATUS(rt_websocket_send_text(websocket, "late", 4), RT_ERROR_CLOSED);
  CHECK_STATUS(rt_websocket_start(websocket), RT_ERROR_STATE);
  settle(loop);
  rt_websocket_free(websocket);
  rt_loop_free(loop);
  CHECK(e.closed == 1 && e.destroyed == EVENT_SETTERS);
  return e;
}

/* A TCP port: one that listens and never answers, or one where nobody listens. */
static int tcp_port(bool listening, char *server, size_t size) {
  struct sockaddr_in address = {0};
  socklen_t length = sizeof address;
  int descriptor = socket(AF_INET, SOCK_STREAM, 0);
  CHECK(descriptor >= 0);
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  CHECK(bind(descriptor, (struct sockaddr *)&address, sizeof address) == 0);
  if (listening) CHECK(listen(descriptor, 16) == 0);
  CHECK(getsockname(descriptor, (struct sockaddr *)&address, &length) == 0);
  snprintf(server, size, "ws://127.0.0.1:%d", ntohs(address.sin_port));
  return descriptor;
}

static void short_open_timeout(rt_websocket *websocket) {
  CHECK_OK(rt_websocket_set_open_timeout_ms(websocket, 50));
}

static void close_at_once(const char *server, const char *path) {
  rt_loop *loop = new_loop();
  rt_websocket *websocket = new_websocket(loop, server, path);
  events e = {0};
  listen_to(websocket, &e);
  CHECK_OK(rt_websocket_start(websocket));
  CHECK_OK(rt_websocket_close(websocket, 1000, NULL));
  TURN_UNTIL(loop, e.closed);
  settle(loop);
  CHECK(e.opened == 0 && e.messages == 0 && e.closed == 1 && !e.clean);
  rt_websocket_free(websocket);
  rt_loop_free(loop);
  CHECK(e.destroyed == EVENT_SETTERS);
}

int main(int argc, char **argv) {
  char server[64];
  int descriptor;
  events e;
  CHECK(argc == 2);

  e = outcome(argv[1], "/echo", NULL, true);
  CHECK(e.opened == 1 && e.errors == 0 && e.clean && e.close_code == 3000);
  CHECK(strcmp(e.reason, "done") == 0);

  e = outcome(argv[1], "/close/4321", NULL, false);
  CHECK(e.opened == 1 && e.errors == 0 && e.clean && e.close_code == 4321);
  CHECK(strcmp(e.reason, "because") == 0);

  e = outcome(argv[1], "/drop", NULL, false);
  CHECK(e.errors == 1 && !e.clean && e.close_code == 1006);
  CHECK(e.error_status == RT_ERROR_CONNECTION_LOST);

  e = outcome(argv[1], "/refuse", NULL, false);
  CHECK(e.opened == 0 && e.errors == 1 && !e.clean && e.close_code == 1006);
  CHECK(e.error_status == RT_ERROR_HTTP_STATUS);

  descriptor = tcp_port(false, server, sizeof server);
  e = outcome(server, "/", NULL, false);
  CHECK(e.opened == 0 && e.errors == 1 && e.error_status == RT_ERROR_CONNECT);
  close(descriptor);

  descriptor = tcp_port(true, server, sizeof server);
  e = outcome(server, "/", short_open_timeout, false);
  CHECK(e.opened == 0 && e.errors == 1 && e.error_status == RT_ERROR_TIMEOUT);
  close_at_once(server, "/");
  close(descriptor);
  close_at_once(argv[1], "/echo");
  return 0;
}
