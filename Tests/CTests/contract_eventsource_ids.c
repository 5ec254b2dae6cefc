/* Ids that wait to be written: when their loop ends, and while another process holds the file's
 * lock. */
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <unistd.h>

#include "contract.h"

static void on_any(const rt_event *event, void *user) {
  CHECK(event->id[event->id_length] == '\0' && event->event[event->event_length] == '\0'
        && event->data[event->data_length] == '\0');
  CHECK(event->had_id);
  ++*(int *)user;
}

/* Makes the path "/tmp/NAME.PID", and removes the file that is there. */
static void new_path(char path[64], const char *name) {
  CHECK(snprintf(path, 64, "/tmp/%s.%d", name, (int)getpid()) > 0);
  unlink(path);
}

static rt_eventsource *new_source(rt_loop *loop, const char *server, const char *path, int *count) {
  rt_eventsource *source = NULL;
  char url[256];
  CHECK(snprintf(url, sizeof url, "http%s/events/3", server + 2) > 0);
  CHECK_OK(rt_eventsource_new(loop, url, &source));
  CHECK_OK(rt_eventsource_on_any(source, on_any, count, NULL));
  CHECK_OK(rt_eventsource_set_id_file(source, path, NULL));
  return source;
}

static void written_at_the_end(const char *server) {
  rt_loop *loop = new_loop();
  rt_eventsource *source;
  char path[64];
  int count = 0;
  new_path(path, "contract_loop_ids");
  source = new_source(loop, server, path, &count);
  CHECK_OK(rt_eventsource_set_confirms_ids(source, true));
  CHECK_OK(rt_eventsource_start(source));
  TURN_UNTIL(loop, count == 3);
  CHECK_OK(rt_eventsource_confirm_id(source, "2"));
  rt_loop_free(loop);
  CHECK(unlink(path) == 0);
  rt_eventsource_free(source);
  CHECK(access(path, F_OK) != 0);
  CHECK(strcat(path, ".lock") && unlink(path) == 0);
}

/* Measures the shortest of three turns that wait for the lock in vain: other programs can make any
 * of them longer, but hardly all three. */
static void a_turn_waits_briefly(const char *server) {
  enum { WAITS_MS = 20, MOST_MS = 90 };
  rt_loop *loop = new_loop();
  rt_eventsource *source;
  char path[64], lock_path[72];
  int count = 0, lock, waits = 0;
  int64_t shortest = INT64_MAX;
  new_path(path, "contract_locked_ids");
  CHECK(snprintf(lock_path, sizeof lock_path, "%s.lock", path) > 0);
  lock = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  CHECK(lock >= 0 && flock(lock, LOCK_EX) == 0);
  source = new_source(loop, server, path, &count);
  CHECK_OK(rt_eventsource_start(source));
  TURN_UNTIL(loop, count == 3);
  while (waits < 3) {
    struct pollfd ready = {.fd = rt_loop_fd(loop), .events = POLLIN};
    int64_t begin, took;
    CHECK(poll(&ready, 1, PATIENCE_MS) == 1);
    begin = now_ms();
    CHECK_OK(rt_loop_dispatch(loop, 0));
    took = now_ms() - begin;
    if (took < WAITS_MS) continue;
    waits++;
    if (took < shortest) shortest = took;
  }
  CHECK(shortest < MOST_MS);
  CHECK(access(path, F_OK) != 0);
  /* The id is not lost: it is written once the lock is free. */
  CHECK(close(lock) == 0);
  TURN_UNTIL(loop, access(path, F_OK) == 0);
  rt_eventsource_free(source);
  rt_loop_free(loop);
  CHECK(unlink(path) == 0 && unlink(lock_path) == 0);
}

int main(int argc, char **argv) {
  CHECK(argc == 2);
  written_at_the_end(argv[1]);
  a_turn_waits_briefly(argv[1]);
  return 0;
}
