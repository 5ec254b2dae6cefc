// A client of a Meteor server through librealtime's C interface. `ddp-load` loads documents, with
// `ddp-load-live` into an open live query. `ddp-changes` loads documents, opens a sorted live query
// and receives changes of them; with `ddp-each` each change is applied at once.
#include <realtime.h>
#include <string.h>

#include "meter.h"

#define SORTED "{\"sort\":{\"n\":1,\"title\":1}}"

static rt_loop *loop;
static rt_ddp *ddp;
static bool is_load;
/// Documents of the live query that were added, and changes of them.
static uint64_t added, changed;

static void check(rt_status status) {
  if (status != RT_OK) meter_fail(rt_last_error());
}

// MARK: What the documents are in the end

static uint64_t number_of(const char *document, const char *name) {
  const char *found = strstr(document, name);
  uint64_t value = 0;
  if (!found) meter_fail("a document lacks a field");
  for (found += strlen(name); *found >= '0' && *found <= '9'; found++) {
    value = value * 10 + (uint64_t)(*found - '0');
  }
  return value;
}

static void add_up(const rt_ddp_document *document, void *user) {
  static const char member[] = "\"title\":\"";
  (void)user;
  const char *title = strstr(document->document, member);
  if (!title) meter_fail("a document has no title");
  meter.documents++;
  meter.bytes += strcspn(title + sizeof member - 1, "\"");
  meter.checksum += number_of(document->document, "\"n\":");
  meter.checksum += number_of(document->document, "\"score\":");
}

static void finish(void) {
  meter_stop();
  check(rt_ddp_find(ddp, "items", NULL, NULL, add_up, NULL));
  meter.messages = is_load ? meter.documents : task.count;
  if (added && added != meter.documents) meter_fail("the live query lacks documents");
  if (task_is("ddp-each") && changed != task.count) meter_fail("the live query lacks changes");
  check(rt_loop_stop(loop));
}

// MARK: Receiving

static void on_change(const rt_ddp_change *change, void *user);

static void subscribe(const char *name, rt_ddp_subscription_fn fn) {
  uint64_t number;
  check(rt_ddp_subscribe(ddp, name, NULL, -1, fn, NULL, NULL, &number, NULL));
}

static void observe(void) {
  uint64_t number;
  check(rt_ddp_observe(ddp, "items", "{}", SORTED, on_change, NULL, NULL, &number));
}

static void on_changes(const rt_ddp_subscription_event *event, void *user) {
  (void)user;
  if (event->event != RT_DDP_SUBSCRIPTION_READY) meter_fail("the subscription ended");
  finish();
}

static void on_change(const rt_ddp_change *change, void *user) {
  (void)user;
  added += change->kind == RT_DDP_CHANGE_ADDED;
  changed += change->kind == RT_DDP_CHANGE_CHANGED;
  if (is_load || !change->initial || !change->last) return;
  meter_start();
  subscribe("changes", on_changes);
}

static void on_items(const rt_ddp_subscription_event *event, void *user) {
  (void)user;
  if (event->event != RT_DDP_SUBSCRIPTION_READY) meter_fail("the subscription ended");
  if (is_load) {
    finish();
  } else {
    observe();
  }
}

static void on_status(const rt_ddp_status_change *change, void *user) {
  (void)user;
  if (change->status != RT_OK) meter_fail(change->message);
  if (change->new_status != RT_DDP_CONNECTED) return;
  if (task_is("ddp-load-live")) observe();
  if (is_load) meter_start();
  subscribe("items", on_items);
}

int main(int argc, char **argv) {
  task_read(argc, argv);
  is_load = task_is("ddp-load") || task_is("ddp-load-live");
  if (!is_load && !task_is("ddp-changes") && !task_is("ddp-each")) return NOT_SUPPORTED;
  check(rt_loop_new(&loop));
  check(rt_ddp_new(loop, task.url, &ddp));
  check(rt_ddp_set_compression(ddp, false));
  check(rt_ddp_set_sockjs_fallback(ddp, false));
  check(rt_ddp_set_auto_reconnect(ddp, false));
  if (task_is("ddp-each")) check(rt_ddp_set_buffer_interval_ms(ddp, 0));
  check(rt_ddp_on_status(ddp, on_status, NULL, NULL));
  check(rt_ddp_start(ddp));
  check(rt_loop_run(loop));
  meter_report();
}
