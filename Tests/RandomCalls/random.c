/*
 * Calls random functions of the whole interface with random arguments, valid and invalid ones, on
 * handles in any state, from several threads, inside callbacks and destroy functions.
 *
 *   random SEED SECONDS WEBSOCKET HTTP REST PUSHER [counts]
 *
 * It does not do what the contract forbids: a handle is not used after its free, nor by two threads
 * if it belongs to one. The seed draws the number of threads; with one thread a seed is the same
 * run each time, except for timing. It prints a line and aborts if a call does not return, or if
 * user data is used after its end, is destroyed twice, or not at all; a crash is a failure, too.
 */
#include "calls.h"
#include "calls.inc"
#include "objects.h"

#include <unistd.h>

enum { MOST_THREADS = 4, MOST_CALLERS = 256, PATIENCE_MS = 20000, MOST_DEPTH = 4 };

static uint64_t seed;
/* From now on callbacks create nothing. */
static atomic_bool ends;
static struct caller callers[MOST_CALLERS];
static atomic_int caller_count;

/* A thread's state is released with the thread: a loop's own threads come and go. */
static pthread_key_t caller_key;
static pthread_once_t caller_once = PTHREAD_ONCE_INIT;

static void leave(void *pointer) {
  struct caller *mine = pointer;
  atomic_store(&mine->is_used, false);
}

static void make_caller_key(void) {
  CONTROL(pthread_key_create(&caller_key, leave) == 0, "no key for what a thread has");
}

/* Numbered in the order in which threads arrive, so that each draws its own numbers. */
static struct caller *this_caller(void) {
  pthread_once(&caller_once, make_caller_key);
  struct caller *mine = pthread_getspecific(caller_key);
  for (int i = 0; !mine && i < MOST_CALLERS; i++) {
    bool is_used = false;
    if (!atomic_compare_exchange_strong(&callers[i].is_used, &is_used, true)) continue;
    mine = &callers[i];
    mine->random = seed * 0x100000001B3u + (uint64_t)atomic_fetch_add(&caller_count, 1);
    pthread_setspecific(caller_key, mine);
  }
  CONTROL(mine, "more than %d threads at a time", MOST_CALLERS);
  return mine;
}

/* MARK: Loops that run until somebody stops them */

static pthread_mutex_t running_lock = PTHREAD_MUTEX_INITIALIZER;
static rt_loop *running[MOST_CALLERS];

static void set_running(struct caller *c, rt_loop *loop) {
  pthread_mutex_lock(&running_lock);
  running[c - callers] = loop;
  pthread_mutex_unlock(&running_lock);
}

static void run_a_loop(struct caller *c) {
  rt_loop *loop = take(c, KIND_rt_loop);
  if (!loop) return;
  set_running(c, loop);
  begin_call(c, "rt_loop_run");
  rt_loop_run(loop);
  end_call(c);
  set_running(c, NULL);
  give_back(c, KIND_rt_loop, loop);
}

/* MARK: Choosing */

static bool is_named(const struct function *function, const char *name) {
  return strcmp(function->name, name) == 0;
}

static void call_one(struct caller *c) {
  const struct function *function;
  /* Half of the calls are setters; the others cause the events that these configure. */
  bool wants_setter = below(c, 3) == 0;
  do function = &FUNCTIONS[below(c, COUNT(FUNCTIONS))];
  while (function->is_setter != wants_setter);
  if (is_named(function, "rt_loop_run")) {
    if (c->depth == 0) run_a_loop(c);
    return;
  }
  /* Not from a callback: the other loop may be waiting for this one (see the header). */
  if (is_named(function, "rt_loop_stop_and_wait") && c->depth > 0) return;
  /* A free ends many things, so it is rare enough for something to start. */
  size_t length = strlen(function->name);
  bool is_free = length > 5 && strcmp(function->name + length - 5, "_free") == 0;
  if (is_free && below(c, 4)) return;
  /* Half of all calls have valid arguments, so that they have effects. */
  bool outer = c->is_careful;
  c->is_careful = below(c, 2);
  function->call(c);
  c->is_careful = outer;
}

/* Starts an object with all callbacks and a few options, which random calls seldom achieve. */
static void begin_something(struct caller *c) {
  static const int kinds[] = {KIND_rt_websocket, KIND_rt_eventsource, KIND_rt_longpoll,
                              KIND_rt_rest_request, KIND_rt_spreadbot, KIND_rt_ddp, KIND_rt_pusher};
  int kind = kinds[below(c, COUNT(kinds))];
  bool is_request = kind == KIND_rt_rest_request;
  void *handles[KINDS] = {NULL};
  void **outer = c->fixed;
  rt_loop *loop = take(c, KIND_rt_loop);
  rt_backoff *backoff = take(c, KIND_rt_backoff);
  handles[KIND_rt_loop] = loop;
  handles[KIND_rt_backoff] = backoff;
  c->is_careful = true;
  bool has_client = loop && (!is_request || make_one(c, KIND_rt_rest, handles) == RT_OK);
  if (has_client && make_one(c, kind, handles) == RT_OK) {
    c->fixed = handles;
    size_t first = below(c, COUNT(FUNCTIONS));
    for (size_t i = 0; i < COUNT(FUNCTIONS); i++) {
      const struct function *function = &FUNCTIONS[(first + i) % COUNT(FUNCTIONS)];
      bool is_ours = function->kind == kind || (is_request && function->kind == KIND_rt_rest);
      if (!is_ours || !function->is_setter) continue;
      if (below(c, 12) < (function->takes_user ? 9 : 1)) function->call(c);
    }
    start(c, kind);
    c->fixed = outer;
  }
  c->is_careful = false;
  if (is_request) keep(c, KIND_rt_rest, handles[KIND_rt_rest]);
  keep(c, kind, handles[kind]);
  give_back(c, KIND_rt_backoff, backoff);
  give_back(c, KIND_rt_loop, loop);
}

/* What a callback does: mostly little. */
static void acts(struct caller *c) {
  if (c->depth > MOST_DEPTH || atomic_load_explicit(&ends, memory_order_relaxed)) return;
  if (below(c, 3)) return;
  for (size_t left = 1 + below(c, 3); left > 0; left--) call_one(c);
}

static void destroyed(struct caller *c, struct user *user) {
  (void)user;
  acts(c);
}

static void *calls(void *pointer) {
  struct caller *c = this_caller();
  (void)pointer;
  while (!atomic_load_explicit(&ends, memory_order_relaxed)) {
    if (below(c, 20) == 0) begin_something(c);
    else if (below(c, 3)) call_one(c);
    else call_rt_loop_dispatch(c);
  }
  return NULL;
}

/* MARK: The watchdog */

static void watch(int64_t now) {
  pthread_mutex_lock(&running_lock);
  for (int i = 0; i < MOST_CALLERS; i++)
    if (running[i]) rt_loop_stop(running[i]);
  pthread_mutex_unlock(&running_lock);
  for (int i = 0; i < MOST_CALLERS; i++) {
    struct caller *c = &callers[i];
    int level = atomic_load_explicit(&c->calls, memory_order_relaxed) - 1;
    if (level < 0 || level >= MOST_NESTED) continue;
    int64_t since = atomic_load_explicit(&c->since_ms[level], memory_order_relaxed);
    CONTROL(now - since < PATIENCE_MS, "seed %llu: %s does not return", (unsigned long long)seed,
            atomic_load_explicit(&c->names[level], memory_order_relaxed));
  }
}

static void *watches(void *pointer) {
  atomic_bool *over = pointer;
  while (!atomic_load(over)) {
    watch(now_ms());
    usleep(5000);
  }
  return NULL;
}

/* MARK: The end */

/* Frees every handle, and lets the loops finish the rest. */
static void free_handles(struct caller *c) {
  for (int kind = KINDS - 1; kind >= 0; kind--) {
    if (kind == KIND_rt_loop) continue;
    for (void *handle; (handle = grab(c, kind)) != NULL;) free_handle(kind, handle);
  }
  for (rt_loop *loop; (loop = grab(c, KIND_rt_loop)) != NULL;) {
    begin_call(c, "rt_loop_stop_and_wait at the end");
    rt_loop_stop_and_wait(loop);
    end_call(c);
    for (int i = 0; i < 3; i++) rt_loop_dispatch(loop, 0);
    rt_loop_free(loop);
  }
}

static void free_everything(struct caller *c) {
  free_handles(c);
  rt_set_log(RT_LOG_OFF, NULL, NULL, NULL);
  rt_set_thread_hook(NULL, NULL, NULL);
  int64_t end_ms = now_ms() + PATIENCE_MS;
  while (atomic_load(&users_made) != atomic_load(&users_destroyed)) {
    if (now_ms() >= end_ms) name_survivors();
    CONTROL(now_ms() < end_ms, "seed %llu: %lu of %lu user data were destroyed",
            (unsigned long long)seed, atomic_load(&users_destroyed), atomic_load(&users_made));
    usleep(1000);
    /* A callback that was running on another thread may have made more. */
    free_handles(c);
  }
}

int main(int argc, char **argv) {
  pthread_t threads[MOST_THREADS], watchdog;
  atomic_bool over = false;
  CONTROL(argc >= 8, "the arguments are wrong");
  seed = strtoull(argv[1], NULL, 10);
  set_up_values(argv[3], argv[4], argv[5], argv[6], argv[7]);
  struct caller *c = this_caller();
  size_t count = 1 + below(c, MOST_THREADS);
  /* The first loop exists from the start; everything else comes at random. */
  call_rt_loop_new(c);
  CONTROL(pthread_create(&watchdog, NULL, watches, &over) == 0, "no thread");
  for (size_t i = 0; i < count; i++)
    CONTROL(pthread_create(&threads[i], NULL, calls, NULL) == 0, "no thread");
  int64_t end_ms = now_ms() + atoll(argv[2]) * 1000;
  while (now_ms() < end_ms) usleep(10000);
  atomic_store(&ends, true);
  for (size_t i = 0; i < count; i++) pthread_join(threads[i], NULL);
  free_everything(c);
  atomic_store(&over, true);
  pthread_join(watchdog, NULL);
  unsigned long total = 0, told = 0;
  int types = 0;
  for (int i = 0; i < MOST_CALLERS; i++) total += callers[i].count;
  for (int i = 0; i < TYPES; i++) {
    told += callback_counts[i];
    types += callback_counts[i] > 0;
    if (argc > 7) printf("%8lu %s\n", atomic_load(&callback_counts[i]), TYPE_NAMES[i]);
  }
  printf("%lu calls by %zu threads, %lu callbacks of %d types, %lu user data\n", total, count, told,
         types, atomic_load(&users_made));
  return 0;
}
