/* Authorizations of Pusher connections: by endpoint, by secret, and by a callback that answers at
 * once, later on another thread, or never. */
#include <pthread.h>

#include "contract_pusher.h"

enum how { AT_ONCE, LATER, JSON, WRONG_JSON, FAIL, NEVER, BY_CHANNEL };

/* How the callback answers; `auth` is signed for any socket id by the endpoint of the server. */
typedef struct answerer {
  enum how how;
  int asked, answered, destroyed;
  size_t count;
  bool is_user;
  char socket_id[64], channels[256];
  rt_pusher_authorization *kept;
} answerer;

static void answer(answerer *a, rt_pusher_authorization *authorization) {
  /* A server that accepts everything is not needed: these answers are refused later, if at all. */
  switch (a->how) {
    case AT_ONCE:
    case LATER:
      CHECK_OK(rt_pusher_authorization_answer(authorization, "demo:00", "{\"user_id\":\"u\"}",
                                              NULL));
      CHECK_STATUS(rt_pusher_authorization_answer(authorization, "demo:00", NULL, NULL),
                   RT_ERROR_STATE);
      CHECK_STATUS(rt_pusher_authorization_fail(authorization, "late"), RT_ERROR_STATE);
      break;
    case JSON:
      CHECK_OK(rt_pusher_authorization_answer_json(authorization, "{\"auth\":\"demo:00\"}", 18));
      CHECK_STATUS(rt_pusher_authorization_answer_json(authorization, "{}", 2), RT_ERROR_STATE);
      break;
    case WRONG_JSON:
      CHECK_OK(rt_pusher_authorization_answer_json(authorization, "[]", 2));
      break;
    case FAIL:
      CHECK_STATUS(rt_pusher_authorization_fail(authorization, "\xff"), RT_ERROR_INVALID_UTF8);
      CHECK_OK(rt_pusher_authorization_fail(authorization, "not today"));
      break;
    case BY_CHANNEL:
      CHECK_STATUS(rt_pusher_authorization_answer_channel(authorization, "no", "a", NULL, NULL),
                   RT_ERROR_NOT_FOUND);
      CHECK_OK(rt_pusher_authorization_answer_channel(authorization, "private-b", "demo:0", NULL,
                                                      NULL));
      CHECK_STATUS(rt_pusher_authorization_answer_channel(authorization, "private-b", "demo:0",
                                                          NULL, NULL), RT_ERROR_STATE);
      CHECK_OK(rt_pusher_authorization_fail(authorization, NULL));
      break;
    case NEVER: break;
  }
  CHECK_STATUS(rt_pusher_authorization_answer(authorization, NULL, NULL, NULL),
               RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_pusher_authorization_answer(authorization, "a", NULL, "no key"),
               RT_ERROR_INVALID_ARGUMENT);
  rt_pusher_authorization_free(authorization);
  a->answered++;
}

static void on_authorize(
    const rt_pusher_auth_request *request, rt_pusher_authorization *authorization, void *user) {
  answerer *a = user;
  CHECK(request->struct_bytes == sizeof *request && authorization != NULL);
  CHECK(strlen(request->channels) == request->channels_length);
  CHECK(request->is_user == (request->count == 0));
  snprintf(a->socket_id, sizeof a->socket_id, "%s", request->socket_id);
  snprintf(a->channels, sizeof a->channels, "%s", request->channels);
  a->count = request->count;
  a->is_user = request->is_user;
  a->asked++;
  if (a->how == LATER) a->kept = authorization;
  else answer(a, authorization);
}

static void count_destroyed(void *user) { ((answerer *)user)->destroyed++; }

static rt_pusher *authorized_by(
    heard *h, answerer *a, enum how how, rt_loop *loop, const char *server) {
  rt_pusher *pusher = new_pusher(h, loop, server);
  memset(a, 0, sizeof *a);
  a->how = how;
  CHECK_OK(rt_pusher_on_authorize(pusher, on_authorize, a, count_destroyed));
  CHECK_OK(rt_pusher_start(pusher));
  return pusher;
}

/* The server refuses these signatures, or the library the answers: the subscription fails. */
static void answers_are_used(rt_loop *loop, const char *server) {
  static const enum how all[] = {AT_ONCE, JSON, WRONG_JSON, FAIL, NEVER};
  size_t i;
  for (i = 0; i < sizeof all / sizeof *all; i++) {
    heard h;
    answerer a;
    char id[64];
    size_t length;
    rt_pusher *pusher = authorized_by(&h, &a, all[i], loop, server);
    rt_pusher_channel *channel = subscribe(pusher, "private-a");
    control(server, "settings", "{'bad_auth': 'subscription_error'}");
    TURN_UNTIL(loop, h.failed);
    CHECK_OK(rt_pusher_get_socket_id(pusher, id, sizeof id, &length));
    CHECK(strcmp(a.socket_id, id) == 0 && strcmp(a.channels, "private-a\n") == 0);
    CHECK(a.asked == 1 && a.count == 1 && !a.is_user && h.subscribed == 0);
    CHECK(rt_pusher_channel_get_state(channel) == RT_PUSHER_CHANNEL_FAILED);
    CHECK(h.last_status == RT_ERROR_AUTH);
    rt_pusher_channel_free(channel);
    rt_pusher_free(pusher);
    settle(loop);
    CHECK(a.destroyed == 1);
  }
}

static void *answer_on_a_thread(void *user) {
  answerer *a = user;
  answer(a, a->kept);
  return NULL;
}

static void answers_come_later(rt_loop *loop, const char *server) {
  heard h;
  answerer a;
  pthread_t thread;
  rt_pusher *pusher = authorized_by(&h, &a, LATER, loop, server);
  CHECK_OK(rt_pusher_subscribe(pusher, "presence-a", NULL));
  TURN_UNTIL(loop, a.kept);
  settle(loop);
  CHECK(h.failed == 0);
  CHECK(pthread_create(&thread, NULL, answer_on_a_thread, &a) == 0);
  TURN_UNTIL(loop, h.failed);
  CHECK(pthread_join(thread, NULL) == 0 && a.answered == 1);
  /* Asked again, but answered only after the connection was freed. */
  a.kept = NULL;
  CHECK_OK(rt_pusher_subscribe(pusher, "presence-a", NULL));
  TURN_UNTIL(loop, a.kept);
  rt_pusher_free(pusher);
  CHECK(pthread_create(&thread, NULL, answer_on_a_thread, &a) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
  settle(loop);
  CHECK(a.answered == 2 && a.destroyed == 1 && h.failed == 1);
}

static void a_late_answer_is_ignored(rt_loop *loop, const char *server) {
  heard h;
  answerer a;
  rt_pusher_authorization *late;
  rt_pusher *pusher = authorized_by(&h, &a, LATER, loop, server);
  CHECK_OK(rt_pusher_subscribe(pusher, "private-a", NULL));
  TURN_UNTIL(loop, a.kept);
  late = a.kept;
  control(server, "close", "{'code': 4200}");
  TURN_UNTIL(loop, a.kept != late);
  answer(&a, late);
  settle(loop);
  CHECK(h.failed == 0);
  answer(&a, a.kept);
  TURN_UNTIL(loop, h.failed);
  rt_pusher_free(pusher);
}

static void several_channels_in_one_request(rt_loop *loop, const char *server) {
  heard h;
  answerer a;
  rt_pusher *pusher = new_pusher(&h, loop, server);
  memset(&a, 0, sizeof a);
  a.how = BY_CHANNEL;
  CHECK_OK(rt_pusher_set_auth_batch_size(pusher, 10));
  CHECK_OK(rt_pusher_on_authorize(pusher, on_authorize, &a, NULL));
  CHECK_OK(rt_pusher_subscribe(pusher, "private-a", NULL));
  CHECK_OK(rt_pusher_subscribe(pusher, "private-b", NULL));
  CHECK_OK(rt_pusher_start(pusher));
  TURN_UNTIL(loop, h.failed == 2);
  CHECK(a.asked == 1 && a.count == 2 && strcmp(a.channels, "private-a\nprivate-b\n") == 0);
  rt_pusher_free(pusher);
}

static bool on_prepare(const rt_pusher_auth_request *request, rt_rest_request *http, void *user) {
  int *calls = user;
  CHECK(request->count <= 10);
  if (++*calls > 2) return false;
  CHECK_OK(rt_rest_request_set_header(http, "X-Token", "fresh"));
  CHECK_STATUS(rt_rest_request_set_target(http, "POST", "nowhere"), RT_ERROR_INVALID_URL);
  CHECK_STATUS(rt_rest_request_set_target(http, NULL, "/"), RT_ERROR_INVALID_ARGUMENT);
  /* No form is posted to the second one. */
  if (*calls == 2) CHECK_OK(rt_rest_request_set_target(http, "GET", "http://127.0.0.1:1/"));
  return true;
}

static void endpoints_are_asked(rt_loop *loop, const char *server) {
  heard h;
  int prepared = 0;
  rt_pusher *pusher = new_pusher(&h, loop, server);
  rt_pusher_channel *channel;
  CHECK_OK(rt_pusher_set_auth_endpoint(pusher, endpoint(server, "/pusher/auth")));
  CHECK_OK(rt_pusher_set_auth_header(pusher, "X-Fixed", "yes"));
  CHECK_OK(rt_pusher_set_auth_parameter(pusher, "user_id", "u-7"));
  CHECK_OK(rt_pusher_start(pusher));
  channel = subscribe(pusher, "presence-a");
  TURN_UNTIL(loop, h.subscribed == 1);
  CHECK_OK(rt_pusher_channel_get_my_id(channel, h.text, sizeof h.text, NULL));
  CHECK(strcmp(h.text, "u-7") == 0);
  control(server, "wait", "{'what': 'auth', 'status': 200, 'timeout': 0}");
  /* A refusal by the endpoint, with its status and body. */
  control(server, "auth", "{'mode': 'deny', 'body': 'no seat'}");
  CHECK_OK(rt_pusher_subscribe(pusher, "private-denied", NULL));
  TURN_UNTIL(loop, h.failed == 1);
  CHECK(h.http_status == 403 && h.last_status == RT_ERROR_AUTH);
  CHECK_OK(rt_pusher_on_prepare_authorization(pusher, on_prepare, &prepared, NULL));
  CHECK_OK(rt_pusher_subscribe(pusher, "private-denied", NULL));
  TURN_UNTIL(loop, h.subscribed == 2);
  CHECK_OK(rt_pusher_subscribe(pusher, "private-c", NULL));
  TURN_UNTIL(loop, h.failed == 2);
  CHECK(prepared == 2 && h.http_status == 0 && h.last_status == RT_ERROR_CONNECT);
  CHECK_OK(rt_pusher_subscribe(pusher, "private-c", NULL));
  TURN_UNTIL(loop, h.failed == 3);
  CHECK(prepared == 3 && h.last_status == RT_ERROR_AUTH);
  rt_pusher_channel_free(channel);
  rt_pusher_free(pusher);
}

/* A request to the endpoint that is prepared in the callback, and sent later by another thread. */
typedef struct prepared {
  rt_pusher_authorization *authorization;
  rt_rest_request *http;
  int sent;
} prepared;

static void on_authorize_later(
    const rt_pusher_auth_request *request, rt_pusher_authorization *authorization, void *user) {
  prepared *p = user;
  rt_rest_request *again = NULL;
  CHECK(request->count == 1);
  CHECK_STATUS(rt_pusher_authorization_send(authorization, NULL), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_pusher_authorization_get_request(authorization, NULL),
               RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_pusher_authorization_get_request(authorization, &p->http));
  CHECK_STATUS(rt_pusher_authorization_get_request(authorization, &again), RT_ERROR_STATE);
  CHECK(!again);
  p->authorization = authorization;
}

static void *send_on_a_thread(void *user) {
  prepared *p = user;
  rt_rest_request *none = NULL;
  CHECK_OK(rt_rest_request_set_header(p->http, "X-Token", "late"));
  CHECK_OK(rt_rest_request_add_form_parameter(p->http, "user_id", "u-8"));
  CHECK_OK(rt_pusher_authorization_send(p->authorization, p->http));
  CHECK_STATUS(rt_pusher_authorization_send(p->authorization, p->http), RT_ERROR_STATE);
  /* A copy was sent. */
  CHECK_OK(rt_rest_request_add_form_parameter(p->http, "user_id", "u-9"));
  rt_rest_request_free(p->http);
  CHECK_STATUS(rt_pusher_authorization_fail(p->authorization, NULL), RT_ERROR_STATE);
  CHECK_STATUS(rt_pusher_authorization_get_request(p->authorization, &none), RT_ERROR_STATE);
  rt_pusher_authorization_free(p->authorization);
  p->sent++;
  return NULL;
}

static void send_later(rt_loop *loop, prepared *p) {
  pthread_t thread;
  p->authorization = NULL;
  TURN_UNTIL(loop, p->authorization);
  CHECK(pthread_create(&thread, NULL, send_on_a_thread, p) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
}

static void a_request_may_need_time(rt_loop *loop, const char *server) {
  heard h;
  prepared p = {0};
  rt_pusher *pusher = new_pusher(&h, loop, server);
  rt_pusher_channel *channel;
  CHECK_OK(rt_pusher_set_auth_endpoint(pusher, endpoint(server, "/pusher/auth")));
  CHECK_OK(rt_pusher_on_authorize(pusher, on_authorize_later, &p, NULL));
  CHECK_OK(rt_pusher_start(pusher));
  channel = subscribe(pusher, "presence-a");
  send_later(loop, &p);
  TURN_UNTIL(loop, h.subscribed == 1);
  CHECK_OK(rt_pusher_channel_get_my_id(channel, h.text, sizeof h.text, NULL));
  CHECK(strcmp(h.text, "u-8") == 0);
  /* The endpoint's refusal. */
  control(server, "auth", "{'mode': 'deny', 'channel': 'private-denied'}");
  CHECK_OK(rt_pusher_subscribe(pusher, "private-denied", NULL));
  send_later(loop, &p);
  TURN_UNTIL(loop, h.failed == 1);
  CHECK(h.http_status == 403 && h.last_status == RT_ERROR_AUTH);
  /* Sent after the connection was freed. */
  CHECK_OK(rt_pusher_subscribe(pusher, "private-late", NULL));
  p.authorization = NULL;
  TURN_UNTIL(loop, p.authorization);
  rt_pusher_channel_free(channel);
  rt_pusher_free(pusher);
  send_on_a_thread(&p);
  settle(loop);
  CHECK(p.sent == 3 && h.failed == 1);
  /* A request that has nowhere to go. */
  pusher = new_pusher(&h, loop, server);
  CHECK_OK(rt_pusher_on_authorize(pusher, on_authorize_later, &p, NULL));
  CHECK_OK(rt_pusher_subscribe(pusher, "private-nowhere", NULL));
  CHECK_OK(rt_pusher_start(pusher));
  send_later(loop, &p);
  TURN_UNTIL(loop, h.failed == 1);
  CHECK(h.http_status == 0 && h.last_status == RT_ERROR_AUTH);
  rt_pusher_free(pusher);
}

static void on_authorize_keep(
    const rt_pusher_auth_request *request, rt_pusher_authorization *authorization, void *user) {
  CHECK(request->count == 1);
  ((prepared *)user)->authorization = authorization;
}

static void request_of_a_freed_connection(void *user) {
  prepared *p = user;
  CHECK_STATUS(rt_pusher_authorization_get_request(p->authorization, &p->http), RT_ERROR_CLOSED);
  rt_pusher_authorization_free(p->authorization);
  p->authorization = NULL;
}

static void a_freed_connection_makes_no_request(rt_loop *loop, const char *server) {
  heard h;
  prepared p = {0};
  rt_pusher *pusher = new_pusher(&h, loop, server);
  CHECK_OK(rt_pusher_on_authorize(pusher, on_authorize_keep, &p, NULL));
  CHECK_OK(rt_pusher_subscribe(pusher, "private-a", NULL));
  CHECK_OK(rt_pusher_start(pusher));
  TURN_UNTIL(loop, p.authorization);
  CHECK_STATUS(rt_pusher_authorization_get_request(p.authorization, &p.http), RT_ERROR_STATE);
  rt_pusher_free(pusher);
  CHECK_OK(rt_loop_post(loop, request_of_a_freed_connection, &p, NULL));
  TURN_UNTIL(loop, !p.authorization);
}

static bool add_parameter(
    const rt_pusher_auth_request *request, rt_rest_request *http, void *user) {
  CHECK_OK(rt_rest_request_add_form_parameter(http, "user_id", user));
  CHECK_STATUS(rt_rest_request_add_form_parameter(http, NULL, ""), RT_ERROR_INVALID_ARGUMENT);
  return request->socket_id[0] != '\0';
}

static void on_signed_in(const rt_pusher_user *signed_in, void *user) {
  note(user, signed_in->user_id, strlen(signed_in->user_id));
}

/* A callback adds parameters to the form: for a channel, and for a user. */
static void parameters_may_change(rt_loop *loop, const char *server) {
  heard h;
  char id[] = "u 1";
  rt_pusher *pusher = new_pusher(&h, loop, server);
  rt_pusher_channel *channel;
  CHECK_OK(rt_pusher_set_auth_endpoint(pusher, endpoint(server, "/pusher/auth")));
  CHECK_OK(rt_pusher_set_user_auth_endpoint(pusher, endpoint(server, "/pusher/user-auth")));
  CHECK_OK(rt_pusher_on_prepare_authorization(pusher, add_parameter, id, NULL));
  CHECK_OK(rt_pusher_start(pusher));
  channel = subscribe(pusher, "presence-a");
  TURN_UNTIL(loop, h.subscribed == 1);
  CHECK_OK(rt_pusher_channel_get_my_id(channel, h.text, sizeof h.text, NULL));
  CHECK(strcmp(h.text, "u 1") == 0);
  id[2] = '2';
  h.text[0] = '\0';
  CHECK_OK(rt_pusher_on_signed_in(pusher, on_signed_in, &h, NULL));
  CHECK_OK(rt_pusher_sign_in(pusher, NULL, NULL, NULL, NULL));
  TURN_UNTIL(loop, h.text[0]);
  CHECK(strcmp(h.text, "u 2") == 0);
  rt_pusher_channel_free(channel);
  rt_pusher_free(pusher);
}

static bool on_user_data(const char **user_id, const char **user_info, void *user) {
  *user_id = "zoe";
  *user_info = "{\"name\":\"Zo\xc3\xab\"}";
  ++*(int *)user;
  return true;
}

static void the_secret_signs(rt_loop *loop, const char *server) {
  heard h;
  int asked = 0;
  rt_pusher *pusher = new_pusher(&h, loop, server);
  rt_pusher_channel *first, *second;
  CHECK_OK(rt_pusher_set_secret(pusher, "demo-secret"));
  first = subscribe(pusher, "private-a");
  second = subscribe(pusher, "presence-b");
  CHECK_OK(rt_pusher_on_user_data(pusher, on_user_data, &asked, NULL));
  CHECK_OK(rt_pusher_start(pusher));
  TURN_UNTIL(loop, h.subscribed == 2);
  CHECK_OK(rt_pusher_channel_get_my_id(second, h.text, sizeof h.text, NULL));
  CHECK(strcmp(h.text, "zoe") == 0 && asked == 1);
  CHECK_OK(rt_pusher_channel_get_my_id(first, h.text, sizeof h.text, NULL));
  CHECK(h.text[0] == '\0');
  rt_pusher_channel_free(first);
  rt_pusher_channel_free(second);
  rt_pusher_free(pusher);
}

static bool no_user_data(const char **user_id, const char **user_info, void *user) {
  (void)user;
  *user_id = "";
  *user_info = "nobody is at home";
  return true;
}

static void on_no_user(const rt_pusher_subscription *subscription, void *user) {
  snprintf((char *)user, 200, "%s", subscription->message);
}

static void without_a_user_it_fails(rt_loop *loop, const char *server) {
  heard h;
  char text[200] = "";
  rt_pusher *pusher = new_pusher(&h, loop, server);
  CHECK_OK(rt_pusher_set_secret(pusher, "demo-secret"));
  CHECK_OK(rt_pusher_on_user_data(pusher, no_user_data, NULL, NULL));
  CHECK_OK(rt_pusher_on_subscription_failed(pusher, on_no_user, text, NULL));
  CHECK_OK(rt_pusher_subscribe(pusher, "presence-b", NULL));
  CHECK_OK(rt_pusher_start(pusher));
  TURN_UNTIL(loop, text[0]);
  CHECK(strcmp(text, "nobody is at home") == 0);
  rt_pusher_free(pusher);
}

static void without_a_method_it_fails(rt_loop *loop, const char *server) {
  heard h;
  rt_pusher *pusher = new_pusher(&h, loop, server);
  CHECK_OK(rt_pusher_subscribe(pusher, "private-a", NULL));
  CHECK_OK(rt_pusher_subscribe_with(pusher, "private-b", "demo:00", NULL, NULL));
  CHECK_OK(rt_pusher_start(pusher));
  TURN_UNTIL(loop, h.failed == 2);
  CHECK(h.subscribed == 0);
  rt_pusher_free(pusher);
}

int main(int argc, char **argv) {
  rt_loop *loop;
  CHECK(argc == 2);
  loop = new_loop();
  answers_are_used(loop, argv[1]);
  answers_come_later(loop, argv[1]);
  a_late_answer_is_ignored(loop, argv[1]);
  several_channels_in_one_request(loop, argv[1]);
  endpoints_are_asked(loop, argv[1]);
  a_request_may_need_time(loop, argv[1]);
  a_freed_connection_makes_no_request(loop, argv[1]);
  parameters_may_change(loop, argv[1]);
  the_secret_signs(loop, argv[1]);
  without_a_user_it_fails(loop, argv[1]);
  without_a_method_it_fails(loop, argv[1]);
  rt_loop_free(loop);
  return 0;
}
