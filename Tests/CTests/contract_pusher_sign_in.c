/* Sign-ins that are awaited, by a completion and by a thread. */
#include <pthread.h>

#include "contract_pusher.h"

/* The call that was begun last. */
static rt_call *call;

static rt_pusher *new_user(rt_loop *loop, const char *server) {
  rt_pusher *pusher = NULL;
  CHECK_OK(rt_pusher_new(loop, "demo", &pusher));
  CHECK_OK(rt_pusher_set_host(pusher, "127.0.0.1"));
  CHECK_OK(rt_pusher_set_port(pusher, (uint32_t)atoi(strrchr(server, ':') + 1)));
  CHECK_OK(rt_pusher_set_use_tls(pusher, false));
  CHECK_OK(rt_pusher_set_user_auth_endpoint(pusher, endpoint(server, "/pusher/user-auth")));
  CHECK_OK(rt_pusher_set_auth_parameter(pusher, "user_id", "ann"));
  return pusher;
}

static void sign_in(rt_pusher *pusher, rt_pusher_sign_in_fn fn, void *user) {
  rt_call_free(call);
  call = NULL;
  CHECK_OK(rt_pusher_sign_in(pusher, fn, user, NULL, &call));
  CHECK(call != NULL);
}

/* The authorization server gets the request, and does not answer it. */
static void sign_in_without_answer(rt_pusher *pusher, const char *server) {
  /* An earlier request does not count as this one. */
  control(server, "release", "{}");
  control(server, "auth", "{'mode': 'hang'}");
  sign_in(pusher, NULL, NULL);
  control(server, "wait_held", "{}");
}

static void threads_wait_for_success(const char *server) {
  char id[16];
  rt_pusher *pusher = new_user(NULL, server);
  sign_in(pusher, NULL, NULL);
  /* Without a connection, the sign-in outlives the time limits. */
  CHECK_STATUS(rt_call_wait(call, 0), RT_ERROR_TIMEOUT);
  CHECK_STATUS(rt_call_wait(call, 5), RT_ERROR_TIMEOUT);
  CHECK_OK(rt_pusher_start(pusher));
  CHECK_OK(rt_call_wait(call, PATIENCE_MS));
  CHECK_OK(rt_call_wait(call, 0));
  CHECK(rt_call_response(call) == NULL && rt_call_outcome(call) == NULL);
  CHECK_OK(rt_pusher_get_user_id(pusher, id, sizeof id, NULL));
  CHECK(strcmp(id, "ann") == 0);
  /* A user who is signed in is not awaited again. */
  sign_in(pusher, NULL, NULL);
  CHECK_OK(rt_call_wait(call, PATIENCE_MS));
  rt_pusher_free(pusher);
}

static void note_failure(const rt_failure *failure, void *user) {
  heard *h = user;
  CHECK(failure != NULL && failure->status < 0);
  note(h, failure->message, strlen(failure->message));
  h->last_status = failure->status;
  h->http_status = failure->http_status;
}

static void threads_wait_for_a_refusal(const char *server) {
  heard h = {0};
  rt_pusher *pusher = new_user(NULL, server);
  control(server, "auth", "{'mode': 'deny', 'channel': '(user)'}");
  CHECK_OK(rt_pusher_start(pusher));
  sign_in(pusher, note_failure, &h);
  CHECK(rt_call_wait(call, PATIENCE_MS) < 0);
  CHECK(rt_call_wait(call, 0) == h.last_status && h.http_status == 403);
  CHECK(strcmp(rt_last_error(), h.text) == 0);
  /* The next call is another sign-in. */
  sign_in(pusher, NULL, NULL);
  CHECK_OK(rt_call_wait(call, PATIENCE_MS));
  rt_pusher_free(pusher);
}

static void ends_end_waits(const char *server) {
  pthread_t thread;
  rt_pusher *pusher = new_user(NULL, server);
  rt_loop *loop = new_loop();
  CHECK_OK(rt_pusher_connect(pusher, PATIENCE_MS));
  /* Only the wait is ended. */
  sign_in_without_answer(pusher, server);
  CHECK(pthread_create(&thread, NULL, wait_until_cancelled, call) == 0);
  CHECK_OK(rt_call_interrupt(call));
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK_STATUS(rt_call_wait(call, 0), RT_ERROR_TIMEOUT);
  /* The user is signed out. */
  CHECK(pthread_create(&thread, NULL, wait_until_cancelled, call) == 0);
  CHECK_OK(rt_pusher_sign_out(pusher));
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK(strstr(rt_call_wait(call, 0) == RT_ERROR_CANCELLED ? rt_last_error() : "", "signed out"));
  /* The connection is closed. */
  sign_in_without_answer(pusher, server);
  CHECK(pthread_create(&thread, NULL, wait_until_closed, call) == 0);
  CHECK_OK(rt_pusher_close(pusher));
  CHECK(pthread_join(thread, NULL) == 0);
  /* It is freed. */
  sign_in(pusher, NULL, NULL);
  CHECK(pthread_create(&thread, NULL, wait_until_closed, call) == 0);
  rt_pusher_free(pusher);
  CHECK(pthread_join(thread, NULL) == 0);
  /* The loop is freed. */
  CHECK_OK(rt_loop_start(loop));
  pusher = new_user(loop, server);
  sign_in(pusher, NULL, NULL);
  CHECK(pthread_create(&thread, NULL, wait_until_closed, call) == 0);
  rt_loop_free(loop);
  CHECK(pthread_join(thread, NULL) == 0);
  rt_pusher_free(pusher);
}

static void note_signed_in(const rt_pusher_user *signed_in, void *user) {
  note(user, "callback ", 9);
  note(user, signed_in->user_id, signed_in->user_id_length);
  note(user, ";", 1);
}

static void note_result(const rt_failure *failure, void *user) {
  heard *h = user;
  note(h, failure ? "failed;" : "done;", failure ? 7 : 5);
  h->signed_in += failure == NULL;
  h->refused += failure != NULL;
  if (failure) h->last_status = failure->status;
  CHECK(call == NULL || rt_call_wait(call, -1) == RT_ERROR_REENTRANT);
}

static void free_pusher(const rt_failure *failure, void *user) {
  heard *h = user;
  CHECK(failure == NULL);
  rt_pusher_free(h->pusher);
  h->signed_in++;
}

static void count_destroyed(void *user) { ((heard *)user)->destroyed++; }

static void completions_are_called_once(const char *server) {
  rt_loop *loop = new_loop();
  heard h = {0};
  rt_pusher *pusher = new_user(loop, server);
  rt_call_free(call);
  call = NULL;
  CHECK_OK(rt_pusher_on_signed_in(pusher, note_signed_in, &h, NULL));
  CHECK_OK(rt_pusher_sign_in(pusher, note_result, &h, count_destroyed, NULL));
  CHECK_OK(rt_pusher_sign_in(pusher, note_result, &h, count_destroyed, NULL));
  CHECK_OK(rt_pusher_start(pusher));
  TURN_UNTIL(loop, h.destroyed == 2);
  CHECK(strcmp(h.text, "callback ann;done;done;") == 0);
  /* Never inside the call. */
  CHECK_OK(rt_pusher_sign_in(pusher, note_result, &h, count_destroyed, NULL));
  CHECK(h.signed_in == 2);
  TURN_UNTIL(loop, h.destroyed == 3);
  /* Later sign-ins, after a loss, are not reported to it. */
  h.text[0] = '\0';
  control(server, "close", "{'code': 4200}");
  TURN_UNTIL(loop, h.text[0]);
  CHECK(strcmp(h.text, "callback ann;") == 0 && h.signed_in == 3);
  /* Without a function, too, the user data is destroyed once. */
  CHECK_OK(rt_pusher_sign_in(pusher, NULL, &h, count_destroyed, NULL));
  TURN_UNTIL(loop, h.destroyed == 4);
  CHECK_STATUS(rt_pusher_sign_in(NULL, note_result, &h, count_destroyed, NULL),
               RT_ERROR_INVALID_ARGUMENT);
  CHECK(h.destroyed == 5);
  /* Nothing is called any more once it is freed; here by the first of two. */
  h.pusher = pusher;
  CHECK_OK(rt_pusher_sign_out(pusher));
  CHECK_OK(rt_pusher_sign_in(pusher, free_pusher, &h, count_destroyed, NULL));
  CHECK_OK(rt_pusher_sign_in(pusher, note_result, &h, count_destroyed, NULL));
  TURN_UNTIL(loop, h.destroyed == 7);
  CHECK(h.signed_in == 4 && h.refused == 0);
  rt_loop_free(loop);
}

/* A connection that ends fails the calls, unless it is made again at once. */
static void the_end_of_the_connection_is_a_result(const char *server) {
  rt_loop *loop = new_loop();
  heard h = {0};
  rt_pusher *pusher = new_user(loop, server);
  CHECK_OK(rt_pusher_start(pusher));
  CHECK_OK(rt_pusher_sign_in(pusher, note_result, &h, count_destroyed, NULL));
  CHECK_OK(rt_pusher_close(pusher));
  CHECK_OK(rt_pusher_start(pusher));
  TURN_UNTIL(loop, h.destroyed == 1);
  CHECK(h.signed_in == 1);
  CHECK_OK(rt_pusher_sign_out(pusher));
  CHECK_OK(rt_pusher_sign_in(pusher, note_result, &h, count_destroyed, NULL));
  CHECK_OK(rt_pusher_close(pusher));
  TURN_UNTIL(loop, h.destroyed == 2);
  CHECK(h.refused == 1 && h.last_status == RT_ERROR_CLOSED);
  rt_pusher_free(pusher);
  rt_loop_free(loop);
}

int main(int argc, char **argv) {
  CHECK(argc == 2);
  threads_wait_for_success(argv[1]);
  threads_wait_for_a_refusal(argv[1]);
  ends_end_waits(argv[1]);
  completions_are_called_once(argv[1]);
  the_end_of_the_connection_is_a_result(argv[1]);
  rt_call_free(call);
  return 0;
}
