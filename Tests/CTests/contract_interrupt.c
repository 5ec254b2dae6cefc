/* Calls that wait, in every object: another thread may interrupt them (RT_ERROR_CANCELLED), which
 * changes nothing else, or free the object (RT_ERROR_CLOSED). */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "contract.h"

/* A call that would wait for ever: nobody answers. */
typedef rt_status wait_fn(void *object, int64_t timeout_ms);

typedef struct kind {
  void *(*make)(rt_loop *loop);
  wait_fn *waits[2];
  rt_status (*interrupt)(void *object);
  void (*free)(void *object);
} kind;

static int port;

static const char *url(const char *scheme) {
  static char text[64];
  snprintf(text, sizeof text, "%s://127.0.0.1:%d/", scheme, port);
  return text;
}

static void *make_websocket(rt_loop *loop) {
  rt_websocket *websocket;
  CHECK_OK(rt_websocket_new(loop, url("ws"), &websocket));
  return websocket;
}

static rt_status wait_websocket(void *object, int64_t timeout_ms) {
  return rt_websocket_connect(object, timeout_ms);
}

static rt_status receive_websocket(void *object, int64_t timeout_ms) {
  rt_received *message;
  /* The first call starts it. */
  rt_status status = rt_websocket_connect(object, 0);
  if (status != RT_ERROR_TIMEOUT) return status;
  return rt_websocket_receive(object, timeout_ms, &message);
}

static rt_status interrupt_websocket(void *object) { return rt_websocket_interrupt(object); }
static void free_websocket(void *object) { rt_websocket_free(object); }

static void *make_eventsource(rt_loop *loop) {
  rt_eventsource *eventsource;
  CHECK_OK(rt_eventsource_new(loop, url("http"), &eventsource));
  return eventsource;
}

static rt_status wait_eventsource(void *object, int64_t timeout_ms) {
  return rt_eventsource_connect(object, timeout_ms);
}

static rt_status receive_eventsource(void *object, int64_t timeout_ms) {
  rt_event_batch *batch;
  return rt_eventsource_receive_batch(object, timeout_ms, 9, &batch);
}

static rt_status interrupt_eventsource(void *object) { return rt_eventsource_interrupt(object); }
static void free_eventsource(void *object) { rt_eventsource_free(object); }

static void *make_longpoll(rt_loop *loop) {
  rt_longpoll *longpoll;
  CHECK_OK(rt_longpoll_new(loop, url("http"), &longpoll));
  return longpoll;
}

static rt_status wait_longpoll(void *object, int64_t timeout_ms) {
  return rt_longpoll_connect(object, timeout_ms);
}

static rt_status receive_longpoll(void *object, int64_t timeout_ms) {
  rt_event *event;
  return rt_longpoll_receive(object, timeout_ms, &event);
}

static rt_status interrupt_longpoll(void *object) { return rt_longpoll_interrupt(object); }
static void free_longpoll(void *object) { rt_longpoll_free(object); }

static void *make_spreadbot(rt_loop *loop) {
  rt_spreadbot *spreadbot;
  CHECK_OK(rt_spreadbot_new(loop, url("http"), &spreadbot));
  return spreadbot;
}

static rt_status wait_spreadbot(void *object, int64_t timeout_ms) {
  return rt_spreadbot_connect(object, "news", timeout_ms);
}

static rt_status receive_spreadbot(void *object, int64_t timeout_ms) {
  rt_event_batch *batch;
  rt_status status = rt_spreadbot_connect(object, "news", 0);
  if (status != RT_ERROR_TIMEOUT) return status;
  return rt_spreadbot_receive_batch(object, timeout_ms, 1, &batch);
}

static rt_status interrupt_spreadbot(void *object) { return rt_spreadbot_interrupt(object); }
static void free_spreadbot(void *object) { rt_spreadbot_free(object); }

static void *make_pusher(rt_loop *loop) {
  rt_pusher *pusher;
  CHECK_OK(rt_pusher_new(loop, "key", &pusher));
  CHECK_OK(rt_pusher_set_host(pusher, "127.0.0.1"));
  CHECK_OK(rt_pusher_set_port(pusher, (uint32_t)port));
  CHECK_OK(rt_pusher_set_use_tls(pusher, false));
  return pusher;
}

static rt_status wait_pusher(void *object, int64_t timeout_ms) {
  return rt_pusher_connect(object, timeout_ms);
}

static rt_status receive_pusher(void *object, int64_t timeout_ms) {
  rt_pusher_event *event;
  return rt_pusher_receive(object, timeout_ms, &event);
}

static rt_status interrupt_pusher(void *object) { return rt_pusher_interrupt(object); }
static void free_pusher(void *object) { rt_pusher_free(object); }

static void *make_ddp(rt_loop *loop) {
  rt_ddp *ddp;
  CHECK_OK(rt_ddp_new(loop, url("http"), &ddp));
  return ddp;
}

static rt_status wait_ddp(void *object, int64_t timeout_ms) {
  return rt_ddp_connect(object, timeout_ms);
}

static rt_status interrupt_ddp(void *object) { return rt_ddp_interrupt(object); }
static void free_ddp(void *object) { rt_ddp_free(object); }

static rt_ddp *client_of_feed;

static void *make_feed(rt_loop *loop) {
  rt_ddp_feed *feed;
  rt_ddp_batch *first;
  client_of_feed = make_ddp(loop);
  CHECK_OK(rt_ddp_feed_new(client_of_feed, "any", NULL, NULL, 0, &feed));
  CHECK_OK(rt_ddp_feed_receive(feed, 0, &first));
  rt_ddp_batch_free(first);
  return feed;
}

static rt_status receive_feed(void *object, int64_t timeout_ms) {
  rt_ddp_batch *batch;
  return rt_ddp_feed_receive(object, timeout_ms, &batch);
}

static rt_status interrupt_feed(void *object) { return rt_ddp_feed_interrupt(object); }

static void free_feed(void *object) {
  rt_ddp_feed_free(object);
  rt_ddp_free(client_of_feed);
}

static const kind kinds[] = {
    {make_websocket, {wait_websocket, receive_websocket}, interrupt_websocket, free_websocket},
    {make_eventsource,
     {wait_eventsource, receive_eventsource},
     interrupt_eventsource,
     free_eventsource},
    {make_longpoll, {wait_longpoll, receive_longpoll}, interrupt_longpoll, free_longpoll},
    {make_spreadbot, {wait_spreadbot, receive_spreadbot}, interrupt_spreadbot, free_spreadbot},
    {make_pusher, {wait_pusher, receive_pusher}, interrupt_pusher, free_pusher},
    {make_ddp, {wait_ddp, wait_ddp}, interrupt_ddp, free_ddp},
    {make_feed, {receive_feed, receive_feed}, interrupt_feed, free_feed},
};

typedef struct waiter {
  void *object;
  wait_fn *wait;
  pthread_t thread;
  rt_status status;
  int number;
} waiter;

static void *wait_for_ever(void *user) {
  waiter *w = user;
  __atomic_store_n(&w->number, gettid(), __ATOMIC_SEQ_CST);
  w->status = w->wait(w->object, -1);
  return NULL;
}

static void begin_wait(waiter *w, void *object, wait_fn *wait) {
  *w = (waiter){.object = object, .wait = wait};
  CHECK(pthread_create(&w->thread, NULL, wait_for_ever, w) == 0);
  while (!__atomic_load_n(&w->number, __ATOMIC_SEQ_CST)) usleep(100);
}

static void until_blocked(waiter *w) {
  while (!sleeps(w->number)) usleep(1000);
}

static void expect_end(waiter *w, rt_status status) {
  CHECK(pthread_join(w->thread, NULL) == 0);
  CHECK(w->status == status);
}

/* Whether the thread waits already does not matter: the interruption is kept for it. */
static void interrupted(const kind *k, wait_fn *wait, bool is_blocked) {
  waiter w;
  void *object = k->make(NULL);
  begin_wait(&w, object, wait);
  if (is_blocked) until_blocked(&w);
  CHECK_OK(k->interrupt(object));
  expect_end(&w, RT_ERROR_CANCELLED);
  /* Once: the next one waits again. */
  CHECK_STATUS(wait(object, 1), RT_ERROR_TIMEOUT);
  k->free(object);
}

/* An interruption before the call. */
static void interrupted_before(const kind *k, wait_fn *wait) {
  void *object = k->make(NULL);
  CHECK_OK(k->interrupt(object));
  CHECK_STATUS(wait(object, -1), RT_ERROR_CANCELLED);
  CHECK_STATUS(wait(object, 1), RT_ERROR_TIMEOUT);
  k->free(object);
}

/* The call is blocked when the object is freed. */
static void freed(const kind *k, wait_fn *wait, rt_loop *loop) {
  waiter w;
  void *object = k->make(loop);
  CHECK_STATUS(wait(object, 0), RT_ERROR_TIMEOUT);
  begin_wait(&w, object, wait);
  until_blocked(&w);
  k->free(object);
  expect_end(&w, RT_ERROR_CLOSED);
}

/* A socket that accepts connections, and reads and answers nothing. */
static int silent_peer(void) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  int peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  CHECK(peer >= 0 && bind(peer, (struct sockaddr *)&address, length) == 0);
  CHECK(listen(peer, 1024) == 0);
  CHECK(getsockname(peer, (struct sockaddr *)&address, &length) == 0);
  port = ntohs(address.sin_port);
  return peer;
}

int main(void) {
  size_t i, j;
  int peer = silent_peer();
  rt_loop *loop = new_loop();
  CHECK_OK(rt_loop_start(loop));
  for (i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
    const kind *k = &kinds[i];
    for (j = 0; j < 2; j++) {
      interrupted(k, k->waits[j], false);
      interrupted(k, k->waits[j], true);
      interrupted_before(k, k->waits[j]);
      freed(k, k->waits[j], NULL);
      freed(k, k->waits[j], loop);
    }
    CHECK_STATUS(k->interrupt(NULL), RT_ERROR_INVALID_ARGUMENT);
  }
  rt_loop_free(loop);
  close(peer);
  return 0;
}
