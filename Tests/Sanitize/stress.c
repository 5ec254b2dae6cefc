/*
 * Many threads, few connections: makes all calls that the contract allows at the same time, for a
 * sanitizer to watch.
 *
 *   stress SECONDS URL...
 *
 * Connections are in slots. Any number of threads use a slot at a time; a thread that frees or
 * replaces its connection has it exclusively, as the contract requires. Half of the slots are on a
 * loop with its own thread, half on one that main dispatches. The exit code is 1 if user data was
 * not destroyed exactly once.
 */
#include <pthread.h>
#include <realtime.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { THREADS = 4, SLOTS = 8, CALLBACKS = 5 };

/* User data of one connection: each callback touches it, the last destroy frees it. */
struct user {
  atomic_int left;
  rt_websocket *websocket;
  rt_loop *loop;
  /* Only the loop's thread touches these: the sanitizer would report any other. */
  unsigned long opened, messages, bytes;
};

struct slot {
  pthread_rwlock_t lock;
  rt_loop *loop;
  rt_websocket *websocket;
  const char *url;
};

static struct slot slots[SLOTS];
static rt_loop *loops[2];
static char **urls;
static int url_count;
static atomic_bool ends;
static atomic_ulong made, destroyed, jobs_given, jobs_destroyed, messages, calls;

static void on_destroy(void *pointer) {
  struct user *user = pointer;
  if (atomic_fetch_sub(&user->left, 1) != 1) return;
  atomic_fetch_add(&messages, user->messages);
  atomic_fetch_add(&destroyed, 1);
  free(user);
}

static void on_open(const rt_opened *opened, void *pointer) {
  struct user *user = pointer;
  user->opened += 1 + strlen(opened->subprotocol) + strlen(opened->extensions);
  rt_websocket_send_text(user->websocket, "from the open callback", 22);
}

static void on_message(rt_message_kind kind, const uint8_t *data, size_t length, void *pointer) {
  (void)kind;
  struct user *user = pointer;
  user->messages += 1;
  for (size_t i = 0; i < length; i++) user->bytes += data[i];
  if (user->messages % 16 == 0) rt_websocket_send_binary(user->websocket, data, length / 2);
  if (user->messages % 64 == 0) rt_websocket_close(user->websocket, 1000, "enough");
}

static void on_error(const rt_failure *failure, void *pointer) {
  struct user *user = pointer;
  user->bytes += strlen(failure->message) + (unsigned)-failure->status;
  user->bytes += failure->close_code + strlen(failure->close_reason);
}

static bool on_reconnect(uint32_t attempt, void *pointer) {
  struct user *user = pointer;
  rt_websocket_set_header(user->websocket, "X-Attempt", "again");
  return attempt < 20;
}

static void on_close(const rt_closed *closed, void *pointer) {
  ((struct user *)pointer)->bytes += closed->code + strlen(closed->reason) + closed->reason_length;
}

static rt_websocket *connect_to(rt_loop *loop, const char *url, unsigned *seed) {
  rt_websocket *websocket = NULL;
  rt_backoff *backoff = NULL;
  struct user *user = calloc(1, sizeof *user);
  if (!user || rt_websocket_new(loop, url, &websocket) != RT_OK) {
    free(user);
    return NULL;
  }
  atomic_init(&user->left, CALLBACKS);
  user->websocket = websocket;
  atomic_fetch_add(&made, 1);
  rt_websocket_on_open(websocket, on_open, user, on_destroy);
  rt_websocket_on_message(websocket, on_message, user, on_destroy);
  rt_websocket_on_error(websocket, on_error, user, on_destroy);
  rt_websocket_on_reconnect(websocket, on_reconnect, user, on_destroy);
  rt_websocket_on_closed(websocket, on_close, user, on_destroy);
  rt_websocket_set_offline_queue(websocket, 16);
  rt_websocket_set_ping_interval_ms(websocket, 5);
  rt_websocket_set_close_timeout_ms(websocket, 200);
  rt_websocket_set_send_limit_bytes(websocket, 1 << 18);
  rt_websocket_set_send_high_water_bytes(websocket, 1 << 12);
  if (rand_r(seed) % 2 && rt_backoff_new(&backoff) == RT_OK) {
    rt_backoff_set_initial_delay_ms(backoff, 1);
    rt_backoff_set_max_delay_ms(backoff, 5);
    rt_websocket_set_reconnect(websocket, backoff);
    rt_backoff_free(backoff);
  }
  rt_websocket_start(websocket);
  return websocket;
}

/* One call that any thread may make while others use the connection. */
static void use(rt_websocket *websocket, unsigned *seed) {
  static const char text[5000] = {[0 ... 4998] = 'x'};
  size_t length = (size_t)rand_r(seed) % sizeof text;
  rt_websocket_statistics statistics;
  switch (rand_r(seed) % 16) {
    case 0: rt_websocket_pause(websocket); break;
    case 1:
    case 2: rt_websocket_resume(websocket); break;
    case 3: rt_websocket_ping(websocket, NULL, 0); break;
    case 4: rt_websocket_get_state(websocket); break;
    case 5: rt_websocket_buffered_bytes(websocket); break;
    case 6: rt_websocket_round_trip_us(websocket); break;
    case 7: rt_websocket_get_statistics(websocket, &statistics, sizeof statistics); break;
    case 8: rt_websocket_begin_message(websocket, RT_MESSAGE_TEXT, RT_COMPRESSION_AUTOMATIC); break;
    case 9: rt_websocket_continue_message(websocket, (const uint8_t *)text, length); break;
    case 10:
    case 11: rt_websocket_end_message(websocket); break;
    case 12:
      if (rand_r(seed) % 1024 == 0) rt_websocket_close(websocket, 1000, NULL);
      break;
    case 13: rt_websocket_send_binary(websocket, (const uint8_t *)text, length); break;
    default: rt_websocket_send_text(websocket, text, length); break;
  }
  atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
}

static void job(void *pointer) { ((struct user *)pointer)->bytes += 1; }

static void job_destroyed(void *pointer) {
  free(pointer);
  atomic_fetch_add(&jobs_destroyed, 1);
}

/* Posts jobs and timers, and cancels some. */
static void give_work(rt_loop *loop, unsigned *seed) {
  uint64_t id = 0;
  rt_loop_statistics statistics;
  atomic_fetch_add(&jobs_given, 2);
  rt_loop_post(loop, job, calloc(1, sizeof(struct user)), job_destroyed);
  void *user = calloc(1, sizeof(struct user));
  rt_status status = rt_loop_add_timer(
      loop, rand_r(seed) % 10, rand_r(seed) % 2, job, user, job_destroyed, &id);
  if (status == RT_OK && rand_r(seed) % 8) rt_loop_cancel_timer(loop, id);
  rt_loop_get_statistics(loop, &statistics, sizeof statistics);
}

static void on_log(rt_log_level level, const char *line, void *pointer) {
  (void)level, (void)pointer;
  atomic_fetch_add_explicit(&calls, line[0] != '\0', memory_order_relaxed);
}

/* A loop that lives briefly, freed with its connections in any order. */
static void live_shortly(unsigned *seed) {
  rt_loop *loop = NULL;
  if (rt_loop_new(&loop) != RT_OK) return;
  rt_websocket *websocket = connect_to(loop, urls[rand_r(seed) % url_count], seed);
  if (rand_r(seed) % 4) rt_loop_start(loop);
  give_work(loop, seed);
  for (int i = rand_r(seed) % 50; websocket && i > 0; i--) use(websocket, seed);
  if (rand_r(seed) % 2) rt_loop_stop_and_wait(loop);
  if (rand_r(seed) % 2) {
    rt_loop_free(loop);
    if (websocket) use(websocket, seed);
    rt_websocket_free(websocket);
  } else {
    rt_websocket_free(websocket);
    rt_loop_free(loop);
  }
}

static void *work(void *pointer) {
  unsigned seed = (unsigned)(size_t)pointer;
  while (!atomic_load(&ends)) {
    struct slot *slot = &slots[rand_r(&seed) % SLOTS];
    int what = rand_r(&seed) % 4096;
    /* Rare enough that connections open and carry messages in between. */
    if (what == 0) {
      live_shortly(&seed);
    } else if (what == 1) {
      rt_set_log(rand_r(&seed) % 5, rand_r(&seed) % 2 ? on_log : NULL, NULL, NULL);
    } else if (what == 2) {
      pthread_rwlock_wrlock(&slot->lock);
      rt_websocket_free(slot->websocket);
      slot->websocket = connect_to(slot->loop, urls[rand_r(&seed) % url_count], &seed);
      pthread_rwlock_unlock(&slot->lock);
    } else if (what < 40) {
      give_work(slot->loop, &seed);
    } else {
      pthread_rwlock_rdlock(&slot->lock);
      for (int i = 0; slot->websocket && i < 8; i++) use(slot->websocket, &seed);
      pthread_rwlock_unlock(&slot->lock);
    }
  }
  return NULL;
}

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
  pthread_t threads[THREADS];
  if (argc < 3) return 2;
  urls = argv + 2;
  url_count = argc - 2;
  for (int i = 0; i < 2; i++)
    if (rt_loop_new(&loops[i]) != RT_OK) return 2;
  if (rt_loop_start(loops[0]) != RT_OK) return 2;
  for (int i = 0; i < SLOTS; i++) {
    slots[i].loop = loops[i % 2];
    pthread_rwlock_init(&slots[i].lock, NULL);
  }
  for (size_t i = 0; i < THREADS; i++)
    if (pthread_create(&threads[i], NULL, work, (void *)(i + 1)) != 0) return 2;
  /* Between two turns the loop is free for calls from other threads. */
  for (double end = now_s() + atof(argv[1]); now_s() < end;)
    if (rt_loop_dispatch(loops[1], 2) != RT_OK) return 2;
  atomic_store(&ends, true);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < SLOTS; i++) rt_websocket_free(slots[i].websocket);
  if (rt_loop_stop_and_wait(loops[0]) != RT_OK) return 2;
  for (int i = 0; i < 2; i++) rt_loop_free(loops[i]);
  rt_set_log(RT_LOG_OFF, NULL, NULL, NULL);
  printf("%lu calls, %lu messages, %lu connections made, %lu destroyed, %lu jobs, %lu destroyed\n",
         atomic_load(&calls), atomic_load(&messages), atomic_load(&made), atomic_load(&destroyed),
         atomic_load(&jobs_given), atomic_load(&jobs_destroyed));
  bool whole = atomic_load(&made) == atomic_load(&destroyed) &&
               atomic_load(&jobs_given) == atomic_load(&jobs_destroyed);
  return whole && atomic_load(&messages) > 0 ? 0 : 1;
}
