/* Sends the requests that the command line describes, and prints the result of each:
 *
 *   rest BASE METHOD PATH [NAME=VALUE…]
 *
 *   done INDEX STATUS HTTP ATTEMPTS VERSION BYTES BODY   one per line, in the order they ended
 *
 * count=N concurrent requests (1), or one at a time with turns=1; path2=P for the second half;
 * body=TEXT; source=N bytes of 'x' by a callback; stream=1; ca=FILE; attempts, timeout, deadline,
 * delay (base_delay, in ms), retry_after, redirects, per_host, http2, compression, keys, unsafe;
 * header=NAME:VALUE; user=NAME:PASSWORD; token=T; safe=NAME. The log of everything goes to stderr.
 */
#include <realtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static rt_loop *loop;
static rt_rest *rest;
static int count = 1, in_turns, streams, outstanding, ended, sent_requests;
static long source_bytes = -1;
static const char *method, *path, *path2, *body, *headers[8], *query;
static int header_count;

struct call {
  int index;
  long left;
  size_t streamed;
};

static void must(rt_status status, const char *what) {
  if (status == RT_OK) return;
  printf("refused %s %s %s\n", what, rt_status_name(status), rt_last_error());
  exit(1);
}

static void on_log(rt_log_level level, const char *message, void *user) {
  fprintf(stderr, "log %d %s\n", (int)level, message);
}

static int64_t on_source(uint8_t *buffer, size_t capacity, void *user) {
  struct call *call = user;
  size_t size = call->left < (long)capacity ? (size_t)call->left : capacity;
  memset(buffer, 'x', size);
  call->left -= (long)size;
  return (int64_t)size;
}

static bool on_rewind(void *user) {
  ((struct call *)user)->left = source_bytes;
  return true;
}

static void on_body(const uint8_t *data, size_t length, void *user) {
  ((struct call *)user)->streamed += length;
}

static void send_one(void);

static void on_done(rt_rest_response *response, void *user) {
  struct call *call = user;
  size_t length, shown;
  const uint8_t *data = rt_rest_response_body(response, &length);
  int version = rt_rest_response_http_version(response);
  shown = length < 400 ? length : 400;
  if (call->streamed != 0) length = call->streamed;
  printf("done %d %s %d %u %d %zu %.*s\n", call->index,
         rt_status_name(rt_rest_response_error(response)), rt_rest_response_status(response),
         rt_rest_response_attempts(response), version, length, (int)shown, (const char *)data);
  ended += 1;
  outstanding -= 1;
  if (in_turns && sent_requests < count) send_one();
  if (outstanding == 0) rt_loop_stop(loop);
}

static void send_one(void) {
  rt_rest_request *request;
  struct call *call = calloc(1, sizeof *call);
  int index;
  call->index = sent_requests++;
  call->left = source_bytes;
  must(rt_rest_request_new(rest, method,
                           path2 != NULL && call->index * 2 >= count ? path2 : path, &request),
       "request");
  for (index = 0; index < header_count; index++) {
    char name[100];
    const char *colon = strchr(headers[index], ':');
    snprintf(name, sizeof name, "%.*s", (int)(colon - headers[index]), headers[index]);
    must(rt_rest_request_add_header(request, name, colon + 1), "header");
  }
  if (query != NULL) must(rt_rest_request_add_query(request, "token", query), "query");
  if (body != NULL)
    must(rt_rest_request_set_body(request, (const uint8_t *)body, strlen(body), "text/plain"),
         "body");
  if (source_bytes >= 0)
    must(rt_rest_request_set_body_source(
             request, source_bytes, on_source, on_rewind, call, NULL), "source");
  if (streams) must(rt_rest_request_on_body(request, on_body, call, NULL), "stream");
  must(rt_rest_request_send(request, on_done, call, free, NULL, NULL), "send");
  rt_rest_request_free(request);
  outstanding += 1;
}

static void set(const char *name, const char *value) {
  long number = strtol(value, NULL, 10);
  if (strcmp(name, "count") == 0) count = (int)number;
  else if (strcmp(name, "turns") == 0) in_turns = (int)number;
  else if (strcmp(name, "stream") == 0) streams = (int)number;
  else if (strcmp(name, "path2") == 0) path2 = value;
  else if (strcmp(name, "body") == 0) body = value;
  else if (strcmp(name, "query") == 0) query = value;
  else if (strcmp(name, "source") == 0) source_bytes = number;
  else if (strcmp(name, "header") == 0) headers[header_count++] = value;
  else if (strcmp(name, "attempts") == 0) must(rt_rest_set_attempts(rest, (uint32_t)number), name);
  else if (strcmp(name, "timeout") == 0) must(rt_rest_set_attempt_timeout_ms(rest, number), name);
  else if (strcmp(name, "deadline") == 0) must(rt_rest_set_deadline_ms(rest, number), name);
  else if (strcmp(name, "delay") == 0) must(rt_rest_set_base_delay_ms(rest, number), name);
  else if (strcmp(name, "redirects") == 0)
    must(rt_rest_set_max_redirects(rest, (int32_t)number), name);
  else if (strcmp(name, "per_host") == 0)
    must(rt_rest_set_max_per_host(rest, (uint32_t)number), name);
  else if (strcmp(name, "http2") == 0) must(rt_rest_set_http2(rest, number != 0), name);
  else if (strcmp(name, "compression") == 0) must(rt_rest_set_compression(rest, number != 0), name);
  else if (strcmp(name, "keys") == 0) must(rt_rest_set_idempotency_keys(rest, number != 0), name);
  else if (strcmp(name, "unsafe") == 0) must(rt_rest_set_retry_unsafe(rest, number != 0), name);
  else if (strcmp(name, "safe") == 0) must(rt_rest_add_safe_header(rest, value), name);
  else if (strcmp(name, "token") == 0) must(rt_rest_set_bearer_token(rest, value), name);
  else if (strcmp(name, "ca") == 0) {
    rt_network *network;
    must(rt_network_new(&network), name);
    must(rt_network_set_ca_file(network, value), name);
    must(rt_rest_set_network(rest, network), name);
    rt_network_free(network);
  } else {
    printf("refused %s: no such option\n", name);
    exit(2);
  }
}

int main(int argc, char **argv) {
  int index;
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (argc < 4) return 2;
  rt_set_log(RT_LOG_DEBUG, on_log, NULL, NULL);
  must(rt_loop_new(&loop), "loop");
  must(rt_rest_new(loop, argv[1], &rest), "client");
  method = argv[2];
  path = argv[3];
  for (index = 4; index < argc; index++) {
    char *equals = strchr(argv[index], '=');
    if (equals == NULL) return 2;
    *equals = '\0';
    set(argv[index], equals + 1);
  }
  do send_one();
  while (!in_turns && sent_requests < count);
  must(rt_loop_run(loop), "run");
  printf("ended %d\n", ended);
  rt_rest_free(rest);
  rt_loop_free(loop);
  rt_set_log(RT_LOG_OFF, NULL, NULL, NULL);
  return 0;
}
