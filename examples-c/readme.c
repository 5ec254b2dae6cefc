/* The smallest whole program: say hello, print the answer. */
#include <realtime.h>
#include <stdio.h>

int main(int argc, char **argv) {
  rt_websocket *websocket = NULL;
  rt_received *answer = NULL;
  if (argc != 2) fprintf(stderr, "usage: readme URL\n");
  if (argc != 2 || rt_websocket_new(NULL, argv[1], &websocket)) return 2;
  rt_status status = rt_websocket_connect(websocket, -1);
  if (!status) status = rt_websocket_send_text(websocket, "hello", 5);
  if (!status) status = rt_websocket_receive(websocket, -1, &answer);
  if (!status) puts((const char *)answer->data);
  if (status) fprintf(stderr, "%s: %s\n", rt_status_name(status), rt_last_error());
  rt_received_free(answer);
  rt_websocket_free(websocket);
  return status ? 1 : 0;
}
