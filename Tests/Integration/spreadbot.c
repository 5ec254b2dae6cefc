/*
 * A Spreadbot connection that tests drive.
 *
 *   spreadbot URL [NAME=VALUE ...]
 *
 * Options: see `option`. Lines in: see `commands`. It ends with its standard input; log lines and
 * the texts of errors go to standard error.
 *
 * Lines out; legs are numbers, and "-" means none:
 *   open LEG RESUMED                        transport LEG
 *   message ID HAD_ID EVENT DATA            tokens ACCESS REFRESH
 *   error NAME LEG HTTP_STATUS RETRY_MS ATTEMPT
 *   fatal NAME LEG HTTP_STATUS              disconnected NAME
 *   numbered NUMBER                         sent NUMBER NAME HTTP_STATUS
 *   done NAME HTTP_STATUS BODY              state STATE PHASE LEG ID
 */
#include <inttypes.h>
#include <poll.h>
#include <realtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static rt_loop *loop;
static rt_spreadbot *bot;
static rt_rest *rest;
static rt_network *network;
static rt_reachability *reachability;

static void must(rt_status status, const char *what) {
  if (status == RT_OK) return;
  printf("refused %s %s %s\n", rt_status_name(status), what, rt_last_error());
  exit(3);
}

static const char *shown(const char *text) { return *text ? text : "-"; }

static void on_log(rt_log_level level, const char *line, void *user) {
  fprintf(stderr, "log %d %s\n", (int)level, line);
}

static void on_open(const rt_opened *opened, void *user) {
  printf("open %d %d\n", (int)opened->transport, opened->resumed);
}

static void on_transport(rt_spreadbot_transport transport, void *user) {
  printf("transport %d\n", (int)transport);
}

/* The message after which it pauses itself. */
static char pause_at[64];

static void on_message(const rt_event *event, void *user) {
  if (event->id[event->id_length] || event->event[event->event_length]) printf("no NUL\n");
  printf("message %s %d %s ", shown(event->id), event->had_id, shown(event->event));
  fwrite(event->data, 1, event->data_length, stdout);
  printf("\n");
  size_t length = event->data_length;
  if (length && length == strlen(pause_at) && !memcmp(event->data, pause_at, length))
    must(rt_spreadbot_pause(bot), "pause");
}

static void on_error(const rt_failure *failure, void *user) {
  fprintf(stderr, "error text: %s\n", failure->message);
  printf("%s %s %d %d", failure->fatal ? "fatal" : "error", rt_status_name(failure->status),
         (int)failure->transport, (int)failure->http_status);
  if (!failure->fatal) printf(" %" PRId64 " %" PRIu32, failure->retry_in_ms, failure->attempt);
  printf("\n");
}

static void on_tokens(const char *access_token, const char *refresh_token, void *user) {
  printf("tokens %s %s\n", access_token, refresh_token);
}

static void on_sent(const rt_spreadbot_sent *sent, void *user) {
  fprintf(stderr, "sent text: %s\n", sent->message);
  printf("sent %" PRIu64 " %s %d\n", sent->number, rt_status_name(sent->status),
         sent->response ? (int)rt_rest_response_status(sent->response) : 0);
}

static void on_disconnected(const rt_closed *closed, void *user) {
  fprintf(stderr, "end text: %s\n", closed->message);
  printf("disconnected %s\n", rt_status_name(closed->status));
}

static void on_done(rt_rest_response *response, void *user) {
  size_t length;
  const uint8_t *body = rt_rest_response_body(response, &length);
  printf("done %s %d %.*s\n", rt_status_name(rt_rest_response_error(response)),
         (int)rt_rest_response_status(response), (int)length, (const char *)body);
}

/* Options */

static void set_transports(char *value) {
  int32_t list[4];
  size_t count = 0;
  for (char *word = strtok(value, ","); word && count < 4; word = strtok(NULL, ","))
    list[count++] = (int32_t)atoi(word);
  must(rt_spreadbot_set_transports(bot, list, count), "transports");
}

static void set_pair(const char *name, char *value) {
  char *second = strchr(value, ',');
  if (!second) exit(2);
  *second++ = '\0';
  if (!strcmp(name, "auth")) must(rt_spreadbot_set_auth(bot, value, second), name);
  if (!strcmp(name, "tokens")) must(rt_spreadbot_set_tokens(bot, value, second), name);
  if (!strcmp(name, "header")) must(rt_spreadbot_add_header(bot, value, second), name);
  if (!strcmp(name, "upgrade")) {
    must(rt_spreadbot_set_upgrade_interval_ms(bot, atoi(value)), name);
    must(rt_spreadbot_set_max_upgrade_interval_ms(bot, atoi(second)), name);
  }
  if (!strcmp(name, "queue")) {
    must(rt_spreadbot_set_queue_capacity(bot, (uint32_t)atoi(value)), name);
    must(rt_spreadbot_set_queue_overflow(bot, atoi(second)), name);
  }
}

static bool set_text(const char *name, char *value) {
  if (!strcmp(name, "transports")) {
    set_transports(value);
  } else if (!strcmp(name, "ws_url")) {
    must(rt_spreadbot_set_transport_url(bot, RT_SPREADBOT_TRANSPORT_WEBSOCKET, value), name);
  } else if (!strcmp(name, "sse_url")) {
    must(rt_spreadbot_set_transport_url(bot, RT_SPREADBOT_TRANSPORT_SSE, value), name);
  } else if (!strcmp(name, "poll_url")) {
    must(rt_spreadbot_set_transport_url(bot, RT_SPREADBOT_TRANSPORT_POLL, value), name);
  } else if (!strcmp(name, "send_url")) {
    must(rt_spreadbot_set_send_url(bot, value), name);
  } else if (!strcmp(name, "token_query")) {
    must(rt_spreadbot_set_token_query_parameter(bot, value), name);
  } else if (!strcmp(name, "id_query")) {
    must(rt_spreadbot_set_id_query_parameter(bot, value), name);
  } else if (!strcmp(name, "id")) {
    must(rt_spreadbot_set_last_event_id(bot, value), name);
  } else if (!strcmp(name, "ca")) {
    must(rt_network_set_ca_file(network, value), name);
    must(rt_spreadbot_set_network(bot, network), name);
  } else if (!strcmp(name, "online")) {
    must(rt_reachability_new(loop, RT_REACHABILITY_MANUAL, &reachability), name);
    must(rt_reachability_set_online(reachability, atoi(value)), name);
    must(rt_spreadbot_set_reachability(bot, reachability), name);
  } else {
    return false;
  }
  return true;
}

static const struct {
  const char *name;
  rt_status (*set)(rt_spreadbot *, int64_t);
} times[] = {
    {"max_delay", rt_spreadbot_set_max_delay_ms},
    {"stable", rt_spreadbot_set_stable_time_ms},
    {"connect_timeout", rt_spreadbot_set_connect_timeout_ms},
    {"answer_timeout", rt_spreadbot_set_answer_timeout_ms},
    {"ping", rt_spreadbot_set_ping_interval_ms},
    {"poll_interval", rt_spreadbot_set_poll_interval_ms},
    {"poll_timeout", rt_spreadbot_set_poll_timeout_ms},
};

static bool set_time(const char *name, const char *value) {
  for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
    if (strcmp(name, times[i].name)) continue;
    must(times[i].set(bot, atoll(value)), name);
    return true;
  }
  return false;
}

static void option(const char *name, char *value) {
  if (set_time(name, value)) return;
  if (!strcmp(name, "max_reconnects")) {
    must(rt_spreadbot_set_max_reconnects(bot, (uint32_t)atoi(value)), name);
  } else if (!strcmp(name, "max_rounds")) {
    must(rt_spreadbot_set_max_rounds(bot, (uint32_t)atoi(value)), name);
  } else if (!strcmp(name, "max_redirects")) {
    must(rt_spreadbot_set_max_redirects(bot, atoi(value)), name);
  } else if (!strcmp(name, "compression")) {
    must(rt_spreadbot_set_compression(bot, atoi(value)), name);
  } else if (!strcmp(name, "http2")) {
    must(rt_spreadbot_set_http2(bot, atoi(value)), name);
  } else if (!set_text(name, value)) {
    set_pair(name, value);
  }
}

/* Commands */

static void establish(char *path) { must(rt_spreadbot_start(bot, path), path); }

static void disconnect(char *rest_of_line) { must(rt_spreadbot_close(bot), "disconnect"); }

/* A message's number is printed before its end, which a callback prints: the lock holds it up. */

static void text(char *payload) {
  uint64_t number;
  flockfile(stdout);
  must(rt_spreadbot_send_text(bot, payload, strlen(payload), &number), "text");
  printf("numbered %" PRIu64 "\n", number);
  funlockfile(stdout);
}

static void binary(char *payload) {
  uint64_t number;
  flockfile(stdout);
  must(rt_spreadbot_send_binary(bot, (const uint8_t *)payload, strlen(payload), &number), "binary");
  printf("numbered %" PRIu64 "\n", number);
  funlockfile(stdout);
}

static void cancel(char *number) {
  must(rt_spreadbot_cancel(bot, (uint64_t)atoll(number)), "cancel");
}

/* ACCESS[,REFRESH] */
static void tokens(char *value) {
  char *comma = strchr(value, ',');
  if (comma) *comma++ = '\0';
  must(rt_spreadbot_set_tokens(bot, value, comma), "tokens");
}

static void online(char *value) {
  must(rt_reachability_set_online(reachability, atoi(value)), "online");
}

/* METHOD PATH [BODY] */
static void request(char *line) {
  rt_rest_request *made;
  char *method = strtok(line, " "), *path = strtok(NULL, " "), *body = strtok(NULL, "");
  if (!path) exit(2);
  if (!rest) must(rt_spreadbot_new_rest(bot, &rest), "new_rest");
  must(rt_rest_request_new(rest, method, path, &made), "request");
  if (body)
    must(rt_rest_request_set_body(made, (const uint8_t *)body, strlen(body), "application/json"),
         "body");
  must(rt_rest_request_send(made, on_done, NULL, NULL, NULL, NULL), "send");
  rt_rest_request_free(made);
}

static void pause_it(char *rest_of_line) { must(rt_spreadbot_pause(bot), "pause"); }

static void pause_at_it(char *text) { snprintf(pause_at, sizeof pause_at, "%s", text); }

static void resume_it(char *rest_of_line) { must(rt_spreadbot_resume(bot), "resume"); }

static void state(char *rest_of_line) {
  char id[256];
  must(rt_spreadbot_get_last_event_id(bot, id, sizeof id, NULL), "id");
  printf("state %d %d %d %s\n", (int)rt_spreadbot_get_state(bot), (int)rt_spreadbot_get_phase(bot),
         (int)rt_spreadbot_get_transport(bot), shown(id));
}

static const struct {
  const char *name;
  void (*run)(char *);
} commands[] = {
    {"establish", establish}, {"disconnect", disconnect}, {"text", text},
    {"binary", binary},       {"cancel", cancel},         {"tokens", tokens},
    {"online", online},       {"request", request},       {"pause", pause_it},
    {"resume", resume_it},    {"state", state},           {"pause_at", pause_at_it},
};

static void command(char *line) {
  char nothing[] = "", *space = strchr(line, ' ');
  if (space) *space++ = '\0';
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
    if (strcmp(line, commands[i].name)) continue;
    commands[i].run(space ? space : nothing);
    return;
  }
  printf("refused %s: no such command\n", line);
  exit(2);
}

/* Takes lines from standard input; returns false at its end. */
static bool take_input(void) {
  static char buffer[1 << 16];
  static size_t used;
  char *newline;
  ssize_t count = read(STDIN_FILENO, buffer + used, sizeof buffer - used - 1);
  if (count <= 0) return false;
  used += (size_t)count;
  buffer[used] = '\0';
  while ((newline = strchr(buffer, '\n'))) {
    size_t length = (size_t)(newline + 1 - buffer);
    *newline = '\0';
    command(buffer);
    memmove(buffer, buffer + length, used - length + 1);
    used -= length;
  }
  return true;
}

static void run(void) {
  struct pollfd watched[2] = {{.fd = rt_loop_fd(loop), .events = POLLIN},
                              {.fd = STDIN_FILENO, .events = POLLIN}};
  do {
    fflush(stdout);
    if (poll(watched, 2, -1) < 0) continue;
    if (watched[0].revents) must(rt_loop_dispatch(loop, 0), "dispatch");
  } while (!watched[1].revents || take_input());
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  must(rt_set_log(RT_LOG_DEBUG, on_log, NULL, NULL), "log");
  must(rt_loop_new(&loop), "loop");
  must(rt_network_new(&network), "network");
  must(rt_spreadbot_new(loop, argv[1], &bot), "new");
  for (int i = 2; i < argc; i++) {
    char *equals = strchr(argv[i], '=');
    if (!equals) return 2;
    *equals = '\0';
    option(argv[i], equals + 1);
  }
  must(rt_spreadbot_on_open(bot, on_open, NULL, NULL), "on_open");
  must(rt_spreadbot_on_transport(bot, on_transport, NULL, NULL), "on_transport");
  must(rt_spreadbot_on_message(bot, on_message, NULL, NULL), "on_message");
  must(rt_spreadbot_on_error(bot, on_error, NULL, NULL), "on_error");
  must(rt_spreadbot_on_tokens(bot, on_tokens, NULL, NULL), "on_tokens");
  must(rt_spreadbot_on_sent(bot, on_sent, NULL, NULL), "on_sent");
  must(rt_spreadbot_on_closed(bot, on_disconnected, NULL, NULL), "on_disconnected");
  run();
  rt_spreadbot_free(bot);
  rt_rest_free(rest);
  rt_reachability_free(reachability);
  rt_network_free(network);
  rt_loop_free(loop);
  must(rt_set_log(RT_LOG_OFF, NULL, NULL, NULL), "log");
  return 0;
}
