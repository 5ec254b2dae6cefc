/*
 * Gets a URL and prints the body of the response. Failed attempts are repeated.
 *
 *   fetch https://example.org/
 */
#include <realtime.h>
#include <stdio.h>

int main(int argc, char **argv) {
  rt_rest *rest = NULL;
  rt_rest_request *request = NULL;
  rt_call *call = NULL;
  size_t length;
  if (argc != 2) fprintf(stderr, "usage: fetch URL\n");
  if (argc != 2 || rt_rest_new(NULL, NULL, &rest)) return 2;
  rt_status status = rt_rest_request_new(rest, "GET", argv[1], &request);
  if (!status) status = rt_rest_request_send(request, NULL, NULL, NULL, NULL, &call);
  if (!status) status = rt_call_wait(call, -1);
  const uint8_t *body = rt_rest_response_body(rt_call_response(call), &length);
  fwrite(body, 1, length, stdout);
  if (status) fprintf(stderr, "fetch: %s\n", rt_last_error());
  rt_call_free(call);
  rt_rest_request_free(request);
  rt_rest_free(rest);
  return status ? 1 : 0;
}
