/* Does the same as readme.c with callbacks, on a loop that this program runs. */
#include <realtime.h>
#include <stdio.h>
#include <stdlib.h>

static void on_open(const rt_opened *opened, void *websocket) {
  rt_websocket_send_text(websocket, "hello", 5);
}

static void on_message(rt_message_kind kind, const uint8_t *data, size_t length, void *loop) {
  printf("%.*s\n", (int)length, (const char *)data);
  rt_loop_stop(loop);
}

static void on_close(const rt_closed *closed, void *loop) {
  fprintf(stderr, "closed with %u %s\n", closed->code, closed->reason);
  rt_loop_stop(loop);
}

static void on_error(const rt_failure *failure, void *user) {
  fprintf(stderr, "%s: %s\n", rt_status_name(failure->status), failure->message);
  exit(1);
}

int main(int argc, char **argv) {
  rt_loop *loop = NULL;
  rt_websocket *websocket = NULL;
  if (argc != 2 || rt_loop_new(&loop) || rt_websocket_new(loop, argv[1], &websocket)) {
    fprintf(stderr, "usage: callbacks URL\n");
    return 2;
  }
  rt_websocket_on_open(websocket, on_open, websocket, NULL);
  rt_websocket_on_message(websocket, on_message, loop, NULL);
  rt_websocket_on_closed(websocket, on_close, loop, NULL);
  rt_websocket_on_error(websocket, on_error, NULL, NULL);
  rt_websocket_start(websocket);
  rt_loop_run(loop);
  rt_websocket_free(websocket);
  rt_loop_free(loop);
}
