/*
 * Prints the messages of a server that answers requests when there is something new (long polling),
 * each with its id, until COUNT have arrived, or forever. With the last id, a second run continues
 * where the first one stopped.
 *
 *   poll https://example.org/messages [COUNT [ID]]
 */
#include <inttypes.h>
#include <realtime.h>
#include <stdio.h>
#include <stdlib.h>

struct poller {
  rt_loop *loop;
  rt_longpoll *poll;
  long left;
  bool failed;
};

static void on_open(const rt_opened *opened, void *user) {
  (void)opened, (void)user;
  fprintf(stderr, "poll: the server answers\n");
}

static void on_message(const rt_event *event, void *user) {
  struct poller *poller = user;
  /* Of a batch, only the last message has its own id. */
  printf("%.*s ", event->had_id ? (int)event->id_length : 1, event->had_id ? event->id : "-");
  fwrite(event->data, 1, event->data_length, stdout);
  printf("\n");
  fflush(stdout);
  if (poller->left > 0 && --poller->left == 0) {
    rt_longpoll_close(poller->poll);
    rt_loop_stop(poller->loop);
  }
}

static void on_error(const rt_failure *failure, void *user) {
  struct poller *poller = user;
  fprintf(stderr, "poll: %s\n", failure->message);
  if (failure->fatal) {
    poller->failed = true;
    rt_loop_stop(poller->loop);
  } else if (failure->retry_in_ms >= 0) {
    fprintf(stderr, "poll: attempt %" PRIu32 " in %" PRId64 " ms\n", failure->attempt,
            failure->retry_in_ms);
  }
}

static bool check(rt_status status, const char *what) {
  if (status == RT_OK) return true;
  fprintf(stderr, "poll: %s: %s\n", what, rt_last_error());
  return false;
}

static bool run(struct poller *poller, const char *url, const char *id) {
  if (!check(rt_loop_new(&poller->loop), "loop")) return false;
  if (!check(rt_longpoll_new(poller->loop, url, &poller->poll), url)) return false;
  rt_longpoll *poll = poller->poll;
  if (id && !check(rt_longpoll_set_last_event_id(poll, id), id)) return false;
  rt_longpoll_on_open(poll, on_open, poller, NULL);
  rt_longpoll_on_message(poll, on_message, poller, NULL);
  rt_longpoll_on_error(poll, on_error, poller, NULL);
  return check(rt_longpoll_start(poll), "start") && check(rt_loop_run(poller->loop), "run");
}

int main(int argc, char **argv) {
  struct poller poller = {.left = argc > 2 ? strtol(argv[2], NULL, 10) : 0};
  if (argc < 2 || argc > 4 || poller.left < 0) {
    fprintf(stderr, "usage: poll URL [COUNT [ID]]\n");
    return 2;
  }
  bool ran = run(&poller, argv[1], argc == 4 ? argv[3] : NULL);
  rt_longpoll_free(poller.poll);
  rt_loop_free(poller.loop);
  return ran && !poller.failed ? 0 : 1;
}
