/* Timers: never early, in the order of their time, cancelled from anywhere, visible to poll(2). */
#include <poll.h>

#include "contract.h"

static int fired[8], count;

typedef struct timer {
  rt_loop *loop;
  int number, times, cancel_after, destroyed;
  uint64_t id;
  /* It is due between these times, which were read before and after it was added. */
  int64_t earliest_ms, latest_ms;
} timer;

static void fire(void *user) {
  timer *t = user;
  CHECK(now_ms() >= t->earliest_ms);
  CHECK(count < 8);
  fired[count++] = t->number;
  t->times++;
}

static void destroy_timer(void *user) { ((timer *)user)->destroyed++; }

static void add(rt_loop *loop, timer *t, int number, int64_t delay_ms) {
  memset(t, 0, sizeof *t);
  t->number = number;
  t->earliest_ms = now_ms() + delay_ms;
  CHECK_OK(rt_loop_add_timer(loop, delay_ms, 0, fire, t, destroy_timer, &t->id));
  /* This test's clock is rounded down to whole milliseconds. */
  t->latest_ms = now_ms() + delay_ms + 1;
}

/* A timer that is due before another fires before it, however slow the machine is. */
static void in_order(rt_loop *loop) {
  static const int64_t delays_ms[] = {60, 20, 40, 0};
  timer t[4];
  int i, j;
  count = 0;
  for (i = 0; i < 4; i++) add(loop, &t[i], i, delays_ms[i]);
  TURN_UNTIL(loop, count == 4);
  for (i = 0; i < 4; i++) {
    for (j = i + 1; j < 4; j++) {
      CHECK(t[fired[j]].latest_ms >= t[fired[i]].earliest_ms);
    }
    CHECK(t[i].times == 1 && t[i].destroyed == 1);
    CHECK_STATUS(rt_loop_cancel_timer(loop, t[i].id), RT_ERROR_NOT_FOUND);
  }
}

static void repeat(void *user) {
  timer *t = user;
  t->times++;
  if (t->times == t->cancel_after) {
    CHECK_OK(rt_loop_cancel_timer(t->loop, t->id));
    CHECK_STATUS(rt_loop_cancel_timer(t->loop, t->id), RT_ERROR_NOT_FOUND);
  }
}

static void repeats_until_cancelled_inside(rt_loop *loop) {
  timer t = {0};
  timer end = {0};
  t.loop = loop;
  t.cancel_after = 3;
  CHECK_OK(rt_loop_add_timer(loop, 1, 1, repeat, &t, destroy_timer, &t.id));
  TURN_UNTIL(loop, t.times == 3);
  count = 0;
  add(loop, &end, 1, 20);
  TURN_UNTIL(loop, count == 1);
  CHECK(t.times == 3 && t.destroyed == 1);
}

static void cancelled_before(rt_loop *loop) {
  timer t, end;
  count = 0;
  add(loop, &t, 1, 5);
  CHECK_OK(rt_loop_cancel_timer(loop, t.id));
  add(loop, &end, 2, 15);
  TURN_UNTIL(loop, count == 1);
  CHECK(fired[0] == 2 && t.times == 0 && t.destroyed == 1);
}

static void seen_by_poll(rt_loop *loop) {
  struct pollfd p = {0};
  timer t;
  settle(loop);
  count = 0;
  p.fd = rt_loop_fd(loop);
  p.events = POLLIN;
  CHECK(poll(&p, 1, 0) == 0);
  add(loop, &t, 1, 10);
  while (count == 0) {
    CHECK(poll(&p, 1, PATIENCE_MS) == 1);
    CHECK_OK(rt_loop_dispatch(loop, 0));
  }
  CHECK(poll(&p, 1, 0) == 0);
}

/* -1 waits for the next event, however late; the next timer ends a longer wait. */
static void dispatch_waits(rt_loop *loop) {
  timer t;
  int64_t begin_ms;
  count = 0;
  add(loop, &t, 1, 20);
  while (count == 0) CHECK_OK(rt_loop_dispatch(loop, -1));
  begin_ms = now_ms();
  CHECK_OK(rt_loop_dispatch(loop, 20));
  CHECK(now_ms() - begin_ms >= 19);
}

int main(void) {
  rt_loop *loop = new_loop();
  in_order(loop);
  repeats_until_cancelled_inside(loop);
  cancelled_before(loop);
  seen_by_poll(loop);
  dispatch_waits(loop);
  rt_loop_free(loop);
  return 0;
}
