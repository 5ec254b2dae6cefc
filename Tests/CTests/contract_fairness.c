/* One busy connection takes no more than its share of a turn, reading and writing: 1 MiB, plus at
 * most one read; for an event stream also the bytes that libcurl holds. */
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "contract.h"

enum { SHARE = 1 << 20, READ = 256 << 10, MESSAGE = 64 << 10, LINE = 1 << 10 };

typedef struct flood {
  int opened;
  size_t bytes;
} flood;

static void on_open(const rt_opened *opened, void *user) {
  (void)opened;
  ((flood *)user)->opened = 1;
}

static void on_message(rt_message_kind kind, const uint8_t *data, size_t length, void *user) {
  (void)kind, (void)data;
  ((flood *)user)->bytes += length;
}

/* The largest number of unread bytes in any socket of this process. */
static int waiting_bytes(void) {
  int fd, most = 0;
  for (fd = 3; fd < 64; fd++) {
    int count = 0;
    if (ioctl(fd, FIONREAD, &count) == 0 && count > most) most = count;
  }
  return most;
}

/* Gives every socket a buffer of more than one share, if we are root; otherwise the kernel grows
 * the buffers over time. */
static void make_room(void) {
  int fd, size = 8 << 20;
  for (fd = 3; fd < 64; fd++) setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size);
}

static rt_websocket *connect_to(rt_loop *loop, const char *server, const char *path, flood *f) {
  rt_websocket *websocket = new_websocket(loop, server, path);
  CHECK_OK(rt_websocket_set_compression(websocket, false));
  CHECK_OK(rt_websocket_on_open(websocket, on_open, f, NULL));
  CHECK_OK(rt_websocket_on_message(websocket, on_message, f, NULL));
  CHECK_OK(rt_websocket_start(websocket));
  TURN_UNTIL(loop, f->opened);
  return websocket;
}

/* No turn reads more than `most`, however much waits. */
static void reads_its_share(rt_loop *loop, const flood *f, size_t most) {
  int64_t end_ms = now_ms() + 100000;
  int was_full = 0;
  /* The kernel grows a socket's buffer as it is read: read, then let it fill up again. */
  while (!was_full) {
    int64_t full_ms = now_ms() + 500;
    size_t wanted = f->bytes + (32 << 20), before;
    make_room();
    while (!was_full && now_ms() < full_ms) was_full = waiting_bytes() >= SHARE + SHARE / 2;
    do {
      CHECK(now_ms() < end_ms);
      before = f->bytes;
      CHECK_OK(rt_loop_dispatch(loop, 10));
      CHECK(f->bytes - before <= most);
    } while (f->bytes < wanted);
  }
}

static void reads_messages(rt_loop *loop, const char *server) {
  flood f = {0};
  rt_websocket *websocket = connect_to(loop, server, "/flood", &f);
  reads_its_share(loop, &f, SHARE + READ + MESSAGE);
  rt_websocket_free(websocket);
}

static void on_event(const rt_event *event, void *user) {
  ((flood *)user)->bytes += event->data_length;
}

static void reads_events(rt_loop *loop, const char *server, const char *path) {
  flood f = {0};
  char url[64];
  rt_eventsource *source;
  CHECK(snprintf(url, sizeof url, "http%s%s", server + 2, path) < (int)sizeof url);
  CHECK_OK(rt_eventsource_new(loop, url, &source));
  CHECK_OK(rt_eventsource_on_any(source, on_event, &f, NULL));
  CHECK_OK(rt_eventsource_start(source));
  /* libcurl's timer may add a batch of up to five reads and a line to the share. */
  reads_its_share(loop, &f, SHARE + 2 * (READ + 2 * MESSAGE + LINE));
  rt_eventsource_free(source);
}

static void writes_its_share(rt_loop *loop, const char *server) {
  const size_t large = 24 << 20;
  flood f = {0};
  rt_websocket *websocket = connect_to(loop, server, "/sink", &f);
  uint8_t *data = calloc(1, large);
  size_t before;
  CHECK(data != NULL);
  CHECK_OK(rt_websocket_send_binary(websocket, data, large));
  before = rt_websocket_buffered_bytes(websocket);
  CHECK(before >= large - SHARE);
  CHECK_OK(rt_loop_dispatch(loop, 0));
  CHECK(before - rt_websocket_buffered_bytes(websocket) <= SHARE);
  free(data);
  rt_websocket_free(websocket);
}

int main(int argc, char **argv) {
  rt_loop *loop;
  CHECK(argc == 2);
  loop = new_loop();
  reads_messages(loop, argv[1]);
  reads_events(loop, argv[1], "/flood-events");
  reads_events(loop, argv[1], "/flood-events/gzip");
  writes_its_share(loop, argv[1]);
  rt_loop_free(loop);
  return 0;
}
