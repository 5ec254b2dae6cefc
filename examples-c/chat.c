/*
 * A chat over a presence channel: prints each member that comes or goes, and what the others say;
 * sends them each line of its input.
 *
 *   chat KEY CHANNEL HOST PORT NAME
 */
#include <realtime.h>
#include <stdio.h>
#include <stdlib.h>

static size_t as_json(const char *line, char *json) {
  char *end = json;
  *end++ = '"';
  for (; *line; line++) {
    if (*line == '"' || *line == '\\') *end++ = '\\';
    if ((unsigned char)*line >= ' ') *end++ = *line;
  }
  *end++ = '"';
  return (size_t)(end - json);
}

/* Callbacks run on the thread of the library's own loop, because `main` waits for input. */
static void on_message(const rt_pusher_event *event, void *user) {
  printf("%.*s: %.*s\n", (int)event->user_id_length, event->user_id, (int)event->data_length,
         event->data);
  fflush(stdout);
}

static void on_member(const rt_pusher_member *member, void *words) {
  printf("%s %s\n", member->user_id, (const char *)words);
  fflush(stdout);
}

static void on_subscribed(const rt_pusher_subscription *subscription, void *channel) {
  rt_pusher_channel_each_member(channel, on_member, "is here");
}

static void on_failed(const rt_pusher_subscription *subscription, void *user) {
  fprintf(stderr, "chat: %s\n", subscription->message);
  exit(1);
}

int main(int argc, char **argv) {
  rt_pusher *pusher = NULL;
  rt_pusher_channel *channel = NULL;
  char line[1000], json[2 * sizeof line], url[300];
  if (argc != 6 || rt_pusher_new(NULL, argv[1], &pusher)) {
    fprintf(stderr, "usage: chat KEY CHANNEL HOST PORT NAME\n");
    return 2;
  }
  snprintf(url, sizeof url, "http://%s:%s/pusher/auth", argv[3], argv[4]);
  rt_status status = rt_pusher_set_host(pusher, argv[3]);
  if (!status) status = rt_pusher_set_port(pusher, (uint32_t)atoi(argv[4]));
  if (!status) status = rt_pusher_set_use_tls(pusher, false);
  if (!status) status = rt_pusher_set_auth_endpoint(pusher, url);
  if (!status) status = rt_pusher_set_auth_parameter(pusher, "user_id", argv[5]);
  if (!status) status = rt_pusher_subscribe(pusher, argv[2], &channel);
  if (!status)
    status = rt_pusher_channel_bind(channel, "client-message", on_message, NULL, NULL, NULL);
  if (!status) status = rt_pusher_on_subscribed(pusher, on_subscribed, channel, NULL);
  if (!status) status = rt_pusher_on_subscription_failed(pusher, on_failed, NULL, NULL);
  if (!status) status = rt_pusher_on_member_added(pusher, on_member, "comes", NULL);
  if (!status) status = rt_pusher_on_member_removed(pusher, on_member, "goes", NULL);
  if (!status) status = rt_pusher_start(pusher);
  while (!status && fgets(line, sizeof line, stdin))
    status = rt_pusher_channel_trigger(channel, "client-message", json, as_json(line, json));
  if (status) fprintf(stderr, "chat: %s\n", rt_last_error());
  rt_pusher_channel_free(channel);
  rt_pusher_free(pusher);
  return status ? 1 : 0;
}
