/* Every function checks its arguments: a wrong one gives a status, and output parameters are not
 * written. NULL handles are tested by a generated program (abi_tests.py). */
#include "contract.h"

/* A hundred years. */
static const int64_t longest = INT64_C(3153600000000);

static rt_websocket *const untouched = (rt_websocket *)(uintptr_t)1;

static void expect_url(rt_loop *loop, const char *url, rt_status expected) {
  rt_websocket *websocket = untouched;
  CHECK_STATUS(rt_websocket_new(loop, url, &websocket), expected);
  CHECK(websocket == untouched);
}

static void urls(rt_loop *loop) {
  rt_websocket *websocket = untouched;
  expect_url(loop, "", RT_ERROR_INVALID_URL);
  expect_url(loop, "ws://", RT_ERROR_INVALID_URL);
  expect_url(loop, "ws://host:99999/", RT_ERROR_INVALID_URL);
  expect_url(loop, "ws://ho st/", RT_ERROR_INVALID_URL);
  expect_url(loop, "ws://host/\r\nX: y", RT_ERROR_INVALID_URL);
  expect_url(loop, "ftp://host/", RT_ERROR_UNSUPPORTED_SCHEME);
  expect_url(loop, "ws://host/\xff", RT_ERROR_INVALID_UTF8);
  expect_url(loop, NULL, RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_websocket_new(loop, "ws://host/", NULL), RT_ERROR_INVALID_ARGUMENT);
  CHECK(websocket == untouched);
}

static void headers(rt_websocket *websocket) {
  CHECK_STATUS(rt_websocket_add_header(websocket, NULL, "v"), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_websocket_add_header(websocket, "n", NULL), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_websocket_add_header(websocket, "", "v"), RT_ERROR_INVALID_HEADER);
  CHECK_STATUS(rt_websocket_add_header(websocket, "a b", "v"), RT_ERROR_INVALID_HEADER);
  CHECK_STATUS(rt_websocket_add_header(websocket, "a:", "v"), RT_ERROR_INVALID_HEADER);
  CHECK_STATUS(rt_websocket_add_header(websocket, "X-A", "v\r\nB: c"), RT_ERROR_INVALID_HEADER);
  CHECK_STATUS(rt_websocket_add_header(websocket, "X-A", "v\nB"), RT_ERROR_INVALID_HEADER);
  CHECK_STATUS(rt_websocket_add_header(websocket, "sec-websocket-key", "v"),
               RT_ERROR_INVALID_HEADER);
  CHECK_STATUS(rt_websocket_add_header(websocket, "Upgrade", "v"), RT_ERROR_INVALID_HEADER);
  CHECK(strstr(rt_last_error(), "Upgrade") != NULL);
  CHECK_OK(rt_websocket_add_header(websocket, "X-A", "v"));
  CHECK_OK(rt_websocket_add_header(websocket, "X-A", ""));
}

static void subprotocols(rt_websocket *websocket) {
  CHECK_STATUS(rt_websocket_add_subprotocol(websocket, NULL), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_websocket_add_subprotocol(websocket, ""), RT_ERROR_INVALID_SUBPROTOCOL);
  CHECK_STATUS(rt_websocket_add_subprotocol(websocket, "a,b"), RT_ERROR_INVALID_SUBPROTOCOL);
  CHECK_OK(rt_websocket_add_subprotocol(websocket, "chat"));
  CHECK_STATUS(rt_websocket_add_subprotocol(websocket, "chat"), RT_ERROR_INVALID_SUBPROTOCOL);
}

static void options(rt_websocket *websocket) {
  const rt_status bad = RT_ERROR_INVALID_ARGUMENT;
  CHECK_STATUS(rt_websocket_set_ca_file(websocket, NULL), bad);
  CHECK_STATUS(rt_websocket_set_ca_file(websocket, ""), bad);
  CHECK_STATUS(rt_websocket_set_open_timeout_ms(websocket, -1), bad);
  CHECK_STATUS(rt_websocket_set_close_timeout_ms(websocket, INT64_MIN), bad);
  CHECK_STATUS(rt_websocket_set_ping_interval_ms(websocket, -1), bad);
  CHECK_STATUS(rt_websocket_set_pong_timeout_ms(websocket, -1), bad);
  CHECK_STATUS(rt_websocket_set_idle_timeout_ms(websocket, -1), bad);
  CHECK_STATUS(rt_websocket_set_max_message_bytes(websocket, SIZE_MAX), bad);
  CHECK_STATUS(rt_websocket_set_max_header_bytes(websocket, 1023), bad);
  CHECK_STATUS(rt_websocket_set_max_header_bytes(websocket, SIZE_MAX), bad);
  CHECK_STATUS(rt_websocket_set_max_frame_bytes(websocket, SIZE_MAX), bad);
  CHECK_STATUS(rt_websocket_set_send_high_water_bytes(websocket, SIZE_MAX), bad);
  CHECK_STATUS(rt_websocket_set_send_limit_bytes(websocket, SIZE_MAX), bad);
  CHECK_STATUS(rt_websocket_set_compression_level(websocket, 10), bad);
  CHECK_STATUS(rt_websocket_set_compression_level(websocket, -1), bad);
  CHECK_STATUS(rt_websocket_set_compression_min_bytes(websocket, SIZE_MAX), bad);
  CHECK_STATUS(rt_websocket_set_client_max_window_bits(websocket, 8), bad);
  CHECK_STATUS(rt_websocket_set_client_max_window_bits(websocket, 16), bad);
  CHECK_STATUS(rt_websocket_set_server_max_window_bits(websocket, 7), bad);
  CHECK_STATUS(rt_websocket_set_server_max_window_bits(websocket, INT32_MAX), bad);
  CHECK_STATUS(rt_websocket_set_open_timeout_ms(websocket, INT64_MAX), bad);
  CHECK(strstr(rt_last_error(), "9223372036854775807, 0 to 3153600000000") != NULL);
  CHECK_STATUS(rt_websocket_set_idle_timeout_ms(websocket, longest + 1), bad);
  /* The largest allowed values. */
  CHECK_OK(rt_websocket_set_open_timeout_ms(websocket, longest));
  CHECK_OK(rt_websocket_set_close_timeout_ms(websocket, longest));
  CHECK_OK(rt_websocket_set_ping_interval_ms(websocket, longest));
  CHECK_OK(rt_websocket_set_pong_timeout_ms(websocket, longest));
  CHECK_OK(rt_websocket_set_require_pong(websocket, true));
  CHECK_OK(rt_websocket_set_idle_timeout_ms(websocket, longest));
  CHECK_OK(rt_websocket_set_max_message_bytes(websocket, SIZE_MAX / 2));
  CHECK_OK(rt_websocket_set_max_frame_bytes(websocket, SIZE_MAX / 2));
  CHECK_OK(rt_websocket_set_max_inflate_ratio(websocket, UINT32_MAX));
  CHECK_OK(rt_websocket_set_send_limit_bytes(websocket, SIZE_MAX / 2));
  CHECK_OK(rt_websocket_set_send_high_water_bytes(websocket, SIZE_MAX / 2));
}

static void timers(rt_loop *loop) {
  uint64_t id = 7;
  int ran = 0;
  CHECK_STATUS(rt_loop_post(loop, NULL, NULL, NULL), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_loop_add_timer(loop, 0, 0, NULL, NULL, NULL, &id), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_loop_add_timer(loop, -1, 0, count_up, &ran, NULL, &id),
               RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_loop_add_timer(loop, 0, -1, count_up, &ran, NULL, &id),
               RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_loop_add_timer(loop, INT64_MAX, 0, count_up, &ran, NULL, &id),
               RT_ERROR_INVALID_ARGUMENT);
  CHECK(id == 7);
  CHECK_OK(rt_loop_add_timer(loop, longest, longest, count_up, &ran, NULL, &id));
  CHECK_OK(rt_loop_dispatch(loop, 0));
  CHECK(ran == 0);
  CHECK_OK(rt_loop_cancel_timer(loop, id));
  CHECK_STATUS(rt_loop_cancel_timer(loop, id), RT_ERROR_NOT_FOUND);
  CHECK_STATUS(rt_loop_cancel_timer(loop, UINT64_MAX), RT_ERROR_NOT_FOUND);
}

static void messages(rt_loop *loop, const char *server) {
  rt_websocket *websocket = new_websocket(loop, server, "/echo");
  events e = {0};
  char reason[125];
  uint8_t payload[126] = {0};

  CHECK_STATUS(rt_websocket_send_text(websocket, "x", 1), RT_ERROR_STATE);
  CHECK_STATUS(rt_websocket_send_binary(websocket, payload, 1), RT_ERROR_STATE);
  CHECK_STATUS(rt_websocket_ping(websocket, payload, 1), RT_ERROR_STATE);
  CHECK_STATUS(rt_websocket_close(websocket, 1000, NULL), RT_ERROR_STATE);
  listen_to(websocket, &e);
  CHECK_OK(rt_websocket_start(websocket));
  CHECK_STATUS(rt_websocket_start(websocket), RT_ERROR_STATE);
  TURN_UNTIL(loop, e.opened);

  CHECK_STATUS(rt_websocket_send_text(websocket, NULL, 1), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_websocket_send_binary(websocket, NULL, 1), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_websocket_send_text(websocket, "\xc3", 1), RT_ERROR_INVALID_UTF8);
  CHECK_STATUS(rt_websocket_send_text(websocket, "\xed\xa0\x80", 3), RT_ERROR_INVALID_UTF8);
  CHECK_STATUS(rt_websocket_send_binary(websocket, payload, SIZE_MAX), RT_ERROR_TOO_LARGE);
  CHECK_STATUS(rt_websocket_ping(websocket, payload, 126), RT_ERROR_TOO_LARGE);
  CHECK_STATUS(rt_websocket_ping(websocket, NULL, 1), RT_ERROR_INVALID_ARGUMENT);

  CHECK_STATUS(rt_websocket_close(websocket, 999, NULL), RT_ERROR_INVALID_CLOSE_CODE);
  CHECK_STATUS(rt_websocket_close(websocket, 1005, NULL), RT_ERROR_INVALID_CLOSE_CODE);
  CHECK_STATUS(rt_websocket_close(websocket, 1015, NULL), RT_ERROR_INVALID_CLOSE_CODE);
  CHECK_STATUS(rt_websocket_close(websocket, 5000, NULL), RT_ERROR_INVALID_CLOSE_CODE);
  CHECK_STATUS(rt_websocket_close(websocket, 0, "why"), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_websocket_close(websocket, 1000, "\xff"), RT_ERROR_INVALID_UTF8);
  memset(reason, 'a', 124);
  reason[124] = '\0';
  CHECK_STATUS(rt_websocket_close(websocket, 1000, reason), RT_ERROR_CLOSE_REASON_TOO_LONG);
  CHECK(rt_websocket_get_state(websocket) == RT_STATE_OPEN);

  reason[123] = '\0';
  CHECK_OK(rt_websocket_close(websocket, 4999, reason));
  CHECK_OK(rt_websocket_close(websocket, 1000, NULL));
  CHECK_STATUS(rt_websocket_send_text(websocket, "x", 1), RT_ERROR_CLOSED);
  CHECK_STATUS(rt_websocket_ping(websocket, NULL, 0), RT_ERROR_CLOSED);
  TURN_UNTIL(loop, e.closed);
  CHECK(e.clean && e.close_code == 4999 && strcmp(e.reason, reason) == 0);
  CHECK(e.messages == 0 && e.errors == 0);
  rt_websocket_free(websocket);
  CHECK(e.destroyed == EVENT_SETTERS);
}

/* Options are set before start; a setter that fails changes nothing. */
static void options_after_start(rt_loop *loop, const char *server) {
  rt_websocket *websocket = new_websocket(loop, server, "/echo");
  events e = {0}, late = {0};
  listen_to(websocket, &e);
  CHECK_OK(rt_websocket_start(websocket));
  CHECK_STATUS(rt_websocket_add_header(websocket, "X-A", "v"), RT_ERROR_STATE);
  CHECK_STATUS(rt_websocket_add_subprotocol(websocket, "a"), RT_ERROR_STATE);
  CHECK_STATUS(rt_websocket_set_ca_file(websocket, "a"), RT_ERROR_STATE);
  CHECK_STATUS(rt_websocket_set_open_timeout_ms(websocket, 1), RT_ERROR_STATE);
  CHECK_STATUS(rt_websocket_set_close_timeout_ms(websocket, 1), RT_ERROR_STATE);
  CHECK_STATUS(rt_websocket_set_ping_interval_ms(websocket, 1), RT_ERROR_STATE);
  CHECK_STATUS(rt_websocket_set_pong_timeout_ms(websocket, 1), RT_ERROR_STATE);
  CHECK_STATUS(rt_websocket_set_max_message_bytes(websocket, 1), RT_ERROR_STATE);
  CHECK_STATUS(rt_websocket_set_max_header_bytes(websocket, 4096), RT_ERROR_STATE);
  CHECK_STATUS(rt_websocket_set_max_inflate_ratio(websocket, 1), RT_ERROR_STATE);
  CHECK_STATUS(rt_websocket_set_max_frame_bytes(websocket, 1), RT_ERROR_STATE);
  CHECK_STATUS(rt_websocket_set_send_high_water_bytes(websocket, 1), RT_ERROR_STATE);
  CHECK_STATUS(rt_websocket_set_send_limit_bytes(websocket, 1), RT_ERROR_STATE);
  CHECK_STATUS(rt_websocket_set_compression(websocket, false), RT_ERROR_STATE);
  CHECK_STATUS(rt_websocket_set_compression_level(websocket, 1), RT_ERROR_STATE);
  CHECK_STATUS(rt_websocket_set_compression_min_bytes(websocket, 1), RT_ERROR_STATE);
  CHECK_STATUS(rt_websocket_set_client_max_window_bits(websocket, 9), RT_ERROR_STATE);
  CHECK_STATUS(rt_websocket_set_server_max_window_bits(websocket, 9), RT_ERROR_STATE);
  CHECK_STATUS(rt_websocket_set_client_no_context_takeover(websocket, true), RT_ERROR_STATE);
  CHECK_STATUS(rt_websocket_set_server_no_context_takeover(websocket, true), RT_ERROR_STATE);
  /* Callbacks can be set at any time. */
  CHECK_OK(rt_websocket_on_open(websocket, events_open, &late, events_destroy));
  TURN_UNTIL(loop, late.opened);
  CHECK(e.opened == 0 && late.destroyed == 0);
  rt_websocket_free(websocket);
  CHECK(late.destroyed == 1);
}

int main(int argc, char **argv) {
  rt_loop *loop;
  rt_websocket *websocket;
  CHECK(argc == 2);
  CHECK_STATUS(rt_loop_new(NULL), RT_ERROR_INVALID_ARGUMENT);
  loop = new_loop();
  urls(loop);
  websocket = new_websocket(loop, argv[1], "/echo");
  headers(websocket);
  subprotocols(websocket);
  options(websocket);
  CHECK(rt_websocket_get_state(websocket) == RT_STATE_IDLE);
  CHECK(rt_websocket_round_trip_us(websocket) == -1);
  CHECK(rt_websocket_buffered_bytes(websocket) == 0);
  rt_websocket_free(websocket);
  timers(loop);
  messages(loop, argv[1]);
  options_after_start(loop, argv[1]);
  rt_loop_free(loop);
  rt_loop_free(NULL);
  rt_websocket_free(NULL);
  return 0;
}
