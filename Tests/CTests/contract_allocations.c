/* Receiving a message or a Pusher event, singly or in a batch, and sending a message allocate
 * nothing. This program replaces the allocator, and counts the calls of the loop's thread. */

#include "contract.h"

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static long allocations;
static int counting;

static void note(void) {
  if (counting) allocations++;
}

void *malloc(size_t size) {
  note();
  return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
  note();
  return __libc_calloc(count, size);
}

void *realloc(void *old, size_t size) {
  note();
  return __libc_realloc(old, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
  note();
  return __libc_memalign(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size) {
  note();
  *out = __libc_memalign(alignment, size);
  return *out ? 0 : 12;
}

/* Counts allocations from message `from` to message `to`. */
typedef struct span {
  rt_websocket *websocket;
  long seen, from, to;
  size_t size;
  int opened, echoes;
} span;

static uint8_t payload[4096];

static void on_open(const rt_opened *opened, void *user) {
  (void)opened;
  ((span *)user)->opened = 1;
}

static void step(span *s, long count) {
  s->seen += count;
  if (s->seen >= s->to) counting = 0;
  else if (s->seen >= s->from) counting = 1;
}

static void on_message(rt_message_kind kind, const uint8_t *data, size_t length, void *user) {
  span *s = user;
  (void)kind, (void)data, (void)length;
  step(s, 1);
  /* Answer each echo with one message, so that the number in flight stays the same. */
  if (s->echoes) CHECK_OK(rt_websocket_send_binary(s->websocket, payload, s->size));
}

static void on_messages(
    const uint8_t *base, const rt_message *messages, size_t count, void *user) {
  span *s = user;
  size_t i;
  (void)base, (void)messages;
  step(s, (long)count);
  for (i = 0; s->echoes && i < count; i++) {
    CHECK_OK(rt_websocket_send_binary(s->websocket, payload, s->size));
  }
}

/* How many allocations one connection makes while it carries the counted messages. */
static long measure(rt_loop *loop, span *s, const char *server, const char *path, bool batch) {
  s->websocket = new_websocket(loop, server, path);
  CHECK_OK(rt_websocket_set_compression(s->websocket, false));
  CHECK_OK(rt_websocket_on_open(s->websocket, on_open, s, NULL));
  CHECK_OK(batch ? rt_websocket_on_messages(s->websocket, on_messages, s, NULL)
                 : rt_websocket_on_message(s->websocket, on_message, s, NULL));
  CHECK_OK(rt_websocket_start(s->websocket));
  TURN_UNTIL(loop, s->opened);
  if (s->echoes) {
    int i;
    for (i = 0; i < 32; i++) {
      CHECK_OK(rt_websocket_send_binary(s->websocket, payload, s->size));
    }
  }
  allocations = 0;
  TURN_UNTIL(loop, s->seen >= s->to);
  counting = 0;
  rt_websocket_free(s->websocket);
  return allocations;
}

/* Whole messages in one read need no allocation. On a busy machine a read may end inside a message
 * for the first time while we count. That allocates storage, which the loop keeps, so the next
 * connection does not allocate it again. */
static void expect_none(
    rt_loop *loop, const span *plan, const char *server, const char *path, bool batch) {
  long made = 0;
  int tries;
  for (tries = 0; tries < 3; tries++) {
    span s = *plan;
    made = measure(loop, &s, server, path, batch);
    if (made == 0) return;
  }
  printf("%s, %zu bytes, %s: %ld allocations for %ld messages\n", path, plan->size,
         batch ? "in batches" : "singly", made, plan->to - plan->from);
  exit(1);
}

/* Many sends in a row, which are gathered into one write. */
static void pipelined(rt_loop *loop, const char *server) {
  span s = {0};
  int round, i, tries = 0;
  s.websocket = new_websocket(loop, server, "/sink");
  CHECK_OK(rt_websocket_set_compression(s.websocket, false));
  CHECK_OK(rt_websocket_on_open(s.websocket, on_open, &s, NULL));
  CHECK_OK(rt_websocket_start(s.websocket));
  TURN_UNTIL(loop, s.opened);
  for (round = 0; round < 20; round++) {
    if (round == 10) allocations = 0;
    /* As above: if the socket was fuller than ever before, try again. */
    if (round == 19 && allocations != 0 && tries++ < 2) round = 9;
    counting = round >= 10;
    for (i = 0; i < 500; i++) CHECK_OK(rt_websocket_send_binary(s.websocket, payload, 64));
    counting = 0;
    TURN_UNTIL(loop, rt_websocket_buffered_bytes(s.websocket) == 0);
  }
  if (allocations != 0) {
    printf("pipelined: %ld allocations for 5000 messages\n", allocations);
    exit(1);
  }
  rt_websocket_free(s.websocket);
}

static void on_event(const rt_pusher_event *event, void *user) {
  CHECK(event->data_length > 20);
  step(user, 1);
}

static void on_any_event(const rt_pusher_event *event, void *user) {
  (void)event, (void)user;
}

static void on_events(
    const uint8_t *base, const rt_pusher_record *events, size_t count, void *user) {
  (void)base, (void)events;
  step(user, (long)count);
}

static long measure_events(rt_loop *loop, span *s, const char *server, bool batch) {
  rt_pusher *pusher;
  rt_pusher_channel *channel;
  CHECK_OK(rt_pusher_new(loop, "push-10000", &pusher));
  CHECK_OK(rt_pusher_set_host(pusher, "127.0.0.1"));
  CHECK_OK(rt_pusher_set_port(pusher, (uint32_t)atoi(strrchr(server, ':') + 1)));
  CHECK_OK(rt_pusher_set_use_tls(pusher, false));
  CHECK_OK(rt_pusher_set_compression(pusher, false));
  CHECK_OK(rt_pusher_subscribe(pusher, "chat", &channel));
  CHECK_OK(rt_pusher_bind(pusher, NULL, on_any_event, s, NULL, NULL));
  CHECK_OK(batch ? rt_pusher_on_events(pusher, on_events, s, NULL)
                 : rt_pusher_channel_bind(channel, "new", on_event, s, NULL, NULL));
  CHECK_OK(rt_pusher_start(pusher));
  allocations = 0;
  TURN_UNTIL(loop, s->seen >= s->to);
  counting = 0;
  rt_pusher_channel_free(channel);
  rt_pusher_free(pusher);
  return allocations;
}

/* A connection's storage for batches doubles when a turn has more events than any before. On a busy
 * machine that may happen while we count: a few times, and not once for each event. */
enum { MOST_DOUBLINGS = 8 };

static void expect_none_for_events(rt_loop *loop, const char *server, bool batch) {
  long made = 0;
  int tries;
  for (tries = 0; tries < 3; tries++) {
    span s = {.from = 2000, .to = 10000};
    made = measure_events(loop, &s, server, batch);
    if (made <= (batch ? MOST_DOUBLINGS : 0)) return;
  }
  printf("Pusher, %s: %ld allocations for 8000 events\n", batch ? "in batches" : "singly", made);
  exit(1);
}

int main(int argc, char **argv) {
  rt_loop *loop;
  int batch;
  CHECK(argc == 2);
  loop = new_loop();
  /* Check the counter itself. */
  counting = 1;
  free(malloc(1));
  counting = 0;
  CHECK(allocations == 1);
  for (batch = 0; batch < 2; batch++) {
    expect_none_for_events(loop, argv[1], batch);
    span numbers = {.from = 2000, .to = 10000};
    span small = {.from = 1000, .to = 5000, .size = 64, .echoes = 1};
    span large = {.from = 500, .to = 2000, .size = sizeof payload, .echoes = 1};
    expect_none(loop, &numbers, argv[1], "/push/10000", batch);
    expect_none(loop, &small, argv[1], "/echo", batch);
    expect_none(loop, &large, argv[1], "/echo", batch);
  }
  pipelined(loop, argv[1]);
  rt_loop_free(loop);
  return 0;
}
