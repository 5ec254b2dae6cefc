/* Jobs from any thread run once, on the loop's thread, in the order in which each thread posted
 * them. */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#include "contract.h"

enum { THREADS = 4, JOBS = 2000 };

typedef struct producer {
  rt_loop *loop;
  pthread_t thread, runner;
  int next;
  atomic_int destroyed;
} producer;

typedef struct job {
  producer *producer;
  int number;
} job;

static atomic_int left;

static void run_job(void *user) {
  job *j = user;
  CHECK(pthread_equal(pthread_self(), j->producer->runner));
  CHECK(j->number == j->producer->next);
  j->producer->next++;
  atomic_fetch_sub(&left, 1);
}

static void destroy_job(void *user) {
  job *j = user;
  atomic_fetch_add(&j->producer->destroyed, 1);
  free(j);
}

static void *produce(void *user) {
  producer *p = user;
  int number;
  for (number = 0; number < JOBS; number++) {
    job *j = malloc(sizeof *j);
    CHECK(j != NULL);
    j->producer = p;
    j->number = number;
    CHECK_OK(rt_loop_post(p->loop, run_job, j, destroy_job));
  }
  return NULL;
}

static void from_threads(rt_loop *loop) {
  static producer producers[THREADS];
  int i;
  atomic_store(&left, THREADS * JOBS);
  for (i = 0; i < THREADS; i++) {
    producers[i].loop = loop;
    producers[i].runner = pthread_self();
    CHECK(pthread_create(&producers[i].thread, NULL, produce, &producers[i]) == 0);
  }
  TURN_UNTIL(loop, atomic_load(&left) == 0);
  settle(loop);
  for (i = 0; i < THREADS; i++) {
    CHECK(pthread_join(producers[i].thread, NULL) == 0);
    CHECK(producers[i].next == JOBS && atomic_load(&producers[i].destroyed) == JOBS);
  }
}

static void *post_one(void *user) {
  rt_loop *loop = user;
  static int flag;
  CHECK_OK(rt_loop_post(loop, contract_flag, &flag, NULL));
  return NULL;
}

/* A post wakes a host that sleeps in poll(2). After a dispatch nothing wakes it. */
static void wakes_the_descriptor(rt_loop *loop) {
  struct pollfd p = {0};
  pthread_t thread;
  settle(loop);
  p.fd = rt_loop_fd(loop);
  p.events = POLLIN;
  CHECK(p.fd >= 0);
  CHECK(poll(&p, 1, 0) == 0);
  CHECK(pthread_create(&thread, NULL, post_one, loop) == 0);
  CHECK(poll(&p, 1, PATIENCE_MS) == 1);
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK_OK(rt_loop_dispatch(loop, 0));
  CHECK_OK(rt_loop_dispatch(loop, 0));
  CHECK(poll(&p, 1, 0) == 0);
  CHECK(rt_loop_fd(loop) == p.fd);
}

typedef struct chain {
  rt_loop *loop;
  int left, turns;
} chain;

static void post_again(void *user) {
  chain *c = user;
  if (--c->left > 0) CHECK_OK(rt_loop_post(c->loop, post_again, c, NULL));
}

/* A job that a job posts runs in the next turn, so a chain of jobs cannot hold a turn forever. */
static void next_turn(rt_loop *loop) {
  chain c = {loop, 5, 0};
  CHECK_OK(rt_loop_post(loop, post_again, &c, NULL));
  while (c.left > 0 && c.turns < 100) {
    CHECK_OK(rt_loop_dispatch(loop, 1000));
    c.turns++;
  }
  CHECK(c.left == 0 && c.turns == 5);
}

int main(void) {
  rt_loop *loop = new_loop();
  from_threads(loop);
  wakes_the_descriptor(loop);
  next_turn(loop);
  rt_loop_free(loop);
  return 0;
}
