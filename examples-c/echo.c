/*
 * Sends each line of standard input as a text message and prints the answers. Reads the next line
 * when the previous one has been answered, and checks that the answer is the same.
 *
 *   printf 'one\ntwo\n' | echo wss://example.org/echo [CA.pem]
 */
#include <realtime.h>
#include <stdio.h>
#include <string.h>

struct echo {
  rt_loop *loop;
  rt_websocket *websocket;
  char line[4096];
  bool failed;
};

/* For calls that must not fail here: prints which one did, and remembers it. */
static bool check(struct echo *echo, rt_status status, const char *call) {
  if (status == RT_OK) return true;
  fprintf(stderr, "echo: %s: %s: %s\n", call, rt_status_name(status), rt_last_error());
  echo->failed = true;
  return false;
}

static void send_next_line(struct echo *echo) {
  if (!fgets(echo->line, sizeof echo->line, stdin)) {
    check(echo, rt_websocket_close(echo->websocket, 1000, "end of input"), "close");
    return;
  }
  size_t length = strcspn(echo->line, "\n");
  echo->line[length] = '\0';
  if (!check(echo, rt_websocket_send_text(echo->websocket, echo->line, length), "send"))
    check(echo, rt_websocket_close(echo->websocket, 1000, NULL), "close");
}

static void on_open(const rt_opened *opened, void *user) {
  fprintf(stderr, "open; extensions: %s\n", *opened->extensions ? opened->extensions : "none");
  send_next_line(user);
}

static void on_message(rt_message_kind kind, const uint8_t *data, size_t length, void *user) {
  struct echo *echo = user;
  if (kind != RT_MESSAGE_TEXT || length != strlen(echo->line) ||
      memcmp(data, echo->line, length) != 0) {
    fprintf(stderr, "echo: the answer is not what was sent\n");
    echo->failed = true;
  }
  fwrite(data, 1, length, stdout);
  putchar('\n');
  send_next_line(echo);
}

static void on_error(const rt_failure *failure, void *user) {
  struct echo *echo = user;
  fprintf(stderr, "echo: %s: %s\n", rt_status_name(failure->status), failure->message);
  echo->failed = true;
}

static void on_close(const rt_closed *closed, void *user) {
  struct echo *echo = user;
  fprintf(stderr, "closed with %d %.*s\n", closed->code, (int)closed->reason_length,
          closed->reason);
  if (!closed->clean) echo->failed = true;
  rt_loop_stop(echo->loop);
}

static bool run(struct echo *echo, const char *url, const char *ca_file) {
  if (!check(echo, rt_loop_new(&echo->loop), "loop")) return false;
  if (!check(echo, rt_websocket_new(echo->loop, url, &echo->websocket), url)) return false;
  rt_websocket *websocket = echo->websocket;
  if (ca_file && !check(echo, rt_websocket_set_ca_file(websocket, ca_file), ca_file)) return false;

  /* Setters of callbacks fail only after start; one check of start covers them. */
  rt_websocket_on_open(websocket, on_open, echo, NULL);
  rt_websocket_on_message(websocket, on_message, echo, NULL);
  rt_websocket_on_error(websocket, on_error, echo, NULL);
  rt_websocket_on_closed(websocket, on_close, echo, NULL);
  return check(echo, rt_websocket_start(websocket), "start") &&
         check(echo, rt_loop_run(echo->loop), "run") && !echo->failed;
}

int main(int argc, char **argv) {
  if (argc < 2 || argc > 3) {
    fprintf(stderr, "usage: echo URL [CA-FILE]\n");
    return 2;
  }
  struct echo echo = {0};
  bool ok = run(&echo, argv[1], argc == 3 ? argv[2] : NULL);
  rt_websocket_free(echo.websocket);
  rt_loop_free(echo.loop);
  return ok ? 0 : 1;
}
