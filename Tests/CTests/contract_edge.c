/* A host may watch the loop's descriptor edge-triggered. It calls rt_loop_dispatch() once for each
 * event; whatever that call leaves has another event. */
#include <linux/tcp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "contract.h"

/* A turn handles 128 descriptors and reads at most 1 MiB from a connection. */
enum { CONNECTIONS = 400, ROUNDS = 20, LARGE = 4 << 20, LARGE_COUNT = 4, LAST_FD = 2048 };

typedef struct host {
  rt_loop *loop;
  int epoll;
} host;

/* Waits for the next event and dispatches once. Nothing else may wake the loop. */
static void next_edge(host *h) {
  struct epoll_event event;
  CHECK(epoll_wait(h->epoll, &event, 1, PATIENCE_MS) == 1);
  CHECK_OK(rt_loop_dispatch(h->loop, 0));
}

#define BY_EDGES_UNTIL(h, condition) \
  while (!(condition)) next_edge(h)

static host watch(void) {
  host h = {new_loop(), epoll_create1(EPOLL_CLOEXEC)};
  struct epoll_event event = {.events = EPOLLIN | EPOLLET};
  CHECK(h.epoll >= 0);
  CHECK(epoll_ctl(h.epoll, EPOLL_CTL_ADD, rt_loop_fd(h.loop), &event) == 0);
  return h;
}

static void unwatch(host *h) {
  rt_loop_free(h->loop);
  close(h->epoll);
}

/* The number of sockets with at least `least` unread bytes. */
static int readable(int least) {
  int fd, sockets = 0;
  for (fd = 3; fd < LAST_FD; fd++) {
    struct tcp_info info;
    socklen_t length = sizeof info;
    int count = 0;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) continue;
    sockets += ioctl(fd, FIONREAD, &count) == 0 && count >= least;
  }
  return sockets;
}

static void wait_readable(int sockets, int least) {
  int64_t end_ms = now_ms() + PATIENCE_MS;
  while (readable(least) < sockets) {
    CHECK(now_ms() < end_ms && "bytes arrive");
    usleep(1000);
  }
}

typedef struct peer {
  rt_websocket *websocket;
  int *opened, *messages;
  size_t bytes;
  bool pauses;
} peer;

static void on_open(const rt_opened *opened, void *user) {
  (void)opened;
  ++*((peer *)user)->opened;
}

static void on_message(rt_message_kind kind, const uint8_t *data, size_t length, void *user) {
  peer *p = user;
  (void)kind, (void)data;
  ++*p->messages;
  p->bytes += length;
  if (p->pauses) CHECK_OK(rt_websocket_pause(p->websocket));
}

static void connect_peer(host *h, const char *server, peer *p) {
  p->websocket = new_websocket(h->loop, server, "/echo");
  CHECK_OK(rt_websocket_set_compression(p->websocket, false));
  /* No timer helps out. */
  CHECK_OK(rt_websocket_set_ping_interval_ms(p->websocket, 0));
  CHECK_OK(rt_websocket_set_max_message_bytes(p->websocket, 2 * LARGE));
  CHECK_OK(rt_websocket_on_open(p->websocket, on_open, p, NULL));
  CHECK_OK(rt_websocket_on_message(p->websocket, on_message, p, NULL));
  CHECK_OK(rt_websocket_start(p->websocket));
}

/* More connections are ready than one turn handles. Some pause inside their callback, and resume
 * between two turns. */
static void many_connections(const char *server) {
  static peer peers[CONNECTIONS];
  host h = watch();
  int i, round, opened = 0, messages = 0;
  for (i = 0; i < CONNECTIONS; i++) {
    peers[i] = (peer){.opened = &opened, .messages = &messages, .pauses = i % 3 == 0};
    connect_peer(&h, server, &peers[i]);
    /* The server's queue of connections is short. */
    if (i % 50 == 49) BY_EDGES_UNTIL(&h, opened == i + 1);
  }
  for (round = 0; round < ROUNDS; round++) {
    int wanted = messages + CONNECTIONS;
    for (i = 0; i < CONNECTIONS; i++) {
      CHECK_OK(rt_websocket_send_text(peers[i].websocket, "hello", 5));
    }
    next_edge(&h);
    wait_readable(CONNECTIONS, 1);
    for (i = 0; i < CONNECTIONS; i += 3) CHECK_OK(rt_websocket_resume(peers[i].websocket));
    BY_EDGES_UNTIL(&h, messages == wanted);
  }
  for (i = 0; i < CONNECTIONS; i++) rt_websocket_free(peers[i].websocket);
  unwatch(&h);
}

/* A connection has more unread bytes than a turn reads, and no more come. */
static void one_large_connection(const char *server) {
  int i, opened = 0, messages = 0, room = 16 << 20;
  peer p = {.opened = &opened, .messages = &messages};
  host h = watch();
  uint8_t *data = calloc(1, LARGE);
  bool fits = false;
  CHECK(data != NULL);
  connect_peer(&h, server, &p);
  BY_EDGES_UNTIL(&h, opened == 1);
  /* As root the whole message fits into the socket's buffer; otherwise the kernel decides. */
  for (i = 3; i < LAST_FD; i++) {
    fits |= setsockopt(i, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room) == 0;
  }
  for (i = 0; i < LARGE_COUNT; i++) {
    CHECK_OK(rt_websocket_pause(p.websocket));
    CHECK_OK(rt_websocket_send_binary(p.websocket, data, LARGE));
    BY_EDGES_UNTIL(&h, rt_websocket_buffered_bytes(p.websocket) == 0);
    if (fits) wait_readable(1, LARGE);
    CHECK_OK(rt_websocket_resume(p.websocket));
    BY_EDGES_UNTIL(&h, messages == i + 1);
  }
  CHECK(p.bytes == (size_t)LARGE * LARGE_COUNT);
  free(data);
  rt_websocket_free(p.websocket);
  unwatch(&h);
}

static void on_done(rt_rest_response *response, void *user) {
  size_t length;
  rt_rest_response_body(response, &length);
  *(size_t *)user = length;
}

/* libcurl reads a part of what a socket has. */
static void a_response(const char *server) {
  host h = watch();
  rt_rest *rest;
  rt_rest_request *request;
  char url[256];
  size_t length = 0;
  CHECK(snprintf(url, sizeof url, "http%s/explain/%d", server + 2, LARGE) < (int)sizeof url);
  CHECK_OK(rt_rest_new(h.loop, NULL, &rest));
  CHECK_OK(rt_rest_request_new(rest, "GET", url, &request));
  CHECK_OK(rt_rest_request_send(request, on_done, &length, NULL, NULL, NULL));
  while (length == 0) {
    struct epoll_event event;
    CHECK(epoll_wait(h.epoll, &event, 1, PATIENCE_MS) == 1);
    /* Bytes that come while libcurl reads would have an event of their own. */
    usleep(1000);
    CHECK_OK(rt_loop_dispatch(h.loop, 0));
  }
  CHECK(length == LARGE);
  rt_rest_request_free(request);
  rt_rest_free(rest);
  unwatch(&h);
}

static void chain(void *user) { --*(int *)user; }

/* Timers that are due, and jobs of another thread. */
typedef struct poster {
  rt_loop *loop;
  int left;
} poster;

static void *post_jobs(void *user) {
  poster *p = user;
  int i, count = p->left;
  for (i = 0; i < count; i++) CHECK_OK(rt_loop_post(p->loop, chain, &p->left, NULL));
  return NULL;
}

static void timers_and_jobs(void) {
  host h = watch();
  poster p = {h.loop, 20000};
  pthread_t thread;
  int i, timers = 1000;
  CHECK(pthread_create(&thread, NULL, post_jobs, &p) == 0);
  for (i = 0; i < 1000; i++) {
    CHECK_OK(rt_loop_add_timer(h.loop, i % 3, 0, chain, &timers, NULL, NULL));
    if (i % 10 == 0) next_edge(&h);
  }
  BY_EDGES_UNTIL(&h, timers == 0 && p.left == 0);
  CHECK(pthread_join(thread, NULL) == 0);
  unwatch(&h);
}

typedef struct shared_loop {
  rt_loop *loop;
  atomic_int began, may_end;
} shared_loop;

static void hold(void *user) {
  shared_loop *s = user;
  atomic_store(&s->began, 1);
  while (!atomic_load(&s->may_end)) usleep(100);
}

static void *dispatch_once(void *user) {
  CHECK_OK(rt_loop_dispatch(((shared_loop *)user)->loop, 0));
  return NULL;
}

/* A thread whose dispatch was refused has another event once the other's has returned. */
static void two_threads(void) {
  host h = watch();
  shared_loop s = {.loop = h.loop};
  struct epoll_event event;
  pthread_t thread;
  int left = 1;
  CHECK_OK(rt_loop_post(h.loop, hold, &s, NULL));
  CHECK(epoll_wait(h.epoll, &event, 1, PATIENCE_MS) == 1);
  CHECK(pthread_create(&thread, NULL, dispatch_once, &s) == 0);
  while (!atomic_load(&s.began)) usleep(100);
  CHECK_OK(rt_loop_post(h.loop, chain, &left, NULL));
  CHECK(epoll_wait(h.epoll, &event, 1, PATIENCE_MS) == 1);
  CHECK_STATUS(rt_loop_dispatch(h.loop, 0), RT_ERROR_BUSY);
  atomic_store(&s.may_end, 1);
  BY_EDGES_UNTIL(&h, left == 0);
  CHECK(pthread_join(thread, NULL) == 0);
  unwatch(&h);
}

int main(int argc, char **argv) {
  struct rlimit limit;
  CHECK(argc == 2 && getrlimit(RLIMIT_NOFILE, &limit) == 0);
  limit.rlim_cur = limit.rlim_max < LAST_FD ? limit.rlim_max : LAST_FD;
  CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
  many_connections(argv[1]);
  one_large_connection(argv[1]);
  a_response(argv[1]);
  timers_and_jobs();
  two_threads();
  return 0;
}
