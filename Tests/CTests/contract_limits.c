/* Errors name the exhausted resource: descriptors, or the room for waiting messages, even empty
 * ones. */
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include "contract.h"

typedef struct ending {
  rt_status status;
  char text[512];
  int closed;
} ending;

static void on_error(const rt_failure *failure, void *user) {
  ending *e = user;
  e->status = failure->status;
  snprintf(e->text, sizeof e->text, "%s", failure->message);
}

static void on_close(const rt_closed *closed, void *user) {
  (void)closed;
  ((ending *)user)->closed = 1;
}

static void without_descriptors(rt_loop *loop, const char *server) {
  ending e = {0};
  rt_websocket *websocket = new_websocket(loop, server, "/echo");
  struct rlimit before, lowered;
  int taken[256], count = 0;
  CHECK_OK(rt_websocket_on_error(websocket, on_error, &e, NULL));
  CHECK_OK(rt_websocket_on_closed(websocket, on_close, &e, NULL));
  CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
  lowered = before;
  lowered.rlim_cur = 64;
  CHECK(setrlimit(RLIMIT_NOFILE, &lowered) == 0);
  while (count < 256 && (taken[count] = dup(0)) >= 0) count++;
  CHECK(count < 256);
  CHECK_OK(rt_websocket_start(websocket));
  TURN_UNTIL(loop, e.closed);
  while (count > 0) close(taken[--count]);
  CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK(e.status == RT_ERROR_SYSTEM);
  CHECK(strstr(e.text, "errno") != NULL && strstr(e.text, "127.0.0.1") != NULL);
  rt_websocket_free(websocket);
}

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void wait_at_gate(void *user) {
  (void)user;
  pthread_mutex_lock(&gate);
  pthread_mutex_unlock(&gate);
}

/* The loop's thread is busy, so every send of this thread has to wait in the queue. */
static void empty_messages_are_counted(const char *server) {
  enum { LIMIT = 10000 };
  rt_loop *loop = new_loop();
  rt_websocket *websocket = new_websocket(loop, server, "/echo");
  int64_t end_ms = now_ms() + 30000;
  rt_status status = RT_OK;
  int sent = 0;
  CHECK_OK(rt_websocket_set_send_limit_bytes(websocket, LIMIT));
  CHECK_OK(rt_websocket_start(websocket));
  CHECK_OK(rt_loop_start(loop));
  while (rt_websocket_get_state(websocket) != RT_STATE_OPEN) {
    CHECK(now_ms() < end_ms);
    /* valgrind runs one thread at a time: let the loop's thread run. */
    usleep(1000);
  }
  pthread_mutex_lock(&gate);
  CHECK_OK(rt_loop_post(loop, wait_at_gate, NULL, NULL));
  while (sent <= LIMIT && status == RT_OK) {
    status = rt_websocket_send_text(websocket, NULL, 0);
    if (status == RT_OK) sent++;
  }
  CHECK(status == RT_ERROR_BUFFER_FULL);
  CHECK(sent > 100 && sent <= LIMIT / 2);
  pthread_mutex_unlock(&gate);
  CHECK_OK(rt_loop_stop_and_wait(loop));
  rt_websocket_free(websocket);
  rt_loop_free(loop);
}

int main(int argc, char **argv) {
  rt_loop *loop;
  CHECK(argc == 2);
  loop = new_loop();
  without_descriptors(loop, argv[1]);
  rt_loop_free(loop);
  empty_messages_are_counted(argv[1]);
  return 0;
}
