/*
 * Prints a list of todos on a Meteor server, and again after each change. Reconnects by itself.
 *
 *   read_todos URL LIST
 */
#include <realtime.h>
#include <stdio.h>
#include <stdlib.h>

static void check(rt_status status) {
  if (!status) return;
  fprintf(stderr, "read_todos: %s\n", rt_last_error());
  exit(1);
}

static void print_todo(const rt_ddp_document *todo, void *user) { puts(todo->document); }

int main(int argc, char **argv) {
  static const char by_text[] = "{\"sort\":{\"text\":1}}";
  rt_ddp *ddp = NULL;
  rt_ddp_feed *feed = NULL;
  rt_ddp_batch *batch;
  char params[100];
  rt_call *ready;
  uint64_t number;
  if (argc != 3) fprintf(stderr, "usage: read_todos URL LIST\n");
  if (argc != 3) return 2;
  snprintf(params, sizeof params, "[\"%s\"]", argv[2]);
  check(rt_ddp_new(NULL, argv[1], &ddp));
  check(rt_ddp_start(ddp));
  check(rt_ddp_subscribe(ddp, "todos", params, -1, NULL, NULL, NULL, &number, &ready));
  check(rt_call_wait(ready, -1));
  rt_call_free(ready);
  check(rt_ddp_feed_new(ddp, "todos", NULL, by_text, 0, &feed));
  for (;;) {
    check(rt_ddp_feed_receive(feed, -1, &batch));
    rt_ddp_batch_free(batch);
    puts("The list:");
    check(rt_ddp_find(ddp, "todos", NULL, by_text, print_todo, NULL));
    fflush(stdout);
  }
}
