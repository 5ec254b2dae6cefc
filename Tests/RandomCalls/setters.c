/*
 * Calls every setter of every object:
 *
 *   setters threads MILLISECONDS WEBSOCKET HTTP REST PUSHER   from three threads at a time, on a
 *                                                             new handle, then on a started one
 *   setters destroy WEBSOCKET HTTP REST PUSHER                again from the destroy function of
 *                                                             the user data that it replaces
 *
 * The last four are addresses of servers. It prints nothing and exits with 0 if all user data was
 * destroyed exactly once. The thread sanitizer finds data races.
 */
#include "calls.h"
#include "calls.inc"
#include "objects.h"

enum { THREADS = 3, GENERATIONS = 3 };

static bool sets_again;

static struct caller *this_caller(void) {
  static _Thread_local struct caller caller;
  return &caller;
}

static void acts(struct caller *c) { (void)c; }

static void destroyed(struct caller *c, struct user *user) {
  if (!sets_again || user->generation >= GENERATIONS) return;
  int outer = c->generation;
  c->generation = user->generation + 1;
  user->made_by(c);
  c->generation = outer;
}

static void must(rt_status status, const char *what) {
  CONTROL(status == RT_OK, "%s: %s", what, rt_last_error());
}

#define MUST(call) must((call), #call)

/* Creates one handle of each kind on one loop. */
static void make_all(struct caller *c, void **handles) {
  bool outer = c->behaves;
  c->behaves = true;
  MUST(rt_loop_new((rt_loop **)&handles[KIND_rt_loop]));
  for (int kind = 0; kind < KINDS; kind++)
    if (kind != KIND_rt_loop) MUST(make_one(c, kind, handles));
  c->behaves = outer;
}

static void turn(rt_loop *loop, int64_t milliseconds) {
  int64_t end_ms = now_ms() + milliseconds;
  do MUST(rt_loop_dispatch(loop, 1));
  while (now_ms() < end_ms);
}

/* Frees all handles, the loop last, and checks that all user data was destroyed. */
static void free_all(void **handles) {
  rt_loop *loop = handles[KIND_rt_loop];
  for (int kind = KINDS - 1; kind > KIND_rt_loop; kind--) free_handle(kind, handles[kind]);
  turn(loop, 5);
  rt_loop_free(loop);
  MUST(rt_set_log(RT_LOG_OFF, NULL, NULL, NULL));
  MUST(rt_set_thread_hook(NULL, NULL, NULL));
  unsigned long made = atomic_load(&users_made), gone = atomic_load(&users_destroyed);
  if (made != gone) name_survivors();
  CONTROL(made == gone, "%lu of %lu user data were destroyed", gone, made);
}

/* MARK: From three threads */

struct setter {
  pthread_t thread;
  int kind, number;
  void **handles;
  atomic_bool *ends;
};

static void *sets(void *pointer) {
  struct setter *setter = pointer;
  struct caller *c = this_caller();
  c->random = (uint64_t)setter->number;
  c->fixed = setter->handles;
  size_t count = COUNT(FUNCTIONS);
  while (!atomic_load_explicit(setter->ends, memory_order_relaxed)) {
    const struct function *function = &FUNCTIONS[below(c, count)];
    if (function->kind == setter->kind && function->is_setter) function->call(c);
  }
  return NULL;
}

static void from_threads(int kind, int64_t milliseconds) {
  void *handles[KINDS];
  struct setter setters[THREADS];
  atomic_bool ends = false;
  struct caller *c = this_caller();
  make_all(c, handles);
  for (int i = 0; i < THREADS; i++) {
    setters[i] = (struct setter){.kind = kind, .number = i, .handles = handles, .ends = &ends};
    CONTROL(pthread_create(&setters[i].thread, NULL, sets, &setters[i]) == 0, "no thread");
  }
  turn(handles[KIND_rt_loop], milliseconds);
  c->fixed = handles;
  /* A client is started by its first request. */
  start(c, kind == KIND_rt_rest ? (int)KIND_rt_rest_request : kind);
  turn(handles[KIND_rt_loop], milliseconds);
  atomic_store(&ends, true);
  for (int i = 0; i < THREADS; i++) pthread_join(setters[i].thread, NULL);
  free_all(handles);
}

static bool has_setters(int kind) {
  for (size_t i = 0; i < COUNT(FUNCTIONS); i++)
    if (FUNCTIONS[i].kind == kind && FUNCTIONS[i].is_setter) return true;
  return false;
}

/* MARK: From destroy */

static void from_destroy(const struct function *function, bool gives_null) {
  void *handles[KINDS];
  struct caller *c = this_caller();
  make_all(c, handles);
  c->fixed = handles;
  c->behaves = true;
  expects_success = gives_null ? NULL : function->name;
  sets_again = true;
  function->call(c);
  c->gives_null = gives_null;
  for (int i = 0; i < 3; i++) function->call(c);
  c->gives_null = false;
  /* Objects that end by themselves do so now, while their handles still exist. */
  turn(handles[KIND_rt_loop], 50);
  expects_success = NULL;
  sets_again = false;
  free_all(handles);
}

int main(int argc, char **argv) {
  CONTROL(argc > 6, "the arguments are wrong");
  bool threads = strcmp(argv[1], "threads") == 0;
  CONTROL(argc == (threads ? 8 : 7), "the arguments are wrong");
  set_up_values(argv[argc - 5], argv[argc - 4], argv[argc - 3], argv[argc - 2], argv[argc - 1]);
  for (int kind = 0; threads && kind < KINDS; kind++)
    if (is_shared(kind) && has_setters(kind)) from_threads(kind, atoi(argv[2]));
  for (size_t i = 0; !threads && i < COUNT(FUNCTIONS); i++) {
    if (!FUNCTIONS[i].takes_user) continue;
    from_destroy(&FUNCTIONS[i], false);
    from_destroy(&FUNCTIONS[i], true);
  }
  return 0;
}
