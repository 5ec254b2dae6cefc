/* Shared by the contract programs of Meteor clients. Their peer is Tests/Support/ddp_server. */
#ifndef CONTRACT_DDP_H
#define CONTRACT_DDP_H

#include "contract_control.h"

/* What a client's callbacks have received. */
typedef struct heard {
  rt_ddp *ddp;
  rt_loop *loop;
  char text[4096];
  char statuses[64];
  char token[512];
  int connected, ready, stopped, completed, lines, destroyed, users;
  rt_status last_status;
} heard;

static inline void note(heard *h, const char *text) {
  size_t used = strlen(h->text);
  snprintf(h->text + used, sizeof h->text - used, "%s;", text);
}

static inline void heard_status(const rt_ddp_status_change *change, void *user) {
  heard *h = user;
  size_t used = strlen(h->statuses);
  CHECK(change->struct_bytes == sizeof *change);
  CHECK(rt_ddp_get_status(h->ddp) == change->new_status);
  CHECK((change->status == RT_OK) == (change->message[0] == '\0'));
  CHECK((change->new_status == RT_DDP_WAITING) == (change->retry_in_ms >= 0));
  snprintf(h->statuses + used, sizeof h->statuses - used, "%d", (int)change->new_status);
  h->connected += change->new_status == RT_DDP_CONNECTED;
  h->last_status = change->status;
}

static inline void heard_account(const rt_ddp_account_event *event, void *user) {
  heard *h = user;
  CHECK(event->struct_bytes == sizeof *event && event->user_id && event->token);
  CHECK((event->event == RT_DDP_ACCOUNT_RESUME_FAILED) == (event->error != NULL));
  h->users += event->event == RT_DDP_ACCOUNT_USER;
  if (event->event == RT_DDP_ACCOUNT_STORE)
    snprintf(h->token, sizeof h->token, "%s", event->token);
  if (event->event == RT_DDP_ACCOUNT_FORGET) h->token[0] = '\0';
}

/* Notes stage, value and error. */
static inline void heard_outcome(const rt_ddp_outcome *outcome, void *user) {
  heard *h = user;
  char line[512];
  CHECK(outcome->struct_bytes == sizeof *outcome);
  CHECK(strlen(outcome->value) == outcome->value_length);
  snprintf(line, sizeof line, "%d:%s%s%s", (int)outcome->stage, outcome->value,
           outcome->error ? "!" : "", outcome->error ? outcome->error->code : "");
  note(h, line);
  h->completed += outcome->stage == RT_DDP_STAGE_COMPLETED;
}

static inline void heard_subscription(const rt_ddp_subscription_event *event, void *user) {
  heard *h = user;
  CHECK(event->struct_bytes == sizeof *event);
  if (event->event == RT_DDP_SUBSCRIPTION_READY) h->ready++;
  else h->stopped++;
  if (event->error) note(h, event->error->code);
}

static inline void heard_document(const rt_ddp_document *document, void *user) {
  CHECK(document->struct_bytes == sizeof *document);
  CHECK(strlen(document->id) == document->id_length);
  CHECK(strlen(document->document) == document->document_length);
  note(user, document->document);
}

/* Notes each change by its kind, id, fields, cleared fields and successor. */
static inline void heard_change(const rt_ddp_change *change, void *user) {
  char line[512];
  CHECK(change->struct_bytes == sizeof *change && strcmp(change->collection, "players") == 0);
  CHECK(strlen(change->id) == change->id_length);
  CHECK(strlen(change->fields) == change->fields_length);
  CHECK(strlen(change->cleared) == change->cleared_length);
  snprintf(line, sizeof line, "%s%d%s%s%s%s%s", change->initial ? "+" : "", (int)change->kind,
           change->id, change->fields, change->cleared, change->before,
           change->last ? "." : "");
  note(user, line);
}

static inline void heard_debug(const char *line, void *user) {
  CHECK(strncmp(line, "[DDP]", 5) == 0 && strchr(line, '\n') == NULL);
  CHECK(strstr(line, "secret") == NULL);
  ((heard *)user)->lines++;
}

static inline void heard_destroyed(void *user) { ((heard *)user)->destroyed++; }

/* A client of the server, with the callbacks above. */
static inline rt_ddp *new_ddp(heard *h, rt_loop *loop, const char *server) {
  memset(h, 0, sizeof *h);
  h->loop = loop;
  CHECK_OK(rt_ddp_new(loop, server, &h->ddp));
  CHECK_OK(rt_ddp_on_status(h->ddp, heard_status, h, NULL));
  CHECK_OK(rt_ddp_on_account(h->ddp, heard_account, h, NULL));
  CHECK_OK(rt_ddp_on_debug(h->ddp, heard_debug, h, NULL));
  return h->ddp;
}

static inline void connect_ddp(heard *h) {
  CHECK_OK(rt_ddp_start(h->ddp));
  TURN_UNTIL(h->loop, h->connected > 0);
}

static inline uint64_t subscribe(heard *h, const char *name) {
  uint64_t number = 0;
  int before = h->ready;
  CHECK_OK(rt_ddp_subscribe(h->ddp, name, NULL, -1, heard_subscription, h, NULL, &number, NULL));
  CHECK(number > 0);
  TURN_UNTIL(h->loop, h->ready > before);
  CHECK(rt_ddp_is_ready(h->ddp, number) == 1);
  return number;
}

/* Two documents, and a publication of all of them, `all`. */
static inline void make_players(const char *server) {
  control(server, "collection", "{'name': 'players'}");
  control(server, "remove", "{'collection': 'players', 'id': 'a'}");
  control(server, "remove", "{'collection': 'players', 'id': 'b'}");
  control(server, "remove", "{'collection': 'players', 'id': 'c'}");
  control(server, "insert",
          "{'collection': 'players', 'many': [{'_id': 'a', 'name': 'Ada'}, {'_id': 'b', 'name': "
          "'Bob'}]}");
  control(server, "publication",
          "{'name': 'all', 'cursors': [{'collection': 'players'}]}");
}

#endif
