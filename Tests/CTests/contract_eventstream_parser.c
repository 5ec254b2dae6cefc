/* The parser of event streams by itself: input cut at any byte, limits, the end of a stream, and
 * calls from its callbacks. */
#include "contract.h"

typedef struct heard {
  char text[512];
  rt_eventstream_parser *parser;
  int frees;
} heard;

static void add(heard *h, const char *what, const char *text, size_t length) {
  size_t used = strlen(h->text);
  CHECK(text[length] == '\0');
  snprintf(h->text + used, sizeof h->text - used, "%s=%s;", what, text);
}

static void on_event(const rt_event *event, void *user) {
  heard *h = user;
  add(h, event->had_id ? "id" : "last", event->id, event->id_length);
  add(h, "event", event->event, event->event_length);
  add(h, "data", event->data, event->data_length);
  CHECK_STATUS(rt_eventstream_parser_feed(h->parser, NULL, 0), RT_ERROR_REENTRANT);
  CHECK_STATUS(rt_eventstream_parser_finish(h->parser), RT_ERROR_REENTRANT);
  CHECK_STATUS(rt_eventstream_parser_reset(h->parser), RT_ERROR_REENTRANT);
  if (h->frees) rt_eventstream_parser_free(h->parser);
}

static void on_comment(const char *comment, size_t length, void *user) {
  add(user, "comment", comment, length);
}

static void on_retry(int64_t time_ms, void *user) {
  char text[32];
  snprintf(text, sizeof text, "%d", (int)time_ms);
  add(user, "retry", text, strlen(text));
}

static rt_eventstream_parser *new_parser(heard *h, int *destroyed) {
  memset(h, 0, sizeof *h);
  CHECK_OK(rt_eventstream_parser_new(&h->parser));
  CHECK_OK(rt_eventstream_parser_on_event(h->parser, on_event, h, NULL));
  CHECK_OK(rt_eventstream_parser_on_comment(h->parser, on_comment, h, NULL));
  CHECK_OK(rt_eventstream_parser_on_retry(h->parser, on_retry, h, NULL));
  if (destroyed) {
    CHECK_OK(rt_eventstream_parser_on_retry(h->parser, on_retry, destroyed, count_up));
    CHECK(*destroyed == 0);
    CHECK_OK(rt_eventstream_parser_on_retry(h->parser, NULL, NULL, NULL));
    CHECK(*destroyed == 1);
    CHECK_OK(rt_eventstream_parser_on_retry(h->parser, on_retry, destroyed, count_up));
  }
  return h->parser;
}

static void feed(rt_eventstream_parser *parser, const char *text, rt_status expected) {
  CHECK_STATUS(
      rt_eventstream_parser_feed(parser, (const uint8_t *)text, strlen(text)), expected);
}

static void check_id(rt_eventstream_parser *parser, const char *expected) {
  char id[4];
  size_t length = 99;
  CHECK_OK(rt_eventstream_parser_get_last_event_id(parser, id, sizeof id, &length));
  CHECK(length == strlen(expected) && strncmp(id, expected, sizeof id - 1) == 0);
  CHECK(id[length < 3 ? length : 3] == '\0');
}

static void streams_are_read(void) {
  heard h;
  int destroyed = 0;
  rt_eventstream_parser *parser = new_parser(&h, NULL);
  const char *stream = "\xEF\xBB\xBFretry: 250\r\n: hi\rid: 12345\nevent: tick\ndata: a\n\ndata";
  size_t i;
  CHECK(rt_eventstream_parser_get_reconnection_time_ms(parser) == -1);
  for (i = 0; i < strlen(stream); i++)
    CHECK_OK(rt_eventstream_parser_feed(parser, (const uint8_t *)stream + i, 1));
  CHECK(strcmp(h.text, "retry=250;comment= hi;id=12345;event=tick;data=a;") == 0);
  CHECK(rt_eventstream_parser_get_reconnection_time_ms(parser) == 250);
  check_id(parser, "12345");
  h.text[0] = '\0';
  CHECK_OK(rt_eventstream_parser_finish(parser));
  feed(parser, "data: b\n\n", RT_OK);
  CHECK(strcmp(h.text, "last=12345;event=message;data=b;") == 0);
  CHECK_STATUS(rt_eventstream_parser_set_last_event_id(parser, "7"), RT_ERROR_STATE);
  CHECK_OK(rt_eventstream_parser_reset(parser));
  check_id(parser, "");
  CHECK(rt_eventstream_parser_get_reconnection_time_ms(parser) == -1);
  CHECK_OK(rt_eventstream_parser_set_last_event_id(parser, "7"));
  CHECK_STATUS(
      rt_eventstream_parser_set_last_event_id(parser, "7\n"), RT_ERROR_INVALID_ARGUMENT);
  check_id(parser, "7");
  rt_eventstream_parser_free(parser);

  parser = new_parser(&h, &destroyed);
  rt_eventstream_parser_free(parser);
  CHECK(destroyed == 2);
}

static void limits_are_kept(void) {
  heard h;
  rt_eventstream_parser *parser = new_parser(&h, NULL);
  CHECK_OK(rt_eventstream_parser_set_max_line_bytes(parser, 8));
  CHECK_OK(rt_eventstream_parser_set_max_event_bytes(parser, 3));
  CHECK_OK(rt_eventstream_parser_set_max_name_bytes(parser, 2));
  CHECK_STATUS(
      rt_eventstream_parser_set_max_line_bytes(parser, SIZE_MAX), RT_ERROR_INVALID_ARGUMENT);
  feed(parser, "data:abc\n\n", RT_OK);
  CHECK_STATUS(rt_eventstream_parser_set_max_line_bytes(parser, 9), RT_ERROR_STATE);
  feed(parser, "data:ab\ndata:c\n", RT_ERROR_TOO_LARGE);
  feed(parser, "\n", RT_ERROR_TOO_LARGE);
  CHECK_OK(rt_eventstream_parser_finish(parser));
  feed(parser, "data: abc", RT_ERROR_TOO_LARGE);
  CHECK_OK(rt_eventstream_parser_finish(parser));
  feed(parser, "id:123", RT_ERROR_TOO_LARGE);
  CHECK_OK(rt_eventstream_parser_reset(parser));
  feed(parser, "anything else may be long\n", RT_OK);
  feed(parser, ": with comments", RT_ERROR_TOO_LARGE);
  CHECK_OK(rt_eventstream_parser_finish(parser));
  CHECK_OK(rt_eventstream_parser_on_comment(parser, NULL, NULL, NULL));
  feed(parser, ": without comments\n", RT_OK);
  rt_eventstream_parser_free(parser);
}

static void a_callback_may_free(void) {
  heard h;
  rt_eventstream_parser *parser = new_parser(&h, NULL);
  h.frees = 1;
  feed(parser, "data: a\n\ndata: b\n\n", RT_OK);
  CHECK(strcmp(h.text, "last=;event=message;data=a;") == 0);
}

int main(void) {
  streams_are_read();
  limits_are_kept();
  a_callback_may_free();
  CHECK_STATUS(rt_eventstream_parser_new(NULL), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_eventstream_parser_feed(NULL, NULL, 0), RT_ERROR_INVALID_ARGUMENT);
  CHECK(rt_eventstream_parser_get_reconnection_time_ms(NULL) == -1);
  rt_eventstream_parser_free(NULL);
  return 0;
}
