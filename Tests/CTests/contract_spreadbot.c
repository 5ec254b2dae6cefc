/* Spreadbot connections: the ladder, the cursor, tokens, sends, which options can be set when,
 * pauses, and calls from callbacks. */
#include <sys/stat.h>
#include <unistd.h>

#include "contract.h"

typedef struct heard {
  char text[2048];
  char legs[64];
  rt_spreadbot *spreadbot;
  rt_status last_error, last_sent, ended;
  int opens, messages, errors, fatal, sent, disconnected, destroyed;
  int pause_at, disconnect_at, free_at;
  bool resumed;
} heard;

static rt_spreadbot *new_spreadbot(rt_loop *loop, const char *server) {
  char url[256];
  rt_spreadbot *spreadbot = NULL;
  snprintf(url, sizeof url, "http%s", server + 2);
  CHECK_OK(rt_spreadbot_new(loop, url, &spreadbot));
  CHECK(spreadbot != NULL);
  return spreadbot;
}

static void on_open(const rt_opened *opened, void *user) {
  heard *h = user;
  h->opens++;
  h->resumed = opened->resumed;
  CHECK(rt_spreadbot_get_state(h->spreadbot) == RT_STATE_OPEN);
  CHECK(rt_spreadbot_get_transport(h->spreadbot) == (int32_t)opened->transport);
}

static void on_transport(rt_spreadbot_transport transport, void *user) {
  heard *h = user;
  size_t used = strlen(h->legs);
  snprintf(h->legs + used, sizeof h->legs - used, "%d", (int)transport);
}

static void on_message(const rt_event *event, void *user) {
  heard *h = user;
  size_t used = strlen(h->text);
  CHECK(event->id[event->id_length] == '\0' && event->event[event->event_length] == '\0'
        && event->had_id == (event->id_length > 0));
  snprintf(h->text + used, sizeof h->text - used, "%s %s %.*s;", event->id, event->event,
           (int)event->data_length,
           (const char *)event->data);
  h->messages++;
  CHECK_STATUS(rt_spreadbot_set_http2(h->spreadbot, true), RT_ERROR_STATE);
  if (h->messages == h->pause_at) CHECK_OK(rt_spreadbot_pause(h->spreadbot));
  if (h->messages == h->disconnect_at) CHECK_OK(rt_spreadbot_close(h->spreadbot));
  if (h->messages == h->free_at) rt_spreadbot_free(h->spreadbot);
}

static void on_error(const rt_failure *failure, void *user) {
  heard *h = user;
  CHECK(failure->message[0] != '\0' && (!failure->fatal || failure->retry_in_ms == -1));
  h->last_error = failure->status;
  h->errors++;
  h->fatal += failure->fatal;
}

static void on_tokens(const char *access_token, const char *refresh_token, void *user) {
  (void)access_token, (void)refresh_token, (void)user;
  CHECK(false);
}

static void on_sent(const rt_spreadbot_sent *sent, void *user) {
  heard *h = user;
  CHECK(sent->number > 0 && (sent->status == RT_OK) == (sent->message[0] == '\0')
        && sent->response == NULL);
  h->last_sent = sent->status;
  h->sent++;
}

static void on_disconnected(const rt_closed *closed, void *user) {
  heard *h = user;
  CHECK((closed->status == RT_OK) == (closed->message[0] == '\0'));
  CHECK(rt_spreadbot_get_state(h->spreadbot) == RT_STATE_CLOSED);
  h->ended = closed->status;
  h->disconnected++;
}

static rt_spreadbot *listen(heard *h, rt_loop *loop, const char *server) {
  memset(h, 0, sizeof *h);
  h->spreadbot = new_spreadbot(loop, server);
  CHECK_OK(rt_spreadbot_on_open(h->spreadbot, on_open, h, NULL));
  CHECK_OK(rt_spreadbot_on_transport(h->spreadbot, on_transport, h, NULL));
  CHECK_OK(rt_spreadbot_on_message(h->spreadbot, on_message, h, NULL));
  CHECK_OK(rt_spreadbot_on_error(h->spreadbot, on_error, h, NULL));
  CHECK_OK(rt_spreadbot_on_tokens(h->spreadbot, on_tokens, h, NULL));
  CHECK_OK(rt_spreadbot_on_sent(h->spreadbot, on_sent, h, NULL));
  CHECK_OK(rt_spreadbot_on_closed(h->spreadbot, on_disconnected, h, NULL));
  return h->spreadbot;
}

static void check_id(rt_spreadbot *spreadbot, const char *expected) {
  char id[32];
  size_t length;
  CHECK_OK(rt_spreadbot_get_last_event_id(spreadbot, id, sizeof id, &length));
  CHECK(length == strlen(expected) && strcmp(id, expected) == 0);
}

static void check_tokens(rt_spreadbot *spreadbot, const char *access, const char *refresh) {
  char token[32];
  size_t length;
  CHECK_OK(rt_spreadbot_get_access_token(spreadbot, token, sizeof token, &length));
  CHECK(length == strlen(access) && strcmp(token, access) == 0);
  CHECK_OK(rt_spreadbot_get_refresh_token(spreadbot, token, sizeof token, &length));
  CHECK(length == strlen(refresh) && strcmp(token, refresh) == 0);
}

static void falls_back_along_the_ladder(rt_loop *loop, const char *server) {
  heard h;
  rt_spreadbot *spreadbot = listen(&h, loop, server);
  CHECK_OK(rt_spreadbot_set_last_event_id(spreadbot, "4"));
  check_id(spreadbot, "4");
  h.disconnect_at = 3;
  CHECK_OK(rt_spreadbot_start(spreadbot, "/events/3"));
  CHECK(h.errors == 0);
  /* The handshake is answered with 200, so there is no WebSocket. */
  TURN_UNTIL(loop, h.disconnected);
  CHECK(strcmp(h.text, "5 odd number\n5;6 /events/3 number\n6;7 odd number\n7;") == 0);
  CHECK(strcmp(h.legs, "20") == 0 && h.errors == 1 && h.last_error == RT_ERROR_HTTP_STATUS);
  CHECK(h.opens == 1 && h.resumed && h.ended == RT_OK && h.fatal == 0);
  check_id(spreadbot, "7");
  CHECK(rt_spreadbot_get_transport(spreadbot) == RT_SPREADBOT_TRANSPORT_NONE);
  CHECK(rt_spreadbot_get_phase(spreadbot) == RT_SPREADBOT_PHASE_NONE);
  /* On the same path the cursor continues; on another path it starts over. */
  h.disconnect_at = 4;
  CHECK_OK(rt_spreadbot_start(spreadbot, "/events/3"));
  TURN_UNTIL(loop, h.disconnected == 2);
  check_id(spreadbot, "8");
  h.disconnect_at = 5;
  CHECK_OK(rt_spreadbot_start(spreadbot, "events/1"));
  TURN_UNTIL(loop, h.disconnected == 3);
  check_id(spreadbot, "1");
  rt_spreadbot_free(spreadbot);
}

static void sends_are_confirmed(rt_loop *loop, const char *server) {
  heard h;
  uint64_t first = 0, second = 0;
  rt_spreadbot *spreadbot = listen(&h, loop, server);
  CHECK_OK(rt_spreadbot_send_text(spreadbot, "early", 5, &first));
  CHECK(h.sent == 0);
  TURN_UNTIL(loop, h.sent == 1);
  CHECK(h.last_sent == RT_ERROR_CLOSED);
  CHECK_OK(rt_spreadbot_start(spreadbot, "echo"));
  TURN_UNTIL(loop, h.opens == 1);
  CHECK(!h.resumed);
  h.pause_at = 1;
  CHECK_OK(rt_spreadbot_send_text(spreadbot, "one", 3, &first));
  CHECK_OK(rt_spreadbot_send_binary(spreadbot, (const uint8_t *)"two", 3, &second));
  CHECK(second > first && h.sent == 1);
  CHECK_STATUS(rt_spreadbot_send_text(spreadbot, "\xff", 1, NULL), RT_ERROR_INVALID_UTF8);
  TURN_UNTIL(loop, h.messages >= 1);
  settle(loop);
  CHECK_OK(rt_spreadbot_resume(spreadbot));
  TURN_UNTIL(loop, h.messages == 2 && h.sent == 3);
  CHECK(strcmp(h.text, " echo one; echo two;") == 0 && h.last_sent == RT_OK);
  CHECK_OK(rt_spreadbot_cancel(spreadbot, second));
  CHECK_OK(rt_spreadbot_send_text(spreadbot, "last", 4, NULL));
  CHECK_OK(rt_spreadbot_close(spreadbot));
  TURN_UNTIL(loop, h.disconnected);
  /* It was sent before the close frame, which the server answered. */
  CHECK(h.sent == 4 && h.last_sent == RT_OK && h.errors == 0 && strcmp(h.legs, "10") == 0);
  CHECK_OK(rt_spreadbot_close(spreadbot));
  rt_spreadbot_free(spreadbot);
}

static void a_pause_keeps_options_and_sends(rt_loop *loop, const char *server) {
  static uint8_t much[16 << 20];
  const int32_t events[] = {RT_SPREADBOT_TRANSPORT_SSE};
  heard h;
  rt_websocket *release;
  rt_spreadbot *spreadbot = listen(&h, loop, server);
  /* Before the connection is used, these calls start nothing. */
  CHECK_OK(rt_spreadbot_pause(spreadbot));
  CHECK_OK(rt_spreadbot_resume(spreadbot));
  CHECK_OK(rt_spreadbot_cancel(spreadbot, 7));
  CHECK_OK(rt_spreadbot_set_transports(spreadbot, events, 1));
  h.disconnect_at = 1;
  CHECK_OK(rt_spreadbot_start(spreadbot, "events/1"));
  TURN_UNTIL(loop, h.disconnected);
  CHECK(strcmp(h.legs, "20") == 0 && h.errors == 0);
  rt_spreadbot_free(spreadbot);

  /* Sent in a pause; not fully written before the pause ends. */
  spreadbot = listen(&h, loop, server);
  CHECK_OK(rt_spreadbot_set_compression(spreadbot, false));
  CHECK_OK(rt_spreadbot_start(spreadbot, "stall"));
  TURN_UNTIL(loop, h.opens == 1);
  CHECK_OK(rt_spreadbot_pause(spreadbot));
  CHECK_OK(rt_spreadbot_send_binary(spreadbot, much, sizeof much, NULL));
  settle(loop);
  CHECK_OK(rt_spreadbot_resume(spreadbot));
  settle(loop);
  CHECK(h.sent == 0);
  release = new_websocket(loop, server, "/release");
  CHECK_OK(rt_websocket_start(release));
  TURN_UNTIL(loop, h.sent == 1);
  CHECK(h.last_sent == RT_OK);
  rt_websocket_free(release);
  rt_spreadbot_free(spreadbot);
}

static void tokens_are_needed(rt_loop *loop, const char *server) {
  heard h;
  rt_rest *rest = NULL;
  rt_spreadbot *spreadbot = listen(&h, loop, server);
  CHECK_OK(rt_spreadbot_start(spreadbot, "poll/1"));
  TURN_UNTIL(loop, h.disconnected);
  CHECK(h.fatal == 1 && h.last_error == RT_ERROR_AUTH && h.ended == RT_ERROR_AUTH);
  CHECK_OK(rt_spreadbot_set_tokens(spreadbot, "good", NULL));
  h.disconnect_at = 1;
  CHECK_OK(rt_spreadbot_start(spreadbot, "poll/1"));
  TURN_UNTIL(loop, h.disconnected == 2);
  CHECK(strcmp(h.text, "1 poll/1 message 1;") == 0 && strcmp(h.legs, "030") == 0);
  check_tokens(spreadbot, "good", "");
  CHECK_OK(rt_spreadbot_new_rest(spreadbot, &rest));
  rt_spreadbot_free(spreadbot);
  rt_rest_free(rest);
}

static void callbacks_may_free(rt_loop *loop, const char *server) {
  heard h;
  rt_spreadbot *spreadbot = listen(&h, loop, server);
  CHECK_OK(rt_spreadbot_on_tokens(spreadbot, NULL, &h.destroyed, count_up));
  h.free_at = 2;
  CHECK_OK(rt_spreadbot_start(spreadbot, "events/9"));
  TURN_UNTIL(loop, h.messages == 2);
  settle(loop);
  CHECK(h.messages == 2 && h.destroyed == 1 && h.disconnected == 0);
}

static void waits_for_the_network(rt_loop *loop, const char *server) {
  heard h;
  rt_loop *other = new_loop();
  rt_reachability *offline, *foreign;
  uint64_t number;
  rt_spreadbot *spreadbot = listen(&h, loop, server);
  CHECK_OK(rt_reachability_new(loop, RT_REACHABILITY_MANUAL, &offline));
  CHECK_OK(rt_reachability_new(other, RT_REACHABILITY_MANUAL, &foreign));
  CHECK_STATUS(rt_spreadbot_set_reachability(spreadbot, foreign), RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_spreadbot_set_reachability(spreadbot, offline));
  CHECK_OK(rt_spreadbot_set_queue_capacity(spreadbot, 2));
  CHECK_OK(rt_spreadbot_set_queue_overflow(spreadbot, RT_REST_OVERFLOW_REJECT_NEW));
  CHECK_OK(rt_reachability_set_online(offline, false));
  CHECK_OK(rt_spreadbot_start(spreadbot, "echo"));
  settle(loop);
  CHECK(rt_spreadbot_get_phase(spreadbot) == RT_SPREADBOT_PHASE_OFFLINE);
  CHECK(rt_spreadbot_get_state(spreadbot) == RT_STATE_WAITING);
  CHECK(h.errors == 1 && h.fatal == 0 && h.last_error == RT_ERROR_CONNECT);
  for (int i = 0; i < 3; i++) CHECK_OK(rt_spreadbot_send_text(spreadbot, "x", 1, &number));
  TURN_UNTIL(loop, h.sent == 1);
  CHECK(h.last_sent == RT_ERROR_QUEUE_FULL);
  CHECK_OK(rt_spreadbot_cancel(spreadbot, number - 1));
  TURN_UNTIL(loop, h.sent == 2);
  CHECK(h.last_sent == RT_ERROR_CANCELLED);
  CHECK_OK(rt_reachability_set_online(offline, true));
  TURN_UNTIL(loop, h.opens == 1);
  rt_spreadbot_free(spreadbot);
  rt_reachability_free(offline);
  rt_reachability_free(foreign);
  rt_loop_free(other);
}

static void sends_outlive_their_connection(rt_loop *loop, const char *server) {
  heard h;
  char path[] = "/tmp/contract_spreadbot_XXXXXX";
  int file = mkstemp(path);
  rt_spreadbot *spreadbot = listen(&h, loop, server), *other = new_spreadbot(loop, server);
  rt_reachability *offline;
  uint64_t number = 0;
  CHECK(file >= 0 && close(file) == 0);
  CHECK_OK(rt_reachability_new(loop, RT_REACHABILITY_MANUAL, &offline));
  CHECK_OK(rt_reachability_set_online(offline, false));
  CHECK_OK(rt_spreadbot_set_reachability(spreadbot, offline));
  CHECK_STATUS(rt_spreadbot_set_outbox(spreadbot, "/nowhere/at/all"), RT_ERROR_STORE);
  CHECK(chmod(path, 0644) == 0);
  CHECK_STATUS(rt_spreadbot_set_outbox(spreadbot, path), RT_ERROR_STORE);
  CHECK(strstr(rt_last_error(), "chmod 600") != NULL);
  CHECK(chmod(path, 0600) == 0);
  CHECK_OK(rt_spreadbot_set_outbox(spreadbot, path));
  CHECK_STATUS(rt_spreadbot_set_outbox(spreadbot, path), RT_ERROR_STATE);
  CHECK_STATUS(rt_spreadbot_set_outbox(other, path), RT_ERROR_BUSY);
  CHECK_STATUS(rt_spreadbot_send_text(spreadbot, "early", 5, NULL), RT_ERROR_CLOSED);
  CHECK_OK(rt_spreadbot_start(spreadbot, "echo"));
  CHECK_OK(rt_spreadbot_send_text(spreadbot, "kept", 4, NULL));
  CHECK_OK(rt_spreadbot_send_binary(spreadbot, (const uint8_t *)"too", 3, NULL));
  CHECK_STATUS(rt_spreadbot_post(spreadbot, "a b\n", NULL, NULL, 0, NULL), RT_ERROR_INVALID_URL);
  CHECK_STATUS(rt_spreadbot_post(spreadbot, "x", "a\nb", NULL, 0, NULL), RT_ERROR_INVALID_HEADER);
  CHECK_OK(rt_spreadbot_post(spreadbot, "x", NULL, (const uint8_t *)"{}", 2, &number));
  settle(loop);
  CHECK_OK(rt_spreadbot_cancel(spreadbot, number));
  TURN_UNTIL(loop, h.sent == 1);
  CHECK(h.last_sent == RT_ERROR_CANCELLED);
  rt_spreadbot_free(spreadbot);
  rt_spreadbot_free(other);
  settle(loop);

  spreadbot = listen(&h, loop, server);
  CHECK_OK(rt_spreadbot_set_transports(spreadbot, (const int32_t[]){1}, 1));
  CHECK_OK(rt_spreadbot_set_outbox(spreadbot, path));
  h.disconnect_at = 2;
  CHECK_OK(rt_spreadbot_start(spreadbot, "echo"));
  TURN_UNTIL(loop, h.disconnected);
  CHECK(strcmp(h.text, " echo kept; echo too;") == 0);
  CHECK(h.sent == 2 && h.last_sent == RT_OK);
  rt_spreadbot_free(spreadbot);
  rt_reachability_free(offline);
  settle(loop);
  CHECK(unlink(path) == 0);
}

static void options_are_checked(rt_loop *loop, const char *server) {
  const int32_t twice[] = {1, 1}, listed[] = {3, 1}, foreign[] = {4};
  rt_spreadbot *spreadbot = new_spreadbot(loop, server);
  rt_network *network = NULL;
  CHECK_OK(rt_network_new(&network));
  CHECK_OK(rt_spreadbot_set_network(spreadbot, network));
  rt_network_free(network);
  CHECK_STATUS(rt_spreadbot_set_transports(spreadbot, NULL, 0), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_spreadbot_set_transports(spreadbot, twice, 2), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_spreadbot_set_transports(spreadbot, foreign, 1), RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_spreadbot_set_transports(spreadbot, listed, 2));
  CHECK_OK(rt_spreadbot_set_transport_url(spreadbot, RT_SPREADBOT_TRANSPORT_POLL, "wss://h/p"));
  CHECK_STATUS(rt_spreadbot_set_transport_url(spreadbot, 0, "ws://h"), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_spreadbot_set_transport_url(spreadbot, 1, "ftp://h"),
               RT_ERROR_UNSUPPORTED_SCHEME);
  CHECK_STATUS(rt_spreadbot_set_send_url(spreadbot, "http://"), RT_ERROR_INVALID_URL);
  CHECK_STATUS(rt_spreadbot_set_auth(spreadbot, "https://h/token", "a\nb"),
               RT_ERROR_INVALID_HEADER);
  CHECK_STATUS(rt_spreadbot_set_tokens(spreadbot, "a\nb", ""), RT_ERROR_INVALID_HEADER);
  CHECK_OK(rt_spreadbot_set_token_query_parameter(spreadbot, "token"));
  CHECK_OK(rt_spreadbot_set_id_query_parameter(spreadbot, NULL));
  CHECK_STATUS(rt_spreadbot_set_last_event_id(spreadbot, "a\n"), RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_spreadbot_add_header(spreadbot, "X-Client", "contract"));
  CHECK_STATUS(rt_spreadbot_add_header(spreadbot, "authorization", "no"), RT_ERROR_INVALID_HEADER);
  CHECK_STATUS(rt_spreadbot_add_header(spreadbot, "Expect", "no"), RT_ERROR_INVALID_HEADER);
  CHECK_OK(rt_spreadbot_set_compression(spreadbot, false));
  CHECK_OK(rt_spreadbot_set_http2(spreadbot, false));
  CHECK_STATUS(rt_spreadbot_set_max_redirects(spreadbot, 21), RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_spreadbot_set_max_reconnects(spreadbot, 1));
  CHECK_OK(rt_spreadbot_set_max_rounds(spreadbot, 0));
  CHECK_STATUS(rt_spreadbot_set_max_delay_ms(spreadbot, -1), RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_spreadbot_set_stable_time_ms(spreadbot, 1000));
  CHECK_OK(rt_spreadbot_set_upgrade_interval_ms(spreadbot, 0));
  CHECK_OK(rt_spreadbot_set_max_upgrade_interval_ms(spreadbot, 0));
  CHECK_OK(rt_spreadbot_set_allow_insecure_redirects(spreadbot, true));
  CHECK_OK(rt_spreadbot_set_connect_timeout_ms(spreadbot, 1000));
  CHECK_OK(rt_spreadbot_set_answer_timeout_ms(spreadbot, 1000));
  CHECK_OK(rt_spreadbot_set_ping_interval_ms(spreadbot, 1000));
  CHECK_OK(rt_spreadbot_set_poll_interval_ms(spreadbot, 1000));
  CHECK_OK(rt_spreadbot_set_poll_timeout_ms(spreadbot, 1000));
  CHECK_STATUS(rt_spreadbot_set_queue_overflow(spreadbot, 2), RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_spreadbot_set_max_message_bytes(spreadbot, 1 << 20));
  CHECK(rt_spreadbot_get_state(spreadbot) == RT_STATE_IDLE);
  CHECK_OK(rt_spreadbot_close(spreadbot));
  CHECK_STATUS(rt_spreadbot_start(spreadbot, NULL), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_spreadbot_start(spreadbot, "a b\n"), RT_ERROR_INVALID_URL);
  CHECK_OK(rt_spreadbot_start(spreadbot, ""));
  CHECK_STATUS(rt_spreadbot_set_http2(spreadbot, true), RT_ERROR_STATE);
  rt_spreadbot_free(spreadbot);
  CHECK_STATUS(rt_spreadbot_new(loop, "ws://h", &spreadbot), RT_ERROR_UNSUPPORTED_SCHEME);
  CHECK_STATUS(rt_spreadbot_start(NULL, ""), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_spreadbot_get_state(NULL), RT_ERROR_INVALID_ARGUMENT);
  rt_spreadbot_free(NULL);
}

int main(int argc, char **argv) {
  rt_loop *loop;
  CHECK(argc == 2);
  loop = new_loop();
  falls_back_along_the_ladder(loop, argv[1]);
  sends_are_confirmed(loop, argv[1]);
  a_pause_keeps_options_and_sends(loop, argv[1]);
  tokens_are_needed(loop, argv[1]);
  callbacks_may_free(loop, argv[1]);
  waits_for_the_network(loop, argv[1]);
  sends_outlive_their_connection(loop, argv[1]);
  options_are_checked(loop, argv[1]);
  rt_loop_free(loop);
  return 0;
}
