/* Requests that callbacks send during a turn go out together after the last callback, so that the
 * server wakes once. A response that has arrived is in time, however late the turn is. A response
 * that a long libcurl call delays is still delivered. A client queries each change of its
 * reachability once, not once per request. */
#include <arpa/inet.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "contract.h"

enum { TOGETHER = 3, LAST_FD = 64, ATTEMPT_MS = 1500, SENDS = 20000 };

typedef struct turn {
  rt_rest *rest;
  int told, done, begun, together;
  uint64_t sent;
} turn;

/* Bytes that this process has sent by TCP. */
static uint64_t bytes_sent(void) {
  uint64_t sum = 0;
  int fd;
  for (fd = 3; fd < LAST_FD; fd++) {
    struct tcp_info info = {0};
    socklen_t length = sizeof info;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) == 0) sum += info.tcpi_bytes_sent;
  }
  return sum;
}

/* The number of sockets in this process with something to read. */
static int answered(void) {
  int fd, sockets = 0;
  for (fd = 3; fd < LAST_FD; fd++) {
    struct tcp_info info;
    socklen_t length = sizeof info;
    int count = 0;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) continue;
    sockets += ioctl(fd, FIONREAD, &count) == 0 && count > 0;
  }
  return sockets;
}

static void begin(turn *t);

/* For requests that callbacks sent; one response may come in the same turn. */
static void on_second(rt_rest_response *response, void *user) {
  CHECK(rt_rest_response_status(response) == 200);
  ((turn *)user)->done += 1;
}

/* Counts responses between which nothing was sent, although each callback begins a request. */
static void on_first(rt_rest_response *response, void *user) {
  turn *t = user;
  uint64_t sent = bytes_sent();
  CHECK(rt_rest_response_status(response) == 200);
  if (t->told > 0 && sent == t->sent) t->together += 1;
  t->sent = sent;
  t->told += 1;
  t->done += 1;
  begin(t);
}

static void begin(turn *t) {
  rt_rest_request *request;
  rt_rest_done_fn done = t->begun < TOGETHER ? on_first : on_second;
  t->begun += 1;
  CHECK_OK(rt_rest_request_new(t->rest, "GET", "/echo", &request));
  CHECK_OK(rt_rest_request_send(request, done, t, NULL, NULL, NULL));
  rt_rest_request_free(request);
}

/* Whether all responses came in one turn, and the requests that they caused went out in it. */
static int together(rt_loop *loop, const char *server) {
  int64_t end_ms = now_ms() + PATIENCE_MS;
  int found = 0;
  turn t = {0};
  CHECK_OK(rt_rest_new(loop, server, &t.rest));
  while (t.begun < TOGETHER) begin(&t);
  while (t.done < 2 * TOGETHER) {
    CHECK(now_ms() < end_ms);
    /* Once all are connected, let their responses arrive. */
    if (t.done == 0 && answered() > 0) {
      int64_t soon_ms = now_ms() + 200;
      while (answered() < TOGETHER && now_ms() < soon_ms) {}
    }
    t.told = t.together = 0;
    CHECK_OK(rt_loop_dispatch(loop, 5));
    if (t.together == TOGETHER - 1 && bytes_sent() > t.sent) found = 1;
  }
  rt_rest_free(t.rest);
  return found;
}

typedef struct ending {
  rt_status error;
  int32_t status;
  uint32_t attempts;
  int count;
} ending;

static void on_end(rt_rest_response *response, void *user) {
  ending *e = user;
  e->error = rt_rest_response_error(response);
  e->status = rt_rest_response_status(response);
  e->attempts = rt_rest_response_attempts(response);
  e->count += 1;
}

/* Replaces libc's function: on a machine under load a call may take long. */
static int send_ms;

ssize_t send(int fd, const void *bytes, size_t count, int flags) {
  if (send_ms > 0) usleep(send_ms * 1000);
  return sendto(fd, bytes, count, flags, NULL, 0);
}

/* Whether the response came between two turns, of which the second is late. It may also come in the
 * first.
 * slow_ms: how long sending the request takes. */
static int in_time(rt_loop *loop, const char *server, const char *method, int slow_ms) {
  int64_t end_ms = now_ms() + PATIENCE_MS;
  uint64_t before = bytes_sent();
  int is_between;
  ending e = {0};
  rt_rest *rest;
  rt_rest_request *request;
  CHECK_OK(rt_rest_new(loop, server, &rest));
  CHECK_OK(rt_rest_set_attempt_timeout_ms(rest, ATTEMPT_MS));
  CHECK_OK(rt_rest_set_deadline_ms(rest, ATTEMPT_MS));
  CHECK_OK(rt_rest_request_new(rest, method, "/echo", &request));
  CHECK_OK(rt_rest_request_send(request, on_end, &e, NULL, NULL, NULL));
  rt_rest_request_free(request);
  send_ms = slow_ms;
  while (bytes_sent() <= before && e.count == 0) {
    CHECK(now_ms() < end_ms);
    CHECK_OK(rt_loop_dispatch(loop, 5));
  }
  send_ms = 0;
  is_between = e.count == 0;
  if (is_between) {
    while (answered() == 0) CHECK(now_ms() < end_ms);
    usleep((ATTEMPT_MS + 100) * 1000);
  }
  TURN_UNTIL(loop, e.count == 1);
  CHECK(e.error == RT_OK && e.status == 200 && e.attempts == 1);
  rt_rest_free(rest);
  return is_between;
}

/* A server in this program, which answers when the test wants. */
static int listening(char *url, size_t size) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof at;
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  CHECK(bind(fd, (struct sockaddr *)&at, length) == 0 && listen(fd, 2) == 0);
  CHECK(getsockname(fd, (struct sockaddr *)&at, &length) == 0);
  snprintf(url, size, "http://127.0.0.1:%d/", ntohs(at.sin_port));
  return fd;
}

static bool is_readable(int fd) {
  struct pollfd one = {.fd = fd, .events = POLLIN};
  return poll(&one, 1, 0) == 1;
}

/* Accepts the next connection, once its request can be read. */
static int asked(rt_loop *loop, int server) {
  int fd;
  TURN_UNTIL(loop, is_readable(server));
  fd = accept(server, NULL, NULL);
  TURN_UNTIL(loop, is_readable(fd));
  return fd;
}

static int64_t waits(uint8_t *buffer, size_t capacity, void *user) {
  (void)buffer, (void)capacity;
  ++*(int *)user;
  return RT_REST_BODY_WAIT;
}

static void on_head(rt_rest_response *response, void *user) {
  CHECK(rt_rest_response_status(response) == 200);
  ++*(int *)user;
}

static void on_cancelled(rt_rest_response *response, void *user) {
  CHECK(rt_rest_response_error(response) == RT_ERROR_CLOSED);
  ++*(int *)user;
}

static void on_body(const uint8_t *bytes, size_t length, void *user) {
  (void)bytes, (void)length, (void)user;
  CHECK(!"delivered during a pause");
}

/* A response is delayed, because the previous call took long. Either the body of its request waits:
 * libcurl neither sends nor receives for it now, so it does not ask for a call itself. Or the
 * response is paused, which delays the body but not the head. */
static void a_delayed_answer_is_delivered(rt_loop *loop, bool pauses) {
  static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
  char url[64];
  int server = listening(url, sizeof url), first, second, sources = 0, heads = 0, ended = 0;
  uint64_t id;
  rt_rest *rest;
  rt_rest_request *post, *get;
  CHECK_OK(rt_rest_new(loop, url, &rest));
  CHECK_OK(rt_rest_set_attempt_timeout_ms(rest, 60000));
  CHECK_OK(rt_rest_set_deadline_ms(rest, 60000));
  CHECK_OK(rt_rest_request_new(rest, "POST", "", &post));
  if (pauses) {
    CHECK_OK(rt_rest_request_on_body(post, on_body, NULL, NULL));
  } else {
    CHECK_OK(rt_rest_request_set_body_source(post, -1, waits, NULL, &sources, NULL));
  }
  CHECK_OK(rt_rest_request_on_head(post, on_head, &heads, NULL));
  CHECK_OK(rt_rest_request_send(post, on_cancelled, &ended, NULL, &id, NULL));
  first = asked(loop, server);
  if (pauses) CHECK_OK(rt_rest_pause(rest, id));
  TURN_UNTIL(loop, pauses || sources == 1);
  settle(loop);
  CHECK_OK(rt_rest_request_new(rest, "GET", "", &get));
  CHECK_OK(rt_rest_request_send(get, on_cancelled, &ended, NULL, NULL, NULL));
  send_ms = 20;
  second = asked(loop, server);
  send_ms = 0;
  settle(loop);
  CHECK(write(first, answer, sizeof answer - 1) == sizeof answer - 1);
  TURN_UNTIL(loop, heads == 1);
  rt_rest_request_free(post);
  rt_rest_request_free(get);
  rt_rest_free(rest);
  TURN_UNTIL(loop, ended == 2);
  close(first);
  close(second);
  close(server);
}

/* Returns how many nanoseconds of this thread's processor time it takes to send requests that wait
 * for a network.
 * is_fresh: the loop has had no turn since the network was lost. */
static int64_t send_offline(rt_loop *loop, bool is_fresh) {
  struct timespec begin, end;
  rt_rest *rest = NULL;
  rt_rest_request *request = NULL;
  rt_reachability *reachability = NULL;
  int i, ended = 0;
  CHECK_OK(rt_reachability_new(loop, RT_REACHABILITY_MANUAL, &reachability));
  CHECK_OK(rt_reachability_set_online(reachability, false));
  CHECK_OK(rt_rest_new(loop, "http://127.0.0.1:1/", &rest));
  CHECK_OK(rt_rest_set_queue_capacity(rest, SENDS));
  CHECK_OK(rt_rest_set_reachability(rest, reachability));
  CHECK_OK(rt_rest_request_new(rest, "GET", "x", &request));
  if (!is_fresh) settle(loop);
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
  for (i = 0; i < SENDS; i++) {
    CHECK_OK(rt_rest_request_send(request, on_cancelled, &ended, NULL, NULL, NULL));
  }
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
  CHECK(ended == 0);
  rt_rest_request_free(request);
  rt_reachability_free(reachability);
  rt_rest_free(rest);
  TURN_UNTIL(loop, ended == SENDS);
  return (end.tv_sec - begin.tv_sec) * 1000000000LL + end.tv_nsec - begin.tv_nsec;
}

static void reachability_is_queried_once(rt_loop *loop) {
  int64_t usual = send_offline(loop, false);
  CHECK(send_offline(loop, true) < 5 * usual);
}

int main(int argc, char **argv) {
  rt_loop *loop = new_loop();
  int attempts = 0;
  CHECK(argc == 2);
  while (!in_time(loop, argv[1], "GET", 0)) CHECK(++attempts < 1000);
  while (!in_time(loop, argv[1], "POST", 0)) CHECK(++attempts < 1000);
  while (!in_time(loop, argv[1], "GET", 20)) CHECK(++attempts < 1000);
  attempts = 0;
  while (!together(loop, argv[1])) CHECK(++attempts < 50);
  a_delayed_answer_is_delivered(loop, false);
  a_delayed_answer_is_delivered(loop, true);
  reachability_is_queried_once(loop);
  rt_loop_free(loop);
  return 0;
}
