// Requests through librealtime's C interface, with default options except for the number of
// concurrent requests.
#include <realtime.h>
#include <stdio.h>

#include "meter.h"

static rt_loop *loop;
static rt_rest *rest;
static uint64_t begun;

static void check(rt_status status) {
  if (status != RT_OK) meter_fail(rt_last_error());
}

static void begin(void);

static void on_done(rt_rest_response *response, void *user) {
  size_t length;
  const uint8_t *body = rt_rest_response_body(response, &length);
  (void)user;
  if (rt_rest_response_status(response) != 200) meter_fail(rt_rest_response_message(response));
  if (length != task.size) meter_fail("the answer has another size");
  if (meter_message(body, length)) {
    meter_stop();
    check(rt_loop_stop(loop));
  } else if (begun < task.count) {
    begin();
  }
}

static void begin(void) {
  rt_rest_request *request;
  begun++;
  check(rt_rest_request_new(rest, "GET", task.path, &request));
  check(rt_rest_request_send(request, on_done, NULL, NULL, NULL, NULL));
  rt_rest_request_free(request);
}

int main(int argc, char **argv) {
  unsigned parallel;
  char base[96];
  task_read(argc, argv);
  if (sscanf(task.mode, "rest-%u", &parallel) != 1) return NOT_SUPPORTED;
  snprintf(base, sizeof base, "http://%s:%s", task.host, task.port);
  check(rt_loop_new(&loop));
  check(rt_rest_new(loop, base, &rest));
  check(rt_rest_set_max_per_host(rest, parallel));
  meter_start();
  while (begun < parallel && begun < task.count) begin();
  check(rt_loop_run(loop));
  rt_rest_free(rest);
  rt_loop_free(loop);
  meter_report();
}
