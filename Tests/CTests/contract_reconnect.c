/* A lost connection reconnects after its backoff, up to the number of attempts that is set.
 * Messages sent meanwhile are kept. The callback before an attempt may change or end it. */
#include "contract.h"
#include <math.h>

typedef struct story {
  rt_websocket *websocket;
  const char *other;
  int opened, lost, attempts, errors, closed, drained, messages, stop_at;
  int64_t delay_ms;
  uint32_t last_attempt;
  /* From the peer's close frame; 0 without one. */
  uint16_t code;
  char texts[8][32];
} story;

static void on_open(const rt_opened *opened, void *user) {
  (void)opened;
  ((story *)user)->opened++;
}

static void on_text(rt_message_kind kind, const uint8_t *data, size_t length, void *user) {
  story *s = user;
  (void)kind;
  CHECK(s->messages < 8 && length < 32);
  memcpy(s->texts[s->messages++], data, length);
}

static void on_error(const rt_failure *failure, void *user) {
  story *s = user;
  /* A normal end is reported, too, if another attempt follows. */
  CHECK(failure->status == (s->code ? RT_ERROR_CLOSED : RT_ERROR_CONNECTION_LOST));
  CHECK(failure->message[0] != '\0');
  s->errors += failure->status == RT_ERROR_CONNECTION_LOST;
  if (failure->fatal) return;
  CHECK(failure->close_code == (s->code ? s->code : 1006));
  CHECK(strcmp(failure->close_reason, s->code ? "because" : "") == 0);
  CHECK(failure->close_reason_length == strlen(failure->close_reason));
  CHECK(failure->retry_in_ms == s->delay_ms);
  CHECK(rt_websocket_get_state(s->websocket) == RT_STATE_WAITING);
  s->lost++;
  s->last_attempt = failure->attempt;
}

static bool on_reconnect(uint32_t attempt, void *user) {
  story *s = user;
  CHECK(attempt == s->last_attempt);
  CHECK_OK(rt_websocket_clear_headers(s->websocket));
  CHECK_OK(rt_websocket_set_header(s->websocket, "X-Attempt", "again"));
  if (s->other) CHECK_OK(rt_websocket_set_url(s->websocket, s->other));
  return ++s->attempts != s->stop_at;
}

static void on_close(const rt_closed *closed, void *user) {
  (void)closed;
  ((story *)user)->closed++;
}

static void on_drained(void *user) {
  story *s = user;
  CHECK(s->opened > 0 && rt_websocket_buffered_bytes(s->websocket) == 0);
  s->drained++;
}

static void reconnecting(story *s, rt_loop *loop, const char *server, const char *path,
                         uint32_t max_attempts) {
  rt_backoff *backoff = NULL;
  s->websocket = new_websocket(loop, server, path);
  CHECK_OK(rt_backoff_new(&backoff));
  if (s->delay_ms == 0) s->delay_ms = 1;
  CHECK_OK(rt_backoff_set_initial_delay_ms(backoff, s->delay_ms));
  CHECK_OK(rt_backoff_set_factor(backoff, 1));
  CHECK_OK(rt_backoff_set_jitter(backoff, RT_JITTER_NONE));
  CHECK_OK(rt_backoff_set_max_attempts(backoff, max_attempts));
  CHECK_OK(rt_websocket_set_reconnect(s->websocket, backoff));
  rt_backoff_free(backoff);
  CHECK_OK(rt_websocket_on_open(s->websocket, on_open, s, NULL));
  CHECK_OK(rt_websocket_on_message(s->websocket, on_text, s, NULL));
  CHECK_OK(rt_websocket_on_reconnect(s->websocket, on_reconnect, s, NULL));
  CHECK_OK(rt_websocket_on_error(s->websocket, on_error, s, NULL));
  CHECK_OK(rt_websocket_on_closed(s->websocket, on_close, s, NULL));
  CHECK_OK(rt_websocket_on_drained(s->websocket, on_drained, s, NULL));
}

static void reconnects_with_the_network(rt_loop *loop, const char *server) {
  story s = {0};
  reconnecting(&s, loop, server, "/flaky/c/3", 0);
  CHECK_OK(rt_websocket_start(s.websocket));
  TURN_UNTIL(loop, s.opened == 4);
  CHECK_OK(rt_websocket_send_text(s.websocket, "again", 5));
  TURN_UNTIL(loop, s.messages == 1);
  CHECK(s.lost == 3 && s.attempts == 3 && s.errors == 3 && s.closed == 0);
  CHECK(s.last_attempt == 3);
  CHECK_OK(rt_websocket_close(s.websocket, 1000, NULL));
  TURN_UNTIL(loop, s.closed);
  CHECK(s.lost == 3);
  rt_websocket_free(s.websocket);
}

/* Kept messages are sent in order, on the connection to which the callback has redirected. */
static void keeps_messages(rt_loop *loop, const char *server) {
  story s = {0};
  char echo[64];
  snprintf(echo, sizeof echo, "%s/echo", server);
  s.other = echo;
  reconnecting(&s, loop, server, "/drop", 0);
  CHECK_OK(rt_websocket_set_offline_queue(s.websocket, 2));
  CHECK_STATUS(rt_websocket_send_text(s.websocket, "early", 5), RT_ERROR_STATE);
  CHECK_OK(rt_websocket_start(s.websocket));
  TURN_UNTIL(loop, s.lost == 1);
  CHECK_OK(rt_websocket_send_text(s.websocket, "first", 5));
  CHECK_OK(rt_websocket_send_text(s.websocket, "second", 6));
  CHECK_STATUS(rt_websocket_send_text(s.websocket, "third", 5), RT_ERROR_BUFFER_FULL);
  /* Each message counts with the longest header that a frame can have. */
  CHECK(rt_websocket_buffered_bytes(s.websocket) == 5 + 6 + 2 * 14);
  TURN_UNTIL(loop, s.messages == 2);
  CHECK(strcmp(s.texts[0], "first") == 0 && strcmp(s.texts[1], "second") == 0);
  CHECK(rt_websocket_buffered_bytes(s.websocket) == 0);
  /* One send was refused, so drained is called when the others are sent. */
  TURN_UNTIL(loop, s.drained == 1);
  rt_websocket_free(s.websocket);
}

static void gives_up(rt_loop *loop, const char *server) {
  story limited = {0}, vetoed = {0}, closed = {.delay_ms = 30000}, normal = {0};
  reconnecting(&limited, loop, server, "/drop", 2);
  CHECK_OK(rt_websocket_start(limited.websocket));
  TURN_UNTIL(loop, limited.closed);
  CHECK(limited.attempts == 2 && limited.lost == 2 && limited.errors == 3);
  rt_websocket_free(limited.websocket);

  vetoed.stop_at = 2;
  reconnecting(&vetoed, loop, server, "/drop", 0);
  CHECK_OK(rt_websocket_start(vetoed.websocket));
  TURN_UNTIL(loop, vetoed.closed);
  CHECK(vetoed.attempts == 2 && vetoed.errors == 2);
  rt_websocket_free(vetoed.websocket);

  /* Closed while it waits: only the close callback runs. */
  reconnecting(&closed, loop, server, "/drop", 0);
  CHECK_OK(rt_websocket_start(closed.websocket));
  TURN_UNTIL(loop, closed.lost == 1);
  CHECK_OK(rt_websocket_close(closed.websocket, 1000, NULL));
  TURN_UNTIL(loop, closed.closed);
  settle(loop);
  CHECK(closed.attempts == 0 && closed.closed == 1);
  rt_websocket_free(closed.websocket);

  reconnecting(&normal, loop, server, "/close/1000", 0);
  CHECK_OK(rt_websocket_start(normal.websocket));
  TURN_UNTIL(loop, normal.closed);
  CHECK(normal.lost == 0 && normal.opened == 1);
  rt_websocket_free(normal.websocket);
}

static void backoffs(void) {
  const rt_status bad = RT_ERROR_INVALID_ARGUMENT;
  const int64_t expected[] = {100, 300, 900, 1000};
  rt_backoff *backoff = NULL;
  int64_t delay = -7;
  int i;
  CHECK_STATUS(rt_backoff_new(NULL), bad);
  CHECK_OK(rt_backoff_new(&backoff));
  CHECK_STATUS(rt_backoff_set_initial_delay_ms(backoff, -1), bad);
  CHECK_STATUS(rt_backoff_set_max_delay_ms(backoff, INT64_MAX), bad);
  CHECK(strstr(rt_last_error(), "9223372036854775807") != NULL);
  CHECK_STATUS(rt_backoff_set_max_delay_ms(backoff, INT64_C(3153600000001)), bad);
  CHECK(strstr(rt_last_error(), "a hundred years") != NULL);
  CHECK_STATUS(rt_backoff_set_factor(backoff, 0.5), bad);
  CHECK(strstr(rt_last_error(), "factor is 0.5, 1 to 1000 is expected") != NULL);
  CHECK_STATUS(rt_backoff_set_factor(backoff, NAN), bad);
  CHECK_STATUS(rt_backoff_set_jitter(backoff, 4), bad);
  CHECK_STATUS(rt_backoff_set_stable_time_ms(backoff, -1), bad);
  CHECK_OK(rt_backoff_set_initial_delay_ms(backoff, 100));
  CHECK_OK(rt_backoff_set_max_delay_ms(backoff, 1000));
  CHECK_OK(rt_backoff_set_factor(backoff, 3));
  CHECK_OK(rt_backoff_set_jitter(backoff, RT_JITTER_NONE));
  CHECK_OK(rt_backoff_set_max_attempts(backoff, 4));
  for (i = 0; i < 4; i++) {
    CHECK_OK(rt_backoff_next_ms(backoff, &delay));
    CHECK(delay == expected[i]);
  }
  CHECK_STATUS(rt_backoff_next_ms(backoff, &delay), RT_ERROR_NOT_FOUND);
  CHECK(delay == 1000);
  CHECK_OK(rt_backoff_reset(backoff));
  CHECK_OK(rt_backoff_next_ms(backoff, &delay));
  CHECK(delay == 100);
  CHECK_STATUS(rt_backoff_next_ms(backoff, NULL), bad);
  rt_backoff_free(backoff);
  rt_backoff_free(NULL);
}

/* If it is set so, a server's normal close is a loss like others; our own close is the end. */
static void after_a_normal_close(rt_loop *loop, const char *server) {
  story s = {.code = 1000};
  reconnecting(&s, loop, server, "/close/1000", 0);
  CHECK_OK(rt_websocket_set_reconnect_after_normal_close(s.websocket, true));
  CHECK_OK(rt_websocket_start(s.websocket));
  CHECK_STATUS(rt_websocket_set_reconnect_after_normal_close(s.websocket, false), RT_ERROR_STATE);
  TURN_UNTIL(loop, s.opened == 3);
  CHECK(s.lost >= 2 && s.errors == 0 && s.closed == 0);
  CHECK_OK(rt_websocket_close(s.websocket, 1000, NULL));
  TURN_UNTIL(loop, s.closed);
  CHECK(s.opened == 3);
  rt_websocket_free(s.websocket);
}

int main(int argc, char **argv) {
  rt_loop *loop;
  CHECK(argc == 2);
  backoffs();
  loop = new_loop();
  reconnects_with_the_network(loop, argv[1]);
  keeps_messages(loop, argv[1]);
  gives_up(loop, argv[1]);
  after_a_normal_close(loop, argv[1]);
  rt_loop_free(loop);
  return 0;
}
