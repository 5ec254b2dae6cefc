/* Blocking calls that wait until an event source or a long poll is open: with the library's own
 * loop or one on a thread; what opened, what failed, and what ends a wait. */
#include <pthread.h>

#include "contract.h"

static const char *server;

static const char *url_of(const char *path) {
  static char url[256];
  snprintf(url, sizeof url, "http%s%s", server + 2, path);
  return url;
}

static rt_eventsource *source_at(rt_loop *loop, const char *url) {
  rt_eventsource *source = NULL;
  CHECK_OK(rt_eventsource_new(loop, url, &source));
  CHECK_OK(rt_eventsource_set_min_reconnection_time_ms(source, 1));
  return source;
}

static rt_longpoll *poll_at(rt_loop *loop, const char *path) {
  rt_longpoll *poll = NULL;
  CHECK_OK(rt_longpoll_new(loop, url_of(path), &poll));
  CHECK_OK(rt_longpoll_set_bearer_token(poll, "good"));
  CHECK_OK(rt_longpoll_set_cursor(poll, RT_LONGPOLL_CURSOR_HEADER_ID, NULL));
  return poll;
}

static void sources_open(rt_loop *loop) {
  rt_event *event = NULL;
  rt_eventsource *source = source_at(loop, url_of("/events/2"));
  CHECK_STATUS(rt_eventsource_connect(NULL, 0), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_eventsource_connect(source, -2), RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_eventsource_connect(source, PATIENCE_MS));
  CHECK_OK(rt_eventsource_receive(source, PATIENCE_MS, &event));
  CHECK(strcmp(event->id, "1") == 0);
  rt_event_free(event);
  rt_eventsource_free(source);
  /* A source that was started with callbacks can be waited for, but has no inbox. */
  source = source_at(loop, url_of("/events/2"));
  CHECK_OK(rt_eventsource_start(source));
  CHECK_OK(rt_eventsource_connect(source, -1));
  CHECK_STATUS(rt_eventsource_receive(source, 0, &event), RT_ERROR_STATE);
  CHECK_OK(rt_eventsource_close(source));
  CHECK_STATUS(rt_eventsource_connect(source, 0), RT_ERROR_CLOSED);
  rt_eventsource_free(source);
  source = source_at(loop, url_of("/gone"));
  CHECK_STATUS(rt_eventsource_connect(source, -1), RT_ERROR_HTTP_STATUS);
  CHECK_STATUS(rt_eventsource_connect(source, 0), RT_ERROR_HTTP_STATUS);
  CHECK_STATUS(rt_eventsource_receive(source, -1, &event), RT_ERROR_HTTP_STATUS);
  rt_eventsource_free(source);
}

static void polls_open(rt_loop *loop) {
  rt_event *event = NULL;
  rt_longpoll *poll = poll_at(loop, "/poll/1");
  CHECK_STATUS(rt_longpoll_connect(NULL, 0), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_longpoll_connect(poll, -2), RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_longpoll_connect(poll, PATIENCE_MS));
  CHECK_OK(rt_longpoll_connect(poll, 0));
  CHECK(rt_longpoll_get_state(poll) == RT_STATE_OPEN);
  CHECK_OK(rt_longpoll_receive(poll, PATIENCE_MS, &event));
  CHECK(strcmp(event->data, "message 1") == 0);
  rt_event_free(event);
  rt_longpoll_free(poll);
  poll = poll_at(loop, "/refuse");
  CHECK_STATUS(rt_longpoll_connect(poll, -1), RT_ERROR_HTTP_STATUS);
  CHECK_STATUS(rt_longpoll_receive(poll, -1, &event), RT_ERROR_HTTP_STATUS);
  rt_longpoll_free(poll);
}

static void *connect_without_limit(void *source) {
  CHECK_STATUS(rt_eventsource_connect(source, -1), RT_ERROR_CLOSED);
  return NULL;
}

/* Nobody listens on port 1: the source tries again and again, until it or its loop ends. */
static void ends_end_waits(bool closes) {
  pthread_t thread;
  rt_loop *loop = new_loop();
  rt_eventsource *source = source_at(loop, "http://127.0.0.1:1");
  CHECK_OK(rt_loop_start(loop));
  CHECK_STATUS(rt_eventsource_connect(source, 0), RT_ERROR_TIMEOUT);
  CHECK_STATUS(rt_eventsource_connect(source, 5), RT_ERROR_TIMEOUT);
  CHECK(strstr(rt_last_error(), "keeps trying"));
  CHECK(!pthread_create(&thread, NULL, connect_without_limit, source));
  if (closes) CHECK_OK(rt_eventsource_close(source));
  if (!closes) rt_loop_free(loop);
  CHECK(!pthread_join(thread, NULL));
  rt_eventsource_free(source);
  if (closes) rt_loop_free(loop);
}

static void on_job(void *user) {
  CHECK_STATUS(rt_eventsource_connect(user, -1), RT_ERROR_REENTRANT);
  CHECK(rt_eventsource_get_state(user) == RT_STATE_IDLE);
}

int main(int argc, char **argv) {
  rt_loop *loop = new_loop();
  rt_eventsource *source;
  CHECK(argc == 2);
  server = argv[1];
  source = source_at(loop, url_of("/events/1"));
  CHECK_OK(rt_loop_post(loop, on_job, source, NULL));
  CHECK_OK(rt_loop_dispatch(loop, -1));
  rt_eventsource_free(source);
  CHECK_OK(rt_loop_start(loop));
  sources_open(NULL);
  sources_open(loop);
  polls_open(NULL);
  polls_open(loop);
  ends_end_waits(true);
  ends_end_waits(false);
  rt_loop_free(loop);
  return 0;
}
