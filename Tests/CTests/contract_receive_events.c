/* Blocking calls that wait for the messages of event sources, long polls and Spreadbot connections,
 * with the library's own loop or one on a thread, from one thread or several. */
#include <pthread.h>
#include <unistd.h>

#include "contract.h"

/* Guards against hanging; and the capacity of the inbox. */
enum { CAPACITY = 1024 };

/* An object from which messages are received. */
typedef struct object {
  void *handle;
  rt_status (*receive)(void *handle, int64_t timeout_ms, rt_event **out);
  rt_status (*id)(void *handle, char *buffer, size_t size, size_t *out_length);
  rt_status (*close)(void *handle);
  void (*free)(void *handle);
  rt_status (*on_all)(void *handle, rt_event_fn fn, void *user);
} object;

#define OBJECT(kind, receives, ids, closes, frees, sets)                                      \
  static rt_status kind##_receive(void *handle, int64_t timeout_ms, rt_event **out) {         \
    return receives(handle, timeout_ms, out);                                                 \
  }                                                                                           \
  static rt_status kind##_id(void *handle, char *buffer, size_t size, size_t *out_length) {   \
    return ids(handle, buffer, size, out_length);                                             \
  }                                                                                           \
  static rt_status kind##_close(void *handle) { return closes(handle); }                      \
  static void kind##_free(void *handle) { frees(handle); }                                    \
  static rt_status kind##_on_all(void *handle, rt_event_fn fn, void *user) {                  \
    return sets(handle, fn, user, NULL);                                                      \
  }                                                                                           \
  static object kind##_object(rt_##kind *handle) {                                            \
    return (object){handle,      kind##_receive, kind##_id, kind##_close,                     \
                    kind##_free, kind##_on_all};                                              \
  }

OBJECT(eventsource, rt_eventsource_receive, rt_eventsource_get_last_event_id, rt_eventsource_close,
       rt_eventsource_free, rt_eventsource_on_any)
OBJECT(longpoll, rt_longpoll_receive, rt_longpoll_get_last_event_id, rt_longpoll_close,
       rt_longpoll_free, rt_longpoll_on_message)
OBJECT(spreadbot, rt_spreadbot_receive, rt_spreadbot_get_last_event_id, rt_spreadbot_close,
       rt_spreadbot_free, rt_spreadbot_on_message)

static const char *server;

static const char *url_of(const char *path) {
  static char url[256];
  snprintf(url, sizeof url, "http%s%s", server + 2, path);
  return url;
}

static object source_at(rt_loop *loop, const char *path) {
  rt_eventsource *source = NULL;
  CHECK_OK(rt_eventsource_new(loop, url_of(path), &source));
  CHECK_OK(rt_eventsource_set_min_reconnection_time_ms(source, 1));
  return eventsource_object(source);
}

static object poll_at(rt_loop *loop, const char *path) {
  rt_longpoll *poll = NULL;
  CHECK_OK(rt_longpoll_new(loop, url_of(path), &poll));
  CHECK_OK(rt_longpoll_set_bearer_token(poll, "good"));
  CHECK_OK(rt_longpoll_set_cursor(poll, RT_LONGPOLL_CURSOR_HEADER_ID, NULL));
  return longpoll_object(poll);
}

static object spreadbot_on(rt_loop *loop) {
  const int32_t transports[] = {RT_SPREADBOT_TRANSPORT_WEBSOCKET, RT_SPREADBOT_TRANSPORT_SSE};
  rt_spreadbot *spreadbot = NULL;
  CHECK_OK(rt_spreadbot_new(loop, url_of(""), &spreadbot));
  CHECK_OK(rt_spreadbot_set_transports(spreadbot, transports, 2));
  return spreadbot_object(spreadbot);
}

static object spreadbot_at(rt_loop *loop, const char *path) {
  object spreadbot = spreadbot_on(loop);
  CHECK_OK(rt_spreadbot_connect(spreadbot.handle, path, PATIENCE_MS));
  return spreadbot;
}

static void check_event(const rt_event *event) {
  CHECK(event->struct_bytes == sizeof *event);
  CHECK(strlen(event->id) == event->id_length && strlen(event->event) == event->event_length);
  CHECK(strlen(event->data) == event->data_length && event->content_type != NULL);
}

static rt_event *receive(object from) {
  rt_event *event = NULL;
  CHECK_OK(from.receive(from.handle, PATIENCE_MS, &event));
  check_event(event);
  return event;
}

static void expect(object from, const char *id, const char *name, const char *data) {
  rt_event *event = receive(from);
  CHECK(strcmp(event->id, id) == 0 && strcmp(event->event, name) == 0);
  CHECK(strcmp(event->data, data) == 0 && event->had_id == (id[0] != '\0'));
  rt_event_free(event);
}

static void expect_end(object from, rt_status status) {
  rt_event *event = NULL;
  CHECK_STATUS(from.receive(from.handle, -1, &event), status);
  CHECK_STATUS(from.receive(from.handle, 0, &event), status);
  CHECK(event == NULL && rt_last_error()[0] != '\0');
}

static void takes_all_kinds(rt_loop *loop) {
  object source = source_at(loop, "/events/2");
  object poll = poll_at(loop, "/poll/2");
  object spreadbot = spreadbot_at(loop, "/events/2");
  rt_event *event;
  expect(source, "1", "odd", "number\n1");
  expect(source, "2", "message", "number\n2");
  /* After a reconnect. */
  expect(source, "3", "odd", "number\n3");
  expect(poll, "1", "", "message 1");
  event = receive(poll);
  CHECK(strncmp(event->content_type, "text/plain", 10) == 0);
  rt_event_free(event);
  rt_event_free(NULL);
  CHECK_STATUS(poll.receive(poll.handle, 0, &event), RT_ERROR_TIMEOUT);
  CHECK_STATUS(poll.receive(poll.handle, 10, &event), RT_ERROR_TIMEOUT);
  expect(spreadbot, "1", "odd", "number\n1");
  expect(spreadbot, "2", "/events/2", "number\n2");
  source.free(source.handle);
  poll.free(poll.handle);
  spreadbot.free(spreadbot.handle);
}

/* Far more messages than may wait: the rest stays with the server, and none are lost. */
static void slow_receiver(void) {
  object source = source_at(NULL, "/events/5000");
  object poll = poll_at(NULL, "/batch/5000");
  object spreadbot = spreadbot_at(NULL, "push/5000");
  char id[16];
  size_t length;
  int number;
  for (number = 1; number <= 5000; number++) {
    rt_event *event = receive(source);
    CHECK(atoi(event->id) == number);
    rt_event_free(event);
    CHECK_OK(source.id(source.handle, id, sizeof id, &length));
    CHECK(atoi(id) - number <= CAPACITY);
  }
  for (number = 1; number <= 5000; number++) {
    rt_event_free(receive(poll));
    /* The cursor moves when the last message of the batch enters the inbox. */
    CHECK_OK(poll.id(poll.handle, id, sizeof id, &length));
    CHECK(length == 0 || 5000 - number <= CAPACITY);
  }
  for (number = 0; number < 5000; number++) {
    rt_event *event = receive(spreadbot);
    CHECK(atoi(event->data) == number);
    rt_event_free(event);
  }
  source.free(source.handle);
  poll.free(poll.handle);
  spreadbot.free(spreadbot.handle);
}

static void refusals(void) {
  object all[] = {source_at(NULL, "/events/1"), poll_at(NULL, "/poll/1"), spreadbot_on(NULL)};
  rt_event *event = NULL;
  int index;
  for (index = 0; index < 3; index++) {
    object from = all[index];
    CHECK_STATUS(from.receive(from.handle, -2, &event), RT_ERROR_INVALID_ARGUMENT);
    CHECK(strstr(rt_last_error(), "-1 or more"));
    CHECK_STATUS(from.receive(from.handle, 0, NULL), RT_ERROR_INVALID_ARGUMENT);
  }
  CHECK_STATUS(rt_eventsource_receive(NULL, 0, &event), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_longpoll_receive(NULL, 0, &event), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_spreadbot_receive(NULL, 0, &event), RT_ERROR_INVALID_ARGUMENT);
  /* An object that was started with callbacks has no inbox. */
  CHECK_OK(rt_eventsource_start(all[0].handle));
  CHECK_OK(rt_longpoll_start(all[1].handle));
  CHECK_STATUS(rt_spreadbot_connect(all[2].handle, NULL, 0), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_spreadbot_connect(all[2].handle, "echo", -2), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_spreadbot_connect(NULL, "echo", 0), RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_spreadbot_start(all[2].handle, "echo"));
  for (index = 0; index < 3; index++) {
    CHECK_STATUS(all[index].receive(all[index].handle, -1, &event), RT_ERROR_STATE);
    CHECK(event == NULL);
    all[index].free(all[index].handle);
  }
}

/* Messages from before the end can be received after it; then the call returns how it ended. */
static void receives_the_end(void) {
  object from = source_at(NULL, "/events/2");
  CHECK_OK(rt_eventsource_set_reconnect(from.handle, false));
  expect(from, "1", "odd", "number\n1");
  while (rt_eventsource_get_state(from.handle) != RT_STATE_CLOSED) usleep(1000);
  expect(from, "2", "message", "number\n2");
  expect_end(from, RT_ERROR_CLOSED);
  from.free(from.handle);
  from = source_at(NULL, "/gone");
  expect_end(from, RT_ERROR_HTTP_STATUS);
  from.free(from.handle);
  from = source_at(NULL, "/events/1");
  CHECK_OK(from.close(from.handle));
  expect_end(from, RT_ERROR_CLOSED);
  from.free(from.handle);
  from = poll_at(NULL, "/refuse");
  expect_end(from, RT_ERROR_HTTP_STATUS);
  from.free(from.handle);
  from = poll_at(NULL, "/poll/1");
  expect(from, "1", "", "message 1");
  CHECK_OK(from.close(from.handle));
  expect_end(from, RT_ERROR_CLOSED);
  from.free(from.handle);
}

/* A Spreadbot connection can connect again. */
static void connects_again(void) {
  object from = spreadbot_on(NULL);
  CHECK_STATUS(rt_spreadbot_connect(from.handle, "refuse", -1), RT_ERROR_HTTP_STATUS);
  expect_end(from, RT_ERROR_HTTP_STATUS);
  CHECK_OK(rt_spreadbot_connect(from.handle, "push/1", -1));
  while (rt_spreadbot_get_state(from.handle) != RT_STATE_OPEN) usleep(1000);
  expect(from, "", "push/1", "0");
  CHECK_OK(from.close(from.handle));
  expect_end(from, RT_ERROR_CLOSED);
  CHECK_OK(rt_spreadbot_start(from.handle, "push/2"));
  expect(from, "", "push/2", "0");
  CHECK_OK(rt_spreadbot_connect(from.handle, "echo", -1));
  CHECK_OK(rt_spreadbot_send_text(from.handle, "hello", 5, NULL));
  for (;;) {
    rt_event *event = receive(from);
    bool is_answer = strcmp(event->data, "hello") == 0;
    CHECK(is_answer || strcmp(event->event, "push/2") == 0);
    rt_event_free(event);
    if (is_answer) break;
  }
  from.free(from.handle);
}

typedef struct receiver {
  pthread_t thread;
  pid_t number;
  object from;
  int received;
  rt_status end;
} receiver;

static void *receive_all(void *user) {
  receiver *r = user;
  rt_event *event = NULL;
  __atomic_store_n(&r->number, gettid(), __ATOMIC_SEQ_CST);
  while (!(r->end = r->from.receive(r->from.handle, -1, &event))) {
    check_event(event);
    __atomic_add_fetch(&r->received, 1, __ATOMIC_SEQ_CST);
    rt_event_free(event);
  }
  return NULL;
}

static bool is_blocked(receiver *r) {
  pid_t number = __atomic_load_n(&r->number, __ATOMIC_SEQ_CST);
  return number != 0 && sleeps(number);
}

enum how { CLOSED, FREED, LOOP_FREED };

/* Three threads receive each message once, then wait; the end of the object ends their waits. */
static void several_receive(object from, rt_loop *loop, int count, enum how how) {
  receiver receivers[3];
  int index, sum = 0;
  for (index = 0; index < 3; index++) {
    receivers[index] = (receiver){.from = from};
    CHECK(!pthread_create(&receivers[index].thread, NULL, receive_all, &receivers[index]));
  }
  while (sum < count) {
    for (sum = index = 0; index < 3; index++) {
      sum += __atomic_load_n(&receivers[index].received, __ATOMIC_SEQ_CST);
    }
    usleep(1000);
  }
  for (index = 0; index < 3; index++) while (!is_blocked(&receivers[index])) usleep(1000);
  if (how == CLOSED) CHECK_OK(from.close(from.handle));
  if (how == FREED) from.free(from.handle);
  if (how == LOOP_FREED) rt_loop_free(loop);
  for (index = 0; index < 3; index++) {
    CHECK(!pthread_join(receivers[index].thread, NULL));
    CHECK(receivers[index].end == RT_ERROR_CLOSED);
  }
  if (how != FREED) from.free(from.handle);
  if (how != LOOP_FREED) rt_loop_free(loop);
}

static rt_loop *running_loop(void) {
  rt_loop *loop = new_loop();
  CHECK_OK(rt_loop_start(loop));
  return loop;
}

static void several_receive_of_each(enum how how) {
  rt_loop *loop = running_loop();
  object source = source_at(loop, "/events/4");
  /* After its first stream it waits: only a timer keeps it on the loop. */
  CHECK_OK(rt_eventsource_set_min_reconnection_time_ms(source.handle, 3600000));
  several_receive(source, loop, 4, how);
  loop = running_loop();
  several_receive(poll_at(loop, "/batch/4"), loop, 4, how);
  loop = running_loop();
  several_receive(spreadbot_at(loop, "push/4"), loop, 4, how);
}

typedef struct callbacks {
  object from;
  int told;
  rt_status receive;
} callbacks;

static void on_event(const rt_event *event, void *user) {
  callbacks *c = user;
  rt_event *other = NULL;
  rt_status status = c->from.receive(c->from.handle, -1, &other);
  (void)event;
  __atomic_store_n(&c->receive, status, __ATOMIC_SEQ_CST);
  __atomic_add_fetch(&c->told, 1, __ATOMIC_SEQ_CST);
}

/* A callback that is set later gets the messages that have not been received yet, even more than
 * may wait. While it is set, no thread can wait. */
static void callback_for_the_rest(object from, int count) {
  callbacks c = {.from = from};
  rt_event *event = NULL;
  int taken = 1;
  rt_status status;
  rt_event_free(receive(from));
  CHECK_OK(from.on_all(from.handle, on_event, &c));
  while (!__atomic_load_n(&c.told, __ATOMIC_SEQ_CST)) usleep(1000);
  CHECK(__atomic_load_n(&c.receive, __ATOMIC_SEQ_CST) == RT_ERROR_REENTRANT);
  while (!(status = from.receive(from.handle, -1, &event))) {
    rt_event_free(event);
    taken++;
  }
  CHECK(status == RT_ERROR_STATE && strstr(rt_last_error(), "callback"));
  while (taken + __atomic_load_n(&c.told, __ATOMIC_SEQ_CST) < count) usleep(1000);
  from.free(from.handle);
}

static void count_event(const rt_event *event, void *user) {
  check_event(event);
  __atomic_add_fetch((int *)user, 1, __ATOMIC_SEQ_CST);
}

/* Events that have a listener do not go to the inbox. */
static void beside_listeners(void) {
  object source = source_at(NULL, "/events/4");
  int odd = 0;
  CHECK_OK(rt_eventsource_add_listener(source.handle, "odd", count_event, &odd, NULL, NULL));
  expect(source, "2", "message", "number\n2");
  expect(source, "4", "message", "number\n4");
  expect(source, "6", "message", "number\n6");
  CHECK(__atomic_load_n(&odd, __ATOMIC_SEQ_CST) >= 3);
  source.free(source.handle);
  source = source_at(NULL, "/events/4");
  odd = 0;
  CHECK_OK(rt_eventsource_on_message(source.handle, count_event, &odd, NULL));
  expect(source, "1", "odd", "number\n1");
  expect(source, "3", "odd", "number\n3");
  CHECK(__atomic_load_n(&odd, __ATOMIC_SEQ_CST) >= 1);
  source.free(source.handle);
}

/* A client made from a connection on the library's own loop keeps that loop alive. */
static void client_outlives(void) {
  object from = spreadbot_on(NULL);
  rt_rest *rest = NULL;
  rt_rest_request *request = NULL;
  CHECK_OK(rt_spreadbot_new_rest(from.handle, &rest));
  from.free(from.handle);
  CHECK_OK(rt_rest_request_new(rest, "GET", "/gone", &request));
  rt_rest_request_free(request);
  rt_rest_free(rest);
}

int main(int argc, char **argv) {
  rt_loop *loop;
  CHECK(argc == 2);
  server = argv[1];
  loop = running_loop();
  takes_all_kinds(NULL);
  takes_all_kinds(loop);
  slow_receiver();
  refusals();
  receives_the_end();
  connects_again();
  several_receive_of_each(CLOSED);
  several_receive_of_each(FREED);
  several_receive_of_each(LOOP_FREED);
  callback_for_the_rest(source_at(NULL, "/events/5000"), 5000);
  callback_for_the_rest(poll_at(NULL, "/batch/5000"), 5000);
  callback_for_the_rest(spreadbot_at(NULL, "push/5000"), 5000);
  beside_listeners();
  client_outlives();
  rt_loop_free(loop);
  return 0;
}
