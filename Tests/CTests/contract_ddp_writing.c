/* Writes that belong together, what stubs draw, and what a client knows about its attempts. */
#include "contract_ddp.h"

/* Notes index, stage, value and error. */
static void heard_write(const rt_ddp_outcome *outcome, void *user) {
  heard *h = user;
  char line[512];
  snprintf(line, sizeof line, "%d/%d:%s%s%s", (int)outcome->index, (int)outcome->stage,
           outcome->value, outcome->error ? "!" : "", outcome->error ? outcome->error->code : "");
  note(h, line);
  h->completed += outcome->stage == RT_DDP_STAGE_COMPLETED;
}

static void heard_positions(const rt_ddp_index_changes *changes, void *user) {
  note(user, changes->ids);
}

static void writes_of_a_batch_are_one_change(rt_loop *loop, const char *server) {
  heard h;
  uint64_t query;
  rt_ddp_call_options options = {.struct_bytes = sizeof options};
  rt_ddp *ddp = new_ddp(&h, loop, server);
  make_players(server);
  options.stages = 1 << RT_DDP_STAGE_STUB | 1 << RT_DDP_STAGE_COMPLETED;
  CHECK_OK(rt_ddp_declare(ddp, "players", RT_DDP_IDS_STRINGS));
  connect_ddp(&h);
  subscribe(&h, "all");
  CHECK_OK(rt_ddp_observe_indexes(ddp, "players", NULL, "{\"sort\":{\"_id\":1}}", heard_positions,
                                  &h, NULL, &query));
  TURN_UNTIL(loop, h.text[0]);
  CHECK(strcmp(h.text, "[\"a\",\"b\"];") == 0);
  h.text[0] = '\0';
  CHECK_OK(rt_ddp_write(ddp,
                        "[{\"insert\":\"players\",\"document\":{\"_id\":\"c\",\"name\":\"Cid\"}},"
                        "{\"update\":\"players\",\"id\":\"a\",\"modifier\":{\"$set\":{\"name\":"
                        "\"Abe\"}}},{\"remove\":\"players\",\"id\":\"b\"}]",
                        &options, heard_write, &h, heard_destroyed, NULL));
  CHECK(strcmp(h.text, "0/0:\"c\";1/0:1;2/0:1;") == 0);
  h.text[0] = '\0';
  TURN_UNTIL(loop, h.completed == 3 && h.destroyed == 1);
  CHECK(strncmp(h.text, "[\"a\",\"c\"];", 10) == 0);
  CHECK(strstr(h.text, "0/2:\"c\";") && strstr(h.text, "1/2:1;") && strstr(h.text, "2/2:1;"));
  CHECK(strlen(h.text) == strlen("[\"a\",\"c\"];0/2:\"c\";1/2:1;2/2:1;"));
  rt_ddp_free(ddp);
}

/* A program that calls without end, and does not run its loop or has no connection. */
static void calls_that_have_not_ended_are_limited(rt_loop *loop, const char *server) {
  enum { MOST = 65536 };
  heard h;
  uint64_t count;
  rt_ddp *ddp = new_ddp(&h, loop, server);
  for (int i = 0; i < MOST - 1; i++)
    CHECK_OK(rt_ddp_call(ddp, "m", NULL, NULL, NULL, NULL, NULL, NULL));
  CHECK_STATUS(rt_ddp_write(ddp,
                            "[{\"insert\":\"players\",\"document\":{}},"
                            "{\"insert\":\"players\",\"document\":{}}]",
                            NULL, heard_write, &h, heard_destroyed, NULL),
               RT_ERROR_QUEUE_FULL);
  CHECK_OK(rt_ddp_insert(ddp, "players", "{}", NULL, NULL, NULL, NULL, NULL));
  CHECK_STATUS(rt_ddp_insert(ddp, "players", "{}", NULL, NULL, NULL, NULL, NULL),
               RT_ERROR_QUEUE_FULL);
  CHECK_STATUS(rt_ddp_call(ddp, "m", NULL, NULL, heard_write, &h, heard_destroyed, NULL),
               RT_ERROR_QUEUE_FULL);
  CHECK(strstr(rt_last_error(), "65536 calls have not ended"));
  CHECK_STATUS(rt_ddp_log_out(ddp, NULL, NULL, NULL, NULL), RT_ERROR_QUEUE_FULL);
  CHECK_OK(rt_ddp_count(ddp, "players", &count));
  CHECK(count == 1 && h.destroyed == 2 && h.text[0] == '\0');
  rt_ddp_free(ddp);
}

static void faults_of_a_batch_write_nothing(rt_loop *loop, const char *server) {
  heard h;
  uint64_t count;
  rt_ddp *ddp = new_ddp(&h, loop, server);
  CHECK_STATUS(rt_ddp_write(ddp, NULL, NULL, heard_write, &h, heard_destroyed, NULL),
               RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_ddp_write(ddp, "{}", NULL, heard_write, &h, heard_destroyed, NULL),
               RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_ddp_write(ddp,
                            "[{\"insert\":\"players\",\"document\":{}},{\"remove\":\"players\"}]",
                            NULL, heard_write, &h, heard_destroyed, NULL),
               RT_ERROR_INVALID_ARGUMENT);
  CHECK(strstr(rt_last_error(), "writes[1]"));
  CHECK_STATUS(rt_ddp_write(ddp,
                            "[{\"insert\":\"players\",\"document\":{}},{\"insert\":\"players\","
                            "\"document\":[1]}]",
                            NULL, heard_write, &h, heard_destroyed, NULL),
               RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_ddp_write(ddp,
                            "[{\"insert\":\"players\",\"document\":{}},{\"remove\":\"players\","
                            "\"id\":{\"$gt\":\"\"}}]",
                            NULL, heard_write, &h, heard_destroyed, NULL),
               RT_ERROR_INVALID_ARGUMENT);
  /* A selector as an id would reach documents that nobody has named. */
  CHECK_STATUS(rt_ddp_remove(ddp, "players", "{\"$gt\":\"\"}", NULL, NULL, NULL, NULL, NULL),
               RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_ddp_update(ddp, "players", "null", "{\"$set\":{}}", NULL, NULL, NULL, NULL, NULL),
               RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_ddp_update(ddp, "players", "\"a\"", "5", NULL, NULL, NULL, NULL, NULL),
               RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_ddp_count(ddp, "players", &count));
  CHECK(count == 0 && h.destroyed == 5 && h.text[0] == '\0');
  CHECK_OK(rt_ddp_write(ddp, "[]", NULL, heard_write, &h, heard_destroyed, NULL));
  settle(loop);
  CHECK(h.destroyed == 6 && h.text[0] == '\0');
  rt_ddp_free(ddp);
}

static void drawing_stub(rt_ddp_stub *stub, const char *params, size_t length, void *user) {
  char text[64];
  size_t whole;
  double fraction = -1;
  (void)params, (void)length;
  CHECK(rt_ddp_stub_is_simulation(stub) == 1);
  CHECK(rt_ddp_stub_is_simulation(NULL) == RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_ddp_stub_draw_text(stub, NULL, RT_DDP_RANDOM_ID, 0, text, sizeof text, &whole));
  CHECK(whole == 17 && strlen(text) == 17);
  CHECK_OK(rt_ddp_stub_draw_text(stub, NULL, RT_DDP_RANDOM_HEX, 0, text, sizeof text, NULL));
  CHECK(strlen(text) == 24 && strspn(text, "0123456789abcdef") == 24);
  CHECK_OK(rt_ddp_stub_draw_text(stub, "mine", RT_DDP_RANDOM_SECRET, 0, text, sizeof text, NULL));
  CHECK(strlen(text) == 43);
  CHECK_OK(rt_ddp_stub_draw_text(stub, "mine", RT_DDP_RANDOM_HEX, 5, text, 4, &whole));
  CHECK(whole == 5 && strlen(text) == 3);
  CHECK_STATUS(rt_ddp_stub_draw_text(stub, "mine", 3, 0, text, sizeof text, NULL),
               RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_ddp_stub_draw_text(stub, "mine", 0, 1 << 20, text, sizeof text, NULL),
               RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_ddp_stub_draw_fraction(stub, NULL, &fraction));
  CHECK(fraction >= 0 && fraction < 1);
  CHECK_OK(rt_ddp_write(((heard *)user)->ddp,
                        "[{\"insert\":\"players\",\"document\":{\"_id\":\"z\"}}]", NULL, NULL, NULL,
                        NULL, NULL));
  CHECK_OK(rt_ddp_stub_find(stub, "players", "\"z\"", NULL, heard_document, user));
}

/* The server's method draws the same: its insert meets the stub's. */
static void stubs_draw_and_write(rt_loop *loop, const char *server) {
  heard h;
  rt_ddp *ddp = new_ddp(&h, loop, server);
  control(server, "method", "{'name': 'draw', 'ops': []}");
  CHECK_OK(rt_ddp_declare(ddp, "players", RT_DDP_IDS_STRINGS));
  CHECK_OK(rt_ddp_set_stub(ddp, "draw", drawing_stub, &h, NULL));
  connect_ddp(&h);
  CHECK_OK(rt_ddp_call(ddp, "draw", NULL, NULL, heard_outcome, &h, NULL, NULL));
  CHECK(strcmp(h.text, "{\"_id\":\"z\"};") == 0);
  TURN_UNTIL(loop, h.completed == 1);
  rt_ddp_free(ddp);
}

static void endless_stub(rt_ddp_stub *stub, const char *params, size_t length, void *user) {
  heard *h = user;
  (void)params, (void)length;
  h->ready++;
  CHECK_STATUS(rt_ddp_stub_call(stub, "endless", NULL, NULL, NULL), RT_ERROR_METHOD);
  h->stopped += strstr(rt_last_error(), "more than 50 stubs") != NULL;
  CHECK_OK(rt_ddp_stub_fail(stub, "endless", "no", NULL));
}

static void stubs_inside_each_other_end(rt_loop *loop, const char *server) {
  heard h;
  rt_ddp_call_options options = {.struct_bytes = sizeof options, .throw_stub_errors = true};
  rt_ddp *ddp = new_ddp(&h, loop, server);
  CHECK_OK(rt_ddp_set_stub(ddp, "endless", endless_stub, &h, NULL));
  CHECK_STATUS(rt_ddp_call(ddp, "endless", NULL, &options, NULL, NULL, NULL, NULL),
               RT_ERROR_METHOD);
  CHECK(h.ready == 50 && h.stopped == 1);
  rt_ddp_free(ddp);
}

static void attempts_are_described(rt_loop *loop) {
  heard h;
  char reason[128];
  int64_t delay = 0;
  rt_backoff *backoff;
  rt_ddp *ddp = new_ddp(&h, loop, "http://127.0.0.1:1");
  CHECK_OK(rt_backoff_new(&backoff));
  CHECK_OK(rt_backoff_set_initial_delay_ms(backoff, 60000));
  CHECK_OK(rt_backoff_set_max_delay_ms(backoff, 60000));
  CHECK_OK(rt_backoff_set_jitter(backoff, RT_JITTER_NONE));
  CHECK_OK(rt_ddp_set_backoff(ddp, backoff));
  CHECK_OK(rt_ddp_add_version(ddp, "pre2"));
  CHECK_STATUS(rt_ddp_add_version(ddp, "pre2"), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_ddp_add_version(ddp, "2"), RT_ERROR_INVALID_ARGUMENT);
  CHECK(strstr(rt_last_error(), "version \"2\" of DDP does not exist"));
  CHECK_OK(rt_ddp_get_retry_in_ms(ddp, &delay));
  CHECK(delay == -1);
  CHECK_OK(rt_ddp_start(ddp));
  TURN_UNTIL(loop, rt_ddp_get_status(ddp) == RT_DDP_WAITING);
  CHECK_OK(rt_ddp_get_retry_in_ms(ddp, &delay));
  CHECK(delay > 1000 && rt_ddp_get_retry_count(ddp) == 1);
  CHECK_OK(rt_ddp_get_reason(ddp, reason, sizeof reason, NULL));
  CHECK(reason[0] == '\0');
  rt_ddp_free(ddp);
  ddp = new_ddp(&h, loop, "http://127.0.0.1:1");
  CHECK_OK(rt_ddp_set_auto_reconnect(ddp, false));
  CHECK_OK(rt_ddp_start(ddp));
  TURN_UNTIL(loop, rt_ddp_get_status(ddp) == RT_DDP_FAILED);
  CHECK_OK(rt_ddp_get_reason(ddp, reason, sizeof reason, NULL));
  CHECK(strstr(reason, "127.0.0.1"));
  rt_ddp_free(ddp);
  rt_backoff_free(backoff);
}

/* Ends the reports of a change while its first document is reported. */
typedef struct ending {
  enum { FREES, REMOVES, STOPS } how;
  rt_ddp *ddp;
  uint64_t query;
  int calls;
} ending;

static void end_reports(const rt_ddp_change *change, void *user) {
  ending *e = user;
  CHECK(!change->last);
  e->calls++;
  if (e->how == FREES) rt_ddp_free(e->ddp);
  if (e->how == REMOVES) CHECK_OK(rt_ddp_on_change(e->ddp, NULL, NULL, NULL));
  if (e->how == STOPS) CHECK_OK(rt_ddp_stop_observing(e->ddp, e->query));
}

static void write_three(rt_ddp *ddp) {
  CHECK_OK(rt_ddp_write(ddp,
                        "[{\"insert\":\"tasks\",\"document\":{}},"
                        "{\"insert\":\"tasks\",\"document\":{}},"
                        "{\"insert\":\"tasks\",\"document\":{}}]",
                        NULL, NULL, NULL, NULL, NULL));
}

static void callbacks_end_their_own_reports(rt_loop *loop, const char *server) {
  ending e;
  int how, observes, first;
  for (how = FREES; how <= STOPS; how++) {
    for (observes = how == STOPS; observes <= (how != REMOVES); observes++) {
      for (first = 0; first <= observes; first++) {
        memset(&e, 0, sizeof e);
        e.how = how;
        CHECK_OK(rt_ddp_new(loop, server, &e.ddp));
        if (first) write_three(e.ddp);
        if (observes) {
          CHECK_OK(rt_ddp_observe(e.ddp, "tasks", NULL, NULL, end_reports, &e, NULL, &e.query));
        } else {
          CHECK_OK(rt_ddp_on_change(e.ddp, end_reports, &e, NULL));
        }
        if (!first) write_three(e.ddp);
        TURN_UNTIL(loop, e.calls);
        settle(loop);
        CHECK(e.calls == 1);
        if (how != FREES) rt_ddp_free(e.ddp);
      }
    }
  }
}

static void write_in_stub(rt_ddp_stub *stub, const char *params, size_t length, void *user) {
  heard *h = user;
  (void)params, (void)length;
  CHECK_OK(rt_ddp_insert(h->ddp, "fresh", "{\"_id\":\"a\"}", NULL, NULL, NULL, NULL, NULL));
  CHECK_OK(rt_ddp_write(h->ddp, "[{\"insert\":\"new\",\"document\":{\"_id\":\"b\"}}]", NULL, NULL,
                        NULL, NULL, NULL));
  CHECK_OK(rt_ddp_update(h->ddp, "new", "\"b\"", "{\"$set\":{\"n\":1}}", NULL, NULL, NULL, NULL,
                         NULL));
  CHECK_OK(rt_ddp_stub_return(stub, "1"));
}

/* Nobody has declared the collections. */
static void stubs_write_to_any_collection(rt_loop *loop, const char *server) {
  heard h;
  rt_ddp *ddp = new_ddp(&h, loop, server);
  CHECK_OK(rt_ddp_set_stub(ddp, "fill", write_in_stub, &h, NULL));
  CHECK_OK(rt_ddp_call(ddp, "fill", NULL, NULL, NULL, NULL, NULL, NULL));
  CHECK_OK(rt_ddp_find(ddp, "fresh", NULL, NULL, heard_document, &h));
  CHECK_OK(rt_ddp_find(ddp, "new", NULL, NULL, heard_document, &h));
  CHECK(strcmp(h.text, "{\"_id\":\"a\"};{\"_id\":\"b\",\"n\":1};") == 0);
  rt_ddp_free(ddp);
}

static void documents_are_checked(rt_loop *loop, const char *server) {
  const char *wrong[] = {"[]", "5", "{\"_id\":5}", "{\"$a\":5}"};
  size_t each;
  heard h;
  rt_ddp *ddp = new_ddp(&h, loop, server);
  for (each = 0; each < sizeof wrong / sizeof *wrong; each++)
    CHECK_STATUS(rt_ddp_insert(ddp, "tasks", wrong[each], NULL, NULL, NULL, NULL, NULL),
                 RT_ERROR_INVALID_ARGUMENT);
  rt_ddp_free(ddp);
}

int main(int argc, char **argv) {
  rt_loop *loop;
  CHECK(argc == 2);
  loop = new_loop();
  writes_of_a_batch_are_one_change(loop, argv[1]);
  faults_of_a_batch_write_nothing(loop, argv[1]);
  calls_that_have_not_ended_are_limited(loop, argv[1]);
  stubs_draw_and_write(loop, argv[1]);
  stubs_inside_each_other_end(loop, argv[1]);
  attempts_are_described(loop);
  callbacks_end_their_own_reports(loop, argv[1]);
  stubs_write_to_any_collection(loop, argv[1]);
  documents_are_checked(loop, argv[1]);
  rt_loop_free(loop);
  return 0;
}
