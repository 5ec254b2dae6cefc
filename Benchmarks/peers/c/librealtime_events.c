// Event streams through librealtime's C interface.
#include <realtime.h>

#include "meter.h"

static rt_loop *loop;

static void check(rt_status status) {
  if (status != RT_OK) meter_fail(rt_last_error());
}

static void on_event(const rt_event *event, void *user) {
  if (!meter_message(event->data, event->data_length)) return;
  meter_stop();
  check(rt_eventsource_close(user));
  check(rt_loop_stop(loop));
}

static void on_error(const rt_failure *failure, void *user) {
  (void)user;
  meter_fail(failure->message);
}

int main(int argc, char **argv) {
  rt_eventsource *source;
  task_read(argc, argv);
  bool has_type = task_is("events-tick");
  if (!task_is("events") && !has_type) return NOT_SUPPORTED;
  check(rt_loop_new(&loop));
  check(rt_eventsource_new(loop, task.url, &source));
  if (has_type) {
    check(rt_eventsource_add_listener(source, "tick", on_event, source, NULL, NULL));
  } else {
    check(rt_eventsource_on_message(source, on_event, source, NULL));
  }
  check(rt_eventsource_on_error(source, on_error, NULL, NULL));
  meter_start();
  check(rt_eventsource_start(source));
  check(rt_loop_run(loop));
  rt_eventsource_free(source);
  rt_loop_free(loop);
  meter_report();
}
