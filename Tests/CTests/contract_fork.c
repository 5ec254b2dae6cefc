/* After a fork the child's copies of handles answer RT_ERROR_FORKED and leave the parent's alone;
 * the child can make handles of its own. */
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

  /* The parent's connection, timers and wake-ups go on as before. */
  CHECK_OK(rt_websocket_send_text(websocket, "parent", 6));
  TURN_UNTIL(loop, e.messages == 1);
  settle(loop);
  CHECK_OK(rt_websocket_close(websocket, 1000, NULL));
  TURN_UNTIL(loop, e.closed);
  CHECK(e.clean && e.errors == 0 && e.messages == 1);
  rt_websocket_free(websocket);
  rt_loop_free(loop);
  return 0;
}
