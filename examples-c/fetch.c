/*
 * Gets a URL and prints the body of the response. Failed attempts are repeated.
 *
 *   fetch https://example.org/
 */
#include <realtime.h>
#include <stdio.h>

static rt_status result;

static void on_done(rt_rest_response *response, void *loop) {
  size_t length;
  const uint8_t *body = rt_rest_response_body(response, &length);
  fwrite(body, 1, length, stdout);
  result = rt_rest_response_error(response);
  if (result) fprintf(stderr, "fetch: %s\n", rt_rest_response_message(response));
  rt_loop_stop(loop);
}

int main(int argc, char **argv) {
  rt_loop *loop = NULL;
  rt_rest *rest = NULL;
  rt_rest_request *request = NULL;
  if (argc != 2) fprintf(stderr, "usage: fetch URL\n");
  if (argc != 2 || rt_loop_new(&loop)) return 2;
  rt_status status = rt_rest_new(loop, NULL, &rest);
  if (!status) status = rt_rest_request_new(rest, "GET", argv[1], &request);
  if (!status) status = rt_rest_request_send(request, on_done, loop, NULL, NULL);
  if (!status) status = rt_loop_run(loop);
  if (status) fprintf(stderr, "fetch: %s\n", rt_last_error());
  rt_rest_request_free(request);
  rt_rest_free(rest);
  rt_loop_free(loop);
  return status || result ? 1 : 0;
}
