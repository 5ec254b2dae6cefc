#define _GNU_SOURCE
#include "ddp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "wire.h"

enum { MAX_MESSAGE = 256, ID = 17 };

static void *allocate(size_t bytes) {
  void *memory = malloc(bytes);
  if (!memory) {
    fprintf(stderr, "server: out of memory\n");
    exit(1);
  }
  return memory;
}

// MARK: Data

struct document {
  char id[ID + 1];
  unsigned n;
  uint64_t score;
};

static void write_id(char *out, size_t length, size_t i, unsigned field) {
  static const char letters[] = "23456789ABCDEFGHJKLMNPQRSTWXYZabcdefghijkmnopqrstuvwxyz";
  uint64_t random = 0;
  for (size_t k = 0; k < length; k++) {
    if (k % 8 == 0) random = chance(i, field + (unsigned)k / 8);
    out[k] = letters[random % (sizeof letters - 1)];
    random /= sizeof letters - 1;
  }
  out[length] = 0;
}

static void append(struct ddp_data *to, size_t *at, const char *message, int length) {
  *at += ws_put_header(to->bytes + *at, WS_FIN | WS_TEXT, (uint64_t)length, 0);
  memcpy(to->bytes + *at, message, (size_t)length);
  *at += (size_t)length;
}

static void add_documents(struct ddp_data *to, struct document *documents, size_t count) {
  static const char *const owners[] = {"Ada", "Grace", "Barbara", "Edsger"};
  char message[MAX_MESSAGE], title[64], word[13];
  size_t at = 0;
  for (size_t i = 0; i < count; i++) {
    struct document *one = &documents[i];
    write_id(one->id, ID, i, 0);
    write_id(word, sizeof word - 1, i, 3);
    one->n = (unsigned)(chance(i, 5) % 1000);
    one->score = chance(i, 6) % 1000;
    to->titles += (uint64_t)snprintf(title, sizeof title, "item %zu %s", i, word);
    to->sent += one->n + one->score;
    int length = snprintf(
        message, sizeof message,
        "{\"msg\":\"added\",\"collection\":\"items\",\"id\":\"%s\",\"fields\":{"
        "\"title\":\"%s\",\"n\":%u,\"score\":%llu,\"owner\":{\"name\":\"%s\"},"
        "\"at\":{\"$date\":%zu}}}",
        one->id, title, one->n, (unsigned long long)one->score, owners[i % 4],
        (size_t)1700000000000 + i);
    append(to, &at, message, length);
  }
  to->documents_end = at;
}

/// Each change gives a field another value than it has.
static void add_changes(
    struct ddp_data *to, struct document *documents, size_t count, size_t changes, bool moves) {
  char message[MAX_MESSAGE], field[32];
  size_t at = to->documents_end;
  for (size_t i = 0; i < changes; i++) {
    struct document *one = &documents[i * 7919 % count];
    if (moves) {
      one->n = (one->n + 1 + (unsigned)(chance(i, 7) % 999)) % 1000;
      snprintf(field, sizeof field, "\"n\":%u", one->n);
      to->sent += one->n;
    } else {
      one->score = 1000 + i;
      snprintf(field, sizeof field, "\"score\":%zu", (size_t)one->score);
      to->sent += one->score;
    }
    int length = snprintf(
        message, sizeof message,
        "{\"msg\":\"changed\",\"collection\":\"items\",\"id\":\"%s\",\"fields\":{%s}}", one->id,
        field);
    append(to, &at, message, length);
  }
  to->changes_end = at;
}

const struct ddp_data *ddp_data_named(const char *name) {
  static struct ddp_data *made;
  for (struct ddp_data *one = made; one; one = one->next) {
    if (strcmp(one->name, name) == 0) return one;
  }
  unsigned long long count, changes = 0;
  bool moves = sscanf(name, "ddp-move-%llu-%llu", &count, &changes) == 2;
  if (!moves && sscanf(name, "ddp-stay-%llu-%llu", &count, &changes) != 2 &&
      sscanf(name, "ddp-load-%llu", &count) != 1) {
    return NULL;
  }
  if (!count || count > 10000000 || changes > 10000000) return NULL;
  struct ddp_data *data = calloc(1, sizeof *data);
  struct document *documents = allocate(count * sizeof *documents);
  if (!data) exit(1);
  snprintf(data->name, sizeof data->name, "%s", name);
  data->bytes = allocate((count + changes) * (MAX_MESSAGE + WS_MAX_HEADER));
  add_documents(data, documents, count);
  add_changes(data, documents, count, changes, moves);
  for (size_t i = 0; i < count; i++) data->stored += documents[i].n + documents[i].score;
  free(documents);
  data->next = made;
  return made = data;
}

// MARK: Messages

/// Copies a member that is a string without escapes. \returns false if there is none.
static bool read_member(const char *text, const char *name, char *out, size_t room) {
  const char *found = strstr(text, name);
  if (!found) return false;
  found += strlen(name);
  found += strspn(found, " :");
  size_t length = *found == '"' ? strcspn(found + 1, "\"") : room;
  if (length >= room) return false;
  memcpy(out, found + 1, length);
  out[length] = 0;
  return true;
}

static bool send_text(struct connection *c, const char *text) {
  return connection_frame(c, WS_TEXT, (const uint8_t *)text, strlen(text));
}

/// Sends the publication with this name, and that it is ready.
static bool publish(struct connection *c, const char *name, const char *id) {
  char message[128];
  bool is_changes = strcmp(name, "changes") == 0;
  if (!is_changes && strcmp(name, "items") != 0) return false;
  c->flood_at = is_changes ? c->ddp->documents_end : 0;
  c->flood_end = is_changes ? c->ddp->changes_end : c->ddp->documents_end;
  int length = snprintf(message, sizeof message, "{\"msg\":\"ready\",\"subs\":[\"%s\"]}", id);
  free(c->answer);
  if (!(c->answer = malloc((size_t)length + WS_MAX_HEADER))) return false;
  size_t header = ws_put_header(c->answer, WS_FIN | WS_TEXT, (uint64_t)length, 0);
  memcpy(c->answer + header, message, (size_t)length);
  c->answer_length = header + (size_t)length;
  c->answer_at = 0;
  return ddp_flood(c);
}

bool ddp_message(struct connection *c) {
  char kind[16], id[64], name[64];
  const char *text = (const char *)c->text;
  if (!text || !read_member(text, "\"msg\"", kind, sizeof kind)) return false;
  if (strcmp(kind, "connect") == 0) {
    return send_text(c, "{\"msg\":\"connected\",\"session\":\"hfG4DqBNmZ2aWsPkT\"}");
  }
  if (strcmp(kind, "ping") == 0) return send_text(c, "{\"msg\":\"pong\"}");
  if (strcmp(kind, "sub") != 0) return true;
  return read_member(text, "\"id\"", id, sizeof id) &&
         read_member(text, "\"name\"", name, sizeof name) && publish(c, name, id);
}

/// Sends what is left of some bytes. \returns false if the connection is over.
static bool send_rest(struct connection *c, const uint8_t *bytes, uint64_t *at, uint64_t end) {
  while (*at < end) {
    ssize_t sent = send(c->fd, bytes + *at, (size_t)(end - *at), MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN;
    *at += (uint64_t)sent;
  }
  return true;
}

bool ddp_flood(struct connection *c) {
  if (!send_rest(c, c->ddp->bytes, &c->flood_at, c->flood_end)) return false;
  if (c->flood_at < c->flood_end) return true;
  return send_rest(c, c->answer, &c->answer_at, c->answer_length);
}
