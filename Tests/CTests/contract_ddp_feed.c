/* Feeds of Meteor clients: what a batch contains, what waits, when the callback runs, and what ends
 * a feed. */
#include <pthread.h>

#include "contract_ddp.h"

enum { ALL_PARTS = RT_DDP_FEED_DOCUMENTS + RT_DDP_FEED_OLD_DOCUMENTS + RT_DDP_FEED_FIELDS };

static const char *const by_name = "{\"sort\":{\"name\":1}}";

static rt_ddp *new_client(rt_loop *loop, const char *server) {
  rt_ddp *ddp = NULL;
  CHECK_OK(rt_ddp_new(loop, server, &ddp));
  CHECK_OK(rt_ddp_declare(ddp, "players", RT_DDP_IDS_STRINGS));
  return ddp;
}

static rt_ddp_feed *new_feed(rt_ddp *ddp, const char *options, rt_ddp_feed_parts parts) {
  rt_ddp_feed *feed = NULL;
  CHECK_OK(rt_ddp_feed_new(ddp, "players", NULL, options, parts, &feed));
  CHECK(feed != NULL);
  return feed;
}

/* Changes of the local documents need no server. */
static void insert(rt_ddp *ddp, const char *document) {
  CHECK_OK(rt_ddp_insert(ddp, "players", document, NULL, NULL, NULL, NULL, NULL));
}

static void update(rt_ddp *ddp, const char *id, const char *modifier) {
  CHECK_OK(rt_ddp_update(ddp, "players", id, modifier, NULL, NULL, NULL, NULL, NULL));
}

static void erase(rt_ddp *ddp, const char *id) {
  CHECK_OK(rt_ddp_remove(ddp, "players", id, NULL, NULL, NULL, NULL, NULL));
}

static void check_text(const char *text, size_t length) { CHECK(strlen(text) == length); }

/* The batch as text: each change by its id, positions, flags, documents, fields and successor. */
static void expect_batch(rt_ddp_batch *batch, bool initial, size_t count, const char *expected) {
  char text[2048] = "";
  size_t index;
  CHECK(batch->struct_bytes == sizeof *batch && batch->initial == initial);
  CHECK(batch->document_count == count);
  for (index = 0; index < batch->change_count; index++) {
    const rt_ddp_feed_change *change = &batch->changes[index];
    size_t used = strlen(text);
    check_text(change->id, change->id_length);
    check_text(change->document, change->document_length);
    check_text(change->old_document, change->old_document_length);
    check_text(change->fields, change->fields_length);
    check_text(change->cleared, change->cleared_length);
    check_text(change->before, change->before_length);
    snprintf(text + used, sizeof text - used, "%s %d>%d%s%s%s|%s|%s%s|%s;", change->id,
             (int)change->old_index, (int)change->new_index, change->moved ? "m" : "",
             change->changed ? "c" : "", change->document, change->old_document, change->fields,
             change->cleared, change->before);
  }
  if (strcmp(text, expected) != 0) printf("%s instead of %s\n", text, expected);
  CHECK(strcmp(text, expected) == 0);
  rt_ddp_batch_free(batch);
}

/* What can be taken at once. */
static rt_ddp_batch *taken(rt_ddp_feed *feed) {
  rt_ddp_batch *batch = NULL;
  CHECK_OK(rt_ddp_feed_receive(feed, 0, &batch));
  return batch;
}

static void expect_nothing(rt_ddp_feed *feed) {
  rt_ddp_batch *batch = NULL;
  CHECK_STATUS(rt_ddp_feed_receive(feed, 0, &batch), RT_ERROR_TIMEOUT);
  CHECK(batch == NULL && strstr(rt_last_error(), "\"players\""));
}

static void batches_say_what_has_changed(rt_loop *loop, const char *server) {
  rt_ddp *ddp = new_client(loop, server);
  rt_ddp_feed *feed, *places, *chosen;
  insert(ddp, "{\"_id\":\"a\",\"name\":\"Ada\",\"n\":1}");
  insert(ddp, "{\"_id\":\"b\",\"name\":\"Bob\"}");
  settle(loop);
  feed = new_feed(ddp, by_name, ALL_PARTS);
  places = new_feed(ddp, by_name, 0);
  chosen = new_feed(ddp, "{\"fields\":{\"n\":1,\"_id\":0}}", RT_DDP_FEED_DOCUMENTS);
  /* The present result can be taken before the loop turns. */
  expect_batch(taken(feed), true, 2,
               "\"a\" -1>0{\"_id\":\"a\",\"name\":\"Ada\",\"n\":1}||{\"name\":\"Ada\",\"n\":1}[]|;"
               "\"b\" -1>1{\"_id\":\"b\",\"name\":\"Bob\"}||{\"name\":\"Bob\"}[]|;");
  expect_batch(taken(places), true, 2, "\"a\" -1>0|||;\"b\" -1>1|||;");
  expect_batch(taken(chosen), true, 2, "\"a\" -1>0{\"n\":1}|||;\"b\" -1>1{}|||;");
  expect_nothing(feed);
  update(ddp, "\"a\"", "{\"$set\":{\"name\":\"Cleo\"},\"$unset\":{\"n\":1}}");
  settle(loop);
  expect_batch(taken(feed), false, 2,
               "\"b\" 1>0m|||\"a\";"
               "\"a\" 0>1c{\"_id\":\"a\",\"name\":\"Cleo\"}|"
               "{\"_id\":\"a\",\"name\":\"Ada\",\"n\":1}|{\"name\":\"Cleo\"}[\"n\"]|;");
  expect_batch(taken(places), false, 2, "\"b\" 1>0m|||\"a\";\"a\" 0>1c|||;");
  expect_batch(taken(chosen), false, 2, "\"a\" 0>0c{}|||;");
  erase(ddp, "\"b\"");
  settle(loop);
  expect_batch(taken(feed), false, 1, "\"b\" 0>-1|{\"_id\":\"b\",\"name\":\"Bob\"}||;");
  expect_nothing(feed);
  rt_ddp_feed_free(feed);
  rt_ddp_feed_free(places);
  rt_ddp_feed_free(chosen);
  rt_ddp_feed_free(NULL);
  rt_ddp_batch_free(NULL);
  rt_ddp_free(ddp);
}

/* A reader that falls behind takes the difference between what it knows and what is there. */
static void what_waits_is_one_batch(rt_loop *loop, const char *server) {
  char modifier[64];
  int number;
  rt_ddp *ddp = new_client(loop, server);
  rt_ddp_feed *feed = new_feed(ddp, NULL, RT_DDP_FEED_FIELDS), *late;
  expect_batch(taken(feed), true, 0, "");
  insert(ddp, "{\"_id\":\"a\",\"n\":0}");
  insert(ddp, "{\"_id\":\"b\"}");
  settle(loop);
  expect_batch(taken(feed), false, 2, "\"a\" -1>0||{\"n\":0}[]|;\"b\" -1>1||{}[]|;");
  late = new_feed(ddp, NULL, RT_DDP_FEED_FIELDS);
  for (number = 1; number <= 3000; number++) {
    snprintf(modifier, sizeof modifier, "{\"$set\":{\"n\":%d}}", number);
    update(ddp, "\"a\"", modifier);
  }
  insert(ddp, "{\"_id\":\"c\"}");
  erase(ddp, "\"c\"");
  settle(loop);
  expect_batch(taken(feed), false, 2, "\"a\" 0>0c||{\"n\":3000}[]|;");
  expect_batch(taken(late), true, 2, "\"a\" -1>0||{\"n\":3000}[]|;\"b\" -1>1||{}[]|;");
  update(ddp, "\"a\"", "{\"$set\":{\"n\":1}}");
  update(ddp, "\"a\"", "{\"$set\":{\"n\":3000}}");
  settle(loop);
  expect_nothing(feed);
  rt_ddp_feed_free(feed);
  rt_ddp_feed_free(late);
  rt_ddp_free(ddp);
}

typedef struct listener {
  rt_ddp_feed *feed;
  rt_ddp_batch *batch;
  int called, destroyed;
  bool takes;
} listener;

static void heard_news(void *user) {
  listener *l = user;
  rt_ddp_batch *batch = NULL;
  l->called++;
  if (!l->takes) return;
  CHECK_OK(rt_ddp_feed_receive(l->feed, 0, &batch));
  rt_ddp_batch_free(l->batch);
  l->batch = batch;
  CHECK_STATUS(rt_ddp_feed_receive(l->feed, -1, &batch), RT_ERROR_REENTRANT);
  CHECK_STATUS(rt_ddp_feed_receive(l->feed, 0, &batch), RT_ERROR_TIMEOUT);
}

static void listener_destroyed(void *user) { ((listener *)user)->destroyed++; }

/* The callback runs when something can be taken and could not before. */
static void the_callback_is_called_once_for_a_batch(rt_loop *loop, const char *server) {
  listener l = {0};
  rt_ddp *ddp = new_client(loop, server);
  l.feed = new_feed(ddp, NULL, 0);
  CHECK_OK(rt_ddp_feed_on_change(l.feed, heard_news, &l, listener_destroyed));
  CHECK(l.called == 0);
  settle(loop);
  CHECK(l.called == 1);
  insert(ddp, "{\"_id\":\"a\"}");
  settle(loop);
  CHECK(l.called == 1);
  expect_batch(taken(l.feed), true, 1, "\"a\" -1>0|||;");
  settle(loop);
  CHECK(l.called == 1);
  /* So is one that is set just before a change. */
  CHECK_OK(rt_ddp_feed_on_change(l.feed, heard_news, &l, listener_destroyed));
  CHECK(l.destroyed == 1);
  insert(ddp, "{\"_id\":\"b\"}");
  settle(loop);
  CHECK(l.called == 2);
  expect_batch(taken(l.feed), false, 2, "\"b\" -1>1|||;");
  l.takes = true;
  erase(ddp, "\"a\"");
  settle(loop);
  CHECK(l.called == 3);
  expect_batch(l.batch, false, 1, "\"a\" 0>-1|||;");
  l.batch = NULL;
  CHECK_OK(rt_ddp_feed_on_change(l.feed, NULL, NULL, NULL));
  CHECK(l.destroyed == 2);
  erase(ddp, "\"b\"");
  settle(loop);
  CHECK(l.called == 3);
  CHECK_OK(rt_ddp_feed_on_change(l.feed, heard_news, &l, listener_destroyed));
  rt_ddp_feed_free(l.feed);
  CHECK(l.destroyed == 3);
  settle(loop);
  CHECK(l.called == 3);
  rt_ddp_free(ddp);
}

/* A thread waits for what the server sends. */
static void threads_wait_for_the_server(rt_loop *loop, const char *server) {
  uint64_t all = 0;
  rt_ddp_batch *batch = NULL;
  rt_call *call = NULL;
  rt_ddp *ddp = new_client(loop, server);
  rt_ddp_feed *feed = new_feed(ddp, NULL, RT_DDP_FEED_DOCUMENTS);
  make_players(server);
  expect_batch(taken(feed), true, 0, "");
  CHECK_STATUS(rt_ddp_feed_receive(feed, 5, &batch), RT_ERROR_TIMEOUT);
  CHECK(batch == NULL);
  CHECK_OK(rt_ddp_connect(ddp, PATIENCE_MS));
  CHECK_OK(rt_ddp_subscribe(ddp, "all", NULL, -1, NULL, NULL, NULL, &all, &call));
  CHECK_OK(rt_call_wait(call, PATIENCE_MS));
  rt_call_free(call);
  CHECK_OK(rt_ddp_feed_receive(feed, PATIENCE_MS, &batch));
  expect_batch(batch, false, 2,
               "\"a\" -1>0{\"_id\":\"a\",\"name\":\"Ada\"}|||;"
               "\"b\" -1>1{\"_id\":\"b\",\"name\":\"Bob\"}|||;");
  control(server, "remove", "{'collection': 'players', 'id': 'a'}");
  CHECK_OK(rt_ddp_feed_receive(feed, -1, &batch));
  expect_batch(batch, false, 1, "\"a\" 0>-1|||;");
  rt_ddp_feed_free(feed);
  rt_ddp_free(ddp);
}

static void *receive_without_limit(void *feed) {
  rt_ddp_batch *batch = NULL;
  CHECK_STATUS(rt_ddp_feed_receive(feed, -1, &batch), RT_ERROR_CLOSED);
  CHECK(batch == NULL && strstr(rt_last_error(), "\"players\""));
  return NULL;
}

/* The end of the feed, of its client or of its loop ends a wait, whenever that begins. */
static void ends_end_waits(const char *server) {
  pthread_t thread;
  rt_loop *loop = new_loop();
  rt_ddp *ddp = new_client(NULL, server);
  rt_ddp_feed *feed = new_feed(ddp, NULL, 0);
  expect_batch(taken(feed), true, 0, "");
  CHECK(pthread_create(&thread, NULL, receive_without_limit, feed) == 0);
  rt_ddp_free(ddp);
  CHECK(pthread_join(thread, NULL) == 0);
  receive_without_limit(feed);
  rt_ddp_feed_free(feed);
  CHECK_OK(rt_loop_start(loop));
  ddp = new_client(loop, server);
  feed = new_feed(ddp, NULL, 0);
  expect_batch(taken(feed), true, 0, "");
  CHECK(pthread_create(&thread, NULL, receive_without_limit, feed) == 0);
  rt_loop_free(loop);
  CHECK(pthread_join(thread, NULL) == 0);
  rt_ddp_feed_free(feed);
  CHECK_STATUS(rt_ddp_feed_new(ddp, "players", NULL, NULL, 0, &feed), RT_ERROR_CLOSED);
  rt_ddp_free(ddp);
}

static void free_feed_in_callback(void *user) {
  listener *l = user;
  l->called++;
  rt_ddp_feed_free(l->feed);
  l->feed = NULL;
}

static void feeds_may_be_freed_in_their_callback(rt_loop *loop, const char *server) {
  listener l = {0};
  rt_ddp *ddp = new_client(loop, server);
  l.feed = new_feed(ddp, NULL, 0);
  CHECK_OK(rt_ddp_feed_on_change(l.feed, free_feed_in_callback, &l, listener_destroyed));
  settle(loop);
  CHECK(l.called == 1 && l.destroyed == 1 && l.feed == NULL);
  insert(ddp, "{\"_id\":\"a\"}");
  settle(loop);
  CHECK(l.called == 1);
  rt_ddp_free(ddp);
}

/* What waited when the client was freed can still be taken. */
static void feeds_outlive_their_client(rt_loop *loop, const char *server) {
  listener l = {0};
  rt_ddp_batch *batch = NULL;
  rt_ddp *ddp = new_client(loop, server);
  l.feed = new_feed(ddp, NULL, 0);
  CHECK_OK(rt_ddp_feed_on_change(l.feed, heard_news, &l, listener_destroyed));
  rt_ddp_free(ddp);
  settle(loop);
  CHECK(l.called == 0 && l.destroyed == 1);
  CHECK_STATUS(rt_ddp_feed_on_change(l.feed, heard_news, &l, listener_destroyed), RT_ERROR_CLOSED);
  CHECK(l.destroyed == 2);
  expect_batch(taken(l.feed), true, 0, "");
  CHECK_STATUS(rt_ddp_feed_receive(l.feed, 0, &batch), RT_ERROR_CLOSED);
  CHECK(batch == NULL);
  rt_ddp_feed_free(l.feed);
}

typedef struct query_ends {
  int count;
  uint64_t first;
  int changes;
} query_ends;

static void heard_query_end(const rt_ddp_query_end *end, void *user) {
  query_ends *ends = user;
  CHECK(end->struct_bytes == sizeof *end && end->status == RT_ERROR_INVALID_ARGUMENT);
  CHECK(strcmp(end->collection, "players") == 0 && end->collection_length == 7);
  CHECK(strstr(end->message, "steps"));
  if (ends->count++ == 0) ends->first = end->query;
}

static void count_change(const rt_ddp_change *change, void *user) {
  (void)change;
  ((query_ends *)user)->changes++;
}

/* Documents that have changed together are too much for a regular expression: the query ends, and
 * not the client. */
static void queries_end_by_themselves(rt_loop *loop, const char *server) {
  enum { COUNT = 8, LENGTH = 300000 };
  static const char selector[] = "{\"name\":{\"$regex\":\"(x+x+)+y\"}}";
  static char writes[COUNT * (LENGTH + 100)];
  size_t used = 0, each;
  query_ends ends = {0};
  listener l = {0};
  uint64_t query = 0;
  rt_ddp_batch *batch = NULL;
  rt_ddp *ddp = new_client(loop, server);
  CHECK_OK(rt_ddp_on_query_end(ddp, heard_query_end, &ends, NULL));
  CHECK_OK(rt_ddp_observe(ddp, "players", selector, NULL, count_change, &ends, NULL, &query));
  CHECK_OK(rt_ddp_feed_new(ddp, "players", selector, NULL, 0, &l.feed));
  CHECK_OK(rt_ddp_feed_on_change(l.feed, heard_news, &l, listener_destroyed));
  insert(ddp, "{\"_id\":\"a\",\"name\":\"xxy\"}");
  settle(loop);
  CHECK(ends.changes == 1 && l.called == 1);
  for (each = 0; each < COUNT; each++) {
    used += (size_t)sprintf(writes + used, "%s{\"insert\":\"players\",\"document\":{\"name\":\"",
                            each ? "," : "[");
    memset(writes + used, 'x', LENGTH);
    used += LENGTH;
    used += (size_t)sprintf(writes + used, "\"}}");
  }
  sprintf(writes + used, "]");
  CHECK_OK(rt_ddp_write(ddp, writes, NULL, NULL, NULL, NULL, NULL));
  /* What had changed before can still be taken. */
  expect_batch(taken(l.feed), true, 1, "\"a\" -1>0|||;");
  settle(loop);
  CHECK(ends.count == 2 && ends.first == query && l.called == 2);
  CHECK_STATUS(rt_ddp_feed_receive(l.feed, -1, &batch), RT_ERROR_INVALID_ARGUMENT);
  CHECK(batch == NULL && strstr(rt_last_error(), "steps"));
  insert(ddp, "{\"_id\":\"b\",\"name\":\"xxy\"}");
  settle(loop);
  CHECK(ends.changes == 1 && ends.count == 2);
  CHECK_OK(rt_ddp_stop_observing(ddp, query));
  rt_ddp_feed_free(l.feed);
  rt_ddp_free(ddp);
}

static void arguments_are_checked(rt_loop *loop, const char *server) {
  rt_ddp_feed *const untouched = (rt_ddp_feed *)(uintptr_t)1;
  rt_ddp_feed *feed = untouched;
  rt_ddp_batch *batch = NULL;
  int destroyed = 0;
  rt_ddp *ddp = new_client(loop, server);
  CHECK_STATUS(rt_ddp_feed_new(ddp, NULL, NULL, NULL, 0, &feed), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_ddp_feed_new(ddp, "players", NULL, NULL, 0, NULL), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_ddp_feed_new(ddp, "\xff", NULL, NULL, 0, &feed), RT_ERROR_INVALID_UTF8);
  CHECK_STATUS(rt_ddp_feed_new(ddp, "players", "{", NULL, 0, &feed), RT_ERROR_PROTOCOL);
  CHECK_STATUS(rt_ddp_feed_new(ddp, "players", "{\"a\":{\"$no\":1}}", NULL, 0, &feed),
               RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_ddp_feed_new(ddp, "players", NULL, "{\"order\":1}", 0, &feed),
               RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_ddp_feed_new(ddp, "players", NULL, NULL, 8, &feed), RT_ERROR_INVALID_ARGUMENT);
  CHECK(strstr(rt_last_error(), "parts is 8"));
  CHECK_STATUS(rt_ddp_feed_new(ddp, "players", NULL, NULL, -1, &feed), RT_ERROR_INVALID_ARGUMENT);
  CHECK(feed == untouched);
  feed = new_feed(ddp, NULL, 0);
  CHECK_STATUS(rt_ddp_feed_receive(feed, 0, NULL), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_ddp_feed_receive(feed, -2, &batch), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_ddp_feed_on_change(NULL, heard_news, &destroyed, count_up),
               RT_ERROR_INVALID_ARGUMENT);
  CHECK(destroyed == 1 && batch == NULL);
  rt_ddp_free(ddp);
  rt_ddp_feed_free(feed);
}

int main(int argc, char **argv) {
  rt_loop *loop = new_loop();
  CHECK(argc == 2);
  batches_say_what_has_changed(loop, argv[1]);
  what_waits_is_one_batch(loop, argv[1]);
  the_callback_is_called_once_for_a_batch(loop, argv[1]);
  feeds_may_be_freed_in_their_callback(loop, argv[1]);
  feeds_outlive_their_client(loop, argv[1]);
  queries_end_by_themselves(loop, argv[1]);
  arguments_are_checked(loop, argv[1]);
  rt_loop_free(loop);
  threads_wait_for_the_server(NULL, argv[1]);
  ends_end_waits(argv[1]);
  return 0;
}
