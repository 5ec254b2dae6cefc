// wslay's event interface over poll(); it has no handshake, so it uses the floor's.
#include <wslay/wslay.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "floor_connect.h"
#include "meter.h"

struct peer {
  struct link link;
  bool is_done;
  uint8_t *payload;
};

/// \returns what a callback must return: bytes, or -1 after the reason was passed to wslay.
static ssize_t outcome(wslay_event_context_ptr context, ssize_t done) {
  if (done > 0) return done;
  bool is_blocked = done < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
  wslay_event_set_error(
      context, is_blocked ? WSLAY_ERR_WOULDBLOCK : WSLAY_ERR_CALLBACK_FAILURE);
  return -1;
}

static ssize_t on_read(
    wslay_event_context_ptr context, uint8_t *data, size_t length, int flags, void *user) {
  (void)flags;
  return outcome(context, recv(((struct peer *)user)->link.fd, data, length, 0));
}

static ssize_t on_write(
    wslay_event_context_ptr context, const uint8_t *data, size_t length, int flags, void *user) {
  int more = flags & WSLAY_MSG_MORE ? MSG_MORE : 0;
  return outcome(
      context, send(((struct peer *)user)->link.fd, data, length, MSG_NOSIGNAL | more));
}

static int on_mask(wslay_event_context_ptr context, uint8_t *out, size_t length, void *user) {
  (void)context, (void)user;
  uint32_t key = link_mask_key();
  memcpy(out, &key, length < 4 ? length : 4);
  return 0;
}

static void queue(wslay_event_context_ptr context, uint8_t opcode, const uint8_t *data, size_t n) {
  struct wslay_event_msg message = {opcode, data, n};
  if (wslay_event_queue_msg(context, &message) != 0) meter_fail("wslay_event_queue_msg");
}

static void on_message(
    wslay_event_context_ptr context, const struct wslay_event_on_msg_recv_arg *message,
    void *user) {
  struct peer *peer = user;
  if (wslay_is_ctrl_frame(message->opcode)) return;
  if (task_is("receive")) {
    peer->is_done = meter_message(message->msg, message->msg_length);
  } else if (task_is("send")) {
    meter_sent((const char *)message->msg, message->msg_length);
    peer->is_done = true;
  } else if (!(peer->is_done = meter_answer(message->msg, message->msg_length))) {
    meter_ask();
    queue(context, WSLAY_BINARY_FRAME, peer->payload, task.size);
  }
}

static wslay_event_context_ptr make(struct peer *peer) {
  static const struct wslay_event_callbacks callbacks = {
      .recv_callback = on_read,
      .send_callback = on_write,
      .genmask_callback = on_mask,
      .on_msg_recv_callback = on_message,
  };
  wslay_event_context_ptr context;
  link_open(&peer->link, 0, "", NULL, 0);
  fcntl(peer->link.fd, F_SETFL, O_NONBLOCK);
  if (wslay_event_context_client_init(&context, &callbacks, peer) != 0) meter_fail("wslay");
  wslay_event_config_set_max_recv_msg_length(context, 1 << 26);
  return context;
}

/// Waits for the socket, then reads and writes as much as possible.
static void turn(struct peer *peer, wslay_event_context_ptr context) {
  struct pollfd waiting = {.fd = peer->link.fd, .events = POLLIN};
  if (wslay_event_want_write(context)) waiting.events |= POLLOUT;
  poll(&waiting, 1, -1);
  if ((waiting.revents & POLLIN) && wslay_event_recv(context) != 0) meter_fail("recv");
  if (wslay_event_want_write(context) && wslay_event_send(context) != 0) meter_fail("send");
}

static void send_all(struct peer *peer, wslay_event_context_ptr context) {
  for (uint64_t i = 0; i < task.count; i++) {
    queue(context, WSLAY_BINARY_FRAME, peer->payload, task.size);
    if (wslay_event_send(context) != 0) meter_fail("send");
    while (wslay_event_want_write(context)) turn(peer, context);
  }
}

static void connect_in_turn(void) {
  meter_start();
  for (; meter.messages < task.count; meter.messages++) {
    struct peer peer = {0};
    wslay_event_context_ptr context = make(&peer);
    wslay_event_queue_close(context, WSLAY_CODE_NORMAL_CLOSURE, NULL, 0);
    while (!wslay_event_get_close_received(context)) turn(&peer, context);
    wslay_event_context_free(context);
    close(peer.link.fd);
  }
  meter_stop();
}

static void idle(void) {
  make(calloc(1, sizeof(struct peer)));
  meter_idle_before();
  for (; meter.messages < task.count; meter.messages++) make(calloc(1, sizeof(struct peer)));
  meter_idle_after();
}

int main(int argc, char **argv) {
  task_read(argc, argv);
  if (task.tls) return NOT_SUPPORTED;
  struct peer peer = {0};
  if (task_is("connect")) {
    connect_in_turn();
    meter_report();
  }
  if (task_is("idle")) {
    idle();
    meter_report();
  }
  if (!task_is("receive") && !task_is("send") && !task_is("echo")) return NOT_SUPPORTED;
  wslay_event_context_ptr context = make(&peer);
  peer.payload = meter_payload();
  meter_start();
  if (task_is("receive")) queue(context, WSLAY_TEXT_FRAME, (const uint8_t *)"go", 2);
  if (task_is("echo")) {
    meter_ask();
    queue(context, WSLAY_BINARY_FRAME, peer.payload, task.size);
  }
  if (task_is("send")) send_all(&peer, context);
  if (wslay_event_send(context) != 0) meter_fail("send");
  while (!peer.is_done) turn(&peer, context);
  meter_stop();
  meter_report();
}
