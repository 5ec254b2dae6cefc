// librealtime through its C interface: single callbacks, batches with `receive-batch`, or a receive
// buffer of fixed size with `receive-rcvbuf`.
#include <realtime.h>

#include "meter.h"

enum { HIGH_WATER = 256 << 10, ASK_EVERY = 32 << 10, RECEIVE_BYTES = 256 << 10 };

static rt_loop *loop;
static rt_network *network;
static rt_websocket *socket_;
static uint8_t *payload;
static uint64_t queued;
static uint64_t open_count;

static void check(rt_status status) {
  if (status != RT_OK) meter_fail(rt_last_error());
}

static void failed(const rt_failure *failure, void *user) {
  (void)user;
  meter_fail(failure->message);
}

static rt_websocket *make(
    rt_opened_fn open, rt_websocket_message_fn message, rt_closed_fn close) {
  rt_websocket *made;
  check(rt_websocket_new(loop, task.url, &made));
  bool is_deflate = task_is("deflate") || task_is("greet");
  check(rt_websocket_set_compression(made, is_deflate));
  if (network) check(rt_websocket_set_network(made, network));
  check(rt_websocket_on_open(made, open, made, NULL));
  check(rt_websocket_on_message(made, message, made, NULL));
  check(rt_websocket_on_closed(made, close, made, NULL));
  check(rt_websocket_on_error(made, failed, NULL, NULL));
  return made;
}

static void stop(void) {
  meter_stop();
  rt_loop_stop(loop);
}

// MARK: Receiving

static void go(const rt_opened *opened, void *user) {
  (void)opened;
  meter_start();
  check(rt_websocket_send_text(user, "go", 2));
}

static void on_message(rt_message_kind kind, const uint8_t *data, size_t length, void *user) {
  (void)kind, (void)user;
  if (meter_message(data, length)) stop();
}

static void on_messages(const uint8_t *base, const rt_message *all, size_t count, void *user) {
  (void)user;
  for (size_t i = 0; i < count; i++) {
    if (meter_message(base + all[i].offset, (size_t)all[i].length)) stop();
  }
}

static void receive(bool in_batches) {
  socket_ = make(go, on_message, NULL);
  if (in_batches) check(rt_websocket_on_messages(socket_, on_messages, NULL, NULL));
  check(rt_websocket_start(socket_));
  check(rt_loop_run(loop));
}

// MARK: Sending

/// Sends until much waits to be written, like a program that respects back-pressure.
static void send_more(void *user) {
  (void)user;
  size_t since = 0;
  while (queued < task.count) {
    check(rt_websocket_send_binary(socket_, payload, task.size));
    queued++;
    since += task.size;
    if (since < ASK_EVERY) continue;
    since = 0;
    if (rt_websocket_buffered_bytes(socket_) > HIGH_WATER) return;
  }
}

static void begin_sending(const rt_opened *opened, void *user) {
  (void)opened;
  meter_start();
  send_more(user);
}

static void on_verdict(rt_message_kind kind, const uint8_t *data, size_t length, void *user) {
  (void)kind, (void)user;
  meter_sent((const char *)data, length);
  stop();
}

static void send_all(void) {
  payload = meter_payload();
  socket_ = make(begin_sending, on_verdict, NULL);
  check(rt_websocket_set_send_high_water_bytes(socket_, HIGH_WATER));
  check(rt_websocket_on_drained(socket_, send_more, NULL, NULL));
  check(rt_websocket_start(socket_));
  check(rt_loop_run(loop));
}

// MARK: Echo

static void ask(void) {
  meter_ask();
  check(rt_websocket_send_binary(socket_, payload, task.size));
}

static void begin_echo(const rt_opened *opened, void *user) {
  (void)opened, (void)user;
  meter_start();
  ask();
}

static void on_echo(rt_message_kind kind, const uint8_t *data, size_t length, void *user) {
  (void)kind, (void)user;
  if (meter_answer(data, length)) return stop();
  ask();
}

static void echo(void) {
  payload = meter_payload();
  socket_ = make(begin_echo, on_echo, NULL);
  check(rt_websocket_start(socket_));
  check(rt_loop_run(loop));
}

// MARK: Connecting

static void close_at_once(const rt_opened *opened, void *user) {
  (void)opened;
  check(rt_websocket_close(user, 1000, NULL));
}

static void next_connection(const rt_closed *closed, void *user);

static void connect_once(void) {
  check(rt_websocket_start(make(close_at_once, NULL, next_connection)));
}

static void next_connection(const rt_closed *closed, void *user) {
  if (!closed->clean) meter_fail("a connection was not closed in order");
  rt_websocket_free(user);
  if (++meter.messages == task.count) return stop();
  connect_once();
}

static void connect_in_turn(void) {
  meter_start();
  connect_once();
  check(rt_loop_run(loop));
}

// MARK: Idle. One after the other, because only memory is measured.

static void opened(const rt_opened *view, void *user);
static void greeted(rt_message_kind kind, const uint8_t *data, size_t length, void *user);

static void open_next(void) {
  if (open_count == 1) meter_idle_before();
  if (open_count == task.count + 1) {
    meter_idle_after();
    check(rt_loop_stop(loop));
    return;
  }
  open_count++;
  bool is_greeted = task_is("greet");
  rt_websocket *next = make(is_greeted ? NULL : opened, is_greeted ? greeted : NULL, NULL);
  check(rt_websocket_start(next));
}

static void opened(const rt_opened *view, void *user) {
  (void)view, (void)user;
  if (open_count > 1) meter.messages++;
  open_next();
}

static void greeted(rt_message_kind kind, const uint8_t *data, size_t length, void *user) {
  (void)kind, (void)user;
  if (open_count > 1) meter_message(data, length);
  open_next();
}

static void idle(void) {
  open_next();
  check(rt_loop_run(loop));
}

static void make_network(void) {
  check(rt_network_new(&network));
  if (task.ca_file) check(rt_network_set_ca_file(network, task.ca_file));
  if (task_is("receive-rcvbuf")) {
    check(rt_network_set_receive_buffer_bytes(network, RECEIVE_BYTES));
  }
}

int main(int argc, char **argv) {
  task_read(argc, argv);
  check(rt_loop_new(&loop));
  if (task.ca_file || task_is("receive-rcvbuf")) make_network();
  if (task_is("receive") || task_is("receive-rcvbuf") || task_is("deflate")) {
    receive(false);
  } else if (task_is("receive-batch")) {
    receive(true);
  } else if (task_is("send")) {
    send_all();
  } else if (task_is("echo")) {
    echo();
  } else if (task_is("connect")) {
    connect_in_turn();
  } else if (task_is("idle") || task_is("greet")) {
    idle();
  } else {
    return NOT_SUPPORTED;
  }
  meter_report();
}
