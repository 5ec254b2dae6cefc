/*
 * Sends one request and prints the response. Retries when that is safe, within ten seconds.
 *
 *   request GET https://example.org/
 *   request POST http://127.0.0.1:8080/events '{"kind":"seen"}'
 */
#include <realtime.h>
#include <stdio.h>
#include <string.h>

static bool check(rt_status status, const char *call) {
  if (status == RT_OK) return true;
  fprintf(stderr, "request: %s: %s: %s\n", call, rt_status_name(status), rt_last_error());
  return false;
}

struct ending {
  rt_loop *loop;
  rt_status error;
};

/* Called once for each request, whether it succeeds or fails. */
static void on_done(rt_rest_response *response, void *user) {
  struct ending *ending = user;
  size_t length;
  const uint8_t *body = rt_rest_response_body(response, &length);
  ending->error = rt_rest_response_error(response);
  fwrite(body, 1, length, stdout);
  if (ending->error != RT_OK)
    fprintf(stderr, "request: %s: %s\n", rt_status_name(ending->error),
            rt_rest_response_message(response));
  rt_loop_stop(ending->loop);
}

int main(int argc, char **argv) {
  struct ending ending = {NULL, RT_ERROR_SYSTEM};
  rt_rest *rest = NULL;
  rt_rest_request *request = NULL;
  if (argc < 3 || argc > 4) {
    fprintf(stderr, "usage: request METHOD URL [JSON]\n");
    return 2;
  }
  if (check(rt_loop_new(&ending.loop), "rt_loop_new") &&
      check(rt_rest_new(ending.loop, NULL, &rest), "rt_rest_new") &&
      check(rt_rest_set_deadline_ms(rest, 10000), "rt_rest_set_deadline_ms") &&
      check(rt_rest_request_new(rest, argv[1], argv[2], &request), "rt_rest_request_new") &&
      (argc == 3 || check(rt_rest_request_set_body(request, (const uint8_t *)argv[3],
                                                   strlen(argv[3]), "application/json"),
                          "rt_rest_request_set_body")) &&
      check(rt_rest_request_send(request, on_done, &ending, NULL, NULL, NULL),
            "rt_rest_request_send"))
    check(rt_loop_run(ending.loop), "rt_loop_run");
  rt_rest_request_free(request);
  rt_rest_free(rest);
  rt_loop_free(ending.loop);
  return ending.error == RT_OK ? 0 : 1;
}
