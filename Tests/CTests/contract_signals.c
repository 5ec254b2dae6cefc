/* rt_loop_stop is async-signal-safe: called in a signal handler, it ends the run, allocates
 * nothing, keeps errno, and does not wait for a lock that the interrupted call holds. This program
 * replaces the allocator, and counts the handler's calls. */
#include <errno.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "contract.h"

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);

static volatile sig_atomic_t in_handler, allocations, stops;
static rt_loop *stopped;
static volatile rt_status answer;

static void note(void) {
  if (in_handler) allocations++;
}

void *malloc(size_t size) {
  note();
  return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
  note();
  return __libc_calloc(count, size);
}

void *realloc(void *old, size_t size) {
  note();
  return __libc_realloc(old, size);
}

static void on_signal(int number) {
  (void)number;
  in_handler = 1;
  errno = EXDEV;
  answer = rt_loop_stop(stopped);
  if (errno != EXDEV) allocations = -1;
  in_handler = 0;
  stops++;
}

static void nothing(void *user) { (void)user; }

/* Each job posts the next, so that the handler interrupts calls that hold the queue's lock. */
static void post_again(void *user) {
  CHECK_OK(rt_loop_post(user, post_again, user, nothing));
}

static void a_signal_ends_the_run(rt_loop *loop) {
  const struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
  int round;
  CHECK_OK(rt_loop_post(loop, post_again, loop, nothing));
  signal(SIGALRM, on_signal);
  CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
  for (round = 0; round < 200; round++) {
    const sig_atomic_t before = stops;
    CHECK_OK(rt_loop_run(loop));
    CHECK(stops >= before);
  }
  CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
  CHECK(stops > 0);
  CHECK_STATUS(answer, RT_OK);
  CHECK(allocations == 0);
}

/* Only the signal wakes it. */
static void a_signal_wakes_an_idle_run(void) {
  const struct itimerval once = {{0, 0}, {0, 20000}};
  rt_loop *idle = new_loop();
  stopped = idle;
  stops = 0;
  CHECK(setitimer(ITIMER_REAL, &once, NULL) == 0);
  CHECK_OK(rt_loop_run(idle));
  CHECK(stops == 1);
  CHECK(allocations == 0);
  rt_loop_free(idle);
}

/* A child that inherits the handler gets the same error. */
static void a_forked_child_is_refused(rt_loop *loop) {
  pid_t child;
  int status = 0;
  stopped = loop;
  child = fork();
  if (child == 0) {
    raise(SIGALRM);
    _exit(answer == RT_ERROR_FORKED && allocations == 0 ? 0 : 1);
  }
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void) {
  rt_loop *loop = new_loop();
  stopped = loop;
  a_signal_ends_the_run(loop);
  a_signal_wakes_an_idle_run();
  a_forked_child_is_refused(loop);
  CHECK(rt_loop_stop(NULL) == RT_ERROR_INVALID_ARGUMENT);
  rt_loop_free(loop);
  return 0;
}
