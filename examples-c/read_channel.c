/*
 * Prints the events of a Pusher channel. Reconnects by itself.
 *
 *   read_channel KEY CHANNEL HOST PORT
 */
#include <realtime.h>
#include <stdio.h>
#include <stdlib.h>

static void on_event(const rt_pusher_event *event, void *user) {
  printf("%.*s: %.*s\n", (int)event->event_length, event->event, (int)event->data_length,
         event->data);
  fflush(stdout);
}

static void on_state(const rt_pusher_state_change *change, void *loop) {
  if (*change->message) fprintf(stderr, "read_channel: %s\n", change->message);
  if (change->new_state == RT_STATE_CLOSED) rt_loop_stop(loop);
}

int main(int argc, char **argv) {
  rt_loop *loop = NULL;
  rt_pusher *pusher = NULL;
  rt_pusher_channel *channel = NULL;
  if (argc != 5) fprintf(stderr, "usage: read_channel KEY CHANNEL HOST PORT\n");
  if (argc != 5 || rt_loop_new(&loop)) return 2;
  rt_status status = rt_pusher_new(loop, argv[1], &pusher);
  if (!status) status = rt_pusher_set_host(pusher, argv[3]);
  if (!status) status = rt_pusher_set_port(pusher, (uint32_t)atoi(argv[4]));
  if (!status) status = rt_pusher_set_use_tls(pusher, false);
  if (!status) status = rt_pusher_on_state(pusher, on_state, loop, NULL);
  if (!status) status = rt_pusher_subscribe(pusher, argv[2], &channel);
  if (!status) status = rt_pusher_channel_bind(channel, NULL, on_event, NULL, NULL, NULL);
  if (!status) status = rt_pusher_start(pusher);
  if (!status) status = rt_loop_run(loop);
  if (status) fprintf(stderr, "read_channel: %s\n", rt_last_error());
  rt_pusher_channel_free(channel);
  rt_pusher_free(pusher);
  rt_loop_free(loop);
  return 1;
}
