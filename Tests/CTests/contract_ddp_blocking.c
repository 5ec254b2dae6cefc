/* Meteor clients by calls that wait: with the library's own loop or one on a thread; what failed,
 * what is not done in time, and what ends a wait. */
#include <pthread.h>

#include "contract_ddp.h"

static rt_ddp *new_client(rt_loop *loop, const char *server) {
  rt_ddp *ddp = NULL;
  CHECK_OK(rt_ddp_new(loop, server, &ddp));
  return ddp;
}

static rt_ddp *connected(rt_loop *loop, const char *server) {
  rt_ddp *ddp = new_client(loop, server);
  CHECK_OK(rt_ddp_connect(ddp, PATIENCE_MS));
  CHECK(rt_ddp_get_status(ddp) == RT_DDP_CONNECTED);
  return ddp;
}

static void expect_value(rt_ddp_outcome *outcome, const char *value) {
  CHECK(outcome->struct_bytes == sizeof *outcome && outcome->stage == RT_DDP_STAGE_COMPLETED);
  CHECK(outcome->error == NULL && outcome->value_length == strlen(outcome->value));
  if (strcmp(outcome->value, value) != 0) printf("%s instead of %s\n", outcome->value, value);
  rt_ddp_outcome_free(outcome);
}

static void expect_error(rt_ddp_outcome *outcome, int32_t kind, const char *code) {
  const rt_ddp_error *error = outcome->error;
  CHECK(strcmp(outcome->value, "null") == 0 && outcome->value_length == 4);
  CHECK(error && error->struct_bytes == sizeof *error && error->kind == kind);
  CHECK(strcmp(error->code, code) == 0);
  CHECK(strstr(rt_last_error(), code));
  CHECK((error->source[0] != '\0') == (kind == RT_DDP_ERROR_SERVER));
  rt_ddp_outcome_free(outcome);
}

static void calls_return_what_the_server_answers(rt_loop *loop, const char *server) {
  rt_ddp_outcome *outcome = NULL;
  rt_ddp *ddp = connected(loop, server);
  control(server, "method",
          "{'name': 'add', 'ops': [{'op': 'return', 'value': {'sum': {'$param': 0}}}]}");
  control(server, "method",
          "{'name': 'refuse', 'ops': [{'op': 'throw', 'error': {'error': 'no', 'reason': 'Never.', "
          "'details': {'at': 5}}}]}");
  CHECK_OK(rt_ddp_call_and_wait(ddp, "add", "[{\"$date\":7}]", NULL, PATIENCE_MS, &outcome));
  expect_value(outcome, "{\"sum\":{\"$date\":7}}");
  CHECK_OK(rt_ddp_call_and_wait(ddp, "add", "[1]", NULL, -1, NULL));
  CHECK_STATUS(rt_ddp_call_and_wait(ddp, "refuse", NULL, NULL, PATIENCE_MS, &outcome),
               RT_ERROR_METHOD);
  CHECK(strcmp(outcome->error->reason, "Never.") == 0);
  CHECK(strcmp(outcome->error->details, "{\"at\":5}") == 0);
  CHECK(strstr(outcome->error->source, "\"errorType\":\"Meteor.Error\""));
  expect_error(outcome, RT_DDP_ERROR_SERVER, "no");
  CHECK_STATUS(rt_ddp_call_and_wait(ddp, "unknown", "[]", NULL, PATIENCE_MS, &outcome),
               RT_ERROR_METHOD);
  CHECK(outcome->error->code_is_number);
  expect_error(outcome, RT_DDP_ERROR_SERVER, "404");
  CHECK_STATUS(rt_ddp_call_and_wait(ddp, "unknown", "[]", NULL, PATIENCE_MS, NULL),
               RT_ERROR_METHOD);
  rt_ddp_outcome_free(NULL);
  rt_ddp_free(ddp);
}

static void writes_are_there_when_the_call_returns(rt_loop *loop, const char *server) {
  heard h = {0};
  uint64_t all = 0;
  rt_ddp_outcome *outcome = NULL;
  rt_ddp *ddp = connected(loop, server);
  make_players(server);
  CHECK_OK(rt_ddp_declare(ddp, "players", RT_DDP_IDS_STRINGS));
  CHECK_OK(rt_ddp_subscribe_and_wait(ddp, "all", NULL, -1, PATIENCE_MS, &all, &outcome));
  expect_value(outcome, "null");
  CHECK(rt_ddp_is_ready(ddp, all) == 1);
  CHECK_OK(rt_ddp_insert_and_wait(ddp, "players", "{\"_id\":\"c\"}", NULL, PATIENCE_MS, &outcome));
  expect_value(outcome, "\"c\"");
  CHECK_STATUS(
      rt_ddp_insert_and_wait(ddp, "players", "{\"_id\":\"c\"}", NULL, PATIENCE_MS, &outcome),
      RT_ERROR_METHOD);
  expect_error(outcome, RT_DDP_ERROR_SERVER, "409");
  CHECK_OK(rt_ddp_update_and_wait(ddp, "players", "\"c\"", "{\"$set\":{\"n\":1}}", NULL,
                                  PATIENCE_MS, &outcome));
  expect_value(outcome, "1");
  CHECK_OK(rt_ddp_remove_and_wait(ddp, "players", "\"a\"", NULL, PATIENCE_MS, NULL));
  CHECK_OK(rt_ddp_find(ddp, "players", NULL, NULL, heard_document, &h));
  CHECK(strcmp(h.text, "{\"_id\":\"b\",\"name\":\"Bob\"};{\"_id\":\"c\",\"n\":1};") == 0);
  rt_ddp_free(ddp);
}

/* What is not done in time continues; its outcome goes to nobody. */
static void calls_outlive_their_timeout(rt_loop *loop, const char *server) {
  rt_ddp_outcome *outcome = NULL;
  rt_ddp_call_options options = {.struct_bytes = sizeof options, .timeout_ms = 1};
  uint64_t number = 7;
  rt_ddp *ddp = connected(loop, server);
  make_players(server);
  control(server, "method", "{'name': 'slow', 'ops': [{'op': 'hold'}]}");
  control(server, "publication",
          "{'name': 'late', 'hold': true, 'cursors': [{'collection': 'players'}]}");
  CHECK_STATUS(rt_ddp_call_and_wait(ddp, "slow", NULL, NULL, 0, &outcome), RT_ERROR_TIMEOUT);
  CHECK_STATUS(rt_ddp_call_and_wait(ddp, "slow", NULL, NULL, 5, &outcome), RT_ERROR_TIMEOUT);
  CHECK_STATUS(rt_ddp_call_and_wait(ddp, "slow", NULL, &options, PATIENCE_MS, &outcome),
               RT_ERROR_METHOD);
  expect_error(outcome, RT_DDP_ERROR_TIMEOUT, "timeout");
  outcome = NULL;
  /* They wait at the server one after the other. */
  control(server, "wait_held", "{}");
  control(server, "release", "{}");
  control(server, "wait_held", "{}");
  control(server, "method", "{'name': 'slow', 'ops': []}");
  control(server, "release", "{}");
  CHECK_OK(rt_ddp_call_and_wait(ddp, "slow", NULL, NULL, PATIENCE_MS, NULL));
  CHECK_STATUS(rt_ddp_subscribe_and_wait(ddp, "late", NULL, 0, 5, &number, &outcome),
               RT_ERROR_TIMEOUT);
  CHECK(outcome == NULL && number == 7);
  control(server, "wait", "{'what': 'in', 'msg': 'unsub'}");
  control(server, "wait_held", "{}");
  control(server, "release", "{}");
  CHECK_STATUS(rt_ddp_load_and_wait(ddp, "[[\"all\"],[\"late\"]]", 5, &number, &outcome),
               RT_ERROR_TIMEOUT);
  control(server, "wait_held", "{}");
  control(server, "release", "{}");
  CHECK_OK(rt_ddp_load_and_wait(ddp, "[[\"all\"],[\"late\"]]", PATIENCE_MS, &number, NULL));
  CHECK_OK(rt_ddp_close_loader(ddp, number));
  rt_ddp_free(ddp);
}

static void subscriptions_fail(rt_loop *loop, const char *server) {
  rt_ddp_outcome *outcome = NULL;
  uint64_t number = 7;
  rt_ddp *ddp = connected(loop, server);
  make_players(server);
  control(server, "publication", "{'name': 'ends', 'stops': true, 'ready': false}");
  CHECK_STATUS(rt_ddp_subscribe_and_wait(ddp, "none", "[1]", -1, PATIENCE_MS, &number, &outcome),
               RT_ERROR_METHOD);
  expect_error(outcome, RT_DDP_ERROR_SERVER, "404");
  CHECK_STATUS(rt_ddp_subscribe_and_wait(ddp, "ends", NULL, -1, PATIENCE_MS, &number, &outcome),
               RT_ERROR_METHOD);
  CHECK(strcmp(outcome->error->code, "stopped") == 0);
  rt_ddp_outcome_free(outcome);
  CHECK_STATUS(
      rt_ddp_load_and_wait(ddp, "[[\"all\"],[\"none\"]]", PATIENCE_MS, &number, &outcome),
      RT_ERROR_METHOD);
  expect_error(outcome, RT_DDP_ERROR_SERVER, "404");
  CHECK(number == 7);
  CHECK_STATUS(rt_ddp_load_and_wait(ddp, "[\"all\"]", 0, &number, &outcome),
               RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_ddp_subscribe_and_wait(ddp, "all", NULL, -1, 0, NULL, NULL),
               RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_ddp_call_and_wait(ddp, "m", NULL, NULL, -2, NULL), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_ddp_call_and_wait(ddp, "m", "{", NULL, 0, NULL), RT_ERROR_PROTOCOL);
  rt_ddp_free(ddp);
}

static void attempts_continue_or_fail(rt_loop *loop, const char *server) {
  rt_ddp *ddp = new_client(loop, server);
  /* The server keeps its confirmation back. */
  control(server, "fault", "{'point': 'sending', 'do': 'hold', 'msg': 'connected'}");
  CHECK_STATUS(rt_ddp_connect(ddp, 0), RT_ERROR_TIMEOUT);
  control(server, "wait_held", "{}");
  CHECK_STATUS(rt_ddp_connect(ddp, 1), RT_ERROR_TIMEOUT);
  control(server, "release", "{}");
  CHECK_OK(rt_ddp_connect(ddp, PATIENCE_MS));
  CHECK_OK(rt_ddp_connect(ddp, 0));
  CHECK_OK(rt_ddp_close(ddp));
  CHECK_OK(rt_ddp_connect(ddp, -1));
  rt_ddp_free(ddp);
  /* Nobody listens on port 1. */
  ddp = new_client(loop, "ws://127.0.0.1:1");
  CHECK_OK(rt_ddp_set_sockjs_fallback(ddp, false));
  do {
    CHECK_STATUS(rt_ddp_connect(ddp, 10), RT_ERROR_TIMEOUT);
  } while (!strstr(rt_last_error(), "127.0.0.1:1"));
  rt_ddp_free(ddp);
  ddp = new_client(loop, "ws://127.0.0.1:1");
  CHECK_OK(rt_ddp_set_sockjs_fallback(ddp, false));
  CHECK_OK(rt_ddp_set_auto_reconnect(ddp, false));
  CHECK_STATUS(rt_ddp_connect(ddp, -1), RT_ERROR_CONNECT);
  CHECK_STATUS(rt_ddp_connect(ddp, -1), RT_ERROR_CONNECT);
  CHECK_STATUS(rt_ddp_call_and_wait(ddp, "m", NULL, NULL, -1, NULL), RT_ERROR_METHOD);
  rt_ddp_free(ddp);
}

static void *connect_without_limit(void *ddp) {
  CHECK_STATUS(rt_ddp_connect(ddp, -1), RT_ERROR_CLOSED);
  return NULL;
}

static void *call_without_limit(void *ddp) {
  rt_ddp_outcome *outcome = NULL;
  CHECK_STATUS(rt_ddp_call_and_wait(ddp, "held", NULL, NULL, -1, &outcome), RT_ERROR_CLOSED);
  CHECK(outcome == NULL);
  return NULL;
}

/* A wait ends when the client is disconnected or freed, or its loop is freed. */
static void ends_end_waits(const char *server) {
  pthread_t thread;
  rt_loop *loop = new_loop();
  rt_ddp *ddp = new_client(NULL, server);
  control(server, "fault", "{'point': 'sending', 'do': 'ignore', 'msg': 'connected'}");
  CHECK(pthread_create(&thread, NULL, connect_without_limit, ddp) == 0);
  while (rt_ddp_get_status(ddp) != RT_DDP_CONNECTING) sched_yield();
  CHECK_OK(rt_ddp_close(ddp));
  CHECK(pthread_join(thread, NULL) == 0);
  control(server, "clear", "{}");
  CHECK_OK(rt_ddp_connect(ddp, PATIENCE_MS));
  control(server, "method", "{'name': 'held', 'ops': [{'op': 'hold'}]}");
  CHECK(pthread_create(&thread, NULL, call_without_limit, ddp) == 0);
  control(server, "wait_held", "{}");
  rt_ddp_free(ddp);
  CHECK(pthread_join(thread, NULL) == 0);
  control(server, "release", "{}");
  CHECK_OK(rt_loop_start(loop));
  ddp = connected(loop, server);
  CHECK(pthread_create(&thread, NULL, call_without_limit, ddp) == 0);
  control(server, "wait_held", "{}");
  rt_loop_free(loop);
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK_STATUS(rt_ddp_call_and_wait(ddp, "held", NULL, NULL, -1, NULL), RT_ERROR_CLOSED);
  rt_ddp_free(ddp);
  control(server, "release", "{}");
}

typedef struct callback {
  rt_ddp *ddp;
  rt_status statuses[4];
} callback;

static void wait_in_vain(callback *c) {
  uint64_t number;
  c->statuses[0] = rt_ddp_connect(c->ddp, -1);
  c->statuses[1] = rt_ddp_call_and_wait(c->ddp, "m", NULL, NULL, -1, NULL);
  c->statuses[2] = rt_ddp_subscribe_and_wait(c->ddp, "all", NULL, -1, -1, &number, NULL);
  c->statuses[3] = rt_ddp_load_and_wait(c->ddp, "[[\"all\"]]", -1, &number, NULL);
}

static void wait_in_callback(const rt_ddp_outcome *outcome, void *user) {
  CHECK(outcome->error == NULL);
  wait_in_vain(user);
}

static void wait_in_stub(rt_ddp_stub *stub, const char *params, size_t length, void *user) {
  (void)params, (void)length;
  wait_in_vain(user);
  CHECK_OK(rt_ddp_stub_fail(stub, "broken", NULL, NULL));
}

static void expect_reentrant(callback *c) {
  int each;
  for (each = 0; each < 4; each++) CHECK(c->statuses[each] == RT_ERROR_REENTRANT);
  memset(c->statuses, 0, sizeof c->statuses);
}

static void callbacks_and_stubs_cannot_wait(rt_loop *loop, const char *server) {
  rt_ddp_outcome *outcome = NULL;
  rt_ddp_call_options options = {.struct_bytes = sizeof options, .throw_stub_errors = true};
  callback c = {.ddp = connected(loop, server)};
  control(server, "method", "{'name': 'm', 'ops': []}");
  CHECK_OK(rt_ddp_call(c.ddp, "m", NULL, NULL, wait_in_callback, &c, NULL));
  CHECK_OK(rt_ddp_call_and_wait(c.ddp, "m", NULL, NULL, PATIENCE_MS, NULL));
  expect_reentrant(&c);
  CHECK_OK(rt_ddp_set_stub(c.ddp, "stubbed", wait_in_stub, &c, NULL));
  CHECK_STATUS(rt_ddp_call_and_wait(c.ddp, "stubbed", NULL, &options, -1, &outcome),
               RT_ERROR_METHOD);
  expect_reentrant(&c);
  expect_error(outcome, RT_DDP_ERROR_STUB, "broken");
  rt_ddp_free(c.ddp);
}

static void accounts(rt_loop *loop, const char *server) {
  char id[64];
  const char *begin;
  char token[64];
  rt_ddp_outcome *outcome = NULL;
  rt_ddp *ddp = connected(loop, server);
  control(server, "settings", "{'logins': 0}");
  CHECK_OK(rt_ddp_create_user_and_wait(ddp, "ada", "ada@example.org", "one", "{\"age\":36}",
                                       PATIENCE_MS, NULL));
  CHECK_OK(rt_ddp_get_user_id(ddp, id, sizeof id, NULL));
  CHECK(strlen(id) == 17);
  CHECK_OK(rt_ddp_change_password_and_wait(ddp, "one", "two", PATIENCE_MS, NULL));
  CHECK_OK(rt_ddp_new_token_and_wait(ddp, PATIENCE_MS, NULL));
  CHECK_OK(rt_ddp_log_out_others_and_wait(ddp, PATIENCE_MS, NULL));
  CHECK_OK(rt_ddp_log_out_and_wait(ddp, PATIENCE_MS, NULL));
  CHECK_OK(rt_ddp_get_user_id(ddp, id, sizeof id, NULL));
  CHECK(id[0] == '\0');
  CHECK_STATUS(
      rt_ddp_log_in_with_password_and_wait(ddp, "ada", "one", NULL, PATIENCE_MS, &outcome),
      RT_ERROR_METHOD);
  expect_error(outcome, RT_DDP_ERROR_SERVER, "403");
  CHECK_OK(rt_ddp_log_in_with_password_and_wait(ddp, "ada@example.org", "two", NULL, PATIENCE_MS,
                                                &outcome));
  begin = strstr(outcome->value, "\"token\":\"") + 9;
  snprintf(token, sizeof token, "%.*s", (int)(strchr(begin, '"') - begin), begin);
  rt_ddp_outcome_free(outcome);
  CHECK_OK(rt_ddp_log_in_with_token_and_wait(ddp, token, PATIENCE_MS, NULL));
  CHECK_STATUS(rt_ddp_log_in_and_wait(ddp, "login", "[{\"resume\":\"wrong\"}]", PATIENCE_MS, NULL),
               RT_ERROR_METHOD);
  CHECK_OK(rt_ddp_forgot_password_and_wait(ddp, "ada@example.org", PATIENCE_MS, NULL));
  CHECK_STATUS(rt_ddp_reset_password_and_wait(ddp, "wrong", "three", PATIENCE_MS, NULL),
               RT_ERROR_METHOD);
  CHECK_STATUS(rt_ddp_verify_email_and_wait(ddp, "wrong", PATIENCE_MS, NULL), RT_ERROR_METHOD);
  rt_ddp_free(ddp);
}

static void all(rt_loop *loop, const char *server) {
  calls_return_what_the_server_answers(loop, server);
  writes_are_there_when_the_call_returns(loop, server);
  calls_outlive_their_timeout(loop, server);
  subscriptions_fail(loop, server);
  attempts_continue_or_fail(loop, server);
  callbacks_and_stubs_cannot_wait(loop, server);
}

int main(int argc, char **argv) {
  rt_loop *loop;
  CHECK(argc == 2);
  all(NULL, argv[1]);
  accounts(NULL, argv[1]);
  loop = new_loop();
  CHECK_OK(rt_loop_start(loop));
  all(loop, argv[1]);
  rt_loop_free(loop);
  ends_end_waits(argv[1]);
  return 0;
}
