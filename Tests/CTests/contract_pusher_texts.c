/* Texts of a Pusher server arrive whole, with the NULs in them. */
#include "contract_pusher.h"

static const char id[] = "a\0b";

static bool is_whole(const char *text, size_t length) {
  return length == sizeof id - 1 && memcmp(text, id, sizeof id) == 0;
}

static void on_error(const rt_pusher_error *error, void *user) {
  CHECK(is_whole(error->message, error->message_length));
  CHECK(is_whole(error->channel, error->channel_length));
  ((heard *)user)->errors++;
}

static void on_state(const rt_pusher_state_change *change, void *user) {
  if (change->close_code == 0) return;
  CHECK(change->close_code == 4100 && is_whole(change->close_reason, change->close_reason_length));
  /* Messages show control characters as escapes, so they need no length. */
  CHECK(strstr(change->message, "\\u{0}b"));
  ((heard *)user)->failed++;
}

static void on_line(const char *line, void *user) {
  if (strstr(line, "pusher:error") && strstr(line, "raw \\u{0} NUL")) ((heard *)user)->lines++;
}

static void errors_and_close_reasons(rt_loop *loop, const char *server) {
  heard h;
  rt_pusher *pusher = new_pusher(&h, loop, server);
  CHECK_OK(rt_pusher_on_error(pusher, on_error, &h, NULL));
  CHECK_OK(rt_pusher_on_debug(pusher, on_line, &h, NULL));
  CHECK_OK(rt_pusher_start(pusher));
  TURN_UNTIL(loop, rt_pusher_get_state(pusher) == RT_STATE_OPEN);
  CHECK_OK(rt_pusher_on_state(pusher, on_state, &h, NULL));
  control(server, "send",
          "{'text': '{\\'event\\':\\'pusher:error\\',\\'data\\':{\\'code\\':4301,"
          "\\'message\\':\\'a\\\\u0000b\\',\\'channel\\':\\'a\\\\u0000b\\'}}'}");
  TURN_UNTIL(loop, h.errors == 1);
  control(server, "send", "{'text': 'pusher:error raw \\u0000 NUL'}");
  TURN_UNTIL(loop, h.lines == 1);
  control(server, "close", "{'code': 4100, 'reason': 'a\\u0000b'}");
  TURN_UNTIL(loop, h.failed == 1);
  rt_pusher_free(pusher);
}

static void on_pushed(const rt_pusher_push_result *result, void *user) {
  CHECK(result->status == RT_OK && is_whole(result->name, result->name_length));
  ((heard *)user)->pushes++;
}

static void ids_of_registrations(rt_loop *loop, const char *server) {
  heard h;
  rt_pusher *pusher = new_pusher(&h, loop, server);
  control(server, "push", "{'body': '{\\'id\\':\\'a\\\\u0000b\\'}'}");
  CHECK_OK(rt_pusher_set_push_url(pusher, endpoint(server, "/push")));
  CHECK_OK(rt_pusher_on_push(pusher, on_pushed, &h, NULL));
  CHECK_OK(rt_pusher_push_register(pusher, (const uint8_t *)"\x01", 1, NULL));
  TURN_UNTIL(loop, h.pushes == 1);
  rt_pusher_free(pusher);
}

static void on_watchlist(const rt_pusher_watchlist *watchlist, void *user) {
  CHECK(!watchlist->online && watchlist->user_id_count == 2);
  CHECK(is_whole(watchlist->user_ids[0].text, watchlist->user_ids[0].text_length));
  CHECK(strcmp(watchlist->user_ids[1].text, "bo") == 0);
  ((heard *)user)->watched++;
}

static void on_authorize(const rt_pusher_auth_request *request,
                         rt_pusher_authorization *authorization, void *user) {
  CHECK(is_whole(request->socket_id, request->socket_id_length));
  rt_pusher_authorization_free(authorization);
  ((heard *)user)->refused++;
}

static void watchlists(rt_loop *loop, const char *server) {
  heard h;
  rt_pusher *pusher = new_pusher(&h, loop, server);
  CHECK_OK(rt_pusher_set_user_auth_endpoint(pusher, endpoint(server, "/pusher/user-auth")));
  CHECK_OK(rt_pusher_set_auth_parameter(pusher, "user_id", "ann"));
  CHECK_OK(rt_pusher_set_auth_parameter(pusher, "watchlist", "[\"a\\u0000b\",\"bo\"]"));
  CHECK_OK(rt_pusher_on_watchlist(pusher, on_watchlist, &h, NULL));
  CHECK_OK(rt_pusher_sign_in(pusher, NULL, NULL, NULL, NULL));
  CHECK_OK(rt_pusher_start(pusher));
  TURN_UNTIL(loop, h.watched == 1);
  rt_pusher_free(pusher);
}

static void socket_ids(rt_loop *loop, const char *server) {
  heard h;
  char text[8];
  size_t length;
  rt_pusher *pusher = new_pusher(&h, loop, server);
  control(server, "settings", "{'socket_id': 'a\\u0000b'}");
  CHECK_OK(rt_pusher_on_authorize(pusher, on_authorize, &h, NULL));
  CHECK_OK(rt_pusher_subscribe(pusher, "private-a", NULL));
  CHECK_OK(rt_pusher_start(pusher));
  TURN_UNTIL(loop, h.refused == 1);
  CHECK_OK(rt_pusher_get_socket_id(pusher, text, sizeof text, &length));
  CHECK(is_whole(text, length));
  rt_pusher_free(pusher);
}

int main(int argc, char **argv) {
  rt_loop *loop = new_loop();
  CHECK(argc == 2);
  errors_and_close_reasons(loop, argv[1]);
  ids_of_registrations(loop, argv[1]);
  watchlists(loop, argv[1]);
  socket_ids(loop, argv[1]);
  rt_loop_free(loop);
  return 0;
}
