/* Callbacks receive whole messages in the order of the wire, singly or in batches. Pointers are
 * never NULL, text may contain NULs, and nothing is delivered in a pause. */
#include <pthread.h>

#include "contract.h"

typedef struct inbox {
  rt_websocket *websocket;
  int opened, count, closed, pause_at;
  int kinds[16];
  size_t lengths[16];
  char bytes[16][16];
  int next, batches, drained, pongs;
} inbox;

static void on_open(const rt_opened *opened, void *user) {
  CHECK(opened->subprotocol[0] == '\0');
  ((inbox *)user)->opened = 1;
}

static void keep(inbox *in, int32_t kind, const uint8_t *data, size_t length) {
  CHECK(data != NULL && in->count < 16 && length <= 16);
  in->kinds[in->count] = kind;
  in->lengths[in->count] = length;
  if (length > 0) memcpy(in->bytes[in->count], data, length);
  in->count++;
}

static void on_message(rt_message_kind kind, const uint8_t *data, size_t length, void *user) {
  keep(user, kind, data, length);
}

static void on_messages(
    const uint8_t *base, const rt_message *messages, size_t count, void *user) {
  size_t i;
  CHECK(base != NULL && messages != NULL && count >= 1);
  for (i = 0; i < count; i++) {
    CHECK(messages[i].reserved == 0);
    keep(user, messages[i].kind, base + messages[i].offset, (size_t)messages[i].length);
  }
}

static void on_close(const rt_closed *closed, void *user) {
  (void)closed;
  ((inbox *)user)->closed = 1;
}

static void echoes(rt_loop *loop, const char *server, bool batch, bool compression) {
  rt_websocket *websocket = new_websocket(loop, server, "/echo");
  inbox in = {0};
  CHECK_OK(rt_websocket_set_compression(websocket, compression));
  CHECK_OK(rt_websocket_set_compression_min_bytes(websocket, 0));
  CHECK_OK(rt_websocket_on_open(websocket, on_open, &in, NULL));
  CHECK_OK(batch ? rt_websocket_on_messages(websocket, on_messages, &in, NULL)
                 : rt_websocket_on_message(websocket, on_message, &in, NULL));
  CHECK_OK(rt_websocket_on_closed(websocket, on_close, &in, NULL));
  CHECK_OK(rt_websocket_start(websocket));
  TURN_UNTIL(loop, in.opened);
  CHECK_OK(rt_websocket_send_text(websocket, "a\0b", 3));
  CHECK_OK(rt_websocket_send_text(websocket, NULL, 0));
  CHECK_OK(rt_websocket_send_binary(websocket, (const uint8_t *)"\xff\x00\xfe", 3));
  CHECK_OK(rt_websocket_send_binary(websocket, NULL, 0));
  CHECK_OK(rt_websocket_send_text(websocket, "\xe2\x82\xac", 3));
  TURN_UNTIL(loop, in.count == 5);
  CHECK(in.kinds[0] == RT_MESSAGE_TEXT && in.lengths[0] == 3);
  CHECK(memcmp(in.bytes[0], "a\0b", 3) == 0);
  CHECK(in.kinds[1] == RT_MESSAGE_TEXT && in.lengths[1] == 0);
  CHECK(in.kinds[2] == RT_MESSAGE_BINARY && memcmp(in.bytes[2], "\xff\x00\xfe", 3) == 0);
  CHECK(in.kinds[3] == RT_MESSAGE_BINARY && in.lengths[3] == 0);
  CHECK(in.kinds[4] == RT_MESSAGE_TEXT && memcmp(in.bytes[4], "\xe2\x82\xac", 3) == 0);
  CHECK_OK(rt_websocket_close(websocket, 1000, NULL));
  TURN_UNTIL(loop, in.closed);
  rt_websocket_free(websocket);
}

static void numbered(inbox *in, const uint8_t *data, size_t length) {
  char text[16];
  int expected = snprintf(text, sizeof text, "%d", in->next);
  CHECK((size_t)expected == length && memcmp(text, data, length) == 0);
  in->next++;
  if (in->next == in->pause_at) CHECK_OK(rt_websocket_pause(in->websocket));
}

static void on_number(rt_message_kind kind, const uint8_t *data, size_t length, void *user) {
  CHECK(kind == RT_MESSAGE_TEXT);
  numbered(user, data, length);
}

static void on_numbers(
    const uint8_t *base, const rt_message *messages, size_t count, void *user) {
  inbox *in = user;
  size_t i;
  in->batches++;
  for (i = 0; i < count; i++) {
    numbered(in, base + messages[i].offset, (size_t)messages[i].length);
  }
}

static void in_order(rt_loop *loop, const char *server, bool batch) {
  inbox in = {0};
  in.websocket = new_websocket(loop, server, "/push/5000");
  CHECK_OK(batch ? rt_websocket_on_messages(in.websocket, on_numbers, &in, NULL)
                 : rt_websocket_on_message(in.websocket, on_number, &in, NULL));
  CHECK_OK(rt_websocket_start(in.websocket));
  TURN_UNTIL(loop, in.next == 5000);
  CHECK(!batch || in.batches < 5000);
  rt_websocket_free(in.websocket);
}

static void on_odd(rt_message_kind kind, const uint8_t *data, size_t length, void *user);

static void on_even_numbers(
    const uint8_t *base, const rt_message *messages, size_t count, void *user) {
  inbox *in = user;
  on_numbers(base, messages, count, user);
  CHECK_OK(rt_websocket_on_message(in->websocket, on_odd, in, NULL));
}

static void on_even(rt_message_kind kind, const uint8_t *data, size_t length, void *user) {
  inbox *in = user;
  CHECK(in->next % 2 == 0 || in->next >= 400);
  on_number(kind, data, length, user);
  if (in->next >= 400) {
    CHECK_OK(rt_websocket_on_messages(in->websocket, on_even_numbers, in, NULL));
  } else {
    CHECK_OK(rt_websocket_on_message(in->websocket, on_odd, in, NULL));
  }
}

static void on_odd(rt_message_kind kind, const uint8_t *data, size_t length, void *user) {
  inbox *in = user;
  CHECK(in->next % 2 == 1 || in->next >= 400);
  on_number(kind, data, length, user);
  CHECK_OK(rt_websocket_on_message(in->websocket, on_even, in, NULL));
}

/* A callback that replaces itself gets no further message, even from the same read. */
static void replaced_inside(rt_loop *loop, const char *server) {
  inbox in = {0};
  in.websocket = new_websocket(loop, server, "/push/500");
  CHECK_OK(rt_websocket_on_message(in.websocket, on_even, &in, NULL));
  CHECK_OK(rt_websocket_start(in.websocket));
  TURN_UNTIL(loop, in.next == 500);
  rt_websocket_free(in.websocket);
}

typedef struct sizes {
  int opened, wholes, pieces, ends;
  size_t bytes;
} sizes;

static void sizes_open(const rt_opened *opened, void *user) {
  (void)opened;
  ((sizes *)user)->opened++;
}

static void sizes_message(rt_message_kind kind, const uint8_t *data, size_t length, void *user) {
  sizes *s = user;
  (void)kind, (void)data;
  s->wholes++;
  s->bytes += length;
}

static void sizes_piece(const rt_websocket_piece *piece, void *user) {
  sizes *s = user;
  CHECK(piece->first == (s->pieces == 0));
  s->pieces++;
  s->bytes += piece->data_length;
  if (piece->last) s->ends++;
}

/* The options that are set when a message begins decide whether it is delivered in pieces. */
static void whole_or_in_pieces(rt_loop *loop, const char *server, bool compression) {
  enum { SIZE = 3 << 20 };
  rt_websocket *websocket = new_websocket(loop, server, "/echo");
  uint8_t *data = malloc(SIZE);
  uint32_t random = 1;
  sizes s = {0};
  int i;
  CHECK(data);
  for (i = 0; i < SIZE; i++) data[i] = (uint8_t)((random = random * 1664525 + 1013904223) >> 24);
  CHECK_OK(rt_websocket_set_compression(websocket, compression));
  CHECK_OK(rt_websocket_set_max_message_bytes(websocket, 0));
  CHECK_OK(rt_websocket_on_open(websocket, sizes_open, &s, NULL));
  CHECK_OK(rt_websocket_start(websocket));
  TURN_UNTIL(loop, s.opened);
  for (i = 0; i < 2; i++) {
    CHECK_OK(rt_websocket_on_message(websocket, sizes_message, &s, NULL));
    CHECK_OK(rt_websocket_send_binary(websocket, data, SIZE));
    TURN_UNTIL(loop, s.wholes == 1);
    CHECK(s.bytes == SIZE);
    CHECK_OK(rt_websocket_on_piece(websocket, sizes_piece, &s, NULL));
    CHECK_OK(rt_websocket_send_binary(websocket, data, SIZE));
    TURN_UNTIL(loop, s.ends == 1);
    CHECK(s.bytes == 2 * SIZE && s.pieces > 1 && s.wholes == 1);
    s = (sizes){.opened = 1};
  }
  free(data);
  rt_websocket_free(websocket);
}

/* A pause inside a callback: that message is the last one until resume, and none are lost. */
static void paused(rt_loop *loop, const char *server) {
  inbox in = {0};
  int turn;
  in.websocket = new_websocket(loop, server, "/push/1000");
  in.pause_at = 100;
  CHECK_OK(rt_websocket_on_message(in.websocket, on_number, &in, NULL));
  CHECK_OK(rt_websocket_start(in.websocket));
  TURN_UNTIL(loop, in.next >= 100);
  for (turn = 0; turn < 20; turn++) CHECK_OK(rt_loop_dispatch(loop, 5));
  CHECK(in.next == 100);
  CHECK_OK(rt_websocket_pause(in.websocket));
  CHECK_OK(rt_websocket_resume(in.websocket));
  CHECK_OK(rt_websocket_resume(in.websocket));
  TURN_UNTIL(loop, in.next == 1000);
  rt_websocket_free(in.websocket);
}

static void on_drained(void *user) { ((inbox *)user)->drained++; }
static void on_pong(int64_t round_trip_us, void *user) {
  CHECK(round_trip_us >= 0);
  ((inbox *)user)->pongs++;
}

/* A send above the send buffer's limit fails and takes nothing. After that, drained comes once the
 * buffer is empty, even if it never reached the high-water mark, because a failed sender waits for
 * it. The peer does not read, and the message is far larger than the kernel's buffers and the
 * peer's queue, so part of it must wait. */
static void send_buffer(rt_loop *loop, const char *server) {
  const size_t large = 64 << 20;
  inbox in = {0};
  rt_websocket *websocket = new_websocket(loop, server, "/stall");
  rt_websocket *release = new_websocket(loop, server, "/release");
  uint8_t *data = calloc(1, large);
  CHECK(data != NULL);
  CHECK_OK(rt_websocket_set_compression(websocket, false));
  CHECK_OK(rt_websocket_set_max_frame_bytes(websocket, 1 << 16));
  CHECK_OK(rt_websocket_set_send_limit_bytes(websocket, 1));
  CHECK_OK(rt_websocket_set_send_high_water_bytes(websocket, large * 2));
  CHECK_OK(rt_websocket_on_open(websocket, on_open, &in, NULL));
  CHECK_OK(rt_websocket_on_drained(websocket, on_drained, &in, NULL));
  CHECK_OK(rt_websocket_on_pong(websocket, on_pong, &in, NULL));
  CHECK_OK(rt_websocket_start(websocket));
  TURN_UNTIL(loop, in.opened);
  CHECK_OK(rt_websocket_send_binary(websocket, data, large));
  CHECK(rt_websocket_buffered_bytes(websocket) > 1 && in.drained == 0);
  CHECK_STATUS(rt_websocket_send_binary(websocket, data, 1), RT_ERROR_BUFFER_FULL);
  settle(loop);
  CHECK(rt_websocket_buffered_bytes(websocket) > 1 && in.drained == 0);
  CHECK_OK(rt_websocket_start(release));
  TURN_UNTIL(loop, in.drained == 1);
  CHECK(rt_websocket_buffered_bytes(websocket) == 0);
  CHECK_OK(rt_websocket_ping(websocket, (const uint8_t *)"p", 1));
  TURN_UNTIL(loop, in.pongs == 1);
  CHECK(rt_websocket_round_trip_us(websocket) >= 0);
  CHECK(in.drained == 1);
  rt_websocket_free(release);
  rt_websocket_free(websocket);
  free(data);
}

/* Headers count: a message whose payload equals the high-water mark passes it by the headers of its
 * frames, so drained must follow. The bytes before it are far below the mark and would not cause
 * the callback. */
static void high_water(rt_loop *loop, const char *server) {
  const size_t first = 16 << 20, mark = 64 << 20;
  inbox in = {0};
  rt_websocket *websocket = new_websocket(loop, server, "/stall");
  rt_websocket *release = new_websocket(loop, server, "/release");
  uint8_t *data = calloc(1, mark);
  size_t waiting, before;
  CHECK(data != NULL);
  CHECK_OK(rt_websocket_set_compression(websocket, false));
  CHECK_OK(rt_websocket_set_max_frame_bytes(websocket, 1 << 16));
  CHECK_OK(rt_websocket_set_send_limit_bytes(websocket, 0));
  CHECK_OK(rt_websocket_set_send_high_water_bytes(websocket, mark));
  CHECK_OK(rt_websocket_on_open(websocket, on_open, &in, NULL));
  CHECK_OK(rt_websocket_on_drained(websocket, on_drained, &in, NULL));
  CHECK_OK(rt_websocket_start(websocket));
  TURN_UNTIL(loop, in.opened);
  CHECK_OK(rt_websocket_send_binary(websocket, data, first));
  waiting = rt_websocket_buffered_bytes(websocket);
  do {
    before = waiting;
    settle(loop);
    waiting = rt_websocket_buffered_bytes(websocket);
  } while (waiting != before);
  CHECK(waiting > 0 && waiting < mark);
  CHECK_OK(rt_websocket_send_binary(websocket, data, mark - waiting));
  CHECK(rt_websocket_buffered_bytes(websocket) > mark && in.drained == 0);
  CHECK_OK(rt_websocket_start(release));
  TURN_UNTIL(loop, rt_websocket_buffered_bytes(websocket) == 0);
  CHECK(in.drained == 1);
  rt_websocket_free(release);
  rt_websocket_free(websocket);
  free(data);
}

static void *be_refused(void *user) {
  inbox *in = user;
  CHECK_OK(rt_websocket_on_drained(in->websocket, on_drained, in, NULL));
  CHECK_STATUS(rt_websocket_send_text(in->websocket, "no room", 7), RT_ERROR_BUFFER_FULL);
  return NULL;
}

static void refuse_inside(const rt_opened *opened, void *user) {
  inbox *in = user;
  pthread_t thread;
  (void)opened;
  CHECK_OK(rt_websocket_send_text(in->websocket, "waits", 5));
  CHECK(!pthread_create(&thread, NULL, be_refused, in));
  CHECK(!pthread_join(thread, NULL));
}

/* A thread sets its function and is refused, while the loop's thread is in a callback. The buffer
 * is empty before the loop has heard of the function, which is called all the same. */
static void refused_elsewhere(rt_loop *loop, const char *server) {
  inbox in = {.websocket = new_websocket(loop, server, "/echo")};
  CHECK_OK(rt_websocket_set_send_limit_bytes(in.websocket, 1));
  CHECK_OK(rt_websocket_on_open(in.websocket, refuse_inside, &in, NULL));
  CHECK_OK(rt_websocket_start(in.websocket));
  TURN_UNTIL(loop, in.drained == 1);
  rt_websocket_free(in.websocket);
}

int main(int argc, char **argv) {
  rt_loop *loop;
  CHECK(argc == 2);
  loop = new_loop();
  echoes(loop, argv[1], false, false);
  echoes(loop, argv[1], false, true);
  echoes(loop, argv[1], true, false);
  echoes(loop, argv[1], true, true);
  in_order(loop, argv[1], false);
  in_order(loop, argv[1], true);
  replaced_inside(loop, argv[1]);
  whole_or_in_pieces(loop, argv[1], false);
  whole_or_in_pieces(loop, argv[1], true);
  paused(loop, argv[1]);
  send_buffer(loop, argv[1]);
  high_water(loop, argv[1]);
  refused_elsewhere(loop, argv[1]);
  rt_loop_free(loop);
  return 0;
}
