/*
 * Ann and Ben share a list of todos on a Meteor server. Each sees their own change at once, and the
 * other's when the server has made it. Ben even makes one while his connection is lost.
 *
 *   todos [URL]
 */
#include <realtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct person {
  const char *name;
  rt_ddp *ddp;
  char list[400]; /* What the person sees. */
  char id[50];    /* Of the last todo in the list. */
} person;

static rt_loop *loop;

#define FIELDS "{\"sort\":{\"text\":1},\"fields\":{\"text\":1,\"done\":1,\"_id\":0}}"
#define WAIT_UNTIL(condition) while (!(condition)) check(rt_loop_dispatch(loop, -1))

static void check(rt_status status) {
  if (status) fprintf(stderr, "todos: %s: %s\n", rt_status_name(status), rt_last_error());
  if (status) exit(1);
}

static void check_error(const rt_ddp_error *error) {
  if (error) fprintf(stderr, "todos: %s [%s]\n", error->reason, error->code);
  if (error) exit(1);
}

/* A stub: does here what the server's method will do. `params` is an array with the todo. */
static void add_todo(rt_ddp_stub *stub, const char *params, size_t length, void *user) {
  char todo[200];
  snprintf(todo, sizeof todo, "%.*s", (int)length - 2, params + 1);
  rt_ddp_stub_insert(stub, "todos", todo, NULL, NULL);
}

static void on_status(const rt_ddp_status_change *change, void *user) {
  static const char *const names[] = {"offline", "connecting", "connected", "waiting", "failed"};
  person *one = user;
  const char *colon = *change->message ? ": " : "";
  printf("%s is %s%s%s\n", one->name, names[change->new_status], colon, change->message);
}

static void on_todo(const rt_ddp_document *todo, void *user) {
  person *one = user;
  size_t used = strlen(one->list);
  snprintf(one->list + used, sizeof one->list - used, " %s", todo->document);
  snprintf(one->id, sizeof one->id, "%s", todo->id);
}

/* Prints the list whenever it has changed. */
static void on_change(const rt_ddp_change *change, void *user) {
  person *one = user;
  if (!change->last) return;
  one->list[0] = '\0';
  check(rt_ddp_find(one->ddp, "todos", NULL, FIELDS, on_todo, one));
  printf("%s sees%s\n", one->name, *one->list ? one->list : " an empty list");
}

static void on_subscription(const rt_ddp_subscription_event *event, void *user) {
  check_error(event->error);
}

static void on_completed(const rt_ddp_outcome *outcome, void *is_done) {
  check_error(outcome->error);
  *(bool *)is_done = true;
}

static void begin(person *one, const char *url, const char *list) {
  char params[50];
  uint64_t id;
  snprintf(params, sizeof params, "[\"%s\"]", list);
  check(rt_ddp_new(loop, url, &one->ddp));
  check(rt_ddp_on_status(one->ddp, on_status, one, NULL));
  check(rt_ddp_set_stub(one->ddp, "addTodo", add_todo, NULL, NULL));
  check(rt_ddp_declare(one->ddp, "todos", RT_DDP_IDS_STRINGS));
  check(rt_ddp_observe(one->ddp, "todos", NULL, NULL, on_change, one, NULL, &id));
  check(rt_ddp_start(one->ddp));
  check(rt_ddp_subscribe(one->ddp, "todos", params, -1, on_subscription, NULL, NULL, &id, NULL));
  WAIT_UNTIL(rt_ddp_is_ready(one->ddp, id));
}

int main(int argc, char **argv) {
  const char *url = argc > 1 ? argv[1] : "http://127.0.0.1:3000";
  person ann = {.name = "Ann"}, ben = {.name = "Ben"};
  char list[30], params[200];
  bool is_added = false, is_done = false, is_removed = false;
  setvbuf(stdout, NULL, _IOLBF, 0);
  snprintf(list, sizeof list, "c-%ld", (long)time(NULL)); /* Each run has a list of its own. */
  check(rt_loop_new(&loop));
  begin(&ann, url, list);
  begin(&ben, url, list);

  puts("-- Ann adds a todo. She sees it before the server has answered.");
  snprintf(params, sizeof params, "[{\"list\":\"%s\",\"text\":\"Buy milk\",\"done\":false}]", list);
  check(rt_ddp_call(ann.ddp, "addTodo", params, NULL, on_completed, &is_added, NULL, NULL));
  WAIT_UNTIL(is_added);
  puts("-- The server has added it, so Ben sees it, too.");
  WAIT_UNTIL(*ben.list);

  puts("-- Ben's connection is lost. He does the todo, and sees that at once.");
  check(rt_ddp_restart(ben.ddp));
  check(rt_ddp_update(ben.ddp, "todos", ben.id, "{\"$set\":{\"done\":true}}", NULL, on_completed,
                      &is_done, NULL, NULL));
  WAIT_UNTIL(is_done);
  puts("-- He is connected again, and his change has reached the server.");
  WAIT_UNTIL(strstr(ann.list, "\"done\":true"));

  puts("-- Ann removes the todo.");
  check(rt_ddp_remove(ann.ddp, "todos", ann.id, NULL, on_completed, &is_removed, NULL, NULL));
  WAIT_UNTIL(is_removed && !*ben.list);
  rt_ddp_free(ann.ddp), rt_ddp_free(ben.ddp);
  rt_loop_free(loop);
  return 0;
}
