/* Prints the events of a stream until the server answers 204, which tells clients to stop. */
#include <realtime.h>
#include <stdio.h>

int main(int argc, char **argv) {
  rt_eventsource *source = NULL;
  rt_event *event = NULL;
  rt_status status;
  if (argc != 2) fprintf(stderr, "usage: read_events URL\n");
  if (argc != 2 || rt_eventsource_new(NULL, argv[1], &source)) return 2;
  while (!(status = rt_eventsource_receive(source, -1, &event))) {
    printf("%s: %s\n", event->event, event->data);
    fflush(stdout);
    rt_event_free(event);
  }
  if (status != RT_ERROR_NO_CONTENT) fprintf(stderr, "read_events: %s\n", rt_last_error());
  rt_eventsource_free(source);
  return status == RT_ERROR_NO_CONTENT ? 0 : 1;
}
