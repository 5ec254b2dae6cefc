// libwebsockets with larger buffers than its defaults, which would make its figures worse.
#include <libwebsockets.h>

#include <stdlib.h>
#include <string.h>

#include "meter.h"

enum { SERVICE_BYTES = 64 << 10 };

static struct lws_context *context;
static struct lws *single;
static uint8_t *payload, *message;
static size_t message_length, message_room;
static uint64_t queued, open_count;
static bool is_done, wants_go = true;

static void dial(void) {
  struct lws_client_connect_info info = {
      .context = context,
      .address = "127.0.0.1",
      .host = task.tls ? task.host : "127.0.0.1",
      .origin = NULL,
      .path = task.path,
      .port = atoi(task.port),
      .protocol = NULL,
      .local_protocol_name = "bench",
      .pwsi = &single,
      .ssl_connection = task.tls ? LCCSCF_USE_SSL : 0,
  };
  if (!lws_client_connect_via_info(&info)) meter_fail("lws_client_connect_via_info");
}

static void write_frame(struct lws *wsi, const void *data, size_t length, bool is_text) {
  memcpy(message + LWS_PRE, data, length);
  int sent = lws_write(
      wsi, message + LWS_PRE, length, is_text ? LWS_WRITE_TEXT : LWS_WRITE_BINARY);
  if (sent < (int)length) meter_fail("lws_write");
}

/// \returns non-zero to close the connection, like every callback of the library.
static int writable(struct lws *wsi) {
  if (task_is("connect")) {
    lws_close_reason(wsi, LWS_CLOSE_STATUS_NORMAL, NULL, 0);
    return -1;
  }
  if (task_is("send")) {
    if (queued == task.count) return 0;
    write_frame(wsi, payload, task.size, false);
    if (++queued < task.count) lws_callback_on_writable(wsi);
  } else if (task_is("echo")) {
    meter_ask();
    write_frame(wsi, payload, task.size, false);
  } else if (wants_go) {
    wants_go = false;
    write_frame(wsi, "go", 2, true);
  }
  return 0;
}

/// The first connection does not count, because it includes the one-time setup.
static void one_more_idle(const uint8_t *data, size_t length) {
  if (open_count++ == 0) {
    meter_idle_before();
  } else if (data) {
    is_done = meter_message(data, length);
  } else {
    is_done = ++meter.messages == task.count;
  }
  if (!is_done) dial();
}

static void whole_message(struct lws *wsi, const uint8_t *data, size_t length) {
  if (task_is("send")) {
    meter_sent((const char *)data, length);
    is_done = true;
  } else if (task_is("echo")) {
    is_done = meter_answer(data, length);
    if (!is_done) lws_callback_on_writable(wsi);
  } else if (task_is("greet")) {
    one_more_idle(data, length);
  } else {
    is_done = meter_message(data, length);
  }
  if (is_done && !task_is("greet")) meter_stop();
}

/// Receives a piece of a message: most are whole, others are joined.
static void received(struct lws *wsi, const uint8_t *data, size_t length) {
  bool is_last = lws_is_final_fragment(wsi) && lws_remaining_packet_payload(wsi) == 0;
  if (is_last && message_length == 0) {
    whole_message(wsi, data, length);
    return;
  }
  if (length > message_room - message_length) meter_fail("a message is too long");
  memcpy(message + message_length, data, length);
  message_length += length;
  if (!is_last) return;
  size_t whole = message_length;
  message_length = 0;
  whole_message(wsi, message, whole);
}

static int on_event(
    struct lws *wsi, enum lws_callback_reasons reason, void *user, void *data, size_t length) {
  (void)user;
  switch (reason) {
    case LWS_CALLBACK_CLIENT_ESTABLISHED:
      if (task_is("greet")) return 0;
      if (task_is("idle")) {
        one_more_idle(NULL, 0);
        return 0;
      }
      if (!task_is("connect")) meter_start();
      lws_callback_on_writable(wsi);
      return 0;
    case LWS_CALLBACK_CLIENT_WRITEABLE:
      return writable(wsi);
    case LWS_CALLBACK_CLIENT_RECEIVE:
      if (!is_done) received(wsi, data, length);
      return 0;
    case LWS_CALLBACK_CLIENT_CLOSED:
      if (!task_is("connect")) meter_fail("the connection closed early");
      is_done = ++meter.messages == task.count;
      if (is_done) meter_stop();
      if (!is_done) dial();
      return 0;
    case LWS_CALLBACK_CLIENT_CONNECTION_ERROR:
      meter_fail(data ? data : "no connection");
    default:
      return 0;
  }
}

static void make_context(void) {
  static const struct lws_extension extensions[] = {
      {"permessage-deflate", lws_extension_callback_pm_deflate,
       "permessage-deflate; client_max_window_bits"},
      {NULL, NULL, NULL}};
  static const struct lws_protocols protocols[] = {
      {"bench", on_event, 0, SERVICE_BYTES, 0, NULL, 0}, {NULL, NULL, 0, 0, 0, NULL, 0}};
  struct lws_context_creation_info info = {
      .port = CONTEXT_PORT_NO_LISTEN,
      .protocols = protocols,
      .options = LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT | LWS_SERVER_OPTION_VALIDATE_UTF8,
      .client_ssl_ca_filepath = task.ca_file,
      .pt_serv_buf_size = SERVICE_BYTES,
      .fd_limit_per_thread = 0,
  };
  if (task_is("deflate") || task_is("greet")) info.extensions = extensions;
  lws_set_log_level(LLL_ERR, NULL);
  context = lws_create_context(&info);
  if (!context) meter_fail("lws_create_context");
}

int main(int argc, char **argv) {
  task_read(argc, argv);
  bool is_many = task_is("idle") || task_is("greet");
  static const char *const known[] = {"receive", "deflate", "send", "echo", "connect", "idle"};
  bool is_known = false;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) is_known |= task_is(known[i]);
  if (!is_known && !is_many) return NOT_SUPPORTED;
  payload = meter_payload();
  message_room = (2 << 20) + LWS_PRE;
  message = malloc(message_room);
  make_context();
  if (task_is("connect")) meter_start();
  dial();
  while (!is_done) lws_service(context, 0);
  if (is_many) meter_idle_after();
  meter_report();
}
