/* A process may end at any moment, with open handles and a running loop thread: the exit neither
 * hangs nor crashes. */
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "contract.h"

static atomic_int messages;

static void on_message(rt_message_kind kind, const uint8_t *data, size_t length, void *user) {
  (void)kind;
  (void)data;
  (void)length;
  (void)user;
  atomic_fetch_add(&messages, 1);
}

static void quit(void *user) {
  (void)user;
  exit(0);
}

/* Returns from main, or calls exit in a callback, while messages arrive on the other thread. */
static void child(const char *server, bool inside) {
  rt_loop *loop = new_loop();
  rt_websocket *websocket = new_websocket(loop, server, "/push/2000");
  int64_t end_ms = now_ms() + PATIENCE_MS;
  CHECK_OK(rt_websocket_on_message(websocket, on_message, NULL, NULL));
  CHECK_OK(rt_websocket_start(websocket));
  CHECK_OK(rt_loop_start(loop));
  while (atomic_load(&messages) == 0) CHECK(now_ms() < end_ms);
  if (!inside) exit(0);
  CHECK_OK(rt_loop_post(loop, quit, NULL, NULL));
  pause();
}

static void on_event(const rt_event *event, void *user) {
  (void)event, (void)user;
  atomic_fetch_add(&messages, 1);
}

/* The same, while event streams end and reconnect all the time on the other thread. */
static void stream(const char *server) {
  char url[256];
  rt_loop *loop = new_loop();
  rt_eventsource *source;
  int64_t end_ms = now_ms() + PATIENCE_MS;
  snprintf(url, sizeof url, "http%s/events/1", server + 2);
  for (int i = 0; i < 8; i++) {
    CHECK_OK(rt_eventsource_new(loop, url, &source));
    CHECK_OK(rt_eventsource_set_reconnection_time_ms(source, 1));
    CHECK_OK(rt_eventsource_set_max_delay_ms(source, 1));
    CHECK_OK(rt_eventsource_on_any(source, on_event, NULL, NULL));
    CHECK_OK(rt_eventsource_start(source));
  }
  CHECK_OK(rt_loop_start(loop));
  while (atomic_load(&messages) < 16) CHECK(now_ms() < end_ms);
  exit(0);
}

int main(int argc, char **argv) {
  int round;
  CHECK(argc == 2);
  for (round = 0; round < 60; round++) {
    int status = -1;
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
      alarm(20);
      if (round >= 20) stream(argv[1]);
      child(argv[1], round % 2 == 1);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  return 0;
}
