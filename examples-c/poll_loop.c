/*
 * Runs the library inside the program's own poll(2) loop: standard input and the WebSocket share
 * one thread. Sends each line as a message and prints each message as a line. Ends when all lines
 * have been answered after the end of input.
 *
 * rt_loop_fd() is readable whenever there is work, including timers: no timeout to compute.
 */
#include <errno.h>
#include <poll.h>
#include <realtime.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct client {
  rt_websocket *websocket;
  size_t unanswered;
  bool open, input_ended, closed, failed;
};

static void close_when_done(struct client *client) {
  if (client->input_ended && client->unanswered == 0)
    rt_websocket_close(client->websocket, 1000, NULL);
}

static void on_open(const rt_opened *opened, void *user) {
  (void)opened;
  ((struct client *)user)->open = true;
}

static void on_message(rt_message_kind kind, const uint8_t *data, size_t length, void *user) {
  (void)kind;
  struct client *client = user;
  printf("%.*s\n", (int)length, (const char *)data);
  client->unanswered -= client->unanswered > 0;
  close_when_done(client);
}

static void on_error(const rt_failure *failure, void *user) {
  fprintf(stderr, "poll_loop: %s: %s\n", rt_status_name(failure->status), failure->message);
  ((struct client *)user)->failed = true;
}

static void on_close(const rt_closed *closed, void *user) {
  (void)closed;
  ((struct client *)user)->closed = true;
}

/* Sends the complete lines read so far; keeps the rest until its line is complete. */
static void read_input(struct client *client) {
  static char buffer[4096];
  static size_t held;
  ssize_t count = read(STDIN_FILENO, buffer + held, sizeof buffer - held);
  if (count < 0 && errno == EINTR) return;
  held += count > 0 ? (size_t)count : 0;
  for (char *end; (end = memchr(buffer, '\n', held));) {
    size_t length = (size_t)(end - buffer);
    if (rt_websocket_send_text(client->websocket, buffer, length) == RT_OK)
      client->unanswered += 1;
    else
      fprintf(stderr, "poll_loop: not sent: %s\n", rt_last_error());
    held -= length + 1;
    memmove(buffer, end + 1, held);
  }
  if (count <= 0 || held == sizeof buffer) {
    client->failed = client->failed || count < 0 || held == sizeof buffer;
    client->input_ended = true;
    close_when_done(client);
  }
}

static bool run(rt_loop *loop, struct client *client) {
  struct pollfd watched[] = {{.fd = rt_loop_fd(loop), .events = POLLIN}, {.events = POLLIN}};
  while (!client->closed) {
    /* Nothing can be sent before open; poll ignores a negative descriptor. */
    watched[1].fd = client->open && !client->input_ended ? STDIN_FILENO : -1;
    if (poll(watched, 2, -1) < 0) {
      if (errno == EINTR) continue;
      perror("poll");
      return false;
    }
    if (watched[0].revents && rt_loop_dispatch(loop, 0) != RT_OK) return false;
    if (watched[1].revents && !client->closed) read_input(client);
  }
  return !client->failed;
}

int main(int argc, char **argv) {
  struct client client = {0};
  rt_loop *loop = NULL;
  bool ok = false;
  if (argc < 2 || argc > 3) {
    fprintf(stderr, "usage: poll_loop URL [CA-FILE]\n");
    return 2;
  }
  if (rt_loop_new(&loop) == RT_OK && rt_websocket_new(loop, argv[1], &client.websocket) == RT_OK &&
      (argc == 2 || rt_websocket_set_ca_file(client.websocket, argv[2]) == RT_OK)) {
    rt_websocket_on_open(client.websocket, on_open, &client, NULL);
    rt_websocket_on_message(client.websocket, on_message, &client, NULL);
    rt_websocket_on_error(client.websocket, on_error, &client, NULL);
    rt_websocket_on_closed(client.websocket, on_close, &client, NULL);
    ok = rt_websocket_start(client.websocket) == RT_OK && run(loop, &client);
  }
  if (!ok) fprintf(stderr, "poll_loop: failed %s\n", rt_last_error());
  rt_websocket_free(client.websocket);
  rt_loop_free(loop);
  return ok ? 0 : 1;
}
