/*
 * Prints the events of a stream (Server-Sent Events), each with its id and type, until COUNT have
 * arrived, or forever. With a file for ids, a second run continues where the first one stopped.
 *
 *   events https://example.org/events [COUNT [ID-FILE]]
 */
#include <inttypes.h>
#include <realtime.h>
#include <stdio.h>
#include <stdlib.h>

struct reader {
  rt_loop *loop;
  rt_eventsource *source;
  long left;
  bool failed;
};

static void on_open(const rt_opened *opened, void *user) {
  (void)opened, (void)user;
  fprintf(stderr, "events: open\n");
}

static void on_event(const rt_event *event, void *user) {
  struct reader *reader = user;
  printf("%.*s %.*s %.*s\n", (int)event->id_length, event->id, (int)event->event_length,
         event->event, (int)event->data_length, event->data);
  fflush(stdout);
  if (reader->left > 0 && --reader->left == 0) {
    /* No more callbacks follow, and the id of this event is stored. */
    rt_eventsource_close(reader->source);
    rt_loop_stop(reader->loop);
  }
}

static void on_error(const rt_failure *failure, void *user) {
  struct reader *reader = user;
  if (failure->fatal) {
    fprintf(stderr, "events: %s\n", failure->message);
    reader->failed = true;
    rt_loop_stop(reader->loop);
  } else if (failure->retry_in_ms >= 0) {
    fprintf(stderr, "events: %s; attempt %" PRIu32 " in %" PRId64 " ms\n", failure->message,
            failure->attempt,
            failure->retry_in_ms);
  } else {
    fprintf(stderr, "events: %s\n", failure->message);
  }
}

static bool check(rt_status status, const char *what) {
  if (status == RT_OK) return true;
  fprintf(stderr, "events: %s: %s\n", what, rt_last_error());
  return false;
}

static bool run(struct reader *reader, const char *url, const char *id_file) {
  if (!check(rt_loop_new(&reader->loop), "loop")) return false;
  if (!check(rt_eventsource_new(reader->loop, url, &reader->source), url)) return false;
  rt_eventsource *source = reader->source;
  if (id_file && !check(rt_eventsource_set_id_file(source, id_file, NULL), id_file)) return false;
  /* Keep trying while a server restarts. */
  rt_eventsource_set_resilient(source);
  rt_eventsource_on_open(source, on_open, reader, NULL);
  rt_eventsource_on_any(source, on_event, reader, NULL);
  rt_eventsource_on_error(source, on_error, reader, NULL);
  return check(rt_eventsource_start(source), "start") && check(rt_loop_run(reader->loop), "run");
}

int main(int argc, char **argv) {
  struct reader reader = {.left = argc > 2 ? strtol(argv[2], NULL, 10) : 0};
  if (argc < 2 || argc > 4 || reader.left < 0) {
    fprintf(stderr, "usage: events URL [COUNT [ID-FILE]]\n");
    return 2;
  }
  bool ran = run(&reader, argv[1], argc == 4 ? argv[3] : NULL);
  rt_eventsource_free(reader.source);
  rt_loop_free(reader.loop);
  return ran && !reader.failed ? 0 : 1;
}
