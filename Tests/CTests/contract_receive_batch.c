/* Messages are taken in batches: from the library's own loop, or from one that the same thread
 * dispatches. */
#include "contract.h"

enum { MESSAGES = 3000, MOST = 64, ALL = 1 << 20 };

/* Takes a batch of at most `most` numbered messages, of which the first is `next`. */
static int take(rt_websocket *websocket, int64_t timeout_ms, size_t most, int next) {
  rt_received_batch *batch = NULL;
  size_t i;
  rt_status status = rt_websocket_receive_batch(websocket, timeout_ms, most, &batch);
  if (status == RT_ERROR_TIMEOUT && timeout_ms == 0) return 0;
  CHECK_OK(status);
  CHECK(batch->struct_bytes == sizeof *batch);
  CHECK(batch->message_count >= 1 && batch->message_count <= most);
  for (i = 0; i < batch->message_count; i++) {
    const rt_received *message = &batch->messages[i];
    CHECK(message->struct_bytes == sizeof *message && message->kind == RT_MESSAGE_TEXT);
    CHECK(message->length == strlen((const char *)message->data));
    CHECK(atoi((const char *)message->data) == next + (int)i);
  }
  i = batch->message_count;
  rt_received_batch_free(batch);
  return (int)i;
}

static rt_websocket *pushing(rt_loop *loop, const char *server, int count) {
  char path[32];
  snprintf(path, sizeof path, "/push/%d", count);
  return new_websocket(loop, server, path);
}

static void threads_take_batches(const char *server) {
  int taken = 0;
  rt_websocket *websocket = pushing(NULL, server, MESSAGES);
  CHECK_OK(rt_websocket_connect(websocket, PATIENCE_MS));
  while (taken < MESSAGES) taken += take(websocket, PATIENCE_MS, MOST, taken);
  CHECK(take(websocket, 0, MOST, taken) == 0);
  rt_websocket_free(websocket);
}

/* A full queue pauses the connection; a batch that empties it lets the rest come. */
static void batches_make_room(const char *server) {
  rt_websocket_statistics statistics = {0};
  int taken = 0;
  rt_websocket *websocket = pushing(NULL, server, MESSAGES);
  CHECK_OK(rt_websocket_connect(websocket, PATIENCE_MS));
  while (statistics.messages_received < 1024) {
    CHECK_OK(rt_websocket_get_statistics(websocket, &statistics, sizeof statistics));
  }
  taken = take(websocket, PATIENCE_MS, ALL, 0);
  CHECK(taken >= 1024);
  while (taken < MESSAGES) taken += take(websocket, PATIENCE_MS, ALL, taken);
  rt_websocket_free(websocket);
}

/* The thread that dispatches takes what each turn has brought. */
static void the_dispatching_thread_takes_batches(const char *server) {
  int taken = 0;
  int64_t end_ms = now_ms() + PATIENCE_MS;
  rt_loop *loop = new_loop();
  rt_websocket *websocket = pushing(loop, server, MESSAGES);
  CHECK_STATUS(rt_websocket_connect(websocket, 0), RT_ERROR_TIMEOUT);
  while (taken < MESSAGES) {
    CHECK(now_ms() < end_ms);
    CHECK_OK(rt_loop_dispatch(loop, 100));
    taken += take(websocket, 0, MOST, taken);
  }
  rt_websocket_free(websocket);
  rt_loop_free(loop);
}

typedef struct inside {
  rt_websocket *websocket;
  rt_status poll, wait;
  int ran;
} inside;

static void receive_inside(void *user) {
  inside *i = user;
  rt_received_batch *batch = NULL;
  i->poll = rt_websocket_receive_batch(i->websocket, 0, MOST, &batch);
  rt_received_batch_free(batch);
  i->wait = rt_websocket_receive_batch(i->websocket, -1, MOST, &batch);
  i->ran = 1;
}

/* Callbacks may take what is there, but not wait. */
static void callbacks_may_poll(const char *server) {
  rt_loop *loop = new_loop();
  inside i = {.websocket = pushing(loop, server, 0)};
  CHECK_STATUS(rt_websocket_connect(i.websocket, 0), RT_ERROR_TIMEOUT);
  CHECK_OK(rt_loop_post(loop, receive_inside, &i, NULL));
  TURN_UNTIL(loop, i.ran);
  CHECK(i.poll == RT_ERROR_TIMEOUT && i.wait == RT_ERROR_REENTRANT);
  rt_websocket_free(i.websocket);
  rt_loop_free(loop);
}

static void arguments(const char *server) {
  rt_received_batch *batch = NULL;
  rt_websocket *websocket = pushing(NULL, server, 1);
  CHECK_STATUS(rt_websocket_receive_batch(websocket, 0, 1, &batch), RT_ERROR_STATE);
  CHECK_OK(rt_websocket_connect(websocket, PATIENCE_MS));
  CHECK_STATUS(rt_websocket_receive_batch(websocket, 0, 0, &batch), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_websocket_receive_batch(websocket, -2, 1, &batch), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_websocket_receive_batch(websocket, 0, 1, NULL), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_websocket_receive_batch(NULL, 0, 1, &batch), RT_ERROR_INVALID_ARGUMENT);
  CHECK(batch == NULL);
  rt_received_batch_free(NULL);
  rt_event_batch_free(NULL);
  rt_pusher_batch_free(NULL);
  rt_pusher_event_free(NULL);
  rt_websocket_free(websocket);
}

static const char *http(const char *server, const char *path) {
  static char url[256];
  snprintf(url, sizeof url, "http%s%s", server + 2, path);
  return url;
}

static void event_batches(const char *server) {
  rt_event_batch *batch = NULL;
  rt_eventsource *eventsource;
  int number = 1;
  CHECK_OK(rt_eventsource_new(NULL, http(server, "/events/100"), &eventsource));
  while (number <= 100) {
    size_t i;
    CHECK_OK(rt_eventsource_receive_batch(eventsource, PATIENCE_MS, MOST, &batch));
    CHECK(batch->struct_bytes == sizeof *batch && batch->event_count <= MOST);
    for (i = 0; i < batch->event_count; i++) {
      const rt_event *event = &batch->events[i];
      CHECK(event->struct_bytes == sizeof *event && atoi(event->id) == number++);
      CHECK(strncmp(event->data, "number\n", 7) == 0 && atoi(event->data + 7) == number - 1);
      CHECK(strlen(event->data) == event->data_length);
    }
    rt_event_batch_free(batch);
  }
  rt_eventsource_free(eventsource);
}

static void poll_batches(const char *server) {
  rt_event_batch *batch = NULL;
  rt_longpoll *longpoll;
  size_t taken = 0;
  CHECK_OK(rt_longpoll_new(NULL, http(server, "/batch/100"), &longpoll));
  /* Otherwise the next poll gets the same messages, and may end between two calls. */
  CHECK_OK(rt_longpoll_set_cursor(longpoll, RT_LONGPOLL_CURSOR_HEADER_ID, NULL));
  while (taken < 100) {
    CHECK_OK(rt_longpoll_receive_batch(longpoll, PATIENCE_MS, MOST, &batch));
    CHECK(batch->event_count >= 1 && batch->events[0].data_length == 0);
    taken += batch->event_count;
    rt_event_batch_free(batch);
  }
  CHECK(taken == 100);
  rt_longpoll_free(longpoll);
}

static rt_pusher *pushing_events(const char *server, int count) {
  char key[32];
  rt_pusher *pusher = NULL;
  rt_pusher_channel *channel = NULL;
  snprintf(key, sizeof key, "push-%d", count);
  CHECK_OK(rt_pusher_new(NULL, key, &pusher));
  CHECK_OK(rt_pusher_set_host(pusher, "127.0.0.1"));
  CHECK_OK(rt_pusher_set_port(pusher, (uint32_t)atoi(strrchr(server, ':') + 1)));
  CHECK_OK(rt_pusher_set_use_tls(pusher, false));
  CHECK_OK(rt_pusher_subscribe(pusher, "news", &channel));
  rt_pusher_channel_free(channel);
  return pusher;
}

static int is_new(const rt_pusher_event *event) {
  CHECK(event->struct_bytes == sizeof *event && event->message[event->message_length] == '\0');
  CHECK(strlen(event->event) == event->event_length && strlen(event->data) == event->data_length);
  if (strcmp(event->event, "new") != 0) return 0;
  CHECK(strcmp(event->channel, "news") == 0 && event->channel_number > 0);
  CHECK(event->user_id[0] == '\0' && event->user_id_length == 0);
  return 1;
}

static void count_event(const rt_pusher_event *event, void *user) {
  (void)event;
  __atomic_fetch_add((int *)user, 1, __ATOMIC_SEQ_CST);
}

/* Pusher: the first call connects. Functions that are bound get the events, too. */
static void pusher_events(const char *server) {
  int taken = 0, bound = 0;
  rt_pusher *pusher = pushing_events(server, MESSAGES);
  rt_pusher_event *event = NULL;
  rt_pusher_batch *batch = NULL;
  CHECK_OK(rt_pusher_bind(pusher, "new", count_event, &bound, NULL, NULL));
  while (taken < 10) {
    CHECK_OK(rt_pusher_receive(pusher, PATIENCE_MS, &event));
    taken += is_new(event);
    rt_pusher_event_free(event);
  }
  while (taken < MESSAGES) {
    size_t i;
    CHECK_OK(rt_pusher_receive_batch(pusher, PATIENCE_MS, MOST, &batch));
    CHECK(batch->struct_bytes == sizeof *batch && batch->event_count <= MOST);
    for (i = 0; i < batch->event_count; i++) taken += is_new(&batch->events[i]);
    rt_pusher_batch_free(batch);
  }
  CHECK(taken == MESSAGES && __atomic_load_n(&bound, __ATOMIC_SEQ_CST) == MESSAGES);
  CHECK_STATUS(rt_pusher_receive(pusher, 0, &event), RT_ERROR_TIMEOUT);
  CHECK_OK(rt_pusher_close(pusher));
  CHECK_STATUS(rt_pusher_receive(pusher, PATIENCE_MS, &event), RT_ERROR_CLOSED);
  /* It can connect again. */
  CHECK_OK(rt_pusher_connect(pusher, PATIENCE_MS));
  do {
    CHECK_OK(rt_pusher_receive(pusher, PATIENCE_MS, &event));
    taken = is_new(event);
    rt_pusher_event_free(event);
  } while (!taken);
  rt_pusher_free(pusher);
}

int main(int argc, char **argv) {
  CHECK(argc == 2);
  threads_take_batches(argv[1]);
  batches_make_room(argv[1]);
  the_dispatching_thread_takes_batches(argv[1]);
  callbacks_may_poll(argv[1]);
  arguments(argv[1]);
  event_batches(argv[1]);
  poll_batches(argv[1]);
  pusher_events(argv[1]);
  return 0;
}
