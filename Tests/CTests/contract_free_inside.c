/* A callback may call every function, even free its own handle. Afterwards no callback of that
 * handle begins, and each destroy function runs once. */
#include "contract.h"

enum moment { OPEN, MESSAGE, MESSAGES, ERROR_EVENT, CLOSE, PONG, MOMENTS };

typedef struct scene {
  rt_loop *loop;
  rt_websocket *websocket;
  enum moment moment;
  bool with_loop;
  int freed, after, destroyed;
} scene;

static void happen(scene *s, enum moment moment) {
  if (s->freed) s->after++;
  if (moment != s->moment) return;
  rt_websocket_free(s->websocket);
  if (s->with_loop) rt_loop_free(s->loop);
  s->freed = 1;
}

static void on_open(const rt_opened *opened, void *user) {
  scene *s = user;
  CHECK(opened->subprotocol != NULL && opened->extensions != NULL);
  if (s->moment != OPEN) {
    CHECK_OK(rt_websocket_send_text(s->websocket, "one", 3));
    CHECK_OK(rt_websocket_send_text(s->websocket, "two", 3));
    CHECK_OK(rt_websocket_ping(s->websocket, NULL, 0));
  }
  happen(s, OPEN);
  /* The arguments are valid until the callback returns, even after the handle was freed. */
  CHECK(strlen(opened->subprotocol) < 100 && strlen(opened->extensions) < 1000);
}

static void on_message(rt_message_kind kind, const uint8_t *data, size_t length, void *user) {
  happen(user, MESSAGE);
  CHECK(kind == RT_MESSAGE_TEXT && length == 3);
  CHECK(memcmp(data, "one", 3) == 0 || memcmp(data, "two", 3) == 0);
}

static void on_messages(
    const uint8_t *base, const rt_message *messages, size_t count, void *user) {
  size_t i;
  happen(user, MESSAGES);
  for (i = 0; i < count; i++) {
    CHECK(messages[i].length == 3 && base[messages[i].offset + 1] != '\0');
  }
}

static void on_error(const rt_failure *failure, void *user) {
  happen(user, ERROR_EVENT);
  CHECK(failure->status < 0 && failure->message[0] != '\0');
}

static void on_close(const rt_closed *closed, void *user) {
  happen(user, CLOSE);
  CHECK(strlen(closed->reason) == closed->reason_length);
}

static void on_pong(int64_t round_trip_us, void *user) {
  CHECK(round_trip_us >= 0);
  happen(user, PONG);
}

static void on_destroy(void *user) { ((scene *)user)->destroyed++; }

static void play(const char *server, const char *path, enum moment moment, bool with_loop) {
  scene s = {0};
  int64_t end_ms = now_ms() + PATIENCE_MS;
  int setters = 5;
  s.loop = new_loop();
  s.moment = moment;
  s.with_loop = with_loop;
  s.websocket = new_websocket(s.loop, server, path);
  CHECK_OK(rt_websocket_on_open(s.websocket, on_open, &s, on_destroy));
  if (moment == MESSAGES) {
    CHECK_OK(rt_websocket_on_messages(s.websocket, on_messages, &s, on_destroy));
  } else {
    CHECK_OK(rt_websocket_on_message(s.websocket, on_message, &s, on_destroy));
  }
  CHECK_OK(rt_websocket_on_error(s.websocket, on_error, &s, on_destroy));
  CHECK_OK(rt_websocket_on_closed(s.websocket, on_close, &s, on_destroy));
  CHECK_OK(rt_websocket_on_pong(s.websocket, on_pong, &s, on_destroy));
  CHECK_OK(rt_websocket_start(s.websocket));
  while (!s.freed) {
    CHECK(now_ms() < end_ms);
    CHECK_OK(rt_loop_dispatch(s.loop, 100));
  }
  if (!with_loop) {
    settle(s.loop);
    rt_loop_free(s.loop);
  }
  CHECK(s.after == 0);
  CHECK(s.destroyed == setters);
}

static void free_loop(void *user) {
  rt_loop **loop = user;
  rt_loop_free(*loop);
  *loop = NULL;
}

/* A job frees the loop: jobs that were posted later are destroyed and do not run. */
static void free_loop_in_job(void) {
  rt_loop *loop = new_loop(), *same = loop;
  int ran = 0, destroyed = 0;
  CHECK_OK(rt_loop_post(loop, free_loop, &same, NULL));
  CHECK_OK(rt_loop_post(loop, count_up, &ran, NULL));
  CHECK_OK(rt_loop_post(loop, count_up, &ran, count_up));
  CHECK_OK(rt_loop_add_timer(loop, 0, 0, count_up, &destroyed, count_up, NULL));
  rt_loop_dispatch(loop, 1000);
  CHECK(same == NULL);
  CHECK(ran == 1); /* one destroy, no run */
  CHECK(destroyed == 1);
}

static void free_loop_in_timer(void) {
  rt_loop *loop = new_loop(), *same = loop;
  int destroyed = 0;
  CHECK_OK(rt_loop_add_timer(loop, 0, 1, free_loop, &same, NULL, NULL));
  CHECK_OK(rt_loop_add_timer(loop, 5, 1, count_up, &destroyed, count_up, NULL));
  rt_loop_dispatch(loop, 1000);
  CHECK(same == NULL);
  CHECK(destroyed == 1);
}

enum { RING = 6 };

/* Each destroy function frees the next handles in a ring. */
static struct link {
  rt_websocket *websocket;
  rt_rest *rest;
  int destroyed;
} ring[RING];

static void free_next(void *user) {
  struct link *mine = user, *next = &ring[(mine - ring + 1) % RING];
  rt_websocket *websocket = next->websocket;
  rt_rest *rest = next->rest;
  mine->destroyed++;
  next->websocket = NULL;
  next->rest = NULL;
  rt_websocket_free(websocket);
  rt_rest_free(rest);
}

static void ignore_text(const rt_opened *opened, void *user) {
  (void)opened, (void)user;
}

static rt_credentials have_none(const rt_failure *refusal, void *user) {
  (void)refusal;
  (void)user;
  return RT_CREDENTIALS_NONE;
}

/* The loop is freed inside its own turn; destroy functions of its handles free its other handles.
 * */
static void free_loop_under_ring(const char *server, int turns) {
  rt_loop *loop = new_loop(), *same = loop;
  int i;
  for (i = 0; i < RING; i++) {
    struct link *link = &ring[i];
    link->destroyed = 0;
    link->websocket = new_websocket(loop, server, "/echo");
    CHECK_OK(rt_websocket_on_open(link->websocket, ignore_text, link, free_next));
    CHECK_OK(rt_websocket_start(link->websocket));
    CHECK_OK(rt_rest_new(loop, "http://127.0.0.1:1/", &link->rest));
    CHECK_OK(rt_rest_on_credentials(link->rest, have_none, link, free_next));
  }
  for (i = 0; i < turns; i++) CHECK_OK(rt_loop_dispatch(loop, 10));
  CHECK_OK(rt_loop_post(loop, free_loop, &same, NULL));
  while (same != NULL) rt_loop_dispatch(loop, 10);
  for (i = 0; i < RING; i++) CHECK(ring[i].destroyed == 2);
}

int main(int argc, char **argv) {
  int with_loop, turns;
  CHECK(argc == 2);
  for (with_loop = 0; with_loop < 2; with_loop++) {
    play(argv[1], "/echo", OPEN, with_loop);
    play(argv[1], "/echo", MESSAGE, with_loop);
    play(argv[1], "/echo", MESSAGES, with_loop);
    play(argv[1], "/echo", PONG, with_loop);
    play(argv[1], "/refuse", ERROR_EVENT, with_loop);
    play(argv[1], "/refuse", CLOSE, with_loop);
    play(argv[1], "/close/4001", CLOSE, with_loop);
  }
  free_loop_in_job();
  free_loop_in_timer();
  for (turns = 0; turns < 12; turns++) free_loop_under_ring(argv[1], turns);
  return 0;
}
