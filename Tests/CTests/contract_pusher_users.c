/* Users of Pusher connections: members of presence channels, client events, encrypted events,
 * sign-in, the watchlist, push interests, and an authorization that never comes. */
#include "contract_pusher.h"

static void on_added(const rt_pusher_member *member, void *user) {
  heard *h = user;
  CHECK(strcmp(member->channel, "presence-room") == 0 && member->channel_number > 0);
  CHECK(member->user_id[member->user_id_length] == '\0');
  note(h, "+", 1);
  note(h, member->user_id, member->user_id_length);
  note(h, member->user_info, member->user_info_length);
  h->added++;
}

static void on_removed(const rt_pusher_member *member, void *user) {
  heard *h = user;
  note(h, "-", 1);
  note(h, member->user_id, member->user_id_length);
  note(h, member->user_info, member->user_info_length);
  h->removed++;
}

static rt_pusher *join(heard *h, rt_loop *loop, const char *server, const char *user_id) {
  rt_pusher *pusher = new_pusher(h, loop, server);
  CHECK_OK(rt_pusher_set_auth_endpoint(pusher, endpoint(server, "/pusher/auth")));
  CHECK_OK(rt_pusher_set_user_auth_endpoint(pusher, endpoint(server, "/pusher/user-auth")));
  CHECK_OK(rt_pusher_set_auth_parameter(pusher, "user_id", user_id));
  CHECK_OK(rt_pusher_set_auth_parameter(pusher, "user_info", "{\"n\":1}"));
  CHECK_OK(rt_pusher_set_auth_parameter(pusher, "watchlist", "[\"bo\"]"));
  CHECK_OK(rt_pusher_on_member_added(pusher, on_added, h, NULL));
  CHECK_OK(rt_pusher_on_member_removed(pusher, on_removed, h, NULL));
  CHECK_OK(rt_pusher_start(pusher));
  return pusher;
}

static void on_typing(const rt_pusher_event *event, void *user) {
  note(user, "!", 1);
  note(user, event->user_id, event->user_id_length);
  note(user, event->data, event->data_length);
}

static void members_come_and_go(rt_loop *loop, const char *server) {
  heard ann, bo;
  rt_pusher *first = join(&ann, loop, server, "ann"), *second;
  rt_pusher_channel *room = subscribe(first, "presence-room"), *other;
  CHECK_OK(rt_pusher_channel_each_member(room, on_added, &ann));
  CHECK(ann.added == 0);
  CHECK_OK(rt_pusher_channel_bind(room, "client-typing", on_typing, &ann, NULL, NULL));
  TURN_UNTIL(loop, ann.subscribed);
  second = join(&bo, loop, server, "bo");
  other = subscribe(second, "presence-room");
  /* Queued until the subscription succeeds. */
  CHECK_OK(rt_pusher_channel_trigger(other, "client-typing", "{\"on\":true}", 11));
  TURN_UNTIL(loop, strchr(ann.text, '!'));
  CHECK(strcmp(ann.text, "+bo{\"n\":1}!bo{\"on\":true}") == 0 && bo.added == 0);
  CHECK_OK(rt_pusher_channel_each_member(room, on_added, &ann));
  CHECK(ann.added == 3);
  CHECK_OK(rt_pusher_channel_find_member(room, "ann", on_added, &bo));
  CHECK(strcmp(bo.text, "+ann{\"n\":1}") == 0);
  CHECK_STATUS(rt_pusher_channel_find_member(room, "cy", on_added, &bo), RT_ERROR_NOT_FOUND);
  ann.text[0] = '\0';
  CHECK_OK(rt_pusher_channel_unsubscribe(other));
  TURN_UNTIL(loop, ann.removed);
  CHECK(strcmp(ann.text, "-bo{\"n\":1}") == 0);
  rt_pusher_channel_free(room);
  rt_pusher_channel_free(other);
  rt_pusher_free(first);
  rt_pusher_free(second);
}

static void client_events_are_checked(rt_loop *loop, const char *server) {
  heard h;
  int i;
  rt_pusher *pusher = join(&h, loop, server, "ann");
  rt_pusher_channel *public = subscribe(pusher, "open"), *private = subscribe(pusher, "private-a"),
                    *encrypted = subscribe(pusher, "private-encrypted-a");
  CHECK_STATUS(rt_pusher_channel_trigger(private, "typing", "1", 1), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_pusher_channel_trigger(private, "client-a", "{", 1), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_pusher_channel_trigger(private, "client-a", NULL, 1), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_pusher_channel_trigger(public, "client-a", "1", 1), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_pusher_channel_trigger(encrypted, "client-a", "1", 1),
               RT_ERROR_INVALID_ARGUMENT);
  TURN_UNTIL(loop, h.subscribed == 3);
  for (i = 0; i < 11; i++) CHECK_OK(rt_pusher_channel_trigger(private, "client-a", "1", 1));
  TURN_UNTIL(loop, h.errors);
  CHECK(h.last_code == 4301 && rt_pusher_get_state(pusher) == RT_STATE_OPEN);
  rt_pusher_channel_free(public);
  rt_pusher_channel_free(private);
  rt_pusher_channel_free(encrypted);
  rt_pusher_free(pusher);
}

static void on_dropped(const rt_pusher_trigger_failure *failure, void *user) {
  heard *h = user;
  CHECK(failure->struct_bytes == sizeof *failure && failure->channel_number == 1);
  CHECK(strcmp(failure->channel, "private-a") == 0 && strcmp(failure->event, "client-b") == 0);
  CHECK(failure->status == RT_ERROR_QUEUE_FULL && failure->message[0] != '\0');
  h->failed++;
}

static void a_full_queue_drops_client_events(rt_loop *loop, const char *server) {
  heard h;
  rt_pusher *pusher = new_pusher(&h, loop, server);
  rt_pusher_channel *channel;
  CHECK_OK(rt_pusher_set_client_event_queue(pusher, 1));
  CHECK_OK(rt_pusher_on_trigger_failed(pusher, on_dropped, &h, NULL));
  channel = subscribe(pusher, "private-a");
  CHECK_OK(rt_pusher_channel_trigger(channel, "client-a", "1", 1));
  CHECK_OK(rt_pusher_channel_trigger(channel, "client-b", "1", 1));
  TURN_UNTIL(loop, h.failed);
  rt_pusher_channel_free(channel);
  rt_pusher_free(pusher);
}

static void on_undecrypted(const rt_pusher_event *event, void *user) {
  heard *h = user;
  CHECK(event->event_length == 3 && memcmp(event->event, "bad", 3) == 0);
  CHECK(strcmp(event->channel, "private-encrypted-a") == 0 && event->channel_number > 0);
  h->undecrypted++;
}

static void encrypted_events_are_opened(rt_loop *loop, const char *server) {
  heard h;
  rt_pusher *pusher = join(&h, loop, server, "ann");
  rt_pusher_channel *channel = subscribe(pusher, "private-encrypted-a");
  CHECK(rt_pusher_channel_get_kind(channel) == RT_PUSHER_CHANNEL_KIND_ENCRYPTED);
  CHECK_OK(rt_pusher_on_decryption_failed(pusher, on_undecrypted, &h, NULL));
  CHECK_OK(rt_pusher_channel_bind(channel, "sec", heard_event, &h, NULL, NULL));
  TURN_UNTIL(loop, h.subscribed);
  control(server, "publish",
          "{'channel': 'private-encrypted-a', 'event': 'sec', 'data': {'note': 'hush'}}");
  TURN_UNTIL(loop, h.text[0]);
  CHECK(strcmp(h.text, "sec={\"note\":\"hush\"};") == 0);
  control(server, "publish",
          "{'channel': 'private-encrypted-a', 'event': 'bad', 'data': 'x', 'encrypt': false}");
  TURN_UNTIL(loop, h.undecrypted == 1);
  rt_pusher_channel_free(channel);
  rt_pusher_free(pusher);
}

static void on_signed_in(const rt_pusher_user *signed_in, void *user) {
  heard *h = user;
  CHECK(strcmp(signed_in->user_id, "ann") == 0 && signed_in->user_data[0] == '{');
  h->signed_in++;
}

static void on_refused(const rt_failure *failure, void *user) {
  heard *h = user;
  CHECK(failure->status < 0 && failure->message[0] != '\0' && !failure->fatal);
  h->http_status = failure->http_status;
  h->refused++;
}

static void on_watchlist(const rt_pusher_watchlist *watchlist, void *user) {
  heard *h = user;
  CHECK(watchlist->user_id_count == 1 && watchlist->user_ids[0].text_length == 2);
  CHECK(strcmp(watchlist->user_ids[0].text, "bo") == 0);
  note(h, watchlist->online ? "on " : "off ", watchlist->online ? 3 : 4);
  h->watched++;
}

static void users_sign_in(rt_loop *loop, const char *server) {
  heard ann, bo;
  uint64_t id;
  char text[16];
  rt_pusher *first = join(&ann, loop, server, "ann"), *second = join(&bo, loop, server, "bo");
  CHECK_OK(rt_pusher_on_signed_in(first, on_signed_in, &ann, NULL));
  CHECK_OK(rt_pusher_on_sign_in_failed(first, on_refused, &ann, NULL));
  CHECK_OK(rt_pusher_on_watchlist(first, on_watchlist, &ann, NULL));
  CHECK_OK(rt_pusher_user_bind(first, "mail", heard_event, &ann, NULL, &id));
  control(server, "auth", "{'mode': 'deny', 'channel': '(user)'}");
  CHECK_OK(rt_pusher_sign_in(first, NULL, NULL, NULL, NULL));
  TURN_UNTIL(loop, ann.refused);
  CHECK(ann.http_status == 403);
  CHECK_OK(rt_pusher_sign_in(first, NULL, NULL, NULL, NULL));
  TURN_UNTIL(loop, ann.signed_in && ann.watched);
  CHECK_OK(rt_pusher_get_user_id(first, text, sizeof text, NULL));
  CHECK(strcmp(text, "ann") == 0);
  CHECK_OK(rt_pusher_sign_in(second, NULL, NULL, NULL, NULL));
  TURN_UNTIL(loop, ann.watched == 2);
  CHECK(strcmp(ann.text, "off on ") == 0);
  ann.text[0] = '\0';
  control(server, "publish",
          "{'channel': '#server-to-user-ann', 'event': 'mail', 'data': {'n':1}}");
  TURN_UNTIL(loop, ann.text[0]);
  CHECK(strcmp(ann.text, "mail={\"n\":1};") == 0);
  CHECK_OK(rt_pusher_user_bind(first, NULL, heard_event, &ann, NULL, NULL));
  CHECK_OK(rt_pusher_user_unbind_all(first));
  CHECK_STATUS(rt_pusher_user_unbind(first, id), RT_ERROR_NOT_FOUND);
  CHECK_OK(rt_pusher_user_bind(first, "mail", heard_event, &ann, NULL, &id));
  CHECK_OK(rt_pusher_user_unbind(first, id));
  disconnect(&ann);
  CHECK_OK(rt_pusher_get_user_id(first, text, sizeof text, NULL));
  CHECK(text[0] == '\0');
  rt_pusher_free(first);
  rt_pusher_free(second);
}

static void on_cancelled(const rt_failure *failure, void *user) {
  heard *h = user;
  CHECK(failure->status == RT_ERROR_CANCELLED && failure->message[0] != '\0' && !failure->fatal);
  h->refused++;
}

static void users_sign_out(rt_loop *loop, const char *server) {
  heard h;
  char text[16];
  rt_pusher *pusher = join(&h, loop, server, "ann");
  CHECK_OK(rt_pusher_on_signed_in(pusher, on_signed_in, &h, NULL));
  CHECK_OK(rt_pusher_on_sign_in_failed(pusher, on_cancelled, &h, NULL));
  CHECK_OK(rt_pusher_user_bind(pusher, NULL, heard_event, &h, NULL, NULL));
  CHECK_OK(rt_pusher_sign_out(pusher));
  CHECK_OK(rt_pusher_sign_in(pusher, NULL, NULL, NULL, NULL));
  CHECK_OK(rt_pusher_sign_out(pusher));
  TURN_UNTIL(loop, h.refused);
  CHECK_OK(rt_pusher_sign_in(pusher, NULL, NULL, NULL, NULL));
  TURN_UNTIL(loop, h.signed_in);
  /* The server answers in order: it has subscribed the user's channel before this one. */
  rt_pusher_channel_free(subscribe(pusher, "first"));
  TURN_UNTIL(loop, h.subscribed == 1);
  CHECK_OK(rt_pusher_sign_out(pusher));
  CHECK_OK(rt_pusher_get_user_id(pusher, text, sizeof text, NULL));
  CHECK(text[0] == '\0');
  rt_pusher_channel_free(subscribe(pusher, "second"));
  TURN_UNTIL(loop, h.subscribed == 2);
  control(server, "wait",
          "{'event': 'pusher:unsubscribe', 'channel': '#server-to-user-ann', 'timeout': 0}");
  /* The next connection signs nobody in. */
  disconnect(&h);
  CHECK_OK(rt_pusher_start(pusher));
  TURN_UNTIL(loop, h.subscribed == 4);
  CHECK(h.text[0] == '\0' && h.signed_in == 1 && h.refused == 1);
  rt_pusher_free(pusher);
}

static void on_push(const rt_pusher_push_result *result, void *user) {
  heard *h = user;
  CHECK(result->struct_bytes == sizeof *result && result->kind == RT_PUSHER_PUSH_REGISTER);
  CHECK(result->status < 0 && result->message[0] != '\0' && result->http_status == 404);
  h->pushes++;
}

static void pushes_need_no_connection(rt_loop *loop, const char *server) {
  heard h;
  rt_pusher *pusher = new_pusher(&h, loop, server);
  CHECK_OK(rt_pusher_set_push_url(pusher, endpoint(server, "/nothing/here")));
  CHECK_OK(rt_pusher_on_push(pusher, on_push, &h, NULL));
  CHECK_OK(rt_pusher_push_subscribe(pusher, "donuts"));
  CHECK_OK(rt_pusher_push_unsubscribe(pusher, "donuts"));
  CHECK_OK(rt_pusher_push_set_subscriptions(pusher, "a\nb"));
  CHECK_STATUS(rt_pusher_push_subscribe(pusher, ""), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_pusher_push_register(pusher, NULL, 0, NULL), RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_pusher_push_register(pusher, (const uint8_t *)"\x01\x02", 2, NULL));
  TURN_UNTIL(loop, h.pushes == 1);
  CHECK(rt_pusher_get_state(pusher) == RT_STATE_IDLE);
  rt_pusher_free(pusher);
}

static void note_refusal(const rt_pusher_subscription *subscription, void *user) {
  heard *h = user;
  note(h, subscription->message, strlen(subscription->message));
  note(h, "body: ", 6);
  note(h, (const char *)subscription->body, subscription->body_length);
  h->failed++;
}

/* Neither in the error nor in the events about it. */
static void a_quoted_signature_is_left_out(rt_loop *loop, const char *server) {
  static const char digits[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
  heard h;
  char settings[200];
  rt_pusher *pusher = new_pusher(&h, loop, server);
  snprintf(settings, sizeof settings, "{'bad_auth': 'error', 'bad_auth_text': 'not demo:%s'}",
           digits);
  control(server, "settings", settings);
  CHECK_OK(rt_pusher_bind(pusher, NULL, heard_event, &h, NULL, NULL));
  CHECK_OK(rt_pusher_on_subscription_failed(pusher, note_refusal, &h, NULL));
  CHECK_OK(rt_pusher_subscribe_with(pusher, "private-a", "demo:00", NULL, NULL));
  CHECK_OK(rt_pusher_start(pusher));
  TURN_UNTIL(loop, h.failed == 1);
  CHECK(strstr(h.text, "pusher:error=") && strstr(h.text, "pusher:subscription_error="));
  CHECK(strstr(h.text, "body: ") && strstr(h.text, "not demo:") && !strstr(h.text, digits));
  rt_pusher_free(pusher);
}

static void on_authorize(
    const rt_pusher_auth_request *request, rt_pusher_authorization *authorization, void *user) {
  CHECK(request->count == 1);
  *(rt_pusher_authorization **)user = authorization;
}

static void an_answer_that_never_comes_is_a_failure(rt_loop *loop, const char *server) {
  heard h;
  rt_pusher_authorization *kept = NULL;
  rt_pusher *pusher = new_pusher(&h, loop, server);
  CHECK_OK(rt_pusher_on_authorize(pusher, on_authorize, &kept, NULL));
  CHECK_OK(rt_pusher_set_auth_timeout_ms(pusher, 1));
  CHECK_OK(rt_pusher_start(pusher));
  CHECK_OK(rt_pusher_subscribe(pusher, "private-a", NULL));
  TURN_UNTIL(loop, h.failed);
  CHECK(kept != NULL && h.last_status == RT_ERROR_TIMEOUT);
  CHECK_OK(rt_pusher_authorization_answer(kept, "demo:00", NULL, NULL));
  rt_pusher_authorization_free(kept);
  settle(loop);
  CHECK(h.failed == 1 && h.subscribed == 0);
  rt_pusher_free(pusher);
}

int main(int argc, char **argv) {
  rt_loop *loop;
  CHECK(argc == 2);
  loop = new_loop();
  members_come_and_go(loop, argv[1]);
  client_events_are_checked(loop, argv[1]);
  a_full_queue_drops_client_events(loop, argv[1]);
  encrypted_events_are_opened(loop, argv[1]);
  users_sign_in(loop, argv[1]);
  users_sign_out(loop, argv[1]);
  pushes_need_no_connection(loop, argv[1]);
  a_quoted_signature_is_left_out(loop, argv[1]);
  an_answer_that_never_comes_is_a_failure(loop, argv[1]);
  rt_loop_free(loop);
  return 0;
}
