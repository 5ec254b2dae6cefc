/* Any callback of a Pusher connection may free the connection. Afterwards no callback begins, and
 * each destroy function has run once. */
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "contract_pusher.h"

enum moment {
  STATE, SUBSCRIBED, GLOBAL, BOUND, EVENTS, ADDED, AUTHORIZE, PREPARE, USER_DATA, SIGNED_IN, DEBUG,
  LATER, MOMENTS
};

typedef struct scene {
  rt_pusher *pusher;
  rt_pusher_channel *channel;
  enum moment moment;
  /* Which line of the log frees it. */
  int line;
  int subscribed, signed_in, freed, after, destroyed;
} scene;

static void happen(scene *s, enum moment moment) {
  if (s->freed) s->after++;
  if (moment != s->moment || s->freed) return;
  s->freed = 1;
  rt_pusher_free(s->pusher);
}

static void on_state(const rt_pusher_state_change *change, void *user) {
  if (change->new_state == RT_STATE_OPEN) happen(user, STATE);
  CHECK(change->message[0] == '\0' && change->close_reason[0] == '\0');
}

static void on_subscribed(const rt_pusher_subscription *subscription, void *user) {
  ((scene *)user)->subscribed++;
  happen(user, SUBSCRIBED);
  CHECK(strncmp(subscription->channel, "presence-", 9) == 0);
}

static void on_global(const rt_pusher_event *event, void *user) {
  happen(user, GLOBAL);
  CHECK(memcmp(event->event, "pusher", 6) == 0);
}

static void on_bound(const rt_pusher_event *event, void *user) {
  happen(user, BOUND);
  CHECK(memcmp(event->event, "pusher", 6) == 0);
}

static void on_events(
    const uint8_t *base, const rt_pusher_record *events, size_t count, void *user) {
  happen(user, EVENTS);
  CHECK(count > 0 && memcmp(base + events[0].event_offset, "pusher", 6) == 0);
}

static void on_added(const rt_pusher_member *member, void *user) {
  happen(user, ADDED);
  CHECK(member->user_id_length > 0);
}

static void on_authorize(
    const rt_pusher_auth_request *request, rt_pusher_authorization *authorization, void *user) {
  happen(user, AUTHORIZE);
  CHECK(request->socket_id[0] != '\0');
  rt_pusher_authorization_free(authorization);
}

static bool on_prepare(const rt_pusher_auth_request *request, rt_rest_request *http, void *user) {
  happen(user, PREPARE);
  CHECK(request->socket_id[0] != '\0');
  CHECK_OK(rt_rest_request_set_header(http, "X-A", "b"));
  return true;
}

static bool on_user_data(const char **user_id, const char **user_info, void *user) {
  happen(user, USER_DATA);
  *user_id = "me";
  return *user_info == NULL;
}

static void on_signed_in(const rt_pusher_user *signed_in, void *user) {
  ((scene *)user)->signed_in++;
  happen(user, SIGNED_IN);
  CHECK(signed_in->user_id_length > 0);
}

static void on_debug(const char *line, void *user) {
  if (((scene *)user)->line-- == 0) happen(user, DEBUG);
  CHECK(line[0] == '[');
}

static void gone(void *user) { ((scene *)user)->destroyed++; }

static int set_up(scene *s, rt_loop *loop, const char *server) {
  heard unused;
  int setters = 9;
  rt_pusher *pusher = s->pusher = new_pusher(&unused, loop, server);
  CHECK_OK(rt_pusher_on_error(pusher, NULL, NULL, NULL));
  CHECK_OK(rt_pusher_on_subscription_failed(pusher, NULL, NULL, NULL));
  CHECK_OK(rt_pusher_on_subscription_count(pusher, NULL, NULL, NULL));
  CHECK_OK(rt_pusher_on_state(pusher, on_state, s, gone));
  CHECK_OK(rt_pusher_on_subscribed(pusher, on_subscribed, s, gone));
  CHECK_OK(rt_pusher_on_member_added(pusher, on_added, s, gone));
  CHECK_OK(rt_pusher_on_signed_in(pusher, on_signed_in, s, gone));
  CHECK_OK(rt_pusher_on_debug(pusher, on_debug, s, gone));
  CHECK_OK(rt_pusher_on_events(pusher, on_events, s, gone));
  CHECK_OK(rt_pusher_bind(pusher, NULL, on_global, s, gone, NULL));
  CHECK_OK(rt_pusher_user_bind(pusher, NULL, on_global, s, gone, NULL));
  if (s->moment == AUTHORIZE) {
    CHECK_OK(rt_pusher_on_authorize(pusher, on_authorize, s, gone));
    setters++;
  } else if (s->moment == USER_DATA) {
    CHECK_OK(rt_pusher_set_secret(pusher, "demo-secret"));
    CHECK_OK(rt_pusher_on_user_data(pusher, on_user_data, s, gone));
    setters++;
  } else {
    CHECK_OK(rt_pusher_set_auth_endpoint(pusher, endpoint(server, "/pusher/auth")));
    CHECK_OK(rt_pusher_set_user_auth_endpoint(pusher, endpoint(server, "/pusher/user-auth")));
    CHECK_OK(rt_pusher_on_prepare_authorization(pusher, on_prepare, s, gone));
    setters++;
  }
  s->channel = subscribe(pusher, "presence-a");
  CHECK_OK(rt_pusher_channel_bind(s->channel, "pusher:subscription_succeeded", on_bound, s, gone,
                                  NULL));
  CHECK_OK(rt_pusher_sign_in(pusher, NULL, NULL, NULL, NULL));
  return setters;
}

static void play(rt_loop *loop, const char *server, enum moment moment, int line) {
  scene s = {.moment = moment, .line = line};
  heard other;
  rt_pusher *guest = NULL;
  int setters = set_up(&s, loop, server);
  CHECK_OK(rt_pusher_start(s.pusher));
  if (moment == ADDED) {
    /* Another member comes once this one is there. */
    control(server, "wait_connections", "{'count': 0}");
    TURN_UNTIL(loop, rt_pusher_channel_get_state(s.channel) == RT_PUSHER_CHANNEL_SUBSCRIBED);
    guest = new_pusher(&other, loop, server);
    CHECK_OK(rt_pusher_set_secret(guest, "demo-secret"));
    CHECK_OK(rt_pusher_subscribe(guest, "presence-a", NULL));
    CHECK_OK(rt_pusher_start(guest));
  }
  if (moment == LATER || moment == DEBUG) {
    /* There may be fewer lines. */
    TURN_UNTIL(loop, s.freed || (s.subscribed && s.signed_in));
    if (!s.freed) happen(&s, moment);
  }
  TURN_UNTIL(loop, s.freed);
  settle(loop);
  CHECK(s.after == 0);
  if (s.destroyed != setters) printf("%d %d: %d of %d\n", moment, line, s.destroyed, setters);
  CHECK(s.destroyed == setters);
  CHECK(rt_pusher_channel_get_state(s.channel) == RT_PUSHER_CHANNEL_UNSUBSCRIBED);
  CHECK_STATUS(rt_pusher_channel_trigger(s.channel, "client-a", "1", 1), RT_ERROR_STATE);
  CHECK_STATUS(rt_pusher_channel_bind(s.channel, NULL, on_bound, &s, gone, NULL), RT_ERROR_STATE);
  CHECK(s.destroyed == setters + 1);
  rt_pusher_channel_free(s.channel);
  rt_pusher_free(guest);
}

/* The loop is freed while a connection and an unanswered authorization are left. */
static void keep(
    const rt_pusher_auth_request *request, rt_pusher_authorization *authorization, void *user) {
  CHECK(!request->is_user);
  *(rt_pusher_authorization **)user = authorization;
}

static void nobody_comes(const rt_pusher_watchlist *watchlist, void *user) {
  (void)watchlist, (void)user;
  CHECK(false);
}

static void the_loop_may_go_first(const char *server) {
  heard h;
  rt_pusher_authorization *kept = NULL;
  rt_loop *loop = new_loop();
  rt_pusher *pusher = new_pusher(&h, loop, server);
  rt_pusher_channel *channel = subscribe(pusher, "private-a");
  CHECK_OK(rt_pusher_on_authorize(pusher, keep, &kept, NULL));
  CHECK_OK(rt_pusher_start(pusher));
  TURN_UNTIL(loop, kept);
  rt_loop_free(loop);
  CHECK_OK(rt_pusher_authorization_answer(kept, "demo:00", NULL, NULL));
  CHECK_STATUS(rt_pusher_start(pusher), RT_ERROR_CLOSED);
  CHECK(rt_pusher_get_state(pusher) == RT_STATE_CLOSED);
  rt_pusher_free(pusher);
  rt_pusher_authorization_free(kept);
  rt_pusher_channel_free(channel);
}

static void count_safely(void *user) { atomic_fetch_add((atomic_int *)user, 1); }

static void wait_for(void *user) { CHECK(sem_wait(user) == 0); }

/* The loop ends before it has begun the connection. */
static void the_loop_may_be_busy(const char *server) {
  heard h;
  sem_t busy;
  atomic_int destroyed = 0;
  int64_t end_ms = now_ms() + PATIENCE_MS;
  rt_loop *loop = new_loop();
  rt_pusher *pusher = new_pusher(&h, loop, server);
  CHECK(sem_init(&busy, 0, 0) == 0);
  CHECK_OK(rt_pusher_bind(pusher, NULL, on_bound, &destroyed, count_safely, NULL));
  CHECK_OK(rt_pusher_on_signed_in(pusher, NULL, &destroyed, count_safely));
  CHECK_OK(rt_pusher_on_watchlist(pusher, nobody_comes, &destroyed, count_safely));
  CHECK_OK(rt_loop_start(loop));
  CHECK_OK(rt_loop_post(loop, wait_for, &busy, NULL));
  CHECK_OK(rt_pusher_subscribe(pusher, "a", NULL));
  rt_loop_free(loop);
  CHECK(sem_post(&busy) == 0);
  rt_pusher_free(pusher);
  while (atomic_load(&destroyed) != 3) CHECK(now_ms() < end_ms && usleep(1000) == 0);
}

/* The child's copies of the handles are of no use, and do not disturb the parent's. */
static void a_fork_leaves_it_alone(const char *server) {
  heard h;
  rt_pusher_authorization *kept = NULL;
  rt_loop *loop = new_loop();
  rt_pusher *pusher = new_pusher(&h, loop, server);
  rt_pusher_channel *channel = subscribe(pusher, "private-a");
  int status = -1;
  pid_t pid;
  CHECK_OK(rt_pusher_on_authorize(pusher, keep, &kept, NULL));
  CHECK_OK(rt_pusher_start(pusher));
  TURN_UNTIL(loop, kept);
  fflush(stdout);
  pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    CHECK_STATUS(rt_pusher_start(pusher), RT_ERROR_FORKED);
    CHECK_STATUS(rt_pusher_close(pusher), RT_ERROR_FORKED);
    CHECK_STATUS(rt_pusher_subscribe(pusher, "b", NULL), RT_ERROR_FORKED);
    CHECK_STATUS(rt_pusher_sign_in(pusher, NULL, NULL, NULL, NULL), RT_ERROR_FORKED);
    CHECK_STATUS(rt_pusher_sign_out(pusher), RT_ERROR_FORKED);
    CHECK_STATUS(rt_pusher_unbind_all(pusher), RT_ERROR_FORKED);
    CHECK_STATUS(rt_pusher_get_state(pusher), RT_ERROR_FORKED);
    CHECK_STATUS(rt_pusher_get_reconnect_attempts(pusher), RT_ERROR_FORKED);
    CHECK_STATUS(rt_pusher_push_subscribe(pusher, "a"), RT_ERROR_FORKED);
    CHECK_STATUS(rt_pusher_on_push(pusher, NULL, NULL, NULL), RT_ERROR_FORKED);
    CHECK_STATUS(rt_pusher_authorization_answer(kept, "a", NULL, NULL), RT_ERROR_FORKED);
    CHECK_STATUS(rt_pusher_authorization_answer_json(kept, "{}", 2), RT_ERROR_FORKED);
    CHECK_STATUS(rt_pusher_authorization_fail(kept, NULL), RT_ERROR_FORKED);
    CHECK_STATUS(rt_pusher_channel_unbind_all(channel), RT_ERROR_FORKED);
    CHECK_STATUS(rt_pusher_channel_get_state(channel), RT_ERROR_FORKED);
    CHECK_STATUS(rt_pusher_bind(pusher, NULL, on_bound, NULL, NULL, NULL), RT_ERROR_FORKED);
    CHECK_STATUS(rt_pusher_channel_bind(channel, NULL, on_bound, NULL, NULL, NULL),
                 RT_ERROR_FORKED);
    CHECK_STATUS(rt_pusher_channel_trigger(channel, "client-a", "1", 1), RT_ERROR_FORKED);
    CHECK_STATUS(rt_pusher_channel_unsubscribe(channel), RT_ERROR_FORKED);
    rt_pusher_authorization_free(kept);
    rt_pusher_channel_free(channel);
    rt_pusher_free(pusher);
    rt_loop_free(loop);
    _exit(0);
  }
  CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  CHECK_OK(rt_pusher_authorization_fail(kept, NULL));
  TURN_UNTIL(loop, h.failed);
  CHECK(rt_pusher_get_state(pusher) == RT_STATE_OPEN);
  rt_pusher_authorization_free(kept);
  rt_pusher_channel_free(channel);
  rt_pusher_free(pusher);
  rt_loop_free(loop);
}

int main(int argc, char **argv) {
  rt_loop *loop;
  int moment, line;
  CHECK(argc == 2);
  loop = new_loop();
  for (moment = 0; moment < MOMENTS; moment++) play(loop, argv[1], (enum moment)moment, 0);
  for (line = 1; line < 12; line++) play(loop, argv[1], DEBUG, line);
  the_loop_may_go_first(argv[1]);
  the_loop_may_be_busy(argv[1]);
  a_fork_leaves_it_alone(argv[1]);
  rt_loop_free(loop);
  return 0;
}
