/*
 * A long poll that tests drive.
 *
 *   polling URL [NAME=VALUE ...]
 *
 * Options: cursor (validators, header_id, query_id, none), id, interval, poll_timeout, min_hold,
 * max_delay, gone, max_body, redirects, bearer, token (given when the server asks for one), ca,
 * http2, count (messages until it closes).
 *
 * Lines out: `poll ATTEMPT`, `open`, `message ID HAD_ID TYPE DATA`, `error NAME HTTP_STATUS
 * RETRY_MS` or `fatal NAME HTTP_STATUS`, and last `end ID`. It also ends with its standard input.
 *
 * A line in, PATH TEXT, posts the text to the path on the same loop; the line out is then `posted
 * NAME HTTP_STATUS HTTP_VERSION`.
 */
#include <inttypes.h>
#include <poll.h>
#include <realtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static rt_longpoll *longpoll;
static rt_rest *rest;
static rt_network *network;
static const char *token;
static long left = -1;
static bool over;
static int posting;

static void check(rt_status status, const char *what) {
  if (status == RT_OK) return;
  printf("refused %s %s\n", rt_status_name(status), what);
  exit(3);
}

static void on_log(rt_log_level level, const char *line, void *user) {
  (void)level, (void)user;
  fprintf(stderr, "%s\n", line);
}

static void on_open(const rt_opened *opened, void *user) {
  (void)opened;
  printf("open\n");
}

static void on_message(const rt_event *event, void *user) {
  if (event->id[event->id_length] || event->data[event->data_length]) printf("no NUL\n");
  printf("message %s %d %s ", event->id_length ? event->id : "-", event->had_id,
         *event->content_type ? event->content_type : "-");
  if (event->data_length > 100) printf("%zu bytes", event->data_length);
  else fwrite(event->data, 1, event->data_length, stdout);
  printf("\n");
  if (--left == 0) over = true;
  if (over) check(rt_longpoll_close(longpoll), "close");
}

static void on_error(const rt_failure *failure, void *user) {
  fprintf(stderr, "%s\n", failure->message);
  printf(failure->fatal ? "fatal %s %d\n" : "error %s %d %" PRId64 "\n",
         rt_status_name(failure->status),
         (int)failure->http_status, failure->retry_in_ms);
  if (failure->fatal) over = true;
}

static bool on_request(uint32_t attempt, void *user) {
  printf("poll %" PRIu32 "\n", attempt);
  return true;
}

static rt_credentials on_credentials(const rt_failure *refusal, void *user) {
  printf("credentials %d\n", (int)refusal->http_status);
  check(rt_longpoll_set_bearer_token(longpoll, token), "token");
  return RT_CREDENTIALS_READY;
}

static void option(const char *name, const char *value) {
  static const char *const cursors[] = {"validators", "header_id", "query_id", "none"};
  int64_t number = strtoll(value, NULL, 10);
  rt_status status = RT_ERROR_INVALID_ARGUMENT;
  if (!strcmp(name, "cursor")) {
    for (int i = 0; i < 4; i++)
      if (!strcmp(value, cursors[i])) status = rt_longpoll_set_cursor(longpoll, i, NULL);
  } else if (!strcmp(name, "id")) {
    status = rt_longpoll_set_last_event_id(longpoll, value);
  } else if (!strcmp(name, "interval")) {
    status = rt_longpoll_set_interval_ms(longpoll, number);
  } else if (!strcmp(name, "poll_timeout")) {
    status = rt_longpoll_set_poll_timeout_ms(longpoll, number);
  } else if (!strcmp(name, "min_hold")) {
    status = rt_longpoll_set_min_hold_ms(longpoll, number);
  } else if (!strcmp(name, "max_delay")) {
    status = rt_longpoll_set_max_delay_ms(longpoll, number);
  } else if (!strcmp(name, "gone")) {
    status = rt_longpoll_set_fail_when_gone(longpoll, number);
  } else if (!strcmp(name, "max_body")) {
    status = rt_longpoll_set_max_body_bytes(longpoll, (size_t)number);
  } else if (!strcmp(name, "redirects")) {
    status = rt_longpoll_set_max_redirects(longpoll, (int32_t)number);
  } else if (!strcmp(name, "bearer")) {
    status = rt_longpoll_set_bearer_token(longpoll, value);
  } else if (!strcmp(name, "token")) {
    token = value;
    status = rt_longpoll_on_credentials(longpoll, on_credentials, NULL, NULL);
  } else if (!strcmp(name, "ca")) {
    status = rt_network_set_ca_file(network, value);
    check(rt_longpoll_set_network(longpoll, network), name);
    check(rt_rest_set_network(rest, network), name);
  } else if (!strcmp(name, "http2")) {
    status = rt_longpoll_set_http2(longpoll, number);
    check(rt_rest_set_http2(rest, number), name);
  } else if (!strcmp(name, "count")) {
    left = (long)number;
    status = RT_OK;
  }
  check(status, name);
}

static void on_posted(rt_rest_response *response, void *user) {
  posting--;
  printf("posted %s %d %d\n", rt_status_name(rt_rest_response_error(response)),
         (int)rt_rest_response_status(response), (int)rt_rest_response_http_version(response));
}

static void post(char *line) {
  rt_rest_request *request = NULL;
  char *text = strchr(line, ' ');
  if (!text) exit(2);
  *text++ = '\0';
  check(rt_rest_request_new(rest, "POST", line, &request), line);
  check(rt_rest_request_set_body(request, (const uint8_t *)text, strlen(text), "text/plain"), line);
  check(rt_rest_request_send(request, on_posted, NULL, NULL, NULL, NULL), line);
  rt_rest_request_free(request);
  posting++;
}

/* A line is written whole, once the one before is answered. */
static void take_line(void) {
  char line[256];
  ssize_t count = read(STDIN_FILENO, line, sizeof line - 1);
  if (count <= 0) {
    over = true;
    return;
  }
  line[count - (line[count - 1] == '\n')] = '\0';
  post(line);
}

/* A client for requests to the server of the polls. */
static rt_status new_client(rt_loop *loop, const char *url) {
  const char *authority = strstr(url, "://");
  char base[128];
  if (!authority) return RT_ERROR_INVALID_URL;
  snprintf(base, sizeof base, "%.*s", (int)(authority + 3 + strcspn(authority + 3, "/") - url),
           url);
  return rt_rest_new(loop, base, &rest);
}

static void run(rt_loop *loop) {
  struct pollfd watched[2] = {{.fd = rt_loop_fd(loop), .events = POLLIN},
                              {.fd = STDIN_FILENO, .events = POLLIN}};
  while (!over || posting > 0) {
    fflush(stdout);
    if (poll(watched, 2, -1) < 0) continue;
    if (watched[1].revents) take_line();
    if (watched[0].revents) check(rt_loop_dispatch(loop, 0), "dispatch");
  }
}

int main(int argc, char **argv) {
  rt_loop *loop = NULL;
  char id[256];
  if (argc < 2) return 2;
  check(rt_set_log(RT_LOG_DEBUG, on_log, NULL, NULL), "log");
  check(rt_loop_new(&loop), "loop");
  check(rt_longpoll_new(loop, argv[1], &longpoll), "new");
  check(new_client(loop, argv[1]), "client");
  check(rt_network_new(&network), "network");
  for (int i = 2; i < argc; i++) {
    char *equals = strchr(argv[i], '=');
    if (!equals) return 2;
    *equals = '\0';
    option(argv[i], equals + 1);
  }
  check(rt_longpoll_on_open(longpoll, on_open, NULL, NULL), "on_open");
  check(rt_longpoll_on_message(longpoll, on_message, NULL, NULL), "on_message");
  check(rt_longpoll_on_error(longpoll, on_error, NULL, NULL), "on_error");
  check(rt_longpoll_on_request(longpoll, on_request, NULL, NULL), "on_request");
  check(rt_longpoll_start(longpoll), "start");
  run(loop);
  /* The cursor moves when the message's callback has returned. */
  check(rt_longpoll_get_last_event_id(longpoll, id, sizeof id, NULL), "id");
  printf("end %s\n", id);
  rt_longpoll_free(longpoll);
  rt_rest_free(rest);
  rt_network_free(network);
  rt_loop_free(loop);
  return 0;
}
