/*
 * Prints the events of a stream (Server-Sent Events), each with its id and type, until COUNT have
 * come or for ever. With a file for ids a second run goes on where the first one stopped.
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

static void on_open(void *user) {
  (void)user;
  fprintf(stderr, "events: open\n");
}

static void on_event(
    const char *id, size_t id_length, const char *event, size_t event_length, const char *data,
    size_t data_length, bool had_id, void *user) {
  struct reader *reader = user;
  (void)had_id;
  printf("%.*s %.*s %.*s\n", (int)id_length, id, (int)event_length, event, (int)data_length, data);
  fflush(stdout);
  if (reader->left > 0 && --reader->left == 0) {
    /* Nothing more is told, and the id of this event is stored. */
    rt_eventsource_close(reader->source);
    rt_loop_stop(reader->loop);
  }
}

static void on_error(
    rt_status status, const char *message, int32_t http_status, bool fatal, int64_t retry_in_ms,
    uint32_t attempt, void *user) {
  struct reader *reader = user;
  (void)status, (void)http_status;
  if (fatal) {
    fprintf(stderr, "events: %s\n", message);
    reader->failed = true;
    rt_loop_stop(reader->loop);
  } else if (retry_in_ms >= 0) {
    fprintf(stderr, "events: %s; attempt %" PRIu32 " in %" PRId64 " ms\n", message, attempt,
            retry_in_ms);
  } else {
    fprintf(stderr, "events: %s\n", message);
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
  /* A server that restarts is waited for. */
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
