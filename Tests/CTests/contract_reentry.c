/* A call that would wait for itself returns RT_ERROR_REENTRANT; a second driver gets RT_ERROR_BUSY.
 * */
#include <pthread.h>
#include <stdatomic.h>

#include "contract.h"

typedef struct turn {
  rt_loop *loop, *other;
  atomic_int inside, leave, done;
} turn;

static void reenter(void *user) {
  turn *t = user;
  int ran = 0;
  CHECK_STATUS(rt_loop_dispatch(t->loop, 0), RT_ERROR_REENTRANT);
  CHECK_STATUS(rt_loop_dispatch(t->loop, -1), RT_ERROR_REENTRANT);
  CHECK_STATUS(rt_loop_run(t->loop), RT_ERROR_REENTRANT);
  CHECK_STATUS(rt_loop_stop_and_wait(t->loop), RT_ERROR_REENTRANT);
  CHECK_STATUS(rt_loop_start(t->loop), RT_ERROR_BUSY);
  CHECK(rt_loop_fd(t->loop) >= 0);
  /* Another loop can be driven in here. */
  CHECK_OK(rt_loop_post(t->other, count_up, &ran, NULL));
  CHECK_OK(rt_loop_dispatch(t->other, 1000));
  CHECK(ran == 1);
  atomic_store(&t->done, 1);
}

static void reenter_and_stop(void *user) {
  turn *t = user;
  reenter(user);
  CHECK_OK(rt_loop_stop(t->loop));
}

static void stay(void *user) {
  turn *t = user;
  const struct timespec pause = {0, 1000000};
  atomic_store(&t->inside, 1);
  while (!atomic_load(&t->leave)) nanosleep(&pause, NULL);
}

static void wait_for(atomic_int *flag) {
  const struct timespec pause = {0, 1000000};
  int64_t end_ms = now_ms() + PATIENCE_MS;
  while (!atomic_load(flag)) {
    CHECK(now_ms() < end_ms);
    nanosleep(&pause, NULL);
  }
}

static void *dispatch(void *user) {
  turn *t = user;
  CHECK_OK(rt_loop_dispatch(t->loop, PATIENCE_MS));
  return NULL;
}

/* While one thread is inside a turn, another one's call fails and does not wait. */
static void busy_in_dispatch(rt_loop *loop) {
  turn t = {0};
  pthread_t thread;
  t.loop = loop;
  CHECK_OK(rt_loop_post(loop, stay, &t, NULL));
  CHECK(pthread_create(&thread, NULL, dispatch, &t) == 0);
  wait_for(&t.inside);
  CHECK_STATUS(rt_loop_dispatch(loop, 0), RT_ERROR_BUSY);
  CHECK_STATUS(rt_loop_run(loop), RT_ERROR_BUSY);
  CHECK_STATUS(rt_loop_start(loop), RT_ERROR_BUSY);
  atomic_store(&t.leave, 1);
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK_OK(rt_loop_dispatch(loop, 0));
}

static void on_own_thread(rt_loop *loop, rt_loop *other) {
  turn t = {0};
  t.loop = loop;
  t.other = other;
  CHECK_OK(rt_loop_stop_and_wait(loop)); /* no thread: nothing to wait for */
  CHECK_OK(rt_loop_start(loop));
  CHECK_STATUS(rt_loop_start(loop), RT_ERROR_BUSY);
  CHECK_OK(rt_loop_post(loop, reenter, &t, NULL));
  wait_for(&t.done);
  CHECK_STATUS(rt_loop_dispatch(loop, 0), RT_ERROR_BUSY);
  CHECK_STATUS(rt_loop_run(loop), RT_ERROR_BUSY);
  CHECK_OK(rt_loop_stop_and_wait(loop));
  CHECK_OK(rt_loop_start(loop)); /* and again */
  atomic_store(&t.done, 0);
  CHECK_OK(rt_loop_post(loop, reenter, &t, NULL));
  wait_for(&t.done);
  CHECK_OK(rt_loop_stop_and_wait(loop));
  CHECK_OK(rt_loop_dispatch(loop, 0));
}

static void *run_again_and_again(void *user) {
  turn *t = user;
  struct timespec nap = {0, 20000};
  while (!atomic_load(&t->leave)) {
    rt_loop_run(t->loop);
    nanosleep(&nap, NULL);
  }
  return NULL;
}

/* A plain stop may end another thread's `run`, but a stop that waits for its thread may not. */
static void beside_another_run(rt_loop *loop) {
  turn t = {0};
  pthread_t thread;
  int rounds = 0;
  t.loop = loop;
  CHECK(pthread_create(&thread, NULL, run_again_and_again, &t) == 0);
  while (rounds < 1000) {
    if (rt_loop_start(loop) == RT_OK) rounds++;
    else CHECK_OK(rt_loop_stop(loop));
    CHECK_OK(rt_loop_stop_and_wait(loop));
  }
  atomic_store(&t.leave, 1);
  CHECK_OK(rt_loop_stop(loop));
  CHECK(pthread_join(thread, NULL) == 0);
}

int main(void) {
  turn t = {0};
  t.loop = new_loop();
  t.other = new_loop();

  CHECK_OK(rt_loop_post(t.loop, reenter, &t, NULL));
  CHECK_OK(rt_loop_dispatch(t.loop, 1000));
  CHECK(atomic_load(&t.done));

  atomic_store(&t.done, 0);
  CHECK_OK(rt_loop_add_timer(t.loop, 1, 0, reenter_and_stop, &t, NULL, NULL));
  CHECK_OK(rt_loop_run(t.loop));
  CHECK(atomic_load(&t.done));

  /* A stop before the run makes it return at once; the next run is not affected. */
  CHECK_OK(rt_loop_stop(t.loop));
  CHECK_OK(rt_loop_run(t.loop));
  atomic_store(&t.done, 0);
  CHECK_OK(rt_loop_post(t.loop, reenter_and_stop, &t, NULL));
  CHECK_OK(rt_loop_run(t.loop));
  CHECK(atomic_load(&t.done));

  busy_in_dispatch(t.loop);
  on_own_thread(t.loop, t.other);
  beside_another_run(t.loop);
  rt_loop_free(t.loop);
  rt_loop_free(t.other);
  return 0;
}
