/*
 * COUNT connections on one loop and one thread for SECONDS: they carry messages, are dropped by the
 * server, closed or freed, and are replaced. Memory and descriptors must stay flat.
 *
 *   soak URL COUNT SECONDS
 *
 * The server echoes, and cuts a connection that sends "drop". Progress is printed; exit code 1
 * means that an echo was wrong or missing, or that something grew.
 */
#include <dirent.h>
#include <realtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum {
  CONNECTING_AT_ONCE = 100,
  TURN_MS = 10,
  /* Messages in each turn, and how many turns between three replaced connections. A used port rests
   * for a minute: 30 a second hold 1,800 of the system's 28,000. */
  MESSAGES = 20,
  TURNS_EACH_CHURN = 10,
  REPORT_S = 10,
  PATIENCE_S = 60,
  /* Memory that the C library's allocator may keep between its arenas and trim later. */
  GROWTH_KIB = 4 << 10,
};

enum phase { OPENING, RUNNING, SETTLING, CLOSING };

struct connection {
  struct soak *soak;
  rt_websocket *websocket;
  unsigned number, sent, echoed;
  bool is_open, is_closing;
};

struct soak {
  rt_loop *loop;
  const char *url;
  struct connection *connections;
  enum phase phase;
  unsigned count, started, open, left, seed;
  unsigned long long turns, messages, echoes, drops, closes, frees, opened;
  double began_s, ends_s, reported_s;
  /* Resident memory before the first connection, at the end of the warm-up, and the maximum since.
   * */
  long first_kib, base_kib, largest_kib;
  int first_descriptors;
  bool is_wrong;
};

static void connect_one(struct connection *connection);

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static long resident_kib(void) {
  long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (!file || fscanf(file, "%*d %ld", &pages) != 1) exit(2);
  fclose(file);
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static int descriptors(void) {
  int count = 0;
  DIR *folder = opendir("/proc/self/fd");
  if (!folder) exit(2);
  while (readdir(folder)) count += 1;
  closedir(folder);
  /* Without ".", ".." and the folder itself. */
  return count - 3;
}

static void wrong(struct soak *soak, const char *what, unsigned number) {
  printf("wrong: %s, connection %u\n", what, number);
  soak->is_wrong = true;
}

static void start_more(struct soak *soak) {
  while (soak->started < soak->count && soak->started - soak->open < CONNECTING_AT_ONCE) {
    struct connection *connection = &soak->connections[soak->started];
    *connection = (struct connection){.soak = soak, .number = soak->started++};
    connect_one(connection);
  }
}

static void on_open(const rt_opened *opened, void *user) {
  (void)opened;
  struct connection *connection = user;
  struct soak *soak = connection->soak;
  if (connection->is_open) wrong(soak, "opened twice", connection->number);
  connection->is_open = true;
  /* Messages in transit when a connection is lost are not sent again. */
  connection->echoed = connection->sent;
  soak->open += 1;
  soak->opened += 1;
  if (soak->phase != OPENING) return;
  start_more(soak);
  if (soak->open == soak->count) rt_loop_stop(soak->loop);
}

static void on_message(rt_message_kind kind, const uint8_t *data, size_t length, void *user) {
  (void)kind;
  struct connection *connection = user;
  char text[128];
  int expected = snprintf(text, sizeof text, "%u %u ", connection->number, connection->echoed);
  connection->echoed += 1;
  connection->soak->echoes += 1;
  if (length < (size_t)expected || memcmp(data, text, (size_t)expected) != 0)
    wrong(connection->soak, "another echo than the next", connection->number);
}

static void leave_open(struct connection *connection) {
  if (!connection->is_open) return;
  connection->is_open = false;
  connection->soak->open -= 1;
}

static void on_error(const rt_failure *failure, void *user) {
  struct connection *connection = user;
  /* A drop is a loss; anything else is a failure. */
  if (failure->status != RT_ERROR_CONNECTION_LOST && failure->status != RT_ERROR_CLOSED) {
    printf("%s: %s\n", rt_status_name(failure->status), failure->message);
    wrong(connection->soak, "an error", connection->number);
  }
  if (!failure->fatal) leave_open(user);
}

static void on_close(const rt_closed *closed, void *user) {
  struct connection *connection = user;
  struct soak *soak = connection->soak;
  if (!connection->is_closing || closed->code != 1000 || !closed->clean)
    wrong(soak, "not closed in order", connection->number);
  leave_open(connection);
  rt_websocket_free(connection->websocket);
  connection->websocket = NULL;
  if (soak->phase != CLOSING)
    connect_one(connection);
  else if (--soak->left == 0)
    rt_loop_stop(soak->loop);
}

static void connect_one(struct connection *connection) {
  rt_backoff *backoff = NULL;
  rt_websocket *websocket = NULL;
  if (rt_websocket_new(connection->soak->loop, connection->soak->url, &websocket) != RT_OK) exit(2);
  connection->websocket = websocket;
  connection->is_closing = false;
  if (rt_backoff_new(&backoff) != RT_OK) exit(2);
  rt_backoff_set_initial_delay_ms(backoff, 50);
  rt_backoff_set_max_delay_ms(backoff, 1000);
  rt_websocket_set_reconnect(websocket, backoff);
  rt_backoff_free(backoff);
  rt_websocket_on_open(websocket, on_open, connection, NULL);
  rt_websocket_on_message(websocket, on_message, connection, NULL);
  rt_websocket_on_error(websocket, on_error, connection, NULL);
  rt_websocket_on_closed(websocket, on_close, connection, NULL);
  rt_websocket_set_open_timeout_ms(websocket, PATIENCE_S * 1000);
  rt_websocket_set_close_timeout_ms(websocket, PATIENCE_S * 1000);
  rt_websocket_set_pong_timeout_ms(websocket, PATIENCE_S * 1000);
  if (rt_websocket_start(websocket) != RT_OK) exit(2);
}

static struct connection *any(struct soak *soak) {
  for (;;) {
    struct connection *found = &soak->connections[(unsigned)rand_r(&soak->seed) % soak->count];
    if (found->is_open && !found->is_closing) return found;
  }
}

static void send_one(struct soak *soak) {
  char text[128];
  struct connection *connection = any(soak);
  int head = snprintf(text, sizeof text, "%u %u ", connection->number, connection->sent);
  /* The server's frames have at most 125 bytes. */
  int length = head + rand_r(&soak->seed) % (120 - head);
  memset(text + head, 'x', (size_t)(length - head));
  if (rt_websocket_send_text(connection->websocket, text, (size_t)length) != RT_OK)
    return wrong(soak, rt_last_error(), connection->number);
  connection->sent += 1;
  soak->messages += 1;
}

/* The server drops one connection, one is closed normally, one is freed. */
static void churn(struct soak *soak) {
  struct connection *connection = any(soak);
  if (rt_websocket_send_text(connection->websocket, "drop", 4) != RT_OK)
    wrong(soak, rt_last_error(), connection->number);
  /* Nothing else is sent on it. */
  leave_open(connection);
  soak->drops += 1;
  connection = any(soak);
  connection->is_closing = true;
  rt_websocket_close(connection->websocket, 1000, NULL);
  soak->closes += 1;
  connection = any(soak);
  rt_websocket_free(connection->websocket);
  leave_open(connection);
  connect_one(connection);
  soak->frees += 1;
}

static void report(struct soak *soak) {
  long kib = resident_kib();
  int count = descriptors() - soak->first_descriptors;
  printf("%4.0f s: %u open, %llu messages, %llu echoes, %llu drops, %llu closes, %llu frees, "
         "%llu opened, %ld KiB, %d descriptors\n",
         now_s() - soak->began_s, soak->open, soak->messages, soak->echoes, soak->drops,
         soak->closes, soak->frees, soak->opened, kib, count);
  fflush(stdout);
  if (kib > soak->largest_kib) soak->largest_kib = kib;
  /* In the first quarter buffers and pools grow to their sizes. */
  if (now_s() < soak->began_s + (soak->ends_s - soak->began_s) / 4)
    soak->base_kib = soak->largest_kib;
  if (count > (int)soak->count + CONNECTING_AT_ONCE)
    wrong(soak, "more descriptors than connections", 0);
}

/* Whether every open connection has received its echoes. */
static bool is_settled(const struct soak *soak) {
  if (soak->open != soak->count) return false;
  for (unsigned i = 0; i < soak->count; i++)
    if (soak->connections[i].sent != soak->connections[i].echoed) return false;
  return true;
}

static void on_turn(void *user) {
  struct soak *soak = user;
  double now = now_s();
  if (soak->is_wrong) return (void)rt_loop_stop(soak->loop);
  if (soak->phase != RUNNING) {
    if (now > soak->ends_s + PATIENCE_S) wrong(soak, "it does not settle", soak->open);
    if (soak->phase == SETTLING && is_settled(soak)) rt_loop_stop(soak->loop);
    return;
  }
  for (int i = 0; i < MESSAGES; i++) send_one(soak);
  if (++soak->turns % TURNS_EACH_CHURN == 0) churn(soak);
  if (now > soak->reported_s + REPORT_S) {
    soak->reported_s = now;
    report(soak);
  }
  if (now > soak->ends_s) soak->phase = SETTLING;
}

static void allow(unsigned count) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) exit(2);
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur < count + 2 * CONNECTING_AT_ONCE) {
    printf("the limit of %llu descriptors is too low\n", (unsigned long long)limit.rlim_cur);
    exit(2);
  }
}

static bool run(struct soak *soak) {
  return rt_loop_run(soak->loop) == RT_OK && !soak->is_wrong;
}

static bool soak_all(struct soak *soak, double seconds) {
  soak->first_kib = resident_kib();
  start_more(soak);
  if (!run(soak)) return false;
  printf("%u connections open, %ld bytes each\n", soak->open,
         (resident_kib() - soak->first_kib) * 1024 / (long)soak->count);
  soak->began_s = soak->reported_s = now_s();
  soak->ends_s = soak->began_s + seconds;
  soak->phase = RUNNING;
  if (rt_loop_add_timer(soak->loop, TURN_MS, TURN_MS, on_turn, soak, NULL, NULL) != RT_OK)
    return false;
  if (!run(soak)) return false;
  report(soak);
  soak->phase = CLOSING;
  soak->left = soak->count;
  for (unsigned i = 0; i < soak->count; i++) {
    soak->connections[i].is_closing = true;
    rt_websocket_close(soak->connections[i].websocket, 1000, NULL);
  }
  return run(soak);
}

int main(int argc, char **argv) {
  struct soak soak = {.seed = 1};
  if (argc != 4 || atoi(argv[2]) <= 0 || atof(argv[3]) < 5 * REPORT_S) return 2;
  soak.url = argv[1];
  soak.count = (unsigned)atoi(argv[2]);
  allow(soak.count);
  soak.connections = calloc(soak.count, sizeof *soak.connections);
  soak.first_descriptors = descriptors();
  if (!soak.connections || rt_loop_new(&soak.loop) != RT_OK) return 2;
  bool whole = soak_all(&soak, atof(argv[3]));
  for (unsigned i = 0; i < soak.count; i++) rt_websocket_free(soak.connections[i].websocket);
  rt_loop_free(soak.loop);
  free(soak.connections);
  int left = descriptors() - soak.first_descriptors;
  long grown_kib = soak.largest_kib - soak.base_kib;
  printf("memory grew by %ld KiB after the first quarter (%d allowed), %d descriptors are left\n",
         grown_kib, GROWTH_KIB, left);
  return whole && left == 0 && soak.base_kib > 0 && grown_kib <= GROWTH_KIB ? 0 : 1;
}
