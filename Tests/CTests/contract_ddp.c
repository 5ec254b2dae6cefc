/* Meteor clients: states, documents, live queries, calls with stubs, and which arguments and
 * options are refused. */
#include "contract_ddp.h"

/* The server hears the last call, and the end, though the client and its loop are freed without
 * another turn. This is the first test: no other client has disconnected. */
static void the_server_hears_the_end(const char *server) {
  heard h;
  rt_loop *loop = new_loop();
  rt_ddp *ddp = new_ddp(&h, loop, server);
  CHECK_OK(rt_ddp_start(ddp));
  TURN_UNTIL(loop, h.connected == 1);
  CHECK_OK(rt_ddp_call(ddp, "last", NULL, NULL, NULL, NULL, NULL, NULL));
  rt_ddp_free(ddp);
  rt_loop_free(loop);
  control(server, "wait", "{'what': 'in', 'msg': 'method', 'name': 'last'}");
  control(server, "wait", "{'what': 'in', 'msg': 'disconnect'}");
}

static void connects_and_disconnects(rt_loop *loop, const char *server) {
  heard h;
  char text[32];
  size_t length;
  rt_ddp *ddp = new_ddp(&h, loop, server);
  CHECK(rt_ddp_get_status(ddp) == RT_DDP_OFFLINE && rt_ddp_get_retry_count(ddp) == 0);
  CHECK(rt_ddp_get_state(ddp) == RT_STATE_IDLE);
  CHECK_OK(rt_ddp_start(ddp));
  CHECK(h.statuses[0] == '\0');
  TURN_UNTIL(loop, h.connected == 1);
  CHECK(rt_ddp_get_state(ddp) == RT_STATE_OPEN);
  CHECK_OK(rt_ddp_get_version(ddp, text, sizeof text, &length));
  CHECK(strcmp(text, "1") == 0 && length == 1);
  CHECK_STATUS(rt_ddp_set_compression(ddp, true), RT_ERROR_STATE);
  CHECK_OK(rt_ddp_network_changed(ddp, true));
  CHECK_OK(rt_ddp_retry_now(ddp));
  CHECK_OK(rt_ddp_enter_background(ddp));
  CHECK_OK(rt_ddp_enter_foreground(ddp));
  CHECK_OK(rt_ddp_restart(ddp));
  TURN_UNTIL(loop, h.connected == 2);
  CHECK_OK(rt_ddp_close(ddp));
  TURN_UNTIL(loop, rt_ddp_get_status(ddp) == RT_DDP_OFFLINE);
  CHECK(rt_ddp_get_state(ddp) == RT_STATE_CLOSED);
  settle(loop);
  CHECK(strcmp(h.statuses, "12120") == 0 && h.last_status == RT_OK);
  rt_ddp_free(ddp);
}

static void heard_positions(const rt_ddp_index_changes *changes, void *user) {
  char line[256];
  CHECK(changes->struct_bytes == sizeof *changes);
  CHECK(strlen(changes->ids) == changes->ids_length);
  snprintf(line, sizeof line, "%s-%zu+%zu>%zu*%zu%s", changes->initial ? "+" : "",
           changes->deleted_count, changes->inserted_count, changes->moved_count,
           changes->updated_count, changes->ids);
  if (changes->inserted_count == 2) CHECK(changes->inserted[0] == 0 && changes->inserted[1] == 1);
  if (changes->updated_count == 1) CHECK(changes->updated[0].new_index == 0);
  note(user, line);
}

static void documents_follow_the_server(rt_loop *loop, const char *server) {
  heard h;
  uint64_t all, live, positions, count;
  rt_ddp *ddp = new_ddp(&h, loop, server);
  make_players(server);
  connect_ddp(&h);
  all = subscribe(&h, "all");
  CHECK_OK(rt_ddp_count(ddp, "players", &count));
  CHECK(count == 2);
  CHECK_OK(rt_ddp_get_document(ddp, "players", "\"a\"", heard_document, &h));
  CHECK_STATUS(rt_ddp_get_document(ddp, "players", "\"z\"", heard_document, &h),
               RT_ERROR_NOT_FOUND);
  CHECK(strcmp(rt_last_error(), "\"players\" has no document with the id \"z\"") == 0);
  CHECK_STATUS(rt_ddp_get_document(ddp, "players", "5", heard_document, &h), RT_ERROR_NOT_FOUND);
  CHECK(strcmp(rt_last_error(), "\"players\" has no document with the id 5") == 0);
  CHECK_OK(rt_ddp_find(ddp, "players", "{\"name\":{\"$gt\":\"A\"}}",
                       "{\"sort\":{\"name\":-1},\"fields\":{\"_id\":0}}", heard_document, &h));
  CHECK(strcmp(h.text, "{\"_id\":\"a\",\"name\":\"Ada\"};{\"name\":\"Bob\"};{\"name\":\"Ada\"};") ==
        0);
  h.text[0] = '\0';
  CHECK_OK(rt_ddp_observe(ddp, "players", NULL, "{\"sort\":{\"name\":1}}", heard_change, &h,
                          heard_destroyed, &live));
  CHECK(h.text[0] == '\0');
  TURN_UNTIL(loop, h.text[0]);
  CHECK(strcmp(h.text, "+0\"a\"{\"name\":\"Ada\"}[];+0\"b\"{\"name\":\"Bob\"}[].;") == 0);
  h.text[0] = '\0';
  control(server, "update",
          "{'collection': 'players', 'id': 'a', 'modifier': {'$set': {'name': 'Cleo'}}}");
  TURN_UNTIL(loop, h.text[0]);
  CHECK(strcmp(h.text, "3\"b\"{}[]\"a\";1\"a\"{\"name\":\"Cleo\"}[].;") == 0);
  CHECK_OK(rt_ddp_stop_observing(ddp, live));
  CHECK(h.destroyed == 1);
  h.text[0] = '\0';
  CHECK_OK(rt_ddp_observe_indexes(ddp, "players", "{}", NULL, heard_positions, &h,
                                  heard_destroyed, &positions));
  TURN_UNTIL(loop, h.text[0]);
  CHECK(strcmp(h.text, "+-0+2>0*0[\"a\",\"b\"];") == 0);
  h.text[0] = '\0';
  CHECK_OK(rt_ddp_on_change(ddp, heard_change, &h, heard_destroyed));
  control(server, "update",
          "{'collection': 'players', 'id': 'a', 'modifier': {'$unset': {'name': 1}}}");
  TURN_UNTIL(loop, strchr(h.text, '*'));
  CHECK(strcmp(h.text, "1\"a\"{}[\"name\"].;-0+0>0*1[\"a\",\"b\"];") == 0);
  CHECK_OK(rt_ddp_release_subscription(ddp, all));
  CHECK(rt_ddp_is_ready(ddp, all) == 0);
  rt_ddp_free(ddp);
  settle(loop);
  CHECK(h.destroyed == 3);
}

/* Changes by positions that wait together are reported as one. */
static void positions_are_merged(rt_loop *loop, const char *server) {
  heard h;
  uint64_t positions;
  rt_ddp *ddp = new_ddp(&h, loop, server);
  CHECK_OK(rt_ddp_observe_indexes(ddp, "own", "{}", NULL, heard_positions, &h, NULL, &positions));
  CHECK_OK(rt_ddp_insert(ddp, "own", "{\"_id\":\"a\"}", NULL, NULL, NULL, NULL, NULL));
  CHECK_OK(rt_ddp_insert(ddp, "own", "{\"_id\":\"b\"}", NULL, NULL, NULL, NULL, NULL));
  CHECK_OK(rt_ddp_remove(ddp, "own", "\"a\"", NULL, NULL, NULL, NULL, NULL));
  CHECK_OK(rt_ddp_insert(ddp, "own", "{\"_id\":\"c\"}", NULL, NULL, NULL, NULL, NULL));
  TURN_UNTIL(loop, strchr(h.text, 'c'));
  CHECK(strcmp(h.text, "+-0+0>0*0[];-0+2>0*0[\"b\",\"c\"];") == 0);
  rt_ddp_free(ddp);
  settle(loop);
}

static void heard_opened(const rt_opened *opened, void *user) {
  CHECK(opened->struct_bytes == sizeof *opened && opened->remote_address[0]);
  CHECK(opened->http_status == 101);
  ((heard *)user)->lines++;
}

/* Each message about a stream is delivered as it came, and nothing is kept. */
static void streams_deliver_each_message(rt_loop *loop, const char *server) {
  heard h;
  uint64_t count;
  int sent;
  rt_ddp *ddp = new_ddp(&h, loop, server);
  CHECK_STATUS(rt_ddp_get_opened(ddp, heard_opened, &h), RT_ERROR_NOT_FOUND);
  CHECK_STATUS(rt_ddp_set_stream(ddp, NULL, heard_change, &h, NULL), RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_ddp_set_stream(ddp, "players", heard_change, &h, heard_destroyed));
  connect_ddp(&h);
  h.lines = 0;
  CHECK_OK(rt_ddp_get_opened(ddp, heard_opened, &h));
  CHECK(h.lines == 1);
  for (sent = 0; sent < 2; sent++)
    control(server, "send",
            "{'text': '{\\\"msg\\\":\\\"changed\\\",\\\"collection\\\":\\\"players\\\","
            "\\\"id\\\":\\\"id\\\",\\\"fields\\\":{\\\"n\\\":1},\\\"cleared\\\":[\\\"m\\\"]}'}");
  TURN_UNTIL(loop, strlen(h.text) > 30);
  CHECK(strcmp(h.text, "1\"id\"{\"n\":1}[\"m\"].;1\"id\"{\"n\":1}[\"m\"].;") == 0);
  CHECK_OK(rt_ddp_count(ddp, "players", &count));
  CHECK(count == 0);
  CHECK_OK(rt_ddp_set_stream(ddp, "players", NULL, NULL, NULL));
  CHECK(h.destroyed == 1);
  CHECK_OK(rt_ddp_set_stream(ddp, "players", heard_change, &h, heard_destroyed));
  rt_ddp_free(ddp);
  settle(loop);
  CHECK(h.destroyed == 2);
}

static void subscriptions_are_refused_and_loaded(rt_loop *loop, const char *server) {
  heard h;
  uint64_t number;
  rt_ddp *ddp = new_ddp(&h, loop, server);
  make_players(server);
  connect_ddp(&h);
  CHECK_OK(rt_ddp_subscribe(ddp, "none", "[1]", 0, heard_subscription, &h, NULL, &number, NULL));
  TURN_UNTIL(loop, h.stopped == 1);
  CHECK(strcmp(h.text, "404;") == 0 && h.ready == 0);
  number = subscribe(&h, "all");
  CHECK_OK(rt_ddp_stop_subscription(ddp, number));
  rt_ddp_free(ddp);
}

static void loaded(const rt_ddp_error *error, void *user) {
  note(user, error ? error->code : "loaded");
}

static void loaders_wait_for_all(rt_loop *loop, const char *server) {
  heard h;
  uint64_t number;
  rt_ddp *ddp = new_ddp(&h, loop, server);
  make_players(server);
  connect_ddp(&h);
  CHECK_OK(rt_ddp_load(ddp, "[[\"all\"],[\"all\",1]]", loaded, &h, heard_destroyed, &number, NULL));
  TURN_UNTIL(loop, h.text[0]);
  CHECK(strcmp(h.text, "loaded;") == 0);
  CHECK_OK(rt_ddp_close_loader(ddp, number));
  CHECK_STATUS(rt_ddp_load(ddp, "[\"all\"]", loaded, &h, heard_destroyed, &number, NULL),
               RT_ERROR_INVALID_ARGUMENT);
  h.text[0] = '\0';
  CHECK_OK(rt_ddp_load(ddp, NULL, loaded, &h, heard_destroyed, &number, NULL));
  CHECK(h.text[0] == '\0');
  TURN_UNTIL(loop, h.text[0]);
  CHECK(strcmp(h.text, "loaded;") == 0);
  settle(loop);
  CHECK(h.destroyed == 3);
  rt_ddp_free(ddp);
}

/* Renames the document that the call names, by another stub. */
static void rename_stub(rt_ddp_stub *stub, const char *params, size_t length, void *user) {
  uint64_t count = 7;
  char id[32];
  double fraction = -1;
  CHECK(strlen(params) == length && strcmp(params, "[\"a\",\"Cleo\"]") == 0);
  CHECK_OK(rt_ddp_stub_update(stub, "players", "\"a\"", "{\"$set\":{\"name\":\"Cleo\"}}", false,
                              &count));
  CHECK(count == 1);
  CHECK_OK(rt_ddp_stub_insert(stub, "players", "{\"name\":\"Eve\"}", heard_document, user));
  CHECK_OK(rt_ddp_stub_remove(stub, "players", "{\"name\":\"Bob\"}", &count));
  CHECK(count == 1);
  CHECK_OK(rt_ddp_stub_find(stub, "players", "{\"name\":\"Cleo\"}", NULL, heard_document, user));
  CHECK_OK(rt_ddp_stub_call(stub, "inner", NULL, heard_outcome, user));
  CHECK_STATUS(rt_ddp_stub_call(stub, "broken", "[]", heard_outcome, user), RT_ERROR_METHOD);
  CHECK_OK(rt_ddp_stub_draw_text(stub, "mine", RT_DDP_RANDOM_ID, 0, id, sizeof id, NULL));
  CHECK(strlen(id) == 17);
  CHECK_OK(rt_ddp_stub_draw_fraction(stub, "mine", &fraction));
  CHECK(fraction >= 0 && fraction < 1);
  CHECK_OK(rt_ddp_stub_get_user_id(stub, id, sizeof id, NULL));
  CHECK(strcmp(id, "me") == 0);
  CHECK_STATUS(rt_ddp_log_out(((heard *)user)->ddp, NULL, NULL, NULL, NULL), RT_ERROR_REENTRANT);
  CHECK_OK(rt_ddp_stub_return(stub, "\"renamed\""));
}

static void inner_stub(rt_ddp_stub *stub, const char *params, size_t length, void *user) {
  (void)user;
  CHECK(strcmp(params, "[]") == 0 && length == 2);
  CHECK_STATUS(rt_ddp_stub_return(stub, "{"), RT_ERROR_PROTOCOL);
  CHECK_OK(rt_ddp_stub_return(stub, "{\"$date\":5}"));
}

static void broken_stub(rt_ddp_stub *stub, const char *params, size_t length, void *user) {
  (void)params, (void)length, (void)user;
  CHECK_OK(rt_ddp_stub_fail(stub, "no", "It is broken.", "[1]"));
}

static void stubs_run_before_the_call_returns(rt_loop *loop, const char *server) {
  heard h;
  rt_ddp_call_options options = {.struct_bytes = sizeof options};
  rt_ddp *ddp = new_ddp(&h, loop, server);
  make_players(server);
  control(server, "method",
          "{'name': 'rename', 'ops': [{'op': 'update', 'collection': 'players', 'id': 'a', "
          "'modifier': {'$set': {'name': 'Cleo'}}}, {'op': 'return', 'value': 5}]}");
  CHECK_OK(rt_ddp_set_stub(ddp, "rename", rename_stub, &h, heard_destroyed));
  CHECK_OK(rt_ddp_set_stub(ddp, "inner", inner_stub, NULL, NULL));
  CHECK_OK(rt_ddp_set_stub(ddp, "broken", broken_stub, NULL, NULL));
  CHECK_OK(rt_ddp_set_user_id(ddp, "me"));
  connect_ddp(&h);
  subscribe(&h, "all");
  options.stages = 1 << (RT_DDP_STAGE_COMPLETED + 1);
  CHECK_STATUS(
      rt_ddp_call(ddp, "rename", "[\"a\",\"Cleo\"]", &options, heard_outcome, &h, NULL, NULL),
      RT_ERROR_INVALID_ARGUMENT);
  options.stages = 1 << RT_DDP_STAGE_STUB | 1 << RT_DDP_STAGE_RESULT | 1 << RT_DDP_STAGE_COMPLETED;
  CHECK_OK(rt_ddp_call(ddp, "rename", "[\"a\",\"Cleo\"]", &options, heard_outcome, &h, NULL, NULL));
  CHECK(strncmp(h.text, "{\"_id\":\"", 8) == 0 && strstr(h.text, "\"name\":\"Eve\"};"));
  CHECK(strstr(h.text, ";{\"_id\":\"a\",\"name\":\"Cleo\"};0:{\"$date\":5};0:null!no;"
                       "0:\"renamed\";"));
  h.text[0] = '\0';
  TURN_UNTIL(loop, h.completed == 1);
  CHECK(strcmp(h.text, "1:5;2:5;") == 0);
  h.text[0] = '\0';
  CHECK_OK(rt_ddp_find(ddp, "players", "{}", "{\"fields\":{\"_id\":0}}", heard_document, &h));
  CHECK(strcmp(h.text, "{\"name\":\"Cleo\"};{\"name\":\"Bob\"};") == 0);
  h.text[0] = '\0';
  options.throw_stub_errors = true;
  CHECK_STATUS(rt_ddp_call(ddp, "broken", NULL, &options, heard_outcome, &h, NULL, NULL),
               RT_ERROR_METHOD);
  CHECK(strcmp(h.text, "0:null!no;") == 0 && strstr(rt_last_error(), "It is broken."));
  CHECK_OK(rt_ddp_set_stub(ddp, "rename", NULL, NULL, NULL));
  CHECK(h.destroyed == 1);
  rt_ddp_free(ddp);
}

static void writes_are_local_and_remote(rt_loop *loop, const char *server) {
  heard h;
  rt_ddp_call_options options = {.struct_bytes = sizeof options};
  rt_ddp *ddp = new_ddp(&h, loop, server);
  make_players(server);
  options.stages = 1 << RT_DDP_STAGE_STUB;
  options.wait = options.no_retry = true;
  options.timeout_ms = 60000;
  CHECK_OK(rt_ddp_declare(ddp, "players", RT_DDP_IDS_STRINGS));
  connect_ddp(&h);
  subscribe(&h, "all");
  CHECK_OK(rt_ddp_insert(ddp, "players", "{\"_id\":\"c\",\"name\":\"Cid\"}", &options,
                         heard_outcome, &h, NULL, NULL));
  CHECK_OK(rt_ddp_update(ddp, "players", "\"c\"", "{\"$set\":{\"name\":\"Coy\"}}", &options,
                         heard_outcome, &h, NULL, NULL));
  CHECK_OK(rt_ddp_remove(ddp, "players", "\"b\"", NULL, heard_outcome, &h, heard_destroyed, NULL));
  CHECK(strcmp(h.text, "0:\"c\";0:1;") == 0);
  TURN_UNTIL(loop, h.completed == 1 && h.destroyed == 1);
  h.text[0] = '\0';
  CHECK_OK(rt_ddp_find(ddp, "players", NULL, "{\"sort\":{\"_id\":1}}", heard_document, &h));
  CHECK(strcmp(h.text, "{\"_id\":\"a\",\"name\":\"Ada\"};{\"_id\":\"c\",\"name\":\"Coy\"};") == 0);
  rt_ddp_free(ddp);
}

/* Two calls for each connection; nothing else is sent before the second is done. */
static void heard_open(void *user) {
  heard *h = user;
  rt_ddp_call_options options = {.struct_bytes = sizeof options, .wait = true};
  CHECK_OK(rt_ddp_call(h->ddp, "echo", "[\"a\"]", NULL, heard_outcome, h, NULL, NULL));
  CHECK_OK(rt_ddp_call(h->ddp, "echo", "[\"b\"]", &options, heard_outcome, h, NULL, NULL));
}

static void calls_of_an_open_connection_go_first(rt_loop *loop, const char *server) {
  heard h;
  rt_ddp *ddp = new_ddp(&h, loop, server);
  control(server, "method",
          "{'name': 'echo', 'ops': [{'op': 'return', 'value': {'$param': 0}}]}");
  CHECK_STATUS(rt_ddp_on_open(NULL, heard_open, &h, heard_destroyed), RT_ERROR_INVALID_ARGUMENT);
  CHECK(h.destroyed == 1);
  CHECK_OK(rt_ddp_on_open(ddp, heard_open, &h, heard_destroyed));
  CHECK_OK(rt_ddp_call(ddp, "echo", "[\"c\"]", NULL, heard_outcome, &h, NULL, NULL));
  connect_ddp(&h);
  TURN_UNTIL(loop, h.completed == 3);
  CHECK(strcmp(h.text, "2:\"a\";2:\"b\";2:\"c\";") == 0);
  CHECK_OK(rt_ddp_restart(ddp));
  TURN_UNTIL(loop, h.completed == 5);
  CHECK_OK(rt_ddp_on_open(ddp, NULL, NULL, NULL));
  settle(loop);
  CHECK(h.destroyed == 2);
  h.connected = 0;
  CHECK_OK(rt_ddp_restart(ddp));
  TURN_UNTIL(loop, h.connected == 1);
  CHECK(h.completed == 5);
  rt_ddp_free(ddp);
}

static void refused(
    const char *reason, size_t reason_length, const char *offending, size_t offending_length,
    void *user) {
  CHECK(reason_length > 0 && reason[reason_length] == '\0');
  CHECK(offending_length == 0 && offending[0] == '\0');
  note(user, "refused");
}

static void refusals_are_reported(rt_loop *loop, const char *server) {
  heard h;
  rt_ddp *ddp = new_ddp(&h, loop, server);
  CHECK_OK(rt_ddp_on_refused(ddp, refused, &h, NULL));
  connect_ddp(&h);
  control(server, "send", "{'text': '{\\'msg\\':\\'error\\',\\'reason\\':\\'no\\'}'}");
  TURN_UNTIL(loop, h.text[0]);
  CHECK(strcmp(h.text, "refused;") == 0 && h.lines == 1);
  control(server, "send", "{'text': 'garbage'}");
  TURN_UNTIL(loop, h.lines == 2);
  rt_ddp_free(ddp);
}

static void set_options_of_calls(rt_ddp *ddp) {
  CHECK_OK(rt_ddp_set_max_call_repeats(ddp, 3));
  CHECK_OK(rt_ddp_add_no_retry_method(ddp, "pay"));
  CHECK_STATUS(rt_ddp_add_no_retry_method(ddp, ""), RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_ddp_set_async_methods(ddp, true));
  CHECK_OK(rt_ddp_set_report_own_stops(ddp, true));
}

static void options_are_checked(rt_loop *loop) {
  heard h = {0};
  rt_network *network;
  rt_backoff *backoff;
  rt_ddp_call_options options = {0};
  char deep[401] = "";
  uint64_t number;
  rt_ddp *ddp;
  CHECK_STATUS(rt_ddp_new(loop, "ftp://localhost", &ddp), RT_ERROR_UNSUPPORTED_SCHEME);
  CHECK_STATUS(rt_ddp_new(loop, NULL, &ddp), RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_ddp_new(loop, "localhost:3000", &ddp));
  CHECK_OK(rt_network_new(&network));
  CHECK_OK(rt_ddp_set_network(ddp, network));
  CHECK_OK(rt_backoff_new(&backoff));
  CHECK_OK(rt_ddp_set_backoff(ddp, backoff));
  CHECK_OK(rt_ddp_set_reachability(ddp, NULL));
  CHECK_OK(rt_ddp_add_header(ddp, "X-A", "1"));
  CHECK_OK(rt_ddp_set_header(ddp, "X-B", "1"));
  CHECK_STATUS(rt_ddp_set_header(ddp, "Sec-WebSocket-Key", "1"), RT_ERROR_INVALID_HEADER);
  CHECK_OK(rt_ddp_clear_headers(ddp));
  CHECK_OK(rt_ddp_set_basic_auth(ddp, "ada", "pass"));
  CHECK_OK(rt_ddp_set_bearer_token(ddp, "token"));
  CHECK_OK(rt_ddp_set_max_redirects(ddp, 2));
  CHECK_OK(rt_ddp_set_allow_insecure_redirects(ddp, true));
  CHECK_OK(rt_ddp_add_safe_header(ddp, "X-A"));
  CHECK_OK(rt_ddp_add_redirect_origin(ddp, "wss://b.example.org"));
  CHECK_OK(rt_ddp_set_compression(ddp, false));
  CHECK_OK(rt_ddp_set_http2(ddp, false));
  CHECK_OK(rt_ddp_set_sockjs_fallback(ddp, false));
  CHECK_OK(rt_ddp_set_max_message_bytes(ddp, 0));
  CHECK_OK(rt_ddp_set_max_unsent_bytes(ddp, 1));
  CHECK_STATUS(rt_ddp_set_max_unsent_bytes(ddp, 0), RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_ddp_set_token_file(ddp, "/dev/null"));
  CHECK_OK(rt_ddp_set_connect_timeout_ms(ddp, 1000));
  CHECK_STATUS(rt_ddp_set_connect_timeout_ms(ddp, -1), RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_ddp_set_auto_reconnect(ddp, false));
  CHECK_OK(rt_ddp_set_heartbeat_interval_ms(ddp, 0));
  CHECK_OK(rt_ddp_set_heartbeat_timeout_ms(ddp, 1000));
  CHECK_OK(rt_ddp_set_buffer_interval_ms(ddp, 0));
  CHECK_OK(rt_ddp_set_buffer_max_age_ms(ddp, 100));
  CHECK_OK(rt_ddp_set_quiescence_limit_ms(ddp, 0));
  set_options_of_calls(ddp);
  CHECK_OK(rt_ddp_set_unused_subscription_time_ms(ddp, 0));
  CHECK_OK(rt_ddp_set_background_grace_ms(ddp, 0));
  CHECK_OK(rt_ddp_set_max_document_bytes(ddp, 1 << 20));
  CHECK_STATUS(rt_ddp_declare(ddp, "players", 2), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_ddp_find(ddp, "players", "{\"a\":{\"$no\":1}}", NULL, heard_document, &h),
               RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_ddp_find(ddp, "players", "{", NULL, heard_document, &h), RT_ERROR_PROTOCOL);
  memset(deep, '[', 200);
  memset(deep + 200, ']', 200);
  CHECK_STATUS(rt_ddp_call(ddp, "m", deep, NULL, NULL, NULL, NULL, NULL), RT_ERROR_PROTOCOL);
  CHECK(strstr(rt_last_error(), "nested deeper than 128"));
  CHECK_STATUS(rt_ddp_call(ddp, "m", "{}", NULL, NULL, &h, heard_destroyed, NULL),
               RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_ddp_call(ddp, "m", NULL, &options, NULL, &h, heard_destroyed, NULL),
               RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_ddp_subscribe(ddp, "s", NULL, -2, NULL, &h, heard_destroyed, &number, NULL),
               RT_ERROR_INVALID_ARGUMENT);
  CHECK(h.destroyed == 3);
  CHECK_STATUS(rt_ddp_start(ddp), RT_ERROR_STORE);
  CHECK_OK(rt_ddp_stop_observing(ddp, 99));
  rt_network_free(network);
  rt_backoff_free(backoff);
  rt_ddp_free(ddp);
  rt_ddp_free(NULL);
  CHECK_STATUS(rt_ddp_get_status(NULL), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_ddp_stub_return(NULL, "1"), RT_ERROR_INVALID_ARGUMENT);
}

int main(int argc, char **argv) {
  rt_loop *loop;
  CHECK(argc == 2);
  the_server_hears_the_end(argv[1]);
  loop = new_loop();
  connects_and_disconnects(loop, argv[1]);
  documents_follow_the_server(loop, argv[1]);
  positions_are_merged(loop, argv[1]);
  streams_deliver_each_message(loop, argv[1]);
  subscriptions_are_refused_and_loaded(loop, argv[1]);
  loaders_wait_for_all(loop, argv[1]);
  stubs_run_before_the_call_returns(loop, argv[1]);
  writes_are_local_and_remote(loop, argv[1]);
  calls_of_an_open_connection_go_first(loop, argv[1]);
  refusals_are_reported(loop, argv[1]);
  options_are_checked(loop);
  rt_loop_free(loop);
  return 0;
}
