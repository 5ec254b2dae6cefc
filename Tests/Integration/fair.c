/*
 * Two connections on one loop: one is flooded without end, the other makes COUNT round trips with
 * an echo server meanwhile.
 *
 *   fair FLOOD-URL ECHO-URL COUNT
 *
 * Exit code 0 if all round trips were made and the flood continued between them.
 */
#include <realtime.h>
#include <stdio.h>
#include <stdlib.h>

struct test {
  rt_loop *loop;
  rt_websocket *flood, *echo;
  unsigned long long flooded, flooded_at_start;
  int round_trips, wanted;
  bool flooding, open, failed;
};

/* Round trips count only once the flood has begun. */
static void begin_when_ready(struct test *test) {
  if (test->flooding || !test->open || test->flooded == 0) return;
  test->flooding = true;
  test->flooded_at_start = test->flooded;
  rt_websocket_send_text(test->echo, "round", 5);
}

static void on_flood(
    const uint8_t *base, const rt_message *messages, size_t count, void *user) {
  (void)base, (void)messages;
  struct test *test = user;
  test->flooded += count;
  begin_when_ready(test);
}

static void on_open(const rt_opened *opened, void *user) {
  (void)opened;
  struct test *test = user;
  test->open = true;
  begin_when_ready(test);
}

static void on_echo(rt_message_kind kind, const uint8_t *data, size_t length, void *user) {
  (void)kind;
  struct test *test = user;
  test->round_trips += 1;
  if (test->round_trips < test->wanted)
    rt_websocket_send_text(test->echo, (const char *)data, length);
  else
    rt_loop_stop(test->loop);
}

static void on_error(const rt_failure *failure, void *user) {
  struct test *test = user;
  fprintf(stderr, "%s: %s\n", rt_status_name(failure->status), failure->message);
  test->failed = true;
  rt_loop_stop(test->loop);
}

int main(int argc, char **argv) {
  struct test test = {.wanted = argc == 4 ? atoi(argv[3]) : 0};
  if (test.wanted <= 0 || rt_loop_new(&test.loop) != RT_OK ||
      rt_websocket_new(test.loop, argv[1], &test.flood) != RT_OK ||
      rt_websocket_new(test.loop, argv[2], &test.echo) != RT_OK)
    return 2;
  rt_websocket_on_messages(test.flood, on_flood, &test, NULL);
  rt_websocket_on_error(test.flood, on_error, &test, NULL);
  rt_websocket_on_open(test.echo, on_open, &test, NULL);
  rt_websocket_on_message(test.echo, on_echo, &test, NULL);
  rt_websocket_on_error(test.echo, on_error, &test, NULL);
  if (rt_websocket_start(test.flood) != RT_OK || rt_websocket_start(test.echo) != RT_OK ||
      rt_loop_run(test.loop) != RT_OK)
    return 2;
  unsigned long long during = test.flooded - test.flooded_at_start;
  printf("%d round trips beside %llu messages\n", test.round_trips, during);
  rt_websocket_free(test.flood);
  rt_websocket_free(test.echo);
  rt_loop_free(test.loop);
  return !test.failed && test.round_trips == test.wanted && during > 0 ? 0 : 1;
}
