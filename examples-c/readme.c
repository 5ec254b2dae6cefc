/* The smallest whole program: say hello, print the first answer, close. */
#include <realtime.h>
#include <stdio.h>

static rt_loop *loop;
static rt_websocket *websocket;

static void on_open(const char *subprotocol, const char *extensions, void *user) {
  (void)subprotocol, (void)extensions, (void)user;
  rt_websocket_send_text(websocket, "hello", 5);
}

static void on_message(rt_message_kind kind, const uint8_t *data, size_t length, void *user) {
  (void)kind, (void)user;
  printf("%.*s\n", (int)length, (const char *)data);
  rt_websocket_close(websocket, 1000, NULL);
}

static void on_error(rt_status status, const char *message, void *user) {
  (void)user;
  fprintf(stderr, "%s: %s\n", rt_status_name(status), message);
}

static void on_close(uint16_t code, const char *reason, size_t length, bool clean, void *user) {
  (void)code, (void)reason, (void)length;
  *(bool *)user = clean;
  rt_loop_stop(loop);
}

int main(int argc, char **argv) {
  bool clean = false;
  if (argc != 2 || rt_loop_new(&loop) || rt_websocket_new(loop, argv[1], &websocket)) {
    fprintf(stderr, "usage: readme URL\n%s\n", rt_last_error());
    return 2;
  }
  rt_websocket_on_open(websocket, on_open, NULL, NULL);
  rt_websocket_on_message(websocket, on_message, NULL, NULL);
  rt_websocket_on_error(websocket, on_error, NULL, NULL);
  rt_websocket_on_close(websocket, on_close, &clean, NULL);
  rt_websocket_start(websocket);
  rt_loop_run(loop);
  rt_websocket_free(websocket);
  rt_loop_free(loop);
  return clean ? 0 : 1;
}
