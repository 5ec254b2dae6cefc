/* A program that waits for something else than its connection: sleeper URL COUNT. It says that it
 * is connected, waits for a line, then prints the messages that came meanwhile and an echo. */
#include <realtime.h>
#include <stdio.h>
#include <stdlib.h>

static void receive(rt_websocket *websocket) {
  rt_received *message;
  if (rt_websocket_receive(websocket, 10000, &message) != RT_OK) {
    fprintf(stderr, "%s\n", rt_last_error());
    exit(1);
  }
  puts((const char *)message->data);
  rt_received_free(message);
}

int main(int argc, char **argv) {
  rt_websocket *websocket;
  char line[8];
  if (argc != 3 || rt_websocket_new(NULL, argv[1], &websocket) != RT_OK) return 2;
  if (rt_websocket_connect(websocket, -1) != RT_OK) return 3;
  puts("connected");
  fflush(stdout);
  if (!fgets(line, sizeof line, stdin)) return 4;
  for (int left = atoi(argv[2]); left > 0; left--) receive(websocket);
  rt_websocket_send_text(websocket, "still there", 11);
  receive(websocket);
  rt_websocket_free(websocket);
  return 0;
}
