/* Messages in pieces, in both directions; compression chosen for each message; and the statistics.
 * */
#include <pthread.h>

#include "contract.h"

enum { LARGE = 3 << 20 };

typedef struct inbox {
  rt_websocket *websocket;
  int opened, messages, pieces, kind, inside, ended;
  size_t length, largest, lengths[8];
  uint8_t *bytes;
} inbox;

static void on_open(const rt_opened *opened, void *user) {
  (void)opened;
  ((inbox *)user)->opened = 1;
}

static bool begins_inside_a_character(const uint8_t *data, size_t length) {
  return length > 0 && (data[0] & 0xC0) == 0x80;
}

static void on_piece(const rt_websocket_piece *piece, void *user) {
  inbox *in = user;
  CHECK(piece->struct_bytes == sizeof *piece && piece->data != NULL);
  CHECK(piece->first != in->inside && (piece->first || piece->kind == in->kind));
  CHECK(piece->kind == RT_MESSAGE_BINARY
        || !begins_inside_a_character(piece->data, piece->data_length));
  if (piece->first) in->length = 0;
  CHECK(in->length + piece->data_length <= LARGE);
  memcpy(in->bytes + in->length, piece->data, piece->data_length);
  in->length += piece->data_length;
  in->kind = piece->kind;
  in->inside = !piece->last;
  in->pieces++;
  if (piece->data_length > in->largest) in->largest = piece->data_length;
  if (piece->last) in->lengths[in->messages++ % 8] = in->length;
}

static void open_streamed(rt_loop *loop, const char *server, bool compression, inbox *in) {
  in->bytes = malloc(LARGE);
  CHECK(in->bytes != NULL);
  in->websocket = new_websocket(loop, server, "/echo");
  CHECK_OK(rt_websocket_set_compression(in->websocket, compression));
  CHECK_STATUS(rt_websocket_set_compression_memory_level(in->websocket, 0),
               RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_websocket_set_compression_memory_level(in->websocket, 5));
  /* Far below the message sizes: this limit applies only to whole messages. */
  CHECK_OK(rt_websocket_set_max_message_bytes(in->websocket, 1000));
  CHECK_OK(rt_websocket_on_open(in->websocket, on_open, in, NULL));
  CHECK_OK(rt_websocket_on_piece(in->websocket, on_piece, in, NULL));
  CHECK_STATUS(rt_websocket_begin_message(in->websocket, RT_MESSAGE_TEXT, 0), RT_ERROR_STATE);
  CHECK_OK(rt_websocket_start(in->websocket));
  TURN_UNTIL(loop, in->opened);
}

static void finish(inbox *in) {
  rt_websocket_free(in->websocket);
  free(in->bytes);
}

/* A text of euro signs, cut inside their bytes. */
static void text_in_pieces(rt_loop *loop, const char *server, bool compression) {
  inbox in = {0};
  const uint8_t *euro = (const uint8_t *)"\xe2\x82\xac";
  int i;
  open_streamed(loop, server, compression, &in);
  CHECK_STATUS(rt_websocket_continue_message(in.websocket, euro, 3), RT_ERROR_STATE);
  CHECK_STATUS(rt_websocket_end_message(in.websocket), RT_ERROR_STATE);
  CHECK_STATUS(rt_websocket_begin_message(in.websocket, 3, 0), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_websocket_begin_message(in.websocket, 1, 3), RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_websocket_begin_message(in.websocket, RT_MESSAGE_TEXT, RT_COMPRESSION_AUTOMATIC));
  CHECK_STATUS(rt_websocket_begin_message(in.websocket, RT_MESSAGE_TEXT, 0), RT_ERROR_STATE);
  CHECK_STATUS(rt_websocket_send_text(in.websocket, "x", 1), RT_ERROR_STATE);
  CHECK_OK(rt_websocket_continue_message(in.websocket, euro, 1));
  CHECK_STATUS(rt_websocket_end_message(in.websocket), RT_ERROR_INVALID_UTF8);
  CHECK_STATUS(rt_websocket_continue_message(in.websocket, euro, 1), RT_ERROR_INVALID_UTF8);
  CHECK_OK(rt_websocket_continue_message(in.websocket, euro + 1, 2));
  CHECK_OK(rt_websocket_continue_message(in.websocket, NULL, 0));
  for (i = 0; i < 999; i++) CHECK_OK(rt_websocket_continue_message(in.websocket, euro, 3));
  CHECK_OK(rt_websocket_end_message(in.websocket));
  TURN_UNTIL(loop, in.messages == 1);
  CHECK(in.kind == RT_MESSAGE_TEXT && in.length == 3000);
  for (i = 0; i < 1000; i++) CHECK(memcmp(in.bytes + 3 * i, euro, 3) == 0);
  /* An empty message: only a beginning and an end. */
  CHECK_OK(rt_websocket_begin_message(in.websocket, RT_MESSAGE_BINARY, RT_COMPRESSION_ALWAYS));
  CHECK_OK(rt_websocket_end_message(in.websocket));
  TURN_UNTIL(loop, in.messages == 2);
  CHECK(in.kind == RT_MESSAGE_BINARY && in.length == 0);
  finish(&in);
}

static void large_in_pieces(rt_loop *loop, const char *server, bool compression) {
  inbox in = {0};
  uint8_t *data = malloc(LARGE);
  size_t i;
  CHECK(data != NULL);
  for (i = 0; i < LARGE; i++) data[i] = (uint8_t)((i * i) >> 9);
  open_streamed(loop, server, compression, &in);
  CHECK_OK(rt_websocket_begin_message(in.websocket, RT_MESSAGE_BINARY, 0));
  for (i = 0; i < LARGE; i += 1 << 16) {
    CHECK_OK(rt_websocket_continue_message(in.websocket, data + i, 1 << 16));
    CHECK_OK(rt_loop_dispatch(loop, 0));
  }
  CHECK_OK(rt_websocket_end_message(in.websocket));
  TURN_UNTIL(loop, in.messages == 1);
  CHECK(in.length == LARGE && memcmp(in.bytes, data, LARGE) == 0);
  CHECK(in.pieces > 1 && in.largest < LARGE);
  finish(&in);
  free(data);
}

static void *send_meanwhile(void *user) {
  CHECK_OK(rt_websocket_send_text(((inbox *)user)->websocket, "whole", 5));
  return NULL;
}

/* A message that another thread queued before a message in pieces began stays whole. */
static void threads_do_not_mix(rt_loop *loop, const char *server) {
  inbox in = {0};
  pthread_t thread;
  open_streamed(loop, server, true, &in);
  /* In transit from the other thread when the message begins here. */
  CHECK(pthread_create(&thread, NULL, send_meanwhile, &in) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK_OK(rt_websocket_begin_message(in.websocket, RT_MESSAGE_BINARY, 0));
  CHECK_OK(rt_websocket_continue_message(in.websocket, (const uint8_t *)"ab", 2));
  CHECK_OK(rt_loop_dispatch(loop, 0));
  CHECK_OK(rt_websocket_continue_message(in.websocket, (const uint8_t *)"cd", 2));
  CHECK_OK(rt_websocket_end_message(in.websocket));
  CHECK_OK(rt_websocket_send_text(in.websocket, "after!", 6));
  TURN_UNTIL(loop, in.messages == 3);
  CHECK(in.lengths[0] == 5 && in.lengths[1] == 4 && in.lengths[2] == 6);
  finish(&in);
}

static void count(rt_message_kind kind, const uint8_t *data, size_t length, void *user) {
  (void)kind, (void)data;
  ((inbox *)user)->length += length;
  ((inbox *)user)->messages++;
}

static uint64_t wire_bytes(rt_loop *loop, const char *server, rt_compression compression) {
  inbox in = {0};
  rt_websocket_statistics s = {0};
  rt_loop_statistics l = {0};
  char text[1000];
  memset(text, 'a', sizeof text);
  in.websocket = new_websocket(loop, server, "/echo");
  CHECK_OK(rt_websocket_set_compression_min_bytes(in.websocket, 2000));
  CHECK_OK(rt_websocket_on_open(in.websocket, on_open, &in, NULL));
  CHECK_OK(rt_websocket_on_message(in.websocket, count, &in, NULL));
  CHECK_OK(rt_websocket_start(in.websocket));
  TURN_UNTIL(loop, in.opened);
  CHECK_STATUS(rt_websocket_send(in.websocket, 0, NULL, 0, 0), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_websocket_send(in.websocket, 1, NULL, 0, -1), RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_websocket_send(in.websocket, RT_MESSAGE_TEXT, (const uint8_t *)text, sizeof text,
                             compression));
  CHECK_OK(rt_websocket_ping(in.websocket, NULL, 0));
  TURN_UNTIL(loop, in.messages == 1 && rt_websocket_round_trip_us(in.websocket) >= 0);
  CHECK_STATUS(rt_websocket_get_statistics(in.websocket, &s, 0), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_websocket_get_statistics(in.websocket, NULL, sizeof s),
               RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_websocket_get_statistics(in.websocket, &s, sizeof s));
  CHECK(s.messages_sent == 1 && s.messages_received == 1 && s.connections == 1);
  CHECK(s.payload_bytes_sent == 1000 && s.payload_bytes_received == 1000);
  CHECK(s.pings_sent == 1 && s.pongs_received == 1);
  CHECK(s.round_trip_us == rt_websocket_round_trip_us(in.websocket));
  CHECK(s.wire_bytes_received > 100 && s.wire_bytes_sent > 0);
  CHECK_STATUS(rt_loop_get_statistics(loop, NULL, sizeof l), RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_loop_get_statistics(loop, &l, sizeof l));
  CHECK(l.turns > 0 && l.events > 0 && l.connections > 0);
  CHECK(l.messages_received >= s.messages_received && l.wire_bytes_sent >= s.wire_bytes_sent);
  /* A caller of an older version knows fewer fields. */
  memset(&s, 0xff, sizeof s);
  CHECK_OK(rt_websocket_get_statistics(in.websocket, &s, sizeof(uint64_t)));
  CHECK(s.messages_sent == 1 && s.messages_received == UINT64_MAX);
  CHECK_OK(rt_websocket_get_statistics(in.websocket, &s, sizeof s));
  rt_websocket_free(in.websocket);
  return s.wire_bytes_sent;
}

int main(int argc, char **argv) {
  rt_loop *loop;
  uint64_t automatic, always, never;
  CHECK(argc == 2);
  loop = new_loop();
  text_in_pieces(loop, argv[1], false);
  text_in_pieces(loop, argv[1], true);
  large_in_pieces(loop, argv[1], false);
  large_in_pieces(loop, argv[1], true);
  threads_do_not_mix(loop, argv[1]);
  automatic = wire_bytes(loop, argv[1], RT_COMPRESSION_AUTOMATIC);
  always = wire_bytes(loop, argv[1], RT_COMPRESSION_ALWAYS);
  never = wire_bytes(loop, argv[1], RT_COMPRESSION_NEVER);
  CHECK(automatic == never && always * 5 < never);
  rt_loop_free(loop);
  return 0;
}
