/* Version, names of statuses, the text of the last error, the log. */
#include "contract.h"

static void version_matches_the_header(void) {
  CHECK(strcmp(rt_version(), RT_VERSION_STRING) == 0);
  CHECK(rt_version_number() == RT_VERSION_NUMBER);
}

static void every_status_has_a_name(void) {
  CHECK(strcmp(rt_status_name(RT_OK), "RT_OK") == 0);
  CHECK(strcmp(rt_status_name(RT_ERROR_CONNECTION_LOST), "RT_ERROR_CONNECTION_LOST") == 0);
  CHECK(strcmp(rt_status_name(1), "RT_ERROR_UNKNOWN") == 0);
  CHECK(strcmp(rt_status_name(-9999), "RT_ERROR_UNKNOWN") == 0);
  CHECK(strcmp(rt_status_name(INT32_MIN), "RT_ERROR_UNKNOWN") == 0);
}

static void last_error_names_the_culprit_and_stays(void) {
  rt_loop *loop = new_loop();
  rt_websocket *websocket = NULL;
  CHECK_STATUS(rt_websocket_new(loop, NULL, &websocket), RT_ERROR_INVALID_ARGUMENT);
  CHECK(strstr(rt_last_error(), "url") != NULL);
  CHECK(websocket == NULL);
  CHECK_OK(rt_loop_dispatch(loop, 0));
  CHECK(strstr(rt_last_error(), "url") != NULL);
  rt_loop_free(loop);
}

static void a_message_travels_with_its_status(void) {
  rt_loop *loop = new_loop();
  char text[1024], eight[8], none[1] = "x";
  size_t length = 0;
  CHECK(rt_status_message(rt_loop_dispatch(NULL, 0), text, sizeof text, &length)
        == RT_ERROR_INVALID_ARGUMENT);
  CHECK(length > 8 && strlen(text) == length && strcmp(text, rt_last_error()) == 0);
  /* Cut to the buffer's size; the length is that of the whole. */
  length = 0;
  CHECK(rt_status_message(RT_ERROR_INVALID_ARGUMENT, eight, sizeof eight, &length)
        == RT_ERROR_INVALID_ARGUMENT);
  CHECK(length == strlen(text) && strlen(eight) == 7 && strncmp(eight, text, 7) == 0);
  CHECK(rt_status_message(RT_ERROR_STATE, none, sizeof none, NULL) == RT_ERROR_STATE);
  CHECK(none[0] == '\0');
  CHECK(rt_status_message(RT_ERROR_STATE, NULL, 8, &length) == RT_ERROR_STATE);
  CHECK(rt_status_message(RT_ERROR_STATE, eight, 0, NULL) == RT_ERROR_STATE);
  CHECK(strncmp(eight, text, 7) == 0);
  /* After a success there is none, also in the result of a function that returns a number. */
  CHECK(rt_status_message(RT_OK, text, sizeof text, &length) == RT_OK);
  CHECK(text[0] == '\0' && length == 0);
  text[0] = 'x';
  CHECK(rt_status_message(rt_loop_fd(loop), text, sizeof text, &length) == rt_loop_fd(loop));
  CHECK(text[0] == '\0' && length == 0);
  rt_loop_free(loop);
}

static void a_cut_message_has_whole_characters(void) {
  rt_pusher_event event = {.struct_bytes = sizeof event, .message = "{}", .message_length = 2};
  char text[1024];
  const char *json = NULL;
  size_t length = 0, start;
  rt_status status = rt_pusher_event_property(&event, "\xc3\xa4", &json, &length);
  CHECK_STATUS(rt_status_message(status, text, sizeof text, NULL), RT_ERROR_NOT_FOUND);
  CHECK(strstr(text, "\xc3\xa4") != NULL);
  start = (size_t)(strstr(text, "\xc3\xa4") - text);
  rt_status_message(status, text, start + 2, NULL);
  CHECK(strlen(text) == start);
  rt_status_message(status, text, start + 3, NULL);
  CHECK(strlen(text) == start + 2 && strcmp(text + start, "\xc3\xa4") == 0);
}

/* As if an older library had filled the view. */
static void a_view_tells_which_fields_it_has(void) {
  rt_failure failure = {.struct_bytes = sizeof failure};
  CHECK(RT_VIEW_HAS(&failure, status) && RT_VIEW_HAS(&failure, close_reason));
  failure.struct_bytes = offsetof(rt_failure, close_reason);
  CHECK(RT_VIEW_HAS(&failure, status) && !RT_VIEW_HAS(&failure, close_reason));
  failure.struct_bytes += sizeof failure.close_reason - 1;
  CHECK(!RT_VIEW_HAS(&failure, close_reason));
  failure.struct_bytes++;
  CHECK(RT_VIEW_HAS(&failure, close_reason));
}

static void on_log(rt_log_level level, const char *message, void *user) {
  CHECK(level >= RT_LOG_ERROR && level <= RT_LOG_DEBUG);
  CHECK(message != NULL && message[0] != '\0' && strchr(message, '\n') == NULL);
  CHECK(strstr(message, "secret") == NULL);
  ++*(int *)user;
}

/* A program that prints fails, so this also tests that the library prints nothing. */
static void log_has_one_receiver_and_no_credentials(const char *server) {
  int lines = 0, destroyed = 0, other = 0;
  rt_loop *loop = new_loop();
  char url[256];
  rt_websocket *websocket;
  events e = {0};

  CHECK_STATUS(rt_set_log(5, on_log, &other, count_up), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_set_log(-1, on_log, &other, count_up), RT_ERROR_INVALID_ARGUMENT);
  CHECK(other == 2);

  CHECK_OK(rt_set_log(RT_LOG_DEBUG, on_log, &lines, count_up));
  snprintf(url, sizeof url, "ws://user:secret@%s/echo", server + strlen("ws://"));
  CHECK_OK(rt_websocket_new(loop, url, &websocket));
  listen_to(websocket, &e);
  CHECK_OK(rt_websocket_start(websocket));
  TURN_UNTIL(loop, e.opened);
  CHECK_OK(rt_websocket_close(websocket, 1000, NULL));
  TURN_UNTIL(loop, e.closed);
  CHECK(lines > 0);
  lines = 0;
  CHECK_OK(rt_set_log(RT_LOG_DEBUG, on_log, &other, count_up));
  CHECK(lines == 1);
  destroyed = other;
  CHECK_OK(rt_set_log(RT_LOG_OFF, NULL, NULL, NULL));
  CHECK(other == destroyed + 1);
  rt_websocket_free(websocket);
  rt_loop_free(loop);
}

int main(int argc, char **argv) {
  CHECK(argc == 2);
  CHECK(rt_last_error()[0] == '\0');
  version_matches_the_header();
  every_status_has_a_name();
  last_error_names_the_culprit_and_stays();
  a_message_travels_with_its_status();
  a_cut_message_has_whole_characters();
  a_view_tells_which_fields_it_has();
  log_has_one_receiver_and_no_credentials(argv[1]);
  return 0;
}
