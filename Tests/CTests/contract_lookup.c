/*
 * Name lookups that last: a program that the host executes meanwhile does not inherit our
 * descriptors; there is a limit on threads; and the loop can be freed before the lookups end.
 */
#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "contract.h"

/* More than run at a time. */
enum { LOOKUPS = 100, MOST_THREADS = 64, MOST_FDS = 1024 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int begun;
static bool may_end;

/* Replaces libc's function: a lookup that lasts until the test ends it, and finds nothing. */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **found) {
  (void)name, (void)service, (void)hints, (void)found;
  pthread_mutex_lock(&mutex);
  begun++;
  while (!may_end) pthread_cond_wait(&changed, &mutex);
  pthread_mutex_unlock(&mutex);
  return EAI_NONAME;
}

static int lookups(void) {
  int count;
  pthread_mutex_lock(&mutex);
  count = begun;
  pthread_mutex_unlock(&mutex);
  return count;
}

static rt_status expected = RT_ERROR_RESOLVE;

static void on_done(rt_rest_response *response, void *user) {
  CHECK(rt_rest_response_error(response) == expected);
  ++*(int *)user;
}

static void send_to(rt_loop *loop, const char *host, rt_rest **rest, int *done) {
  rt_rest_request *request = NULL;
  char url[64];
  CHECK(snprintf(url, sizeof url, "http://%s.test/", host) > 0);
  CHECK_OK(rt_rest_new(loop, url, rest));
  CHECK_OK(rt_rest_set_attempts(*rest, 1));
  CHECK_OK(rt_rest_request_new(*rest, "GET", "", &request));
  CHECK_OK(rt_rest_request_send(request, on_done, done, NULL, NULL, NULL));
  rt_rest_request_free(request);
}

int main(void) {
  rt_loop *loop = new_loop(), *other;
  rt_rest *rest, *clients[LOOKUPS] = {NULL};
  bool was_open[MOST_FDS];
  int fd, i, done = 0, late = 0, pair[2];
  /* The host's own socket pair is left alone. */
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
  for (fd = 0; fd < MOST_FDS; fd++) was_open[fd] = fcntl(fd, F_GETFD) >= 0;
  for (i = 0; i < LOOKUPS; i++) {
    char host[16];
    CHECK(snprintf(host, sizeof host, "host%d", i) > 0);
    send_to(loop, host, &clients[i], &done);
  }
  TURN_UNTIL(loop, lookups() == MOST_THREADS);
  for (fd = 0; fd < MOST_FDS; fd++) {
    int flags = fcntl(fd, F_GETFD);
    if (was_open[fd] || flags < 0) continue;
    CHECK(flags & FD_CLOEXEC);
  }
  /* A loop with lookups does not wait for them. */
  other = new_loop();
  send_to(other, "last", &rest, &late);
  TURN_UNTIL(other, lookups() == MOST_THREADS + 1);
  expected = RT_ERROR_CLOSED;
  rt_loop_free(other);
  CHECK(late == 1);
  rt_rest_free(rest);
  expected = RT_ERROR_RESOLVE;
  CHECK(fcntl(pair[0], F_GETFD) == 0 && fcntl(pair[1], F_GETFD) == 0);
  pthread_mutex_lock(&mutex);
  may_end = true;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&mutex);
  TURN_UNTIL(loop, done == LOOKUPS);
  CHECK(lookups() == LOOKUPS + 1 && late == 1);
  for (i = 0; i < LOOKUPS; i++) rt_rest_free(clients[i]);
  rt_loop_free(loop);
  return 0;
}
