/*
 * Prints the messages of a path, each once and in order, by WebSocket, server-sent events or long
 * polls, whichever works, and reports the transport in use and each change of it. With the last id,
 * a second run continues where the first one stopped. TOKEN in the environment is the access token,
 * UPGRADE_MS the time before it tries the WebSocket again, if that is not 5 minutes.
 *
 *   listen https://example.org news [COUNT [ID]]
 */
#include <inttypes.h>
#include <realtime.h>
#include <stdio.h>
#include <stdlib.h>

struct listener {
  rt_loop *loop;
  rt_spreadbot *spreadbot;
  long left;
  bool failed;
};

static const char *const names[] = {"nothing", "WebSocket", "server-sent events", "long polls"};

static void on_open(const rt_opened *opened, void *user) {
  (void)user;
  fprintf(stderr, "listen: by %s%s\n", names[opened->transport], opened->resumed
          ? ", after the last id" : "");
}

static void on_message(const rt_event *event, void *user) {
  struct listener *listener = user;
  printf("%.*s ", event->had_id ? (int)event->id_length : 1, event->had_id ? event->id : "-");
  fwrite(event->data, 1, event->data_length, stdout);
  printf("\n");
  fflush(stdout);
  /* Nothing is delivered after this call; on_disconnected stops the loop. */
  if (listener->left > 0 && --listener->left == 0) rt_spreadbot_close(listener->spreadbot);
}

static void on_error(const rt_failure *failure, void *user) {
  (void)user;
  fprintf(stderr, "listen: %s\n", failure->message);
  if (!failure->fatal && failure->retry_in_ms > 0)
    fprintf(stderr, "listen: trying again in %" PRId64 " ms\n", failure->retry_in_ms);
}

static void on_disconnected(const rt_closed *closed, void *user) {
  struct listener *listener = user;
  listener->failed = closed->status != RT_OK;
  rt_loop_stop(listener->loop);
}

static bool check(rt_status status, const char *what) {
  if (status == RT_OK) return true;
  fprintf(stderr, "listen: %s: %s\n", what, rt_last_error());
  return false;
}

static bool run(struct listener *listener, const char *base, const char *path, const char *id) {
  const char *token = getenv("TOKEN");
  const char *upgrade = getenv("UPGRADE_MS");
  if (!check(rt_loop_new(&listener->loop), "loop")) return false;
  if (!check(rt_spreadbot_new(listener->loop, base, &listener->spreadbot), base)) return false;
  rt_spreadbot *spreadbot = listener->spreadbot;
  if (token && !check(rt_spreadbot_set_tokens(spreadbot, token, NULL), "TOKEN")) return false;
  if (upgrade && !check(rt_spreadbot_set_upgrade_interval_ms(spreadbot, atoll(upgrade)), "upgrade"))
    return false;
  if (id && !check(rt_spreadbot_set_last_event_id(spreadbot, id), id)) return false;
  rt_spreadbot_on_open(spreadbot, on_open, listener, NULL);
  rt_spreadbot_on_message(spreadbot, on_message, listener, NULL);
  rt_spreadbot_on_error(spreadbot, on_error, listener, NULL);
  rt_spreadbot_on_closed(spreadbot, on_disconnected, listener, NULL);
  return check(rt_spreadbot_start(spreadbot, path), path) &&
         check(rt_loop_run(listener->loop), "run");
}

int main(int argc, char **argv) {
  struct listener listener = {.left = argc > 3 ? strtol(argv[3], NULL, 10) : 0};
  if (argc < 3 || argc > 5 || listener.left < 0) {
    fprintf(stderr, "usage: listen BASE_URL PATH [COUNT [ID]]\n");
    return 2;
  }
  bool ran = run(&listener, argv[1], argv[2], argc == 5 ? argv[4] : NULL);
  rt_spreadbot_free(listener.spreadbot);
  rt_loop_free(listener.loop);
  return ran && !listener.failed ? 0 : 1;
}
