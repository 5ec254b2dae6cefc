/* Objects keep their loop alive: handles can be freed in any order, at any time, and objects of a
 * freed loop return RT_ERROR_CLOSED. */
#include <dirent.h>

#include "contract.h"

enum stage { MADE, STARTED, OPENED, STAGES };

/* Frees two connections and their loop in the order that `order` names: 'l', 'a', 'b'. */
static void free_in_order(const char *server, const char *order, enum stage stage) {
  rt_loop *loop = new_loop();
  rt_websocket *a = new_websocket(loop, server, "/echo");
  rt_websocket *b = new_websocket(loop, server, "/push/50");
  events first = {0}, second = {0};
  const char *step;
  listen_to(a, &first);
  listen_to(b, &second);
  if (stage >= STARTED) {
    CHECK_OK(rt_websocket_start(a));
    CHECK_OK(rt_websocket_start(b));
  }
  if (stage >= OPENED) TURN_UNTIL(loop, first.opened && second.messages > 0);
  for (step = order; *step != '\0'; step++) {
    if (*step == 'a') rt_websocket_free(a);
    if (*step == 'b') rt_websocket_free(b);
    if (*step == 'l') rt_loop_free(loop);
  }
  CHECK(first.destroyed == EVENT_SETTERS && second.destroyed == EVENT_SETTERS);
}

static int open_descriptors(void) {
  DIR *folder = opendir("/proc/self/fd");
  int count = 0;
  CHECK(folder != NULL);
  while (readdir(folder) != NULL) count++;
  closedir(folder);
  return count;
}

/* Nothing watches a paused connection's socket; freeing the loop closes it all the same. */
static void a_freed_loop_closes_every_socket(const char *server) {
  int before = open_descriptors();
  rt_loop *loop = new_loop();
  rt_websocket *watched = new_websocket(loop, server, "/echo");
  rt_websocket *paused = new_websocket(loop, server, "/echo");
  events first = {0}, second = {0};
  listen_to(watched, &first);
  listen_to(paused, &second);
  CHECK_OK(rt_websocket_start(watched));
  CHECK_OK(rt_websocket_start(paused));
  TURN_UNTIL(loop, first.opened && second.opened);
  CHECK_OK(rt_websocket_pause(paused));
  settle(loop);
  CHECK(open_descriptors() > before);
  rt_loop_free(loop);
  /* The loop's own three descriptors are closed with the last handle on the loop. */
  CHECK(open_descriptors() == before + 3);
  CHECK(rt_websocket_get_state(paused) == RT_STATE_CLOSED);
  CHECK(rt_websocket_get_state(watched) == RT_STATE_CLOSED);
  rt_websocket_free(watched);
  rt_websocket_free(paused);
  CHECK(open_descriptors() == before);
}

static void objects_of_a_freed_loop_are_closed(const char *server, enum stage stage) {
  rt_loop *loop = new_loop();
  rt_websocket *websocket = new_websocket(loop, server, "/echo");
  events e = {0};
  int messages;
  listen_to(websocket, &e);
  if (stage >= STARTED) CHECK_OK(rt_websocket_start(websocket));
  if (stage >= OPENED) TURN_UNTIL(loop, e.opened);
  messages = e.messages;
  rt_loop_free(loop);
  if (stage == MADE) {
    CHECK_STATUS(rt_websocket_start(websocket), RT_ERROR_CLOSED);
  } else {
    CHECK_STATUS(rt_websocket_send_text(websocket, "x", 1), RT_ERROR_CLOSED);
    CHECK_STATUS(rt_websocket_ping(websocket, NULL, 0), RT_ERROR_CLOSED);
  }
  CHECK(e.messages == messages && e.closed == 0 && e.errors == 0);
  rt_websocket_free(websocket);
  CHECK(e.destroyed == EVENT_SETTERS);
}

int main(int argc, char **argv) {
  static const char *const orders[] = {"lab", "lba", "alb", "bla", "abl", "bal"};
  size_t order;
  int stage;
  CHECK(argc == 2);
  for (stage = MADE; stage < STAGES; stage++) {
    for (order = 0; order < sizeof orders / sizeof *orders; order++) {
      free_in_order(argv[1], orders[order], (enum stage)stage);
    }
    objects_of_a_freed_loop_are_closed(argv[1], (enum stage)stage);
  }
  a_freed_loop_closes_every_socket(argv[1]);
  return 0;
}
