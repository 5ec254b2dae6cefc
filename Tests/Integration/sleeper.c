/* A program that waits for something other than its connection: sleeper URL COUNT. It prints that
 * it is connected, waits for a line, then prints the messages that came meanwhile, and for a
 * WebSocket an echo. An event source counts as connected with its first event, which is one of
 * COUNT. */
#include <realtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A guard against hanging. */
enum { PATIENCE_MS = 60000 };

static rt_websocket *websocket;
static rt_eventsource *source;

static void check(rt_status status) {
  if (status == RT_OK) return;
  fprintf(stderr, "%s\n", rt_last_error());
  exit(1);
}

static void receive(void) {
  rt_received *message;
  rt_event *event;
  if (source) {
    check(rt_eventsource_receive(source, PATIENCE_MS, &event));
    puts(event->data);
    rt_event_free(event);
  } else {
    check(rt_websocket_receive(websocket, PATIENCE_MS, &message));
    puts((const char *)message->data);
    rt_received_free(message);
  }
}

int main(int argc, char **argv) {
  char line[8];
  int left;
  if (argc != 3) return 2;
  left = atoi(argv[2]);
  if (strncmp(argv[1], "http", 4) == 0) {
    check(rt_eventsource_new(NULL, argv[1], &source));
    receive();
    left--;
  } else {
    check(rt_websocket_new(NULL, argv[1], &websocket));
    check(rt_websocket_connect(websocket, -1));
    puts("connected");
  }
  fflush(stdout);
  if (!fgets(line, sizeof line, stdin)) return 4;
  for (; left > 0; left--) receive();
  if (websocket) {
    check(rt_websocket_send_text(websocket, "still there", 11));
    receive();
  }
  rt_websocket_free(websocket);
  rt_eventsource_free(source);
  return 0;
}
