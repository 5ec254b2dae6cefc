/* Models of Meteor clients: the schema and its names, reading, saving at both ends of a
 * relationship, and what is reported. No server is needed: changes of local documents do. */
#include "contract_ddp.h"

#define LISTS "{\"name\":\"TodoList\",\"relationships\":[{\"name\":\"todos\",\"to\":\"Todo\"," \
  "\"many\":true,\"inverse\":\"list\",\"storage\":false}]}"
#define TODOS "{\"name\":\"Todo\",\"relationships\":[{\"name\":\"list\",\"to\":\"TodoList\"," \
  "\"inverse\":\"todos\"}]}"

static const char *const schema = "[" LISTS "," TODOS "]";

typedef struct text {
  char text[4096];
  int calls, destroyed;
} text;

static void note_text(text *t, const char *format, const char *a, const char *b) {
  size_t used = strlen(t->text);
  snprintf(t->text + used, sizeof t->text - used, format, a, b);
  t->calls++;
}

static void heard_object(const rt_ddp_document *document, void *user) {
  CHECK(strlen(document->document) == document->document_length);
  note_text(user, "%s%s;", "", document->document);
}

static void heard_object_change(const rt_ddp_change *change, void *user) {
  static const char *const kinds[] = {"added", "changed", "removed", "moved"};
  char line[64];
  CHECK(strcmp(change->fields, "{}") == 0 && strcmp(change->cleared, "[]") == 0);
  snprintf(line, sizeof line, "%s%s%s", change->id, kinds[change->kind], change->last ? "." : "");
  note_text(user, "%s/%s;", change->collection, line);
}

static void heard_stub_outcome(const rt_ddp_outcome *outcome, void *user) {
  char line[64];
  if (outcome->stage != RT_DDP_STAGE_STUB) return;
  snprintf(line, sizeof line, "%d", (int)outcome->index);
  note_text(user, "%s:%s;", line, outcome->value);
}

static void count_destroyed(void *user) { ((text *)user)->destroyed++; }

static void expect_text(text *t, const char *expected) {
  if (strcmp(t->text, expected) != 0) printf("%s instead of %s\n", t->text, expected);
  CHECK(strcmp(t->text, expected) == 0);
  t->text[0] = '\0';
}

static rt_ddp_models *new_models(rt_ddp *ddp) {
  rt_ddp_models *models = NULL;
  CHECK_OK(rt_ddp_models_new(ddp, schema, &models));
  return models;
}

static rt_ddp *new_client(rt_loop *loop, const char *server) {
  rt_ddp *ddp = NULL;
  CHECK_OK(rt_ddp_new(loop, server, &ddp));
  return ddp;
}

static void save(rt_ddp_models *models, const char *changes, size_t expected) {
  size_t count = 99;
  CHECK_OK(rt_ddp_models_save(models, changes, NULL, NULL, NULL, NULL, NULL, &count));
  CHECK(count == expected);
}

static void expect_object(rt_ddp_models *models, const char *model, const char *id,
                          const char *expected) {
  text t = {{0}, 0, 0};
  CHECK_OK(rt_ddp_models_get(models, model, id, heard_object, &t));
  expect_text(&t, expected);
}

static void the_schema_gets_its_names(rt_loop *loop, const char *server) {
  rt_ddp *ddp = new_client(loop, server);
  rt_ddp_models *models = new_models(ddp);
  const char *whole = rt_ddp_models_schema(models);
  CHECK(strstr(whole, "\"collection\":\"todoLists\"") && strstr(whole, "\"field\":\"todoIds\""));
  CHECK(strstr(whole, "\"collection\":\"todos\"") && strstr(whole, "\"field\":\"listId\""));
  CHECK(strstr(whole, "\"ids\":\"strings\"") && strstr(whole, "\"storage\":false"));
  CHECK(rt_ddp_models_schema(NULL) == NULL);
  rt_ddp_models_free(models);
  models = NULL;
  /* A complete schema is its own completion. */
  CHECK_OK(rt_ddp_models_new(ddp, "[{\"name\":\"Box\",\"collection\":\"crates\",\"ids\":"
                             "\"objectIDs\",\"relationships\":[]}]", &models));
  CHECK(strcmp(rt_ddp_models_schema(models), "[{\"name\":\"Box\",\"collection\":\"crates\","
               "\"ids\":\"objectIDs\",\"relationships\":[]}]") == 0);
  rt_ddp_models_free(models);
  rt_ddp_free(ddp);
}

static void both_ends_are_read_and_saved(rt_loop *loop, const char *server) {
  text t = {{0}, 0, 0};
  size_t count = 0;
  rt_call *call = NULL;
  rt_ddp *ddp = new_client(loop, server);
  rt_ddp_models *models = new_models(ddp);
  rt_ddp_call_options options = {.struct_bytes = sizeof options,
                                 .stages = 1 << RT_DDP_STAGE_STUB};
  /* New objects refer to each other, whatever their order. */
  CHECK_OK(rt_ddp_models_save(
      models,
      "[{\"insert\":\"Todo\",\"id\":\"t1\",\"object\":{\"text\":\"milk\",\"listId\":\"l1\"}},"
      "{\"insert\":\"TodoList\",\"id\":\"l1\",\"object\":{\"name\":\"shop\"}},"
      "{\"insert\":\"Todo\",\"id\":\"t2\",\"object\":{\"text\":\"eggs\"}}]",
      &options, heard_stub_outcome, &t, count_destroyed, NULL, &count));
  CHECK(count == 3);
  expect_text(&t, "0:\"t1\";1:\"l1\";2:\"t2\";");
  expect_object(models, "TodoList", "\"l1\"",
                "{\"_id\":\"l1\",\"name\":\"shop\",\"todoIds\":[\"t1\"]};");
  /* The end without storage changes the documents of the other one. */
  save(models, "[{\"update\":\"TodoList\",\"id\":\"l1\",\"to\":{\"todoIds\":[\"t2\"]}}]", 2);
  expect_object(models, "Todo", "\"t1\"", "{\"_id\":\"t1\",\"text\":\"milk\"};");
  expect_object(models, "Todo", "\"t2\"", "{\"_id\":\"t2\",\"text\":\"eggs\",\"listId\":\"l1\"};");
  /* Without `from`, what `to` lacks stays; with it, it goes. */
  save(models, "[{\"update\":\"Todo\",\"id\":\"t2\",\"to\":{\"text\":\"ham\"}}]", 1);
  expect_object(models, "Todo", "\"t2\"", "{\"_id\":\"t2\",\"text\":\"ham\",\"listId\":\"l1\"};");
  save(models, "[{\"update\":\"Todo\",\"id\":\"t2\",\"from\":{\"text\":\"ham\",\"listId\":\"l1\"},"
       "\"to\":{\"text\":\"ham\"}}]", 1);
  expect_object(models, "Todo", "\"t2\"", "{\"_id\":\"t2\",\"text\":\"ham\"};");
  /* The last of several changes of an object counts. */
  save(models, "[{\"update\":\"Todo\",\"id\":\"t2\",\"to\":{\"text\":\"egg\"}},"
       "{\"update\":\"Todo\",\"id\":\"t2\",\"to\":{\"text\":\"ham\"}},"
       "{\"update\":\"TodoList\",\"id\":\"l1\",\"to\":{\"todoIds\":[\"t1\"]}},"
       "{\"update\":\"TodoList\",\"id\":\"l1\",\"to\":{\"todoIds\":[]}}]", 0);
  expect_object(models, "Todo", "\"t1\"", "{\"_id\":\"t1\",\"text\":\"milk\"};");
  expect_object(models, "Todo", "\"t2\"", "{\"_id\":\"t2\",\"text\":\"ham\"};");
  /* What changes nothing makes no call, and its answer is there at once. */
  CHECK_OK(rt_ddp_models_save(models, "[]", NULL, NULL, NULL, NULL, &call, NULL));
  CHECK_OK(rt_call_wait(call, 0));
  CHECK(strcmp(rt_call_outcome(call)->value, "null") == 0);
  rt_call_free(call);
  save(models, "[{\"update\":\"Todo\",\"id\":\"t2\",\"to\":{\"text\":\"ham\"}}]", 0);
  save(models, "[{\"delete\":\"Todo\",\"id\":\"t2\"},{\"delete\":\"Todo\",\"id\":\"none\"}]", 1);
  CHECK_OK(rt_ddp_models_find(models, "Todo", NULL, NULL, heard_object, &t));
  expect_text(&t, "{\"_id\":\"t1\",\"text\":\"milk\"};");
  CHECK_STATUS(rt_ddp_models_get(models, "Todo", "\"t2\"", heard_object, &t), RT_ERROR_NOT_FOUND);
  CHECK(strstr(rt_last_error(), "Todo t2 is not there"));
  rt_ddp_models_free(models);
  rt_ddp_free(ddp);
  rt_loop_dispatch(loop, 0);
  CHECK(t.destroyed == 1);
}

static void references_are_changes_too(rt_loop *loop, const char *server) {
  text t = {{0}, 0, 0};
  uint64_t number = 0;
  rt_ddp_batch *batch = NULL;
  rt_ddp_feed *feed = NULL;
  rt_ddp *ddp = new_client(loop, server);
  rt_ddp_models *models = new_models(ddp);
  save(models, "[{\"insert\":\"TodoList\",\"id\":\"l1\",\"object\":{}}]", 1);
  settle(loop);
  CHECK_OK(rt_ddp_models_observe(models, heard_object_change, &t, count_destroyed, &number));
  CHECK_OK(rt_ddp_models_feed_new(models, "TodoList", NULL, NULL, RT_DDP_FEED_DOCUMENTS, &feed));
  CHECK_OK(rt_ddp_feed_receive(feed, 0, &batch));
  CHECK(batch->initial && batch->change_count == 1);
  CHECK(strcmp(batch->changes[0].document, "{\"_id\":\"l1\"}") == 0);
  rt_ddp_batch_free(batch);
  save(models, "[{\"insert\":\"Todo\",\"id\":\"t1\",\"object\":{\"listId\":\"l1\"}}]", 1);
  settle(loop);
  expect_text(&t, "todos/\"t1\"added;todoLists/\"l1\"changed.;");
  CHECK_OK(rt_ddp_feed_receive(feed, 0, &batch));
  CHECK(!batch->initial && batch->change_count == 1 && batch->changes[0].changed);
  CHECK(strcmp(batch->changes[0].document, "{\"_id\":\"l1\",\"todoIds\":[\"t1\"]}") == 0);
  rt_ddp_batch_free(batch);
  CHECK_OK(rt_ddp_models_stop_observing(models, number));
  CHECK_OK(rt_ddp_models_stop_observing(models, number));
  CHECK(t.destroyed == 1);
  /* A feed does not need the handle of its models. */
  CHECK_OK(rt_ddp_models_observe(models, heard_object_change, &t, count_destroyed, &number));
  rt_ddp_models_free(models);
  rt_ddp_models_free(NULL);
  CHECK(t.destroyed == 2);
  CHECK_OK(rt_ddp_remove(ddp, "todos", "\"t1\"", NULL, NULL, NULL, NULL, NULL));
  settle(loop);
  CHECK_OK(rt_ddp_feed_receive(feed, 0, &batch));
  CHECK(strcmp(batch->changes[0].document, "{\"_id\":\"l1\"}") == 0);
  rt_ddp_batch_free(batch);
  CHECK(t.calls == 2);
  rt_ddp_feed_free(feed);
  rt_ddp_free(ddp);
}

static void refused(rt_ddp *ddp, const char *given, rt_status status, const char *why) {
  rt_ddp_models *models = NULL;
  CHECK_STATUS(rt_ddp_models_new(ddp, given, &models), status);
  if (!strstr(rt_last_error(), why)) printf("%s\n", rt_last_error());
  CHECK(models == NULL && strstr(rt_last_error(), why));
}

static void not_saved(rt_ddp_models *models, const char *changes, rt_status status,
                      const char *why) {
  text t = {{0}, 0, 0};
  size_t count = 99;
  CHECK_STATUS(rt_ddp_models_save(models, changes, NULL, NULL, &t, count_destroyed, NULL, &count),
               status);
  if (!strstr(rt_last_error(), why)) printf("%s\n", rt_last_error());
  CHECK(strstr(rt_last_error(), why) && t.destroyed == 1 && count == 99);
}

static void faults_are_named(rt_loop *loop, const char *server) {
  text t = {{0}, 0, 0};
  uint64_t number = 0;
  rt_ddp *ddp = new_client(loop, server);
  rt_ddp_models *models = new_models(ddp);
  refused(ddp, NULL, RT_ERROR_INVALID_ARGUMENT, "schema");
  refused(ddp, "[", RT_ERROR_PROTOCOL, "schema");
  refused(ddp, "{}", RT_ERROR_INVALID_ARGUMENT, "not an array");
  refused(ddp, "[5]", RT_ERROR_INVALID_ARGUMENT, "model 0 of the schema is not an object");
  refused(ddp, "[{}]", RT_ERROR_INVALID_ARGUMENT, "model 0 of the schema has no name");
  refused(ddp, "[{\"name\":\"A\",\"colection\":\"a\"}]", RT_ERROR_INVALID_ARGUMENT,
          "unknown member \"colection\"");
  refused(ddp, "[{\"name\":\"A\",\"ids\":\"numbers\"}]", RT_ERROR_INVALID_ARGUMENT, "\"numbers\"");
  refused(ddp, "[{\"name\":\"A\"},{\"name\":\"A\"}]", RT_ERROR_INVALID_ARGUMENT,
          "two models named A");
  refused(ddp, "[{\"name\":\"A\"},{\"name\":\"B\",\"collection\":\"as\"}]",
          RT_ERROR_INVALID_ARGUMENT, "have the same collection, as");
  refused(ddp, "[" LISTS "]", RT_ERROR_INVALID_ARGUMENT,
          "TodoList.todos leads to Todo, which the schema lacks");
  refused(ddp, "[{\"name\":\"A\",\"relationships\":[{\"name\":\"b\",\"to\":\"A\",\"storage\":"
          "false}]}]", RT_ERROR_INVALID_ARGUMENT, "A.b has neither storage nor an inverse");
  refused(ddp, "[{\"name\":\"A\",\"relationships\":[{\"name\":\"b\",\"to\":\"A\"},{\"name\":"
          "\"c\",\"to\":\"A\",\"field\":\"bId\"}]}]", RT_ERROR_INVALID_ARGUMENT,
          "A.b and A.c have the same field, bId");
  CHECK_STATUS(rt_ddp_models_new(ddp, schema, NULL), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_ddp_models_find(models, "Nobody", NULL, NULL, heard_object, &t),
               RT_ERROR_INVALID_ARGUMENT);
  CHECK(strstr(rt_last_error(), "\"Nobody\" is not one of the models"));
  CHECK_STATUS(rt_ddp_models_find(models, "Todo", "{", NULL, heard_object, &t),
               RT_ERROR_PROTOCOL);
  CHECK_STATUS(rt_ddp_models_find(models, "Todo", NULL, NULL, NULL, &t),
               RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_ddp_models_get(models, "Todo", "{}", heard_object, &t),
               RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_ddp_models_observe(models, NULL, &t, NULL, &number), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_ddp_models_observe(models, heard_object_change, &t, count_destroyed, NULL),
               RT_ERROR_INVALID_ARGUMENT);
  CHECK(t.destroyed == 1);
  CHECK_STATUS(rt_ddp_models_feed_new(models, "Todo", NULL, NULL, 8, NULL),
               RT_ERROR_INVALID_ARGUMENT);
  not_saved(models, NULL, RT_ERROR_INVALID_ARGUMENT, "changes");
  not_saved(models, "{}", RT_ERROR_INVALID_ARGUMENT, "changes is not an array");
  not_saved(models, "[{\"insert\":\"Todo\",\"id\":\"a\"}]", RT_ERROR_INVALID_ARGUMENT,
            "changes[0] has not the members");
  not_saved(models, "[{\"insert\":\"Todo\",\"id\":{},\"object\":{}}]", RT_ERROR_INVALID_ARGUMENT,
            "id of changes[0] is not a string");
  not_saved(models, "[{\"update\":\"Todo\",\"id\":\"a\",\"to\":{}}]", RT_ERROR_NOT_FOUND,
            "Todo a is not there");
  not_saved(models, "[{\"insert\":\"TodoList\",\"id\":\"l\",\"object\":{\"todoIds\":[\"x\"]}}]",
            RT_ERROR_INVALID_ARGUMENT, "Todo x is not there, and only it could contain");
  save(models, "[{\"insert\":\"Todo\",\"id\":\"a\",\"object\":{}}]", 1);
  not_saved(models, "[{\"insert\":\"Todo\",\"id\":\"b\",\"object\":{}},"
            "{\"insert\":\"Todo\",\"id\":\"a\",\"object\":{}}]", RT_ERROR_INVALID_ARGUMENT,
            "Todo a is there already");
  CHECK_STATUS(rt_ddp_models_get(models, "Todo", "\"b\"", heard_object, &t), RT_ERROR_NOT_FOUND);
  /* The models keep the client's memory. */
  rt_ddp_free(ddp);
  CHECK_STATUS(rt_ddp_models_save(models, "[]", NULL, NULL, NULL, NULL, NULL, NULL),
               RT_ERROR_CLOSED);
  CHECK_STATUS(rt_ddp_models_observe(models, heard_object_change, &t, count_destroyed, &number),
               RT_ERROR_CLOSED);
  CHECK(t.destroyed == 2);
  rt_ddp_models_free(models);
}

int main(int argc, char **argv) {
  rt_loop *loop = new_loop();
  CHECK(argc == 2);
  the_schema_gets_its_names(loop, argv[1]);
  both_ends_are_read_and_saved(loop, argv[1]);
  references_are_changes_too(loop, argv[1]);
  faults_are_named(loop, argv[1]);
  rt_loop_free(loop);
  return 0;
}
