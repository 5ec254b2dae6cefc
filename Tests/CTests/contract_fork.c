/* After a fork, the child's copies of handles return RT_ERROR_FORKED and do not affect the
 * parent's. The child can create handles of its own. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "contract.h"

static void inherited_handles(rt_loop *loop, rt_websocket *websocket) {
  int destroyed = 0;
  rt_websocket *other = NULL;
  CHECK_STATUS(rt_loop_fd(loop), RT_ERROR_FORKED);
  CHECK_STATUS(rt_websocket_get_state(websocket), RT_ERROR_FORKED);
  CHECK_STATUS(rt_loop_dispatch(loop, 0), RT_ERROR_FORKED);
  CHECK_STATUS(rt_loop_run(loop), RT_ERROR_FORKED);
  CHECK_STATUS(rt_loop_stop(loop), RT_ERROR_FORKED);
  CHECK_STATUS(rt_loop_start(loop), RT_ERROR_FORKED);
  CHECK_STATUS(rt_loop_stop_and_wait(loop), RT_ERROR_FORKED);
  CHECK_STATUS(rt_loop_post(loop, count_up, &destroyed, count_up), RT_ERROR_FORKED);
  CHECK(destroyed == 1);
  CHECK_STATUS(rt_loop_add_timer(loop, 0, 0, count_up, NULL, NULL, NULL), RT_ERROR_FORKED);
  CHECK_STATUS(rt_loop_cancel_timer(loop, 1), RT_ERROR_FORKED);
  CHECK_STATUS(rt_websocket_new(loop, "ws://127.0.0.1/", &other), RT_ERROR_FORKED);
  CHECK(other == NULL);
  CHECK_STATUS(rt_websocket_start(websocket), RT_ERROR_FORKED);
  CHECK_STATUS(rt_websocket_send_text(websocket, "child", 5), RT_ERROR_FORKED);
  CHECK_STATUS(rt_websocket_send_binary(websocket, (const uint8_t *)"child", 5),
               RT_ERROR_FORKED);
  CHECK_STATUS(rt_websocket_ping(websocket, NULL, 0), RT_ERROR_FORKED);
  CHECK_STATUS(rt_websocket_close(websocket, 1000, NULL), RT_ERROR_FORKED);
  CHECK_STATUS(rt_websocket_pause(websocket), RT_ERROR_FORKED);
  CHECK_STATUS(rt_websocket_resume(websocket), RT_ERROR_FORKED);
  rt_websocket_free(websocket);
  rt_loop_free(loop);
}

static void echo_once(rt_loop *loop, const char *server) {
  rt_websocket *websocket = new_websocket(loop, server, "/echo");
  events e = {0};
  listen_to(websocket, &e);
  CHECK_OK(rt_websocket_start(websocket));
  TURN_UNTIL(loop, e.opened);
  CHECK_OK(rt_websocket_send_text(websocket, "own", 3));
  TURN_UNTIL(loop, e.messages == 1);
  rt_websocket_free(websocket);
}

static void child(rt_loop *loop, rt_websocket *websocket, const char *server) {
  rt_loop *own;
  inherited_handles(loop, websocket);
  own = new_loop();
  echo_once(own, server);
  rt_loop_free(own);
}

static void echo_by_waiting(rt_websocket *websocket) {
  rt_received *message = NULL;
  CHECK_OK(rt_websocket_connect(websocket, -1));
  CHECK_OK(rt_websocket_send_text(websocket, "own", 3));
  CHECK_OK(rt_websocket_receive(websocket, -1, &message));
  CHECK(strcmp((const char *)message->data, "own") == 0);
  rt_received_free(message);
}

/* The child gets its own copy of the library's shared loop. */
static void calls_that_wait(const char *server) {
  rt_websocket *websocket = new_websocket(NULL, server, "/echo"), *other;
  rt_eventsource *source = NULL;
  rt_received *message = NULL;
  rt_event *event = NULL;
  char url[256];
  int status = -1;
  pid_t pid;
  echo_by_waiting(websocket);
  snprintf(url, sizeof url, "http%s/events/2", server + 2);
  CHECK_OK(rt_eventsource_new(NULL, url, &source));
  CHECK_OK(rt_eventsource_receive(source, -1, &event));
  rt_event_free(event);
  fflush(stdout);
  pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    CHECK_STATUS(rt_websocket_connect(websocket, -1), RT_ERROR_FORKED);
    CHECK_STATUS(rt_websocket_receive(websocket, -1, &message), RT_ERROR_FORKED);
    CHECK_STATUS(rt_eventsource_receive(source, -1, &event), RT_ERROR_FORKED);
    other = new_websocket(NULL, server, "/echo");
    echo_by_waiting(other);
    rt_websocket_free(other);
    rt_websocket_free(websocket);
    _exit(0);
  }
  CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  echo_by_waiting(websocket);
  CHECK_OK(rt_eventsource_receive(source, -1, &event));
  rt_event_free(event);
  rt_eventsource_free(source);
  rt_websocket_free(websocket);
}

/* A listener whose accept queue is full, so connecting to it never succeeds or fails. */
static int full_listener(int *port, int fillers[2]) {
  int listener = socket(AF_INET, SOCK_STREAM, 0), index;
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof at;
  CHECK(listener >= 0 && bind(listener, (struct sockaddr *)&at, size) == 0);
  CHECK(listen(listener, 0) == 0);
  CHECK(getsockname(listener, (struct sockaddr *)&at, &size) == 0);
  *port = ntohs(at.sin_port);
  for (index = 0; index < 2; index++) {
    fillers[index] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    (void)connect(fillers[index], (struct sockaddr *)&at, size);
  }
  return listener;
}

static void on_done(rt_rest_response *response, void *user) {
  *(rt_status *)user = rt_rest_response_error(response);
}

/* The child inherits sockets that are connecting when the process forks, and keeps them open. If
 * the parent then gives these connections up, the kernel still reports their events to the parent's
 * epoll, where no object expects them. */
static void abandoned_while_connecting(void) {
  rt_loop *loop = new_loop();
  rt_network *network;
  rt_websocket *websocket;
  rt_rest *rest;
  rt_rest_request *get;
  rt_status outcome = RT_OK;
  uint64_t id;
  int port, fillers[2], turns = 0, listener = full_listener(&port, fillers), turn;
  char url[64];
  int64_t end_ms;
  pid_t pid;

  CHECK_OK(rt_network_new(&network));
  CHECK_OK(rt_network_set_proxy(network, ""));
  snprintf(url, sizeof url, "ws://127.0.0.1:%d/", port);
  CHECK_OK(rt_websocket_new(loop, url, &websocket));
  CHECK_OK(rt_websocket_set_network(websocket, network));
  CHECK_OK(rt_websocket_start(websocket));
  snprintf(url, sizeof url, "http://127.0.0.1:%d", port);
  CHECK_OK(rt_rest_new(loop, url, &rest));
  CHECK_OK(rt_rest_set_network(rest, network));
  CHECK_OK(rt_rest_request_new(rest, "GET", "/", &get));
  CHECK_OK(rt_rest_request_send(get, on_done, &outcome, NULL, &id, NULL));
  for (turn = 0; turn < 10; turn++) CHECK_OK(rt_loop_dispatch(loop, 10));

  fflush(stdout);
  pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    close(listener);
    pause();
    _exit(0);
  }
  CHECK_OK(rt_rest_cancel(rest, id));
  TURN_UNTIL(loop, outcome == RT_ERROR_CANCELLED);
  rt_websocket_free(websocket);
  settle(loop);
  /* The kernel repeats the SYN after a second; the peer refuses it now. */
  close(listener);
  for (end_ms = now_ms() + 2500; now_ms() < end_ms; turns++) {
    CHECK_OK(rt_loop_dispatch(loop, 500));
    CHECK(turns < 100);
  }

  kill(pid, SIGKILL);
  CHECK(waitpid(pid, NULL, 0) == pid);
  close(fillers[0]);
  close(fillers[1]);
  rt_rest_request_free(get);
  rt_rest_free(rest);
  rt_network_free(network);
  rt_loop_free(loop);
}

/* Holds the outbox's lock, and sends the process id of a child that outlives it. */
static void hold_outbox(const char *path, int told) {
  rt_loop *loop = new_loop();
  rt_spreadbot *spreadbot;
  pid_t pid;
  CHECK_OK(rt_spreadbot_new(loop, "http://127.0.0.1:1/", &spreadbot));
  CHECK_OK(rt_spreadbot_set_outbox(spreadbot, path));
  /* End both processes even if the test fails. */
  alarm(60);
  pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    alarm(60);
    /* Freeing the parent's handle in the child does not release the parent's lock. */
    rt_spreadbot_free(spreadbot);
    pid = getpid();
    CHECK(write(told, &pid, sizeof pid) == sizeof pid);
  }
  for (;;) pause();
}

/* A forked child that executes no program does not keep its dead parent's lock. */
static void lock_of_a_dead_parent(void) {
  char path[] = "/tmp/contract_fork_XXXXXX";
  int pipes[2], file = mkstemp(path);
  pid_t holder, left = 0;
  rt_loop *loop;
  rt_spreadbot *spreadbot;
  CHECK(file >= 0 && close(file) == 0 && pipe(pipes) == 0);
  fflush(stdout);
  holder = fork();
  CHECK(holder >= 0);
  if (holder == 0) hold_outbox(path, pipes[1]);
  close(pipes[1]);
  CHECK(read(pipes[0], &left, sizeof left) == sizeof left);

  loop = new_loop();
  CHECK_OK(rt_spreadbot_new(loop, "http://127.0.0.1:1/", &spreadbot));
  CHECK_STATUS(rt_spreadbot_set_outbox(spreadbot, path), RT_ERROR_BUSY);
  CHECK(kill(holder, SIGKILL) == 0 && waitpid(holder, NULL, 0) == holder);
  CHECK(kill(left, 0) == 0);
  CHECK_OK(rt_spreadbot_set_outbox(spreadbot, path));
  CHECK(kill(left, SIGKILL) == 0);
  rt_spreadbot_free(spreadbot);
  rt_loop_free(loop);
  close(pipes[0]);
  CHECK(unlink(path) == 0);
}

int main(int argc, char **argv) {
  rt_loop *loop;
  rt_websocket *websocket;
  events e = {0};
  pid_t pid;
  int status = -1;

  CHECK(argc == 2);
  loop = new_loop();
  websocket = new_websocket(loop, argv[1], "/echo");
  listen_to(websocket, &e);
  CHECK_OK(rt_websocket_start(websocket));
  TURN_UNTIL(loop, e.opened);

  fflush(stdout);
  pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    child(loop, websocket, argv[1]);
    CHECK(e.messages == 0 && e.closed == 0);
    return 0;
  }
  CHECK(waitpid(pid, &status, 0) == pid);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);

  /* The parent's connection, timers and wake-ups still work. */
  CHECK_OK(rt_websocket_send_text(websocket, "parent", 6));
  TURN_UNTIL(loop, e.messages == 1);
  settle(loop);
  CHECK_OK(rt_websocket_close(websocket, 1000, NULL));
  TURN_UNTIL(loop, e.closed);
  CHECK(e.clean && e.errors == 0 && e.messages == 1);
  rt_websocket_free(websocket);
  rt_loop_free(loop);
  abandoned_while_connecting();
  calls_that_wait(argv[1]);
  lock_of_a_dead_parent();
  return 0;
}
