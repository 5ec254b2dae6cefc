#define _GNU_SOURCE
#include "pusher.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire.h"

static bool send_text(struct connection *c, const char *text) {
  return connection_frame(c, WS_TEXT, (const uint8_t *)text, strlen(text));
}

bool pusher_greet(struct connection *c) {
  return send_text(
      c,
      "{\"event\":\"pusher:connection_established\",\"data\":"
      "\"{\\\"socket_id\\\":\\\"123.456\\\",\\\"activity_timeout\\\":120}\"}");
}

bool pusher_message(struct connection *c) {
  static const uint8_t reconnect_at_once[] = {4200 >> 8, 4200 & 255};
  char channel[128], answer[256];
  const char *text = (const char *)c->text, *found = strstr(text, "\"channel\":");
  if (!strstr(text, "\"pusher:subscribe\"")) return true;
  if (!found || sscanf(found + 10, " \"%127[^\"]", channel) != 1) return false;
  snprintf(
      answer, sizeof answer,
      "{\"event\":\"pusher_internal:subscription_succeeded\",\"channel\":\"%s\",\"data\":\"{}\"}",
      channel);
  if (!send_text(c, answer)) return false;
  if (c->flood) return connection_flood(c);
  if (++c->messages != c->expected) return true;
  return connection_frame(c, WS_CLOSE, reconnect_at_once, sizeof reconnect_at_once);
}

// MARK: Authorization

/// Writes an answer for each channel of a form. No client checks a signature.
/// \returns the answer's length.
static size_t authorize(char *out, size_t room, char *form) {
  static const char signature[] =
      "{\"auth\":\"bench:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"}";
  size_t at = 0;
  bool is_batch = false;
  for (char *rest, *field = strtok_r(form, "&", &rest); field;
       field = strtok_r(NULL, "&", &rest)) {
    char *value = strchr(field, '=');
    if (!value || strncmp(field, "channel_name", 12) != 0) continue;
    if (field + 12 == value) return (size_t)snprintf(out, room, "%s", signature);
    at += (size_t)snprintf(
        out + at, room - at, "%c\"%s\":%s", is_batch ? ',' : '{', value + 1, signature);
    is_batch = true;
    if (at + 256 > room) return 0;
  }
  return at + (size_t)snprintf(out + at, room - at, "}");
}

bool pusher_authorize(struct connection *c) {
  static char body[MAX_TEXT], answer[MAX_TEXT + 256];
  char *head_end;
  while (c->text_length && (head_end = strstr((char *)c->text, "\r\n\r\n"))) {
    const char *field = strcasestr((const char *)c->text, "\r\nContent-Length:");
    if (!field || field > head_end) return false;
    char *form = head_end + 4;
    size_t length = strtoul(field + 17, NULL, 10);
    size_t whole = (size_t)(form - (char *)c->text) + length;
    if (c->text_length < whole) return true;
    char *copy = strndup(form, length);
    size_t size = copy ? authorize(body, sizeof body, copy) : 0;
    free(copy);
    if (!size) return false;
    int total = snprintf(
        answer, sizeof answer,
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%.*s",
        size, (int)size, body);
    if (!connection_send(c, answer, (size_t)total)) return false;
    c->text_length -= whole;
    memmove(c->text, c->text + whole, c->text_length + 1);
  }
  return true;
}
