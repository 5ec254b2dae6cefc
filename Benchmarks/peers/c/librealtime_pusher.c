// Pusher Channels through librealtime's C interface: events by `rt_pusher_channel_bind` or, with
// `pusher-batch`, by `rt_pusher_on_events`; and many subscriptions after the loss of a connection.
#include <realtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "meter.h"

static rt_loop *loop;
static rt_pusher *pusher;
static uint64_t subscribed;
static bool reads_json;

static void check(rt_status status) {
  if (status != RT_OK) meter_fail(rt_last_error());
}

static void stop(void) {
  meter_stop();
  check(rt_loop_stop(loop));
}

// MARK: Events

static void count(const char *data, size_t length) {
  if (reads_json) meter.checksum += json_number(data, length, "quantity");
  meter.bytes += length;
  if (++meter.messages == task.count) stop();
}

static void on_event(const rt_pusher_event *event, void *user) {
  (void)user;
  count(event->data, event->data_length);
}

static void on_events(
    const uint8_t *base, const rt_pusher_record *events, size_t number, void *user) {
  (void)user;
  for (size_t i = 0; i < number; i++) {
    // The only other event is the library's about the subscription.
    if (events[i].data_length > 2) {
      count((const char *)base + events[i].data_offset, (size_t)events[i].data_length);
    }
  }
}

static void subscribe(const rt_pusher_state_change *change, void *user) {
  rt_pusher_channel *channel;
  (void)user;
  if (change->new_state != RT_STATE_OPEN) return;
  meter_start();
  check(rt_pusher_subscribe(pusher, "chat", &channel));
  if (task_is("pusher-batch")) {
    check(rt_pusher_on_events(pusher, on_events, NULL, NULL));
  } else {
    check(rt_pusher_channel_bind(channel, "new-price", on_event, NULL, NULL, NULL));
  }
}

// MARK: Many subscriptions

static void on_attempt(const rt_pusher_state_change *change, void *user) {
  (void)user;
  // The server ends the first connection once all channels are subscribed.
  if (change->new_state == RT_STATE_CONNECTING && subscribed) meter_start();
}

static void on_subscribed(const rt_pusher_subscription *subscription, void *user) {
  (void)subscription, (void)user;
  if (++subscribed <= task.count) return;
  if (++meter.messages == task.count) stop();
}

static void on_failed(const rt_pusher_subscription *subscription, void *user) {
  (void)user;
  meter_fail(subscription->message);
}

/// Counts the requests after the loss.
static bool on_request(const rt_pusher_auth_request *request, rt_rest_request *http, void *user) {
  (void)request, (void)http, (void)user;
  if (subscribed >= task.count) meter.requests++;
  return true;
}

static void subscribe_to_all(void) {
  char text[128];
  bool in_batches = task_is("resubscribe-batch");
  bool is_private = in_batches || task_is("resubscribe-private");
  if (is_private) {
    snprintf(text, sizeof text, "http://%s:%s/auth", task.host, task.port);
    check(rt_pusher_set_auth_endpoint(pusher, text));
    check(rt_pusher_on_prepare_authorization(pusher, on_request, NULL, NULL));
  }
  if (in_batches) check(rt_pusher_set_auth_batch_size(pusher, 100));
  check(rt_pusher_on_state(pusher, on_attempt, NULL, NULL));
  check(rt_pusher_on_subscribed(pusher, on_subscribed, NULL, NULL));
  check(rt_pusher_on_subscription_failed(pusher, on_failed, NULL, NULL));
  for (uint64_t i = 0; i < task.count; i++) {
    snprintf(text, sizeof text, "%sorders-%u", is_private ? "private-" : "", (unsigned)i);
    check(rt_pusher_subscribe(pusher, text, NULL));
  }
}

int main(int argc, char **argv) {
  task_read(argc, argv);
  check(rt_loop_new(&loop));
  check(rt_pusher_new(loop, task.path + strlen("/app/"), &pusher));
  check(rt_pusher_set_host(pusher, task.host));
  check(rt_pusher_set_port(pusher, (uint32_t)atoi(task.port)));
  check(rt_pusher_set_use_tls(pusher, false));
  reads_json = task_is("pusher-json");
  if (task_is("pusher") || reads_json || task_is("pusher-batch")) {
    check(rt_pusher_on_state(pusher, subscribe, NULL, NULL));
  } else if (strncmp(task.mode, "resubscribe", 11) == 0) {
    subscribe_to_all();
  } else {
    return NOT_SUPPORTED;
  }
  check(rt_pusher_start(pusher));
  check(rt_loop_run(loop));
  meter_report();
}
