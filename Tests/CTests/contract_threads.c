/* The threads of the library are reported when they begin and when they end, in pairs. */
#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "contract.h"

/* Replaces libc's function: nothing is found. */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **found) {
  (void)name, (void)service, (void)hints, (void)found;
  return EAI_NONAME;
}

/* What a hook has received; all about one thread. */
typedef struct heard {
  const char *name;
  pthread_t thread;
  atomic_int began, ended, destroyed;
} heard;

static void on_thread(rt_thread_event event, const char *name, void *user) {
  heard *h = user;
  CHECK(h->destroyed == 0);
  if (event == RT_THREAD_BEGIN) {
    CHECK(h->began == 0 && h->ended == 0);
    h->name = name;
    h->thread = pthread_self();
    atomic_fetch_add(&h->began, 1);
  } else {
    CHECK(event == RT_THREAD_END && h->began == 1 && h->ended == 0);
    CHECK(strcmp(name, h->name) == 0 && pthread_equal(h->thread, pthread_self()));
    atomic_fetch_add(&h->ended, 1);
  }
}

static void on_destroy(void *user) { atomic_fetch_add(&((heard *)user)->destroyed, 1); }

static void hook(heard *h) { CHECK_OK(rt_set_thread_hook(on_thread, h, on_destroy)); }
static void unhook(void) { CHECK_OK(rt_set_thread_hook(NULL, NULL, NULL)); }

static void wait_for(atomic_int *count) {
  int64_t end_ms = now_ms() + PATIENCE_MS;
  while (*count == 0) {
    CHECK(now_ms() < end_ms);
    usleep(100);
  }
}

typedef struct job {
  heard *heard;
  atomic_int ran;
} job;

static void check_thread(void *user) {
  job *j = user;
  if (j->heard) {
    CHECK(j->heard->began == 1 && j->heard->ended == 0);
    CHECK(pthread_equal(j->heard->thread, pthread_self()));
  }
  atomic_fetch_add(&j->ran, 1);
}

/* Starts the loop's thread, and returns when it has run a job. */
static void start(rt_loop *loop, heard *h) {
  job j = {.heard = h};
  CHECK_OK(rt_loop_start(loop));
  CHECK_OK(rt_loop_post(loop, check_thread, &j, NULL));
  wait_for(&j.ran);
}

static void a_loops_thread_is_reported(rt_loop *loop) {
  heard h = {0};
  hook(&h);
  start(loop, &h);
  CHECK(strcmp(h.name, "realtime-loop") == 0);
  CHECK_OK(rt_loop_stop_and_wait(loop));
  CHECK(h.ended == 1 && h.destroyed == 0);
  unhook();
  CHECK(h.destroyed == 1);
}

static void a_thread_ends_with_the_hook_it_began_with(rt_loop *loop) {
  heard old = {0}, new = {0};
  hook(&old);
  start(loop, &old);
  hook(&new);
  CHECK(old.ended == 0 && old.destroyed == 0);
  CHECK_OK(rt_loop_stop_and_wait(loop));
  CHECK(old.ended == 1 && old.destroyed == 1);
  CHECK(new.began == 0 && new.ended == 0 && new.destroyed == 0);
  unhook();
  CHECK(new.destroyed == 1);
}

static void a_thread_from_before_is_not_reported(rt_loop *loop) {
  heard h = {0};
  start(loop, NULL);
  hook(&h);
  CHECK_OK(rt_loop_stop_and_wait(loop));
  CHECK(h.began == 0 && h.ended == 0);
  unhook();
  CHECK(h.destroyed == 1);
}

static void the_librarys_own_loop_is_reported(const char *server) {
  heard h = {0};
  rt_websocket *websocket;
  hook(&h);
  websocket = new_websocket(NULL, server, "/echo");
  wait_for(&h.began);
  CHECK(strcmp(h.name, "realtime-loop") == 0);
  rt_websocket_free(websocket);
  wait_for(&h.ended);
  unhook();
  wait_for(&h.destroyed);
}

static void on_done(rt_rest_response *response, void *user) {
  CHECK(rt_rest_response_error(response) == RT_ERROR_RESOLVE);
  ++*(int *)user;
}

static void a_lookup_is_reported(rt_loop *loop) {
  heard h = {0};
  int done = 0;
  rt_rest *rest;
  rt_rest_request *request;
  hook(&h);
  CHECK_OK(rt_rest_new(loop, "http://a.test/", &rest));
  CHECK_OK(rt_rest_set_attempts(rest, 1));
  CHECK_OK(rt_rest_request_new(rest, "GET", "", &request));
  CHECK_OK(rt_rest_request_send(request, on_done, &done, NULL, NULL, NULL));
  TURN_UNTIL(loop, done);
  wait_for(&h.ended);
  CHECK(strcmp(h.name, "realtime-lookup") == 0 && !pthread_equal(h.thread, pthread_self()));
  unhook();
  wait_for(&h.destroyed);
  rt_rest_request_free(request);
  rt_rest_free(rest);
}

int main(int argc, char **argv) {
  rt_loop *loop = new_loop();
  CHECK(argc == 2);
  a_loops_thread_is_reported(loop);
  a_thread_ends_with_the_hook_it_began_with(loop);
  a_thread_from_before_is_not_reported(loop);
  the_librarys_own_loop_is_reported(argv[1]);
  a_lookup_is_reported(loop);
  rt_loop_free(loop);
  return 0;
}
