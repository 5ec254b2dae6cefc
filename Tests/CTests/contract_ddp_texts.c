/* Texts of a Meteor server arrive whole, with the NULs in them. */
#include "contract_ddp.h"

static const char whole[] = "a\0b";

static bool is_whole(const char *text, size_t length) {
  return length == sizeof whole - 1 && memcmp(text, whole, sizeof whole) == 0;
}

static bool ends(const char *text, size_t length) { return strlen(text) == length; }

static void on_outcome(const rt_ddp_outcome *outcome, void *user) {
  const rt_ddp_error *error = outcome->error;
  CHECK(error && is_whole(error->code, error->code_length));
  CHECK(is_whole(error->reason, error->reason_length));
  CHECK(ends(error->details, error->details_length));
  CHECK(strcmp(error->details, "\"a\\u0000b\"") == 0);
  CHECK(ends(error->source, error->source_length) && strstr(error->source, "a\\u0000b"));
  ((heard *)user)->completed++;
}

static void errors_of_calls(rt_loop *loop, const char *server) {
  heard h;
  rt_ddp *ddp = new_ddp(&h, loop, server);
  control(server, "method",
          "{'name': 'fail', 'ops': [{'op': 'throw', 'error': {'error': 'a\\u0000b', "
          "'reason': 'a\\u0000b', 'details': 'a\\u0000b'}}]}");
  connect_ddp(&h);
  CHECK_OK(rt_ddp_call(ddp, "fail", NULL, NULL, on_outcome, &h, NULL, NULL));
  TURN_UNTIL(loop, h.completed == 1);
  rt_ddp_free(ddp);
}

static void on_change(const rt_ddp_change *change, void *user) {
  CHECK(is_whole(change->collection, change->collection_length));
  CHECK(strcmp(change->id, "\"i\\u0000\"") == 0 && ends(change->before, change->before_length));
  ((heard *)user)->ready++;
}

static void names_of_collections(rt_loop *loop, const char *server) {
  heard h;
  rt_ddp *ddp = new_ddp(&h, loop, server);
  CHECK_OK(rt_ddp_on_change(ddp, on_change, &h, NULL));
  connect_ddp(&h);
  control(server, "send",
          "{'text': '{\\'msg\\':\\'added\\',\\'collection\\':\\'a\\\\u0000b\\',"
          "\\'id\\':\\'i\\\\u0000\\',\\'fields\\':{}}'}");
  TURN_UNTIL(loop, h.ready == 1);
  rt_ddp_free(ddp);
}

static void on_account(const rt_ddp_account_event *event, void *user) {
  if (event->event == RT_DDP_ACCOUNT_STORE)
    CHECK(ends(event->token, event->token_length) && strstr(event->token, "a\\u0000b"));
  else if (event->event != RT_DDP_ACCOUNT_USER || event->user_id_length == 0)
    return;
  CHECK(is_whole(event->user_id, event->user_id_length));
  ((heard *)user)->users++;
}

static void users(rt_loop *loop, const char *server) {
  heard h;
  rt_ddp *ddp = new_ddp(&h, loop, server);
  CHECK_OK(rt_ddp_on_account(ddp, on_account, &h, NULL));
  control(server, "method",
          "{'name': 'enter', 'ops': [{'op': 'return', "
          "'value': {'id': 'a\\u0000b', 'token': 'secret'}}]}");
  connect_ddp(&h);
  CHECK_OK(rt_ddp_log_in(ddp, "enter", NULL, NULL, NULL, NULL, NULL));
  TURN_UNTIL(loop, h.users == 2);
  rt_ddp_free(ddp);
}

static void on_refused(
    const char *reason, size_t reason_length, const char *offending, size_t offending_length,
    void *user) {
  CHECK(is_whole(reason, reason_length) && ends(offending, offending_length));
  note(user, "refused");
}

static void on_line(const char *line, void *user) {
  ((heard *)user)->lines += strstr(line, "a\\u{0}b") != NULL;
}

static void refusals(rt_loop *loop, const char *server) {
  heard h;
  rt_ddp *ddp = new_ddp(&h, loop, server);
  CHECK_OK(rt_ddp_on_refused(ddp, on_refused, &h, NULL));
  CHECK_OK(rt_ddp_on_debug(ddp, on_line, &h, NULL));
  connect_ddp(&h);
  control(server, "send",
          "{'text': '{\\'msg\\':\\'error\\',\\'reason\\':\\'a\\\\u0000b\\',"
          "\\'offendingMessage\\':{\\'msg\\':\\'x\\\\u0000y\\'}}'}");
  TURN_UNTIL(loop, h.text[0] && h.lines == 1);
  rt_ddp_free(ddp);
}

static void on_status(const rt_ddp_status_change *change, void *user) {
  if (change->new_status != RT_DDP_FAILED) return;
  CHECK(change->reason_length > strlen(change->reason));
  CHECK(change->reason[change->reason_length] == '\0');
  ((heard *)user)->stopped++;
}

static void versions(rt_loop *loop, const char *server) {
  heard h;
  rt_ddp *ddp = new_ddp(&h, loop, server);
  CHECK_OK(rt_ddp_on_status(ddp, on_status, &h, NULL));
  control(server, "settings", "{'versions': ['a\\u0000b']}");
  CHECK_OK(rt_ddp_start(ddp));
  TURN_UNTIL(loop, h.stopped == 1);
  rt_ddp_free(ddp);
}

int main(int argc, char **argv) {
  rt_loop *loop = new_loop();
  CHECK(argc == 2);
  errors_of_calls(loop, argv[1]);
  names_of_collections(loop, argv[1]);
  users(loop, argv[1]);
  refusals(loop, argv[1]);
  versions(loop, argv[1]);
  rt_loop_free(loop);
  return 0;
}
