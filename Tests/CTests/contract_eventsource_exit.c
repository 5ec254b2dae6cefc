/* A program that closes an event source on a thread other than the loop's, and exits when that
 * returns: the id file has the id of the last event whose callback has returned. */
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "contract.h"

/* The events of one stream, which arrive in one read. */
enum { EVENTS = 400, ROUNDS = 100 };

static atomic_int called;
/* The event whose callback does not return before the source is closed; 0 for none. */
static int blocked;
static sem_t is_closed;

static void on_any(const rt_event *event, void *user) {
  int number = atoi(event->id);
  (void)user;
  atomic_store(&called, number);
  if (number == blocked) CHECK(sem_wait(&is_closed) == 0);
}

static void close_and_exit(const char *server, const char *path, int wanted, int output) {
  int64_t end_ms = now_ms() + 10000;
  rt_eventsource *source;
  char url[256];
  int last;
  CHECK(snprintf(url, sizeof url, "http%s/events/%d", server + 2, EVENTS) > 0);
  CHECK_OK(rt_eventsource_new(NULL, url, &source));
  CHECK_OK(rt_eventsource_on_any(source, on_any, NULL, NULL));
  CHECK_OK(rt_eventsource_set_id_file(source, path, "key"));
  CHECK_OK(rt_eventsource_start(source));
  while (atomic_load(&called) < wanted) CHECK(now_ms() < end_ms);
  if (wanted % 2)
    CHECK_OK(rt_eventsource_close(source));
  else
    rt_eventsource_free(source);
  last = atomic_load(&called);
  CHECK(write(output, &last, sizeof last) == sizeof last);
  _exit(0);
}

static int stored(const char *path) {
  char text[256] = "", *id;
  FILE *file = fopen(path, "r");
  if (!file) return 0;
  CHECK(fread(text, 1, sizeof text - 1, file) > 0);
  CHECK(fclose(file) == 0);
  id = strrchr(text, ' ');
  CHECK(id);
  return atoi(id + 1);
}

static void round_of(const char *server, const char *path, int wanted, bool blocks) {
  int ends[2], status = -1, last = 0;
  pid_t pid;
  unlink(path);
  CHECK(pipe(ends) == 0);
  pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    alarm(20);
    if (blocks) blocked = wanted;
    CHECK(sem_init(&is_closed, 0, 0) == 0);
    close_and_exit(server, path, wanted, ends[1]);
  }
  CHECK(waitpid(pid, &status, 0) == pid);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  CHECK(read(ends[0], &last, sizeof last) == sizeof last);
  CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);
  CHECK(last >= wanted);
  CHECK(stored(path) == (blocks ? wanted - 1 : last));
}

int main(int argc, char **argv) {
  char path[64], lock_path[72];
  int round;
  CHECK(argc == 2);
  CHECK(snprintf(path, sizeof path, "/tmp/contract_exit_ids.%d", (int)getpid()) > 0);
  CHECK(snprintf(lock_path, sizeof lock_path, "%s.lock", path) > 0);
  unlink(path);
  for (round = 0; round < ROUNDS; round++) round_of(argv[1], path, 1 + round * 3, false);
  /* Nobody waits for a callback that waits for the end of this call. */
  for (round = 2; round < 5; round++) round_of(argv[1], path, round * 50, true);
  CHECK(unlink(path) == 0 && unlink(lock_path) == 0);
  return 0;
}
