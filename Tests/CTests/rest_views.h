/* The views of a response must agree with its functions. */
#include "contract.h"

static void check_views(
    rt_rest_response *response, rt_status error, int32_t status, const char *body) {
  const rt_opened *opened = rt_rest_response_opened(response);
  const rt_failure *failure = rt_rest_response_failure(response);
  size_t lines;
  CHECK(strlen(rt_rest_response_headers(response, &lines)) == lines);
  CHECK(strstr(rt_rest_response_url(response), "://") != NULL);
  CHECK((opened != NULL) == (status != 0));
  if (opened != NULL) {
    CHECK(opened->struct_bytes == sizeof *opened && opened->http_version == 11);
    CHECK(opened->http_status == status);
    CHECK(strcmp(opened->headers, rt_rest_response_headers(response, NULL)) == 0);
    CHECK(strstr(opened->remote_address, "127.0.0.1:") == opened->remote_address);
    CHECK(strstr(opened->local_address, "127.0.0.1:") == opened->local_address);
    CHECK(strcmp(opened->tls_version, "") == 0 && strcmp(opened->tls_cipher, "") == 0);
    CHECK(rt_rest_response_http_version(response) == 11);
    CHECK(strcmp(rt_rest_response_reason(response), "Said") == 0 || status == 200);
    CHECK(rt_rest_response_header(response, "x-none") == NULL);
    CHECK(opened == rt_rest_response_opened(response));
  }
  CHECK((failure != NULL) == (error != RT_OK));
  if (failure != NULL) {
    CHECK(failure->struct_bytes == sizeof *failure && failure->status == error);
    CHECK(failure->http_status == status && failure->message[0] != '\0');
    CHECK(failure->fatal && failure->retry_in_ms == -1 && failure->attempt == 0);
    CHECK(failure->body_length == strlen(body));
    CHECK(memcmp(failure->body, body, failure->body_length) == 0);
    CHECK(failure == rt_rest_response_failure(response));
  }
}
