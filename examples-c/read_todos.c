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

static void on_change(const rt_ddp_change *change, void *ddp) {
  if (!change->last) return;
  puts("The list:");
  check(rt_ddp_find(ddp, "todos", NULL, "{\"sort\":{\"text\":1}}", print_todo, NULL));
  fflush(stdout);
}

static void on_subscription(const rt_ddp_subscription_event *event, void *user) {
  if (event->event == RT_DDP_SUBSCRIPTION_READY) return;
  fprintf(stderr, "read_todos: %s\n", event->error ? event->error->reason : "it has ended");
  exit(1);
}

int main(int argc, char **argv) {
  rt_loop *loop = NULL;
  rt_ddp *ddp = NULL;
  char params[100];
  uint64_t number;
  if (argc != 3) fprintf(stderr, "usage: read_todos URL LIST\n");
  if (argc != 3) return 2;
  snprintf(params, sizeof params, "[\"%s\"]", argv[2]);
  check(rt_loop_new(&loop));
  check(rt_ddp_new(loop, argv[1], &ddp));
  check(rt_ddp_observe(ddp, "todos", NULL, NULL, on_change, ddp, NULL, &number));
  check(rt_ddp_subscribe(ddp, "todos", params, -1, on_subscription, NULL, NULL, &number));
  check(rt_ddp_start(ddp));
  check(rt_loop_run(loop));
  rt_ddp_free(ddp);
  rt_loop_free(loop);
  return 0;
}
