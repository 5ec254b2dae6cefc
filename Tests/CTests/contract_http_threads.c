/* Other threads pause, close and free while a loop runs: events stay in order, a closed client
 * sends nothing, and on a freed loop no callback begins except those that report the end of a
 * request. */
#include <pthread.h>
#include <stdatomic.h>

#include "contract.h"

static const char *server;

static const char *url(const char *path) {
  static char text[256];
  CHECK(snprintf(text, sizeof text, "http%s%s", server + 2, path) < (int)sizeof text);
  return text;
}

/* Events are numbered: id and data are the same number, one above the last. */
typedef struct stream {
  rt_eventsource *source;
  atomic_bool over;
  long last;
} stream;

static void on_number(const rt_event *event, void *user) {
  stream *s = user;
  CHECK(strtol(event->id, NULL, 10) == s->last + 1);
  CHECK(event->data_length == strlen(event->id) + 7 && strcmp(event->data + 7, event->id) == 0);
  s->last++;
}

static void *pause_and_resume(void *user) {
  stream *s = user;
  unsigned seed = 1;
  while (!atomic_load(&s->over)) {
    CHECK_OK(rt_eventsource_pause(s->source));
    for (volatile int spin = rand_r(&seed) % 300; spin > 0; spin--) {}
    CHECK_OK(rt_eventsource_resume(s->source));
    for (volatile int spin = rand_r(&seed) % 3000; spin > 0; spin--) {}
  }
  return NULL;
}

static void pauses_keep_the_order(rt_loop *loop) {
  enum { EVENTS = 20000, STREAMS = 4 };
  stream s = {0};
  pthread_t thread;
  CHECK_OK(rt_eventsource_new(loop, url("/events/20000"), &s.source));
  CHECK_OK(rt_eventsource_set_reconnection_time_ms(s.source, 1));
  CHECK_OK(rt_eventsource_on_any(s.source, on_number, &s, NULL));
  CHECK_OK(rt_eventsource_start(s.source));
  CHECK(pthread_create(&thread, NULL, pause_and_resume, &s) == 0);
  /* Each stream ends; the next one continues after it. */
  for (int stream = 1; stream <= STREAMS; stream++) TURN_UNTIL(loop, s.last >= stream * EVENTS);
  atomic_store(&s.over, true);
  pthread_join(thread, NULL);
  rt_eventsource_free(s.source);
}

/* One callback frees the loop; callbacks that begin later are counted. */
typedef struct freeing {
  rt_loop *loop;
  int first, later, done;
} freeing;

static void free_once(void *user) {
  freeing *f = user;
  if (f->loop == NULL) {
    f->later++;
    return;
  }
  f->first++;
  rt_loop_free(f->loop);
  f->loop = NULL;
}

static void on_open(const rt_opened *opened, void *user) {
  (void)opened;
  free_once(user);
}

static void on_event(const rt_event *event, void *user) {
  (void)event;
  free_once(user);
}

static void on_store(const char *key, const char *id, size_t id_length, void *user) {
  (void)key, (void)id, (void)id_length;
  free_once(user);
}

static void on_polled(const rt_event *event, void *user) {
  (void)event;
  free_once(user);
}

static void on_head(rt_rest_response *response, void *user) {
  (void)response;
  free_once(user);
}

static void on_body(const uint8_t *data, size_t length, void *user) {
  (void)data, (void)length;
  free_once(user);
}

static void on_done(rt_rest_response *response, void *user) {
  CHECK(rt_rest_response_error(response) == RT_ERROR_CLOSED);
  ((freeing *)user)->done++;
}

static void run_freed(freeing *f) {
  rt_loop *loop = f->loop;
  int64_t end_ms = now_ms() + PATIENCE_MS;
  while (f->loop != NULL) {
    CHECK(now_ms() < end_ms);
    rt_loop_dispatch(loop, 100);
  }
}

static void no_callback_begins_on_a_freed_loop(void) {
  freeing f = {.loop = new_loop()};
  rt_eventsource *source;
  rt_longpoll *poll;
  rt_rest *client;
  rt_rest_request *request;
  CHECK_OK(rt_eventsource_new(f.loop, url("/events/4"), &source));
  CHECK_OK(rt_eventsource_on_any(source, on_event, &f, NULL));
  CHECK_OK(rt_eventsource_on_store(source, on_store, &f, NULL));
  CHECK_OK(rt_eventsource_start(source));
  run_freed(&f);
  rt_eventsource_free(source);
  CHECK(f.first == 1 && f.later == 0);

  f = (freeing){.loop = new_loop()};
  CHECK_OK(rt_longpoll_new(f.loop, url("/poll/1"), &poll));
  CHECK_OK(rt_longpoll_set_cursor(poll, RT_LONGPOLL_CURSOR_HEADER_ID, NULL));
  CHECK_OK(rt_longpoll_set_header(poll, "Authorization", "Bearer good"));
  CHECK_OK(rt_longpoll_on_open(poll, on_open, &f, NULL));
  CHECK_OK(rt_longpoll_on_message(poll, on_polled, &f, NULL));
  CHECK_OK(rt_longpoll_start(poll));
  run_freed(&f);
  rt_longpoll_free(poll);
  CHECK(f.first == 1 && f.later == 0);

  f = (freeing){.loop = new_loop()};
  CHECK_OK(rt_rest_new(f.loop, url(""), &client));
  CHECK_OK(rt_rest_request_new(client, "GET", "/events/4", &request));
  CHECK_OK(rt_rest_request_on_head(request, on_head, &f, NULL));
  CHECK_OK(rt_rest_request_on_body(request, on_body, &f, NULL));
  CHECK_OK(rt_rest_request_send(request, on_done, &f, NULL, NULL, NULL));
  rt_rest_request_free(request);
  run_freed(&f);
  rt_rest_free(client);
  CHECK(f.first == 1 && f.later == 0 && f.done == 1);
}

typedef struct race {
  rt_rest *client;
  atomic_int ready;
  unsigned spins;
} race;

static void meet(race *r) {
  atomic_fetch_add(&r->ready, 1);
  while (atomic_load(&r->ready) < 2) {}
}

static void *close_client(void *user) {
  race *r = user;
  meet(r);
  for (volatile unsigned spin = r->spins; spin > 0; spin--) {}
  CHECK_OK(rt_rest_close(r->client));
  return NULL;
}

/* Nobody runs the loop meanwhile: a request that was not sent before the close must not be sent
 * later. */
static void a_closed_client_sends_nothing(rt_loop *loop) {
  unsigned seed = 1;
  for (int round = 0; round < 1000; round++) {
    race r = {.spins = rand_r(&seed) % 4000};
    freeing f = {0};
    rt_rest_request *request;
    rt_status status;
    pthread_t thread;
    CHECK_OK(rt_rest_new(loop, url(""), &r.client));
    CHECK_OK(rt_rest_request_new(r.client, "GET", "/gone", &request));
    CHECK(pthread_create(&thread, NULL, close_client, &r) == 0);
    meet(&r);
    status = rt_rest_request_send(request, on_done, &f, NULL, NULL, NULL);
    CHECK(status == RT_OK || status == RT_ERROR_CLOSED);
    rt_rest_request_free(request);
    pthread_join(thread, NULL);
    if (status == RT_OK) TURN_UNTIL(loop, f.done == 1);
    rt_rest_free(r.client);
  }
}

int main(int argc, char **argv) {
  rt_loop *loop = new_loop();
  CHECK(argc == 2);
  server = argv[1];
  pauses_keep_the_order(loop);
  no_callback_begins_on_a_freed_loop();
  a_closed_client_sends_nothing(loop);
  rt_loop_free(loop);
  return 0;
}
