/* The library does not affect the process around it: signals, and the descriptors of programs that
 * it executes. And keys that a peer must not guess are random. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "contract.h"

static volatile sig_atomic_t pipe_signals;

static void on_signal(int number) {
  (void)number;
  pipe_signals++;
}

static void on_closed(const rt_closed *closed, void *user) {
  (void)closed;
  *(int *)user = 1;
}

/* The test does not read, so only a write can meet the reset. Each write after the first would
 * raise SIGPIPE. */
static void no_broken_pipe(rt_loop *loop, const char *server) {
  static uint8_t large[200000];
  rt_websocket *websocket = new_websocket(loop, server, "/drop");
  int closed = 0, turn;
  events e = {0};
  signal(SIGPIPE, on_signal);
  listen_to(websocket, &e);
  CHECK_OK(rt_websocket_set_compression(websocket, false));
  CHECK_OK(rt_websocket_on_closed(websocket, on_closed, &closed, NULL));
  CHECK_OK(rt_websocket_start(websocket));
  TURN_UNTIL(loop, e.opened || closed);
  rt_websocket_pause(websocket);
  for (turn = 0; turn < 50; turn++) {
    rt_websocket_send_binary(websocket, large, sizeof large);
    CHECK_OK(rt_loop_dispatch(loop, 2));
  }
  CHECK(pipe_signals == 0);
  rt_websocket_resume(websocket);
  TURN_UNTIL(loop, closed);
  CHECK(pipe_signals == 0);
  signal(SIGPIPE, SIG_DFL);
  rt_websocket_free(websocket);
}

/* Reads the first 4 KiB of a file in /proc/self. */
static void read_proc(char *text, size_t size, const char *folder, const char *name,
                      const char *file) {
  char path[600];
  FILE *stream;
  size_t length;
  snprintf(path, sizeof path, "/proc/self/%s/%s%s", folder, name, file);
  stream = fopen(path, "r");
  text[0] = '\0';
  if (stream == NULL) return;
  length = fread(text, 1, size - 1, stream);
  text[length] = '\0';
  fclose(stream);
}

static int count_threads(void) {
  DIR *tasks = opendir("/proc/self/task");
  struct dirent *task;
  int count = 0;
  CHECK(tasks != NULL);
  while ((task = readdir(tasks)) != NULL) count += task->d_name[0] != '.';
  closedir(tasks);
  return count;
}

/* The loop's thread handles none of the host's signals. */
static void signals_stay_with_the_host(void) {
  rt_loop *loop = new_loop(), *first = new_loop();
  DIR *tasks;
  struct dirent *task;
  char own[32];
  int before, others = 0;
  /* A sanitizer starts a thread of its own with the first one. */
  CHECK_OK(rt_loop_start(first));
  CHECK_OK(rt_loop_stop_and_wait(first));
  rt_loop_free(first);
  before = count_threads();
  CHECK_OK(rt_loop_start(loop));
  snprintf(own, sizeof own, "%d", (int)getpid());
  tasks = opendir("/proc/self/task");
  CHECK(tasks != NULL);
  while ((task = readdir(tasks)) != NULL) {
    char text[4096], *line;
    unsigned long long blocked;
    if (task->d_name[0] == '.' || strcmp(task->d_name, own) == 0) continue;
    read_proc(text, sizeof text, "task", task->d_name, "/status");
    line = strstr(text, "SigBlk:");
    if (line == NULL) continue;
    blocked = strtoull(line + 7, NULL, 16);
    others++;
    CHECK(blocked >> (SIGTERM - 1) & 1);
    CHECK(blocked >> (SIGINT - 1) & 1);
    CHECK(blocked >> (SIGUSR1 - 1) & 1);
    CHECK(blocked >> (SIGCHLD - 1) & 1);
  }
  closedir(tasks);
  CHECK(others == before);
  CHECK_OK(rt_loop_stop_and_wait(loop));
  rt_loop_free(loop);
}

/* A program that the host executes does not inherit our descriptors. */
static void descriptors_close_on_exec(rt_loop *loop, const char *server) {
  rt_websocket *websocket = new_websocket(loop, server, "/echo");
  events e = {0};
  int fd, inherited = 0, ours = 0;
  listen_to(websocket, &e);
  CHECK_OK(rt_websocket_start(websocket));
  TURN_UNTIL(loop, e.opened);
  for (fd = 3; fd < 256; fd++) {
    char path[64], target[256];
    int flags = fcntl(fd, F_GETFD);
    ssize_t length;
    if (flags < 0) continue;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    length = readlink(path, target, sizeof target - 1);
    if (length < 0) continue;
    target[length] = '\0';
    /* The others belong to the test runner. */
    if (strncmp(target, "socket:", 7) != 0 && strncmp(target, "anon_inode:", 11) != 0) continue;
    ours++;
    if (!(flags & FD_CLOEXEC)) inherited++;
  }
  CHECK(ours >= 4 && inherited == 0);
  rt_websocket_free(websocket);
}

/* However many jobs are posted, the loop is woken once. */
static void wake_ups_are_coalesced(void) {
  rt_loop *loop = new_loop();
  DIR *folder = opendir("/proc/self/fdinfo");
  struct dirent *entry;
  int ran = 0, i, counters = 0;
  CHECK(folder != NULL);
  for (i = 0; i < 1000; i++) CHECK_OK(rt_loop_post(loop, count_up, &ran, NULL));
  while ((entry = readdir(folder)) != NULL) {
    char text[4096], *count;
    if (entry->d_name[0] == '.') continue;
    read_proc(text, sizeof text, "fdinfo", entry->d_name, "");
    count = strstr(text, "eventfd-count:");
    if (count == NULL) continue;
    counters++;
    CHECK(strtoull(count + 14, NULL, 16) <= 1);
  }
  closedir(folder);
  CHECK(counters >= 1);
  CHECK_OK(rt_loop_dispatch(loop, 0));
  CHECK(ran == 1000);
  rt_loop_free(loop);
}

static char keys[2][64];

static void on_headers(rt_message_kind kind, const uint8_t *data, size_t length, void *user) {
  static const char name[] = "Sec-WebSocket-Key: ";
  char text[4096], *found;
  (void)kind;
  CHECK(length < sizeof text);
  memcpy(text, data, length);
  text[length] = '\0';
  found = strstr(text, name);
  CHECK(found != NULL);
  memcpy(user, found + sizeof name - 1, 24);
}

static void handshake_keys_differ(rt_loop *loop, const char *server) {
  int i;
  for (i = 0; i < 2; i++) {
    rt_websocket *websocket = new_websocket(loop, server, "/headers");
    CHECK_OK(rt_websocket_on_message(websocket, on_headers, keys[i], NULL));
    CHECK_OK(rt_websocket_start(websocket));
    TURN_UNTIL(loop, keys[i][0] != '\0');
    rt_websocket_free(websocket);
  }
  CHECK(strlen(keys[0]) == 24 && strcmp(keys[0], keys[1]) != 0);
}

int main(int argc, char **argv) {
  rt_loop *loop;
  CHECK(argc == 2);
  signals_stay_with_the_host();
  wake_ups_are_coalesced();
  loop = new_loop();
  no_broken_pipe(loop, argv[1]);
  descriptors_close_on_exec(loop, argv[1]);
  handshake_keys_differ(loop, argv[1]);
  rt_loop_free(loop);
  return 0;
}
