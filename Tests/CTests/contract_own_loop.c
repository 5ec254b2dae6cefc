/* The library's own loop ends with its last object, wherever that is freed. */
#include <stdatomic.h>
#include <unistd.h>

#include "contract.h"

static rt_loop *other;
static rt_websocket *last;
static atomic_bool is_inside, is_freeing;

/* Runs on the library's own loop: waits for the call that holds the other one. */
static void on_message(rt_message_kind kind, const uint8_t *data, size_t length, void *user) {
  (void)kind, (void)data, (void)length, (void)user;
  atomic_store(&is_inside, true);
  while (!atomic_load(&is_freeing)) usleep(100);
  rt_loop_free(other);
}

static void on_event(const rt_event *event, void *user) { (void)event, (void)user; }

static void free_last(void *user) {
  (void)user;
  atomic_store(&is_freeing, true);
  rt_websocket_free(last);
}

/* The last object is freed inside a call that holds another loop, while a callback of the own loop
 * waits for that loop: this must not deadlock. */
static void freed_in_a_call(const char *server) {
  char url[256];
  rt_eventsource *source;
  other = new_loop();
  snprintf(url, sizeof url, "http%s/events/1", server + 2);
  CHECK_OK(rt_eventsource_new(other, url, &source));
  CHECK_OK(rt_eventsource_on_any(source, on_event, NULL, free_last));
  last = new_websocket(NULL, server, "/push/1");
  CHECK_OK(rt_websocket_on_message(last, on_message, NULL, NULL));
  CHECK_OK(rt_websocket_start(last));
  while (!atomic_load(&is_inside)) usleep(100);
  CHECK_OK(rt_eventsource_close(source));
  rt_eventsource_free(source);
}

int main(int argc, char **argv) {
  CHECK(argc == 2);
  freed_in_a_call(argv[1]);
  return 0;
}
