/*
 * Subscribes to channels of Pusher and prints their events, and the members of presence channels.
 * SERVER is one of Pusher's clusters, such as eu, or HOST:PORT of a server without TLS.
 * AUTH_ENDPOINT in the environment is the URL that authorizes private and presence channels.
 *
 *   pusher KEY SERVER CHANNEL... [COUNT]
 */
#include <realtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reader {
  rt_loop *loop;
  rt_pusher *pusher;
  long left;
  bool failed;
};

static void on_state(const rt_pusher_state_change *change, void *user) {
  static const char *const names[] = {"idle",         "connecting",    "connected",
                                      "reconnecting", "disconnecting", "disconnected"};
  struct reader *reader = user;
  fprintf(stderr, "pusher: %s%s%s\n", names[change->new_state], change->message[0] ? ": " : "",
          change->message);
  if (change->new_state != RT_STATE_CLOSED) return;
  reader->failed = reader->failed || change->status != RT_OK;
  rt_loop_stop(reader->loop);
}

static void on_event(const rt_pusher_event *event, void *user) {
  struct reader *reader = user;
  /* Those that begin with "pusher:" are the library's own, such as a successful subscription. */
  if (event->event_length >= 7 && memcmp(event->event, "pusher:", 7) == 0) return;
  printf("%.*s %.*s %.*s\n", (int)event->channel_length, event->channel, (int)event->event_length,
         event->event, (int)event->data_length, event->data);
  fflush(stdout);
  if (reader->left > 0 && --reader->left == 0) rt_pusher_close(reader->pusher);
}

static void on_member(const rt_pusher_member *member, void *user) {
  printf("%s %s is here %s\n", member->channel, member->user_id, member->user_info);
  fflush(stdout);
}

static void on_subscribed(const rt_pusher_subscription *subscription, void *user) {
  struct reader *reader = user;
  rt_pusher_channel *channel = NULL;
  fprintf(stderr, "pusher: subscribed to %s\n", subscription->channel);
  if (rt_pusher_find_channel(reader->pusher, subscription->channel, &channel) == RT_OK)
    rt_pusher_channel_each_member(channel, on_member, NULL);
  rt_pusher_channel_free(channel);
}

static void on_failed(const rt_pusher_subscription *subscription, void *user) {
  struct reader *reader = user;
  fprintf(stderr, "pusher: %s: %s\n", subscription->channel, subscription->message);
  reader->failed = true;
  rt_pusher_close(reader->pusher);
}

static bool check(rt_status status, const char *what) {
  if (status == RT_OK) return true;
  fprintf(stderr, "pusher: %s: %s\n", what, rt_last_error());
  return false;
}

static bool set_server(rt_pusher *pusher, const char *server) {
  const char *port = strrchr(server, ':');
  char host[256];
  if (!port) return check(rt_pusher_set_cluster(pusher, server), server);
  snprintf(host, sizeof host, "%.*s", (int)(port - server), server);
  return check(rt_pusher_set_host(pusher, host), host) &&
         check(rt_pusher_set_port(pusher, (uint32_t)strtoul(port + 1, NULL, 10)), server) &&
         check(rt_pusher_set_use_tls(pusher, false), "TLS");
}

static bool run(struct reader *reader, int argc, char **argv) {
  if (!check(rt_loop_new(&reader->loop), "loop")) return false;
  if (!check(rt_pusher_new(reader->loop, argv[1], &reader->pusher), argv[1])) return false;
  rt_pusher *pusher = reader->pusher;
  const char *auth = getenv("AUTH_ENDPOINT");
  if (!set_server(pusher, argv[2])) return false;
  if (auth && !check(rt_pusher_set_auth_endpoint(pusher, auth), auth)) return false;
  rt_pusher_on_state(pusher, on_state, reader, NULL);
  rt_pusher_on_subscribed(pusher, on_subscribed, reader, NULL);
  rt_pusher_on_subscription_failed(pusher, on_failed, reader, NULL);
  rt_pusher_on_member_added(pusher, on_member, NULL, NULL);
  rt_pusher_bind(pusher, NULL, on_event, reader, NULL, NULL);
  for (int i = 3; i < argc; i++)
    if (!check(rt_pusher_subscribe(pusher, argv[i], NULL), argv[i])) return false;
  return check(rt_pusher_start(pusher), "connect") && check(rt_loop_run(reader->loop), "run");
}

int main(int argc, char **argv) {
  struct reader reader = {.left = 0};
  /* A number at the end is the count, not a channel. */
  if (argc > 4) reader.left = strtol(argv[argc - 1], NULL, 10);
  if (reader.left > 0) argc--;
  if (argc < 4) {
    fprintf(stderr, "usage: pusher KEY SERVER CHANNEL... [COUNT]\n");
    return 2;
  }
  bool ran = run(&reader, argc, argv);
  rt_pusher_free(reader.pusher);
  rt_loop_free(reader.loop);
  return ran && !reader.failed ? 0 : 1;
}
