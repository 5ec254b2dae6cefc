/* Freeing from another thread: the call does not wait, no callback begins after it returned, and
 * destroy runs once, after the last callback has returned.
 *
 * A callback counts as begun once the library has decided to call it; its first line may run a
 * moment later. A loop runs one callback at a time, so one callback may still be seen after the
 * free, but not two. */
#include <pthread.h>
#include <stdatomic.h>

#include "contract.h"

typedef struct shared {
  atomic_int freed, begun_after, running, destroyed, after_destroy, opened, messages;
} shared;

static void begin(shared *s) {
  if (atomic_load(&s->freed)) atomic_fetch_add(&s->begun_after, 1);
  if (atomic_load(&s->destroyed)) atomic_fetch_add(&s->after_destroy, 1);
  CHECK(atomic_fetch_add(&s->running, 1) == 0);
}

static void end(shared *s) { atomic_fetch_sub(&s->running, 1); }

static void on_open(const rt_opened *opened, void *user) {
  (void)opened;
  shared *s = user;
  begin(s);
  atomic_store(&s->opened, 1);
  end(s);
}

static void on_message(rt_message_kind kind, const uint8_t *data, size_t length, void *user) {
  shared *s = user;
  CHECK(kind == RT_MESSAGE_TEXT && data != NULL && length > 0);
  begin(s);
  atomic_fetch_add(&s->messages, 1);
  end(s);
}

static void on_destroy(void *user) {
  shared *s = user;
  CHECK(atomic_load(&s->running) == 0);
  atomic_fetch_add(&s->destroyed, 1);
}

static void wait_for(atomic_int *value, int wanted) {
  const struct timespec pause = {0, 1000000};
  int64_t end_ms = now_ms() + PATIENCE_MS;
  while (atomic_load(value) < wanted) {
    CHECK(now_ms() < end_ms);
    nanosleep(&pause, NULL);
  }
}

/* Frees while messages arrive, in each round after a different number of them. */
static void round_of(rt_loop *loop, const char *server, int messages) {
  static shared slots[64];
  shared *s = &slots[messages];
  rt_websocket *websocket = new_websocket(loop, server, "/push/2000");
  memset(s, 0, sizeof *s);
  CHECK_OK(rt_websocket_on_open(websocket, on_open, s, on_destroy));
  CHECK_OK(rt_websocket_on_message(websocket, on_message, s, on_destroy));
  CHECK_OK(rt_websocket_start(websocket));
  wait_for(&s->messages, messages);
  rt_websocket_free(websocket);
  atomic_store(&s->freed, 1);
  wait_for(&s->destroyed, 2);
  CHECK(atomic_load(&s->begun_after) <= 1);
}

static void *free_it(void *websocket) {
  rt_websocket_free(websocket);
  return NULL;
}

/* This thread drives the loop; another thread frees between two turns. */
static void between_turns(const char *server) {
  rt_loop *loop = new_loop();
  rt_websocket *websocket = new_websocket(loop, server, "/push/2000");
  static shared s;
  pthread_t thread;
  int before;
  CHECK_OK(rt_websocket_on_message(websocket, on_message, &s, on_destroy));
  CHECK_OK(rt_websocket_start(websocket));
  TURN_UNTIL(loop, atomic_load(&s.messages) > 0);
  CHECK(pthread_create(&thread, NULL, free_it, websocket) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
  before = atomic_load(&s.messages);
  settle(loop);
  CHECK(atomic_load(&s.messages) == before);
  CHECK(atomic_load(&s.destroyed) == 1);
  rt_loop_free(loop);
}

/* Frees the loop itself while its thread delivers. */
static void free_the_loop(const char *server) {
  rt_loop *loop = new_loop();
  rt_websocket *websocket = new_websocket(loop, server, "/push/2000");
  static shared s;
  CHECK_OK(rt_websocket_on_message(websocket, on_message, &s, on_destroy));
  CHECK_OK(rt_websocket_start(websocket));
  CHECK_OK(rt_loop_start(loop));
  wait_for(&s.messages, 1);
  rt_loop_free(loop);
  atomic_store(&s.freed, 1);
  rt_websocket_free(websocket);
  wait_for(&s.destroyed, 1);
  CHECK(atomic_load(&s.begun_after) <= 1);
}

typedef struct runner {
  rt_loop *loop;
  atomic_int running, late;
  int destroyed;
} runner;

static void say_running(void *user) { atomic_store(&((runner *)user)->running, 1); }
static void say_late(void *user) { atomic_store(&((runner *)user)->late, 1); }
static void destroy_runner(void *user) { ((runner *)user)->destroyed++; }

static void *run_loop(void *user) {
  runner *r = user;
  rt_status status = rt_loop_run(r->loop);
  CHECK(status == RT_OK || status == RT_ERROR_CLOSED);
  return NULL;
}

/* Freeing a loop ends the call that runs it; by then everything that the loop held is destroyed. */
static void free_a_running_loop(void) {
  runner r = {0};
  pthread_t thread;
  r.loop = new_loop();
  CHECK_OK(rt_loop_post(r.loop, say_running, &r, NULL));
  CHECK_OK(rt_loop_add_timer(r.loop, 600000, 0, say_late, &r, destroy_runner, NULL));
  CHECK(pthread_create(&thread, NULL, run_loop, &r) == 0);
  wait_for(&r.running, 1);
  rt_loop_free(r.loop);
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK(r.destroyed == 1 && atomic_load(&r.late) == 0);
}

int main(int argc, char **argv) {
  rt_loop *loop;
  int messages;
  CHECK(argc == 2);
  loop = new_loop();
  CHECK_OK(rt_loop_start(loop));
  for (messages = 0; messages < 64; messages++) round_of(loop, argv[1], messages);
  CHECK_OK(rt_loop_stop_and_wait(loop));
  rt_loop_free(loop);
  between_turns(argv[1]);
  free_the_loop(argv[1]);
  free_a_running_loop();
  return 0;
}
