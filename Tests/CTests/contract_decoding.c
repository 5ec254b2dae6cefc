/* A compressed response that grows a thousandfold or more does not keep a turn of the loop busy,
 * and takes no more memory than the part that is kept. Meanwhile a timer continues to fire. */
#include <sys/resource.h>

#include "contract.h"

enum { MOST_MS = 100, MOST_KIB = 100 << 10, TICK_MS = 10 };

/* The sizes of decoded /bomb/CODING and /bomb/events. */
static const uint64_t BOMB = 200ull << 20, EVENTS = 48ull << 20;

typedef struct meter {
  uint64_t bytes;
  int done, ticks;
  rt_status status;
  int64_t longest_ns;
} meter;

static void tick(void *user) { ((meter *)user)->ticks++; }

static long peak_kib(void) {
  struct rusage usage;
  CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
  return usage.ru_maxrss;
}

/* Time of this thread only: other programs may delay it arbitrarily. */
static int64_t processor_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void turn_until_done(rt_loop *loop, meter *m) {
  int64_t end_ms = now_ms() + PATIENCE_MS;
  long before = peak_kib();
  uint64_t timer;
  CHECK_OK(rt_loop_add_timer(loop, TICK_MS, TICK_MS, tick, m, NULL, &timer));
  while (!m->done) {
    int64_t start_ns = processor_ns(), took_ns;
    CHECK(now_ms() < end_ms);
    CHECK_OK(rt_loop_dispatch(loop, 100));
    took_ns = processor_ns() - start_ns;
    if (took_ns > m->longest_ns) m->longest_ns = took_ns;
  }
  CHECK_OK(rt_loop_cancel_timer(loop, timer));
  CHECK(m->longest_ns < MOST_MS * (int64_t)1000000);
  CHECK(peak_kib() - before < MOST_KIB);
}

static const char *url_of(const char *server, const char *path) {
  static char url[128];
  CHECK(snprintf(url, sizeof url, "http%s%s", server + 2, path) < (int)sizeof url);
  return url;
}

static void on_event(const rt_event *event, void *user) {
  ((meter *)user)->bytes += event->data_length;
}

static void on_error(const rt_failure *failure, void *user) {
  meter *m = user;
  m->status = failure->status;
  m->done = 1;
}

static void listens(rt_loop *loop, const char *server, const char *path, uint64_t bytes,
                    rt_status end) {
  meter m = {0};
  rt_eventsource *source;
  CHECK_OK(rt_eventsource_new(loop, url_of(server, path), &source));
  CHECK_OK(rt_eventsource_on_any(source, on_event, &m, NULL));
  CHECK_OK(rt_eventsource_on_error(source, on_error, &m, NULL));
  CHECK_OK(rt_eventsource_start(source));
  turn_until_done(loop, &m);
  CHECK(m.bytes == bytes);
  CHECK(m.status == end);
  rt_eventsource_free(source);
}

static void polls(rt_loop *loop, const char *server, const char *path) {
  meter m = {0};
  rt_longpoll *poll;
  CHECK_OK(rt_longpoll_new(loop, url_of(server, path), &poll));
  CHECK_OK(rt_longpoll_on_error(poll, on_error, &m, NULL));
  CHECK_OK(rt_longpoll_start(poll));
  turn_until_done(loop, &m);
  CHECK(m.status == RT_ERROR_TOO_LARGE);
  rt_longpoll_free(poll);
}

static void on_piece(const uint8_t *data, size_t length, void *user) {
  (void)data;
  ((meter *)user)->bytes += length;
}

static void on_done(rt_rest_response *response, void *user) {
  meter *m = user;
  m->status = rt_rest_response_error(response);
  m->done = 1;
}

static void requests(rt_loop *loop, const char *server, const char *path, bool streamed) {
  meter m = {0};
  rt_rest *rest;
  rt_rest_request *request;
  CHECK_OK(rt_rest_new(loop, url_of(server, ""), &rest));
  CHECK_OK(rt_rest_set_attempt_timeout_ms(rest, PATIENCE_MS));
  CHECK_OK(rt_rest_request_new(rest, "GET", path, &request));
  if (streamed) CHECK_OK(rt_rest_request_on_body(request, on_piece, &m, NULL));
  CHECK_OK(rt_rest_request_send(request, on_done, &m, NULL, NULL, NULL));
  rt_rest_request_free(request);
  turn_until_done(loop, &m);
  CHECK(m.status == (streamed ? RT_OK : RT_ERROR_TOO_LARGE));
  if (streamed) CHECK(m.bytes == BOMB && m.ticks > 0);
  rt_rest_free(rest);
}

/* Several responses at a time share the turns: when the first ends, the others have nearly ended.
 * */
static void requests_together(rt_loop *loop, const char *server) {
  enum { TOGETHER = 5 };
  meter m[TOGETHER] = {{0}};
  rt_rest *rest;
  int i;
  CHECK_OK(rt_rest_new(loop, url_of(server, ""), &rest));
  CHECK_OK(rt_rest_set_attempt_timeout_ms(rest, PATIENCE_MS));
  for (i = 0; i < TOGETHER; i++) {
    rt_rest_request *request;
    CHECK_OK(rt_rest_request_new(rest, "GET", "/bomb/gzip", &request));
    CHECK_OK(rt_rest_request_on_body(request, on_piece, &m[i], NULL));
    CHECK_OK(rt_rest_request_send(request, on_done, &m[i], NULL, NULL, NULL));
    rt_rest_request_free(request);
  }
  turn_until_done(loop, &m[0]);
  for (i = 0; i < TOGETHER; i++) CHECK(m[i].bytes > BOMB / 4);
  for (i = 0; i < TOGETHER; i++) {
    turn_until_done(loop, &m[i]);
    CHECK(m[i].status == RT_OK && m[i].bytes == BOMB);
  }
  rt_rest_free(rest);
}

int main(int argc, char **argv) {
  static const char *const bombs[] = {"/bomb/gzip", "/bomb/zstd", "/bomb/br", "/bomb/gzip,gzip"};
  rt_loop *loop;
  size_t i;
  CHECK(argc == 2);
  loop = new_loop();
  for (i = 0; i < sizeof bombs / sizeof *bombs; i++) {
    requests(loop, argv[1], bombs[i], true);
    requests(loop, argv[1], bombs[i], false);
    polls(loop, argv[1], bombs[i]);
    /* One endless line. It cannot be a field, so none of it is kept. */
    listens(loop, argv[1], bombs[i], 0, RT_ERROR_CLOSED);
  }
  requests_together(loop, argv[1]);
  listens(loop, argv[1], "/bomb/events", EVENTS / 1024 * 1016, RT_ERROR_CLOSED);
  rt_loop_free(loop);
  return 0;
}
