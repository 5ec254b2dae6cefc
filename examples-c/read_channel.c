/*
 * Prints the events of a Pusher channel. Reconnects by itself.
 *
 *   read_channel KEY CHANNEL HOST PORT
 */
#include <realtime.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  rt_pusher *pusher = NULL;
  rt_pusher_channel *channel = NULL;
  rt_pusher_event *event = NULL;
  if (argc != 5) fprintf(stderr, "usage: read_channel KEY CHANNEL HOST PORT\n");
  if (argc != 5 || rt_pusher_new(NULL, argv[1], &pusher)) return 2;
  rt_status status = rt_pusher_set_host(pusher, argv[3]);
  if (!status) status = rt_pusher_set_port(pusher, (uint32_t)atoi(argv[4]));
  if (!status) status = rt_pusher_set_use_tls(pusher, false);
  if (!status) status = rt_pusher_subscribe(pusher, argv[2], &channel);
  while (!status && !(status = rt_pusher_receive(pusher, -1, &event))) {
    if (*event->channel) printf("%s: %s\n", event->event, event->data);
    fflush(stdout);
    rt_pusher_event_free(event);
  }
  fprintf(stderr, "read_channel: %s\n", rt_last_error());
  rt_pusher_channel_free(channel);
  rt_pusher_free(pusher);
  return 1;
}
