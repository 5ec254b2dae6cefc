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

/* The call that was begun last. */
static rt_call *call;

/* No completion; the call is for rt_call_wait(). */
#define NOBODY NULL, NULL, NULL
#define TO_CALL NOBODY, &call

/* Begins a call, waits for its answer and keeps that until the next one. `begin` passes &call. */
#define WAIT(timeout_ms, begin) (rt_call_free(call), call = NULL, answered((begin), (timeout_ms)))

static rt_status answered(rt_status begun, int64_t timeout_ms) {
  return begun ? begun : rt_call_wait(call, timeout_ms);
}

static void expect_value(const char *value) {
  const rt_ddp_outcome *outcome = rt_call_outcome(call);
  CHECK(outcome->struct_bytes == sizeof *outcome && outcome->stage == RT_DDP_STAGE_COMPLETED);
  CHECK(outcome->error == NULL && outcome->value_length == strlen(outcome->value));
  if (strcmp(outcome->value, value) != 0) printf("%s instead of %s\n", outcome->value, value);
  CHECK(rt_call_response(call) == NULL);
}

static void expect_error(int32_t kind, const char *code) {
  const rt_ddp_outcome *outcome = rt_call_outcome(call);
  const rt_ddp_error *error = outcome->error;
  CHECK(strcmp(outcome->value, "null") == 0 && outcome->value_length == 4);
  CHECK(error && error->struct_bytes == sizeof *error && error->kind == kind);
  CHECK(strcmp(error->code, code) == 0);
  CHECK(strstr(rt_last_error(), code));
  CHECK((error->source[0] != '\0') == (kind == RT_DDP_ERROR_SERVER));
}

static void calls_return_what_the_server_answers(rt_loop *loop, const char *server) {
  rt_ddp *ddp = connected(loop, server);
  control(server, "method",
          "{'name': 'add', 'ops': [{'op': 'return', 'value': {'sum': {'$param': 0}}}]}");
  control(server, "method",
          "{'name': 'refuse', 'ops': [{'op': 'throw', 'error': {'error': 'no', 'reason': 'Never.', "
          "'details': {'at': 5}}}]}");
  CHECK_OK(WAIT(PATIENCE_MS, rt_ddp_call(ddp, "add", "[{\"$date\":7}]", NULL, TO_CALL)));
  expect_value("{\"sum\":{\"$date\":7}}");
  CHECK_OK(WAIT(-1, rt_ddp_call(ddp, "add", "[1]", NULL, TO_CALL)));
  CHECK_STATUS(WAIT(PATIENCE_MS, rt_ddp_call(ddp, "refuse", NULL, NULL, TO_CALL)),
               RT_ERROR_METHOD);
  CHECK(strcmp(rt_call_outcome(call)->error->reason, "Never.") == 0);
  CHECK(strcmp(rt_call_outcome(call)->error->details, "{\"at\":5}") == 0);
  CHECK(strstr(rt_call_outcome(call)->error->source, "\"errorType\":\"Meteor.Error\""));
  expect_error(RT_DDP_ERROR_SERVER, "no");
  CHECK_STATUS(WAIT(PATIENCE_MS, rt_ddp_call(ddp, "unknown", "[]", NULL, TO_CALL)),
               RT_ERROR_METHOD);
  CHECK(rt_call_outcome(call)->error->code_is_number);
  expect_error(RT_DDP_ERROR_SERVER, "404");
  CHECK_STATUS(WAIT(PATIENCE_MS, rt_ddp_call(ddp, "unknown", "[]", NULL, TO_CALL)),
               RT_ERROR_METHOD);
  rt_ddp_free(ddp);
}

static void writes_are_there_when_the_call_returns(rt_loop *loop, const char *server) {
  heard h = {0};
  uint64_t all = 0;
  rt_ddp *ddp = connected(loop, server);
  make_players(server);
  CHECK_OK(rt_ddp_declare(ddp, "players", RT_DDP_IDS_STRINGS));
  CHECK_OK(WAIT(PATIENCE_MS, rt_ddp_subscribe(ddp, "all", NULL, -1, NOBODY, &all, &call)));
  expect_value("null");
  CHECK(rt_ddp_is_ready(ddp, all) == 1);
  CHECK_OK(WAIT(PATIENCE_MS, rt_ddp_insert(ddp, "players", "{\"_id\":\"c\"}", NULL, TO_CALL)));
  expect_value("\"c\"");
  CHECK_STATUS(
      WAIT(PATIENCE_MS, rt_ddp_insert(ddp, "players", "{\"_id\":\"c\"}", NULL, TO_CALL)),
      RT_ERROR_METHOD);
  expect_error(RT_DDP_ERROR_SERVER, "409");
  CHECK_OK(
      WAIT(PATIENCE_MS,
           rt_ddp_update(ddp, "players", "\"c\"", "{\"$set\":{\"n\":1}}", NULL, TO_CALL)));
  expect_value("1");
  CHECK_OK(WAIT(PATIENCE_MS, rt_ddp_remove(ddp, "players", "\"a\"", NULL, TO_CALL)));
  CHECK_OK(rt_ddp_find(ddp, "players", NULL, NULL, heard_document, &h));
  CHECK(strcmp(h.text, "{\"_id\":\"b\",\"name\":\"Bob\"};{\"_id\":\"c\",\"n\":1};") == 0);
  rt_ddp_free(ddp);
}

/* What is not done in time continues; its outcome goes to nobody. */
static void calls_outlive_their_timeout(rt_loop *loop, const char *server) {
  rt_ddp_call_options options = {.struct_bytes = sizeof options, .timeout_ms = 1};
  uint64_t number = 7;
  rt_ddp *ddp = connected(loop, server);
  make_players(server);
  control(server, "method", "{'name': 'slow', 'ops': [{'op': 'hold'}]}");
  control(server, "publication",
          "{'name': 'late', 'hold': true, 'cursors': [{'collection': 'players'}]}");
  CHECK_STATUS(WAIT(0, rt_ddp_call(ddp, "slow", NULL, NULL, TO_CALL)), RT_ERROR_TIMEOUT);
  CHECK_STATUS(WAIT(5, rt_ddp_call(ddp, "slow", NULL, NULL, TO_CALL)), RT_ERROR_TIMEOUT);
  CHECK_STATUS(WAIT(PATIENCE_MS, rt_ddp_call(ddp, "slow", NULL, &options, TO_CALL)),
               RT_ERROR_METHOD);
  expect_error(RT_DDP_ERROR_TIMEOUT, "timeout");
  /* They wait at the server one after the other. */
  control(server, "wait_held", "{}");
  control(server, "release", "{}");
  control(server, "wait_held", "{}");
  control(server, "method", "{'name': 'slow', 'ops': []}");
  control(server, "release", "{}");
  CHECK_OK(WAIT(PATIENCE_MS, rt_ddp_call(ddp, "slow", NULL, NULL, TO_CALL)));
  CHECK_STATUS(WAIT(5, rt_ddp_subscribe(ddp, "late", NULL, 0, NOBODY, &number, &call)),
               RT_ERROR_TIMEOUT);
  CHECK(rt_call_outcome(call) == NULL && number != 7);
  CHECK_OK(rt_ddp_release_subscription(ddp, number));
  control(server, "wait", "{'what': 'in', 'msg': 'unsub'}");
  control(server, "wait_held", "{}");
  control(server, "release", "{}");
  CHECK_STATUS(WAIT(5, rt_ddp_load(ddp, "[[\"all\"],[\"late\"]]", NOBODY, &number, &call)),
               RT_ERROR_TIMEOUT);
  CHECK_OK(rt_ddp_close_loader(ddp, number));
  control(server, "wait_held", "{}");
  control(server, "release", "{}");
  CHECK_OK(WAIT(PATIENCE_MS, rt_ddp_load(ddp, "[[\"all\"],[\"late\"]]", NOBODY, &number, &call)));
  CHECK_OK(rt_ddp_close_loader(ddp, number));
  rt_ddp_free(ddp);
}

static void subscriptions_fail(rt_loop *loop, const char *server) {
  uint64_t number = 7;
  rt_ddp *ddp = connected(loop, server);
  make_players(server);
  control(server, "publication", "{'name': 'ends', 'stops': true, 'ready': false}");
  CHECK_STATUS(WAIT(PATIENCE_MS, rt_ddp_subscribe(ddp, "none", "[1]", -1, NOBODY, &number, &call)),
               RT_ERROR_METHOD);
  expect_error(RT_DDP_ERROR_SERVER, "404");
  CHECK_STATUS(WAIT(PATIENCE_MS, rt_ddp_subscribe(ddp, "ends", NULL, -1, NOBODY, &number, &call)),
               RT_ERROR_METHOD);
  CHECK(strcmp(rt_call_outcome(call)->error->code, "stopped") == 0);
  CHECK_STATUS(
      WAIT(PATIENCE_MS, rt_ddp_load(ddp, "[[\"all\"],[\"none\"]]", NOBODY, &number, &call)),
      RT_ERROR_METHOD);
  expect_error(RT_DDP_ERROR_SERVER, "404");
  CHECK_OK(rt_ddp_close_loader(ddp, number));
  CHECK_STATUS(WAIT(0, rt_ddp_load(ddp, "[\"all\"]", NOBODY, &number, &call)),
               RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(WAIT(0, rt_ddp_subscribe(ddp, "all", NULL, -1, NULL, TO_CALL)),
               RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(WAIT(-2, rt_ddp_call(ddp, "m", NULL, NULL, TO_CALL)), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(WAIT(0, rt_ddp_call(ddp, "m", "{", NULL, TO_CALL)), RT_ERROR_PROTOCOL);
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
  CHECK_STATUS(WAIT(-1, rt_ddp_call(ddp, "m", NULL, NULL, TO_CALL)), RT_ERROR_METHOD);
  rt_ddp_free(ddp);
}

static void *connect_without_limit(void *ddp) {
  CHECK_STATUS(rt_ddp_connect(ddp, -1), RT_ERROR_CLOSED);
  return NULL;
}

static void *call_without_limit(void *ddp) {
  CHECK_STATUS(WAIT(-1, rt_ddp_call(ddp, "held", NULL, NULL, TO_CALL)), RT_ERROR_CLOSED);
  CHECK(rt_call_outcome(call) == NULL);
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
  CHECK_STATUS(WAIT(-1, rt_ddp_call(ddp, "held", NULL, NULL, TO_CALL)), RT_ERROR_CLOSED);
  rt_ddp_free(ddp);
  control(server, "release", "{}");
}

typedef struct callback {
  rt_ddp *ddp;
  rt_status statuses[2];
} callback;

/* What can be begun continues. */
static void wait_in_vain(callback *c) {
  rt_call *own = NULL;
  c->statuses[0] = rt_ddp_connect(c->ddp, -1);
  CHECK_OK(rt_ddp_call(c->ddp, "n", NULL, NULL, NOBODY, &own));
  c->statuses[1] = rt_call_wait(own, -1);
  rt_call_free(own);
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
  for (each = 0; each < 2; each++) CHECK(c->statuses[each] == RT_ERROR_REENTRANT);
  memset(c->statuses, 0, sizeof c->statuses);
}

static void callbacks_and_stubs_cannot_wait(rt_loop *loop, const char *server) {
  rt_ddp_call_options options = {.struct_bytes = sizeof options, .throw_stub_errors = true};
  callback c = {.ddp = connected(loop, server)};
  control(server, "method", "{'name': 'm', 'ops': []}");
  control(server, "method", "{'name': 'n', 'ops': []}");
  CHECK_OK(rt_ddp_call(c.ddp, "m", NULL, NULL, wait_in_callback, &c, NULL, NULL));
  CHECK_OK(WAIT(PATIENCE_MS, rt_ddp_call(c.ddp, "m", NULL, NULL, TO_CALL)));
  expect_reentrant(&c);
  CHECK_OK(rt_ddp_set_stub(c.ddp, "stubbed", wait_in_stub, &c, NULL));
  CHECK_STATUS(WAIT(-1, rt_ddp_call(c.ddp, "stubbed", NULL, &options, TO_CALL)),
               RT_ERROR_METHOD);
  expect_reentrant(&c);
  /* Nothing was sent, so there is no call. */
  CHECK(call == NULL && strstr(rt_last_error(), "broken"));
  rt_ddp_free(c.ddp);
}

/* One call for all writes of a batch. */
static void batches(rt_loop *loop, const char *server) {
  rt_ddp *ddp = connected(loop, server);
  make_players(server);
  CHECK_OK(rt_ddp_declare(ddp, "players", RT_DDP_IDS_STRINGS));
  CHECK_OK(WAIT(PATIENCE_MS, rt_ddp_write(ddp,
                                          "[{\"insert\":\"players\",\"document\":{\"_id\":\"d\"}},"
                                          "{\"remove\":\"players\",\"id\":\"d\"}]",
                                          NULL, TO_CALL)));
  expect_value("null");
  CHECK_OK(WAIT(PATIENCE_MS, rt_ddp_write(ddp, "[]", NULL, TO_CALL)));
  CHECK_STATUS(
      WAIT(PATIENCE_MS, rt_ddp_write(ddp,
                                     "[{\"insert\":\"players\",\"document\":{\"_id\":\"e\"}},"
                                     "{\"insert\":\"players\",\"document\":{\"_id\":\"a\"}}]",
                                     NULL, TO_CALL)),
      RT_ERROR_METHOD);
  expect_error(RT_DDP_ERROR_SERVER, "409");
  CHECK_OK(WAIT(PATIENCE_MS, rt_ddp_remove(ddp, "players", "\"e\"", NULL, TO_CALL)));
  rt_ddp_free(ddp);
}

/* The completion and the call both get the answer; the call may be freed before. */
static void count_outcome(const rt_ddp_outcome *outcome, void *user) {
  CHECK(outcome->error == NULL);
  ++*(int *)user;
}

static void both_get_the_answer(rt_loop *loop, const char *server) {
  int completed = 0;
  rt_ddp *ddp = connected(loop, server);
  control(server, "method", "{'name': 'm', 'ops': []}");
  CHECK_OK(WAIT(PATIENCE_MS,
                rt_ddp_call(ddp, "m", NULL, NULL, count_outcome, &completed, NULL, &call)));
  CHECK(completed == 1);
  CHECK_OK(rt_call_wait(call, 0));
  CHECK_OK(rt_ddp_call(ddp, "m", NULL, NULL, count_outcome, &completed, NULL, NULL));
  CHECK_OK(WAIT(PATIENCE_MS, rt_ddp_call(ddp, "m", NULL, NULL, TO_CALL)));
  CHECK(completed == 2);
  rt_ddp_free(ddp);
}

static void *wait_interrupted(void *waited) {
  CHECK_STATUS(rt_call_wait(waited, -1), RT_ERROR_CANCELLED);
  return NULL;
}

/* An interrupted or freed wait leaves the call as it is. */
static void interrupts(rt_loop *loop, const char *server) {
  pthread_t thread;
  rt_ddp *ddp = connected(loop, server);
  control(server, "method", "{'name': 'held', 'ops': [{'op': 'hold'}]}");
  CHECK_STATUS(WAIT(0, rt_ddp_call(ddp, "held", NULL, NULL, TO_CALL)), RT_ERROR_TIMEOUT);
  CHECK(pthread_create(&thread, NULL, wait_interrupted, call) == 0);
  CHECK_OK(rt_call_interrupt(call));
  CHECK(pthread_join(thread, NULL) == 0);
  control(server, "wait_held", "{}");
  control(server, "release", "{}");
  CHECK_OK(rt_call_wait(call, PATIENCE_MS));
  CHECK_OK(rt_call_interrupt(call));
  CHECK_OK(rt_call_wait(call, -1));
  CHECK_STATUS(rt_call_wait(NULL, 0), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_call_interrupt(NULL), RT_ERROR_INVALID_ARGUMENT);
  CHECK(rt_call_outcome(NULL) == NULL && rt_call_response(NULL) == NULL);
  rt_ddp_free(ddp);
}

static void accounts(rt_loop *loop, const char *server) {
  char id[64];
  const char *begin;
  char token[64];
  rt_ddp *ddp = connected(loop, server);
  control(server, "settings", "{'logins': 0}");
  CHECK_OK(
      WAIT(PATIENCE_MS,
           rt_ddp_create_user(ddp, "ada", "ada@example.org", "one", "{\"age\":36}", TO_CALL)));
  CHECK_OK(rt_ddp_get_user_id(ddp, id, sizeof id, NULL));
  CHECK(strlen(id) == 17);
  CHECK_OK(WAIT(PATIENCE_MS, rt_ddp_change_password(ddp, "one", "two", TO_CALL)));
  CHECK_OK(WAIT(PATIENCE_MS, rt_ddp_new_token(ddp, TO_CALL)));
  CHECK_OK(WAIT(PATIENCE_MS, rt_ddp_log_out_others(ddp, TO_CALL)));
  CHECK_OK(WAIT(PATIENCE_MS, rt_ddp_log_out(ddp, TO_CALL)));
  CHECK_OK(rt_ddp_get_user_id(ddp, id, sizeof id, NULL));
  CHECK(id[0] == '\0');
  CHECK_STATUS(
      WAIT(PATIENCE_MS, rt_ddp_log_in_with_password(ddp, "ada", "one", NULL, TO_CALL)),
      RT_ERROR_METHOD);
  expect_error(RT_DDP_ERROR_SERVER, "403");
  CHECK_OK(
      WAIT(PATIENCE_MS, rt_ddp_log_in_with_password(ddp, "ada@example.org", "two", NULL, TO_CALL)));
  begin = strstr(rt_call_outcome(call)->value, "\"token\":\"") + 9;
  snprintf(token, sizeof token, "%.*s", (int)(strchr(begin, '"') - begin), begin);
  CHECK_OK(WAIT(PATIENCE_MS, rt_ddp_log_in_with_token(ddp, token, TO_CALL)));
  CHECK_STATUS(WAIT(PATIENCE_MS, rt_ddp_log_in(ddp, "login", "[{\"resume\":\"wrong\"}]", TO_CALL)),
               RT_ERROR_METHOD);
  CHECK_OK(WAIT(PATIENCE_MS, rt_ddp_forgot_password(ddp, "ada@example.org", TO_CALL)));
  CHECK_STATUS(WAIT(PATIENCE_MS, rt_ddp_reset_password(ddp, "wrong", "three", TO_CALL)),
               RT_ERROR_METHOD);
  CHECK_STATUS(WAIT(PATIENCE_MS, rt_ddp_verify_email(ddp, "wrong", TO_CALL)), RT_ERROR_METHOD);
  rt_ddp_free(ddp);
}

static void all(rt_loop *loop, const char *server) {
  calls_return_what_the_server_answers(loop, server);
  writes_are_there_when_the_call_returns(loop, server);
  calls_outlive_their_timeout(loop, server);
  subscriptions_fail(loop, server);
  attempts_continue_or_fail(loop, server);
  callbacks_and_stubs_cannot_wait(loop, server);
  batches(loop, server);
  both_get_the_answer(loop, server);
  interrupts(loop, server);
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
  rt_call_free(call);
  return 0;
}
