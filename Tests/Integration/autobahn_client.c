/*
 * The client for an Autobahn fuzzing server: runs every case that the server offers, echoes each
 * message with its kind, then asks for the reports.
 *
 *   autobahn_client ws://127.0.0.1:9001 AGENT [no-context]
 *
 * no-context offers client_no_context_takeover, which cases 13.2, 13.5 and 13.6 need. The server
 * judges how the library behaves in a case; the exit code is 1 if a connection that must work does
 * not open.
 */
#include <realtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIMEOUT_MS = 120000, URL_SIZE = 512 };

struct client {
  rt_loop *loop;
  rt_websocket *websocket;
  const char *server;
  const char *agent;
  bool no_context;
  bool opened;
  long case_count;
};

static bool check(rt_status status, const char *call) {
  if (status == RT_OK) return true;
  fprintf(stderr, "autobahn_client: %s: %s: %s\n", call, rt_status_name(status), rt_last_error());
  return false;
}

static void on_open(const rt_opened *opened, void *user) {
  (void)opened;
  ((struct client *)user)->opened = true;
}

static void echo(rt_message_kind kind, const uint8_t *data, size_t length, void *user) {
  rt_websocket *websocket = ((struct client *)user)->websocket;
  /* In some cases the peer's last frames end the connection, so that no echo can be sent. */
  rt_status status = kind == RT_MESSAGE_TEXT
                         ? rt_websocket_send_text(websocket, (const char *)data, length)
                         : rt_websocket_send_binary(websocket, data, length);
  if (status != RT_OK && status != RT_ERROR_CLOSED) check(status, "send");
}

static void read_case_count(
    rt_message_kind kind, const uint8_t *data, size_t length, void *user) {
  (void)kind;
  /* The bytes of a message do not end in NUL. */
  char digits[16];
  snprintf(digits, sizeof digits, "%.*s", (int)length, (const char *)data);
  ((struct client *)user)->case_count = strtol(digits, NULL, 10);
}

static void on_error(const rt_failure *failure, void *user) {
  if (!((struct client *)user)->opened)
    fprintf(stderr, "autobahn_client: %s: %s\n", rt_status_name(failure->status), failure->message);
}

static void on_close(const rt_closed *closed, void *user) {
  (void)closed;
  rt_loop_stop(((struct client *)user)->loop);
}

/* Some cases have megabytes in small fragments, and some wait for seconds. Those of deflate want
 * every echo compressed, however small. */
static bool configure(struct client *client, rt_websocket_message_fn on_message) {
  rt_websocket *websocket = client->websocket;
  return check(rt_websocket_set_open_timeout_ms(websocket, TIMEOUT_MS), "open timeout") &&
         check(rt_websocket_set_close_timeout_ms(websocket, TIMEOUT_MS), "close timeout") &&
         check(rt_websocket_set_ping_interval_ms(websocket, 0), "ping interval") &&
         check(rt_websocket_set_max_message_bytes(websocket, 0), "message limit") &&
         check(rt_websocket_set_send_limit_bytes(websocket, 0), "send limit") &&
         check(rt_websocket_set_compression_min_bytes(websocket, 0), "smallest compressed") &&
         check(rt_websocket_set_client_no_context_takeover(websocket, client->no_context),
               "no context") &&
         check(rt_websocket_on_open(websocket, on_open, client, NULL), "on_open") &&
         check(rt_websocket_on_message(websocket, on_message, client, NULL), "on_message") &&
         check(rt_websocket_on_error(websocket, on_error, client, NULL), "on_error") &&
         check(rt_websocket_on_closed(websocket, on_close, client, NULL), "on_close");
}

/* Runs one connection from start to end. */
static bool converse(struct client *client, const char *path, rt_websocket_message_fn on_message) {
  char url[URL_SIZE];
  int length = snprintf(url, sizeof url, "%s%s", client->server, path);
  if (length < 0 || length >= URL_SIZE) return false;
  client->opened = false;
  bool ran = check(rt_websocket_new(client->loop, url, &client->websocket), url) &&
             configure(client, on_message) &&
             check(rt_websocket_start(client->websocket), "start") &&
             check(rt_loop_run(client->loop), "run");
  rt_websocket_free(client->websocket);
  client->websocket = NULL;
  if (ran && !client->opened) fprintf(stderr, "autobahn_client: %s did not open\n", url);
  return ran && client->opened;
}

static bool run(struct client *client) {
  char path[URL_SIZE];
  if (!check(rt_loop_new(&client->loop), "loop")) return false;
  if (!converse(client, "/getCaseCount", read_case_count)) return false;
  for (long i = 1; i <= client->case_count; i++) {
    snprintf(path, sizeof path, "/runCase?case=%ld&agent=%s", i, client->agent);
    if (!converse(client, path, echo)) return false;
  }
  snprintf(path, sizeof path, "/updateReports?agent=%s", client->agent);
  return converse(client, path, echo) && client->case_count > 0;
}

int main(int argc, char **argv) {
  if (argc < 3 || argc > 4 || (argc == 4 && strcmp(argv[3], "no-context") != 0)) {
    fprintf(stderr, "usage: autobahn_client SERVER AGENT [no-context]\n");
    return 2;
  }
  struct client client = {.server = argv[1], .agent = argv[2], .no_context = argc == 4};
  bool ok = run(&client);
  rt_loop_free(client.loop);
  return ok ? 0 : 1;
}
