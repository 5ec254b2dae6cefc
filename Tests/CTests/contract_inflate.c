/* The bytes that a message inflates to count against a connection's share of a loop turn. So the
 * loop does other work in the middle of a message, and memory holds one message at most. */
#include "contract.h"

#include <sys/resource.h>

enum { BOMBS = 17, BOMB_BYTES = 60000000, LEAST_TICKS = 10, MOST_GROWTH_KB = 100 << 10 };

typedef struct peer {
  int messages, dispatches, ticks;
  size_t bytes;
  /* At the end of the last message. */
  int known_dispatches, known_ticks;
} peer;

/* Between two messages the loop turns, and a timer fires, many times. */
static void on_whole(peer *p, size_t length) {
  CHECK(length == BOMB_BYTES);
  CHECK(p->dispatches - p->known_dispatches >= LEAST_TICKS);
  CHECK(p->ticks - p->known_ticks >= LEAST_TICKS);
  p->known_dispatches = p->dispatches;
  p->known_ticks = p->ticks;
  p->messages++;
}

static void on_message(rt_message_kind kind, const uint8_t *data, size_t length, void *user) {
  CHECK(kind == RT_MESSAGE_BINARY && data[0] == 0 && data[length - 1] == 0);
  on_whole(user, length);
}

static void on_messages(const uint8_t *base, const rt_message *messages, size_t count, void *user) {
  CHECK(base && count == 1);
  on_whole(user, messages[0].length);
}

static void on_piece(const rt_websocket_piece *piece, void *user) {
  peer *p = user;
  size_t length;
  CHECK(piece->kind == RT_MESSAGE_BINARY);
  CHECK(piece->first == (p->bytes == 0));
  p->bytes += piece->data_length;
  if (!piece->last) return;
  length = p->bytes;
  p->bytes = 0;
  on_whole(p, length);
}

static void tick(void *user) { ((peer *)user)->ticks++; }

static void bombed(rt_loop *loop, const char *server, int face) {
  peer p = {0};
  uint64_t timer = 0;
  rt_websocket *websocket = new_websocket(loop, server, "/bombs/17");
  if (face == 0) CHECK_OK(rt_websocket_on_message(websocket, on_message, &p, NULL));
  if (face == 1) CHECK_OK(rt_websocket_on_messages(websocket, on_messages, &p, NULL));
  if (face == 2) CHECK_OK(rt_websocket_on_piece(websocket, on_piece, &p, NULL));
  CHECK_OK(rt_loop_add_timer(loop, 1, 1, tick, &p, NULL, &timer));
  CHECK_OK(rt_websocket_start(websocket));
  int64_t end_ms = now_ms() + 60000;
  while (p.messages < BOMBS) {
    CHECK(now_ms() < end_ms);
    CHECK_OK(rt_loop_dispatch(loop, 100));
    p.dispatches++;
  }
  CHECK_OK(rt_loop_cancel_timer(loop, timer));
  rt_websocket_free(websocket);
}

int main(int argc, char **argv) {
  struct rusage before, after;
  CHECK(argc == 2);
  rt_loop *loop = new_loop();
  getrusage(RUSAGE_SELF, &before);
  for (int face = 0; face < 3; face++) bombed(loop, argv[1], face);
  getrusage(RUSAGE_SELF, &after);
  /* Room for one message: its storage grows without a copy and is released before the next message.
   * */
  CHECK(after.ru_maxrss - before.ru_maxrss < MOST_GROWTH_KB);
  rt_loop_free(loop);
  return 0;
}
