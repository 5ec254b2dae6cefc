/* Prints whether there is a network, now and at each change, until standard input ends; log lines
 * go to standard error. It has two monitors, so a report that came once per monitor would be seen.
 * */
#include <poll.h>
#include <realtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void check(rt_status status) {
  if (status == RT_OK) return;
  fprintf(stderr, "%s: %s\n", rt_status_name(status), rt_last_error());
  exit(2);
}

static void tell(bool online, void *user) {
  printf("%s%s\n", (const char *)user, online ? "online" : "offline");
  fflush(stdout);
}

static void on_log(rt_log_level level, const char *line, void *user) {
  fprintf(stderr, "log %d %s\n", level, line);
}

int main(void) {
  rt_loop *loop = NULL;
  rt_reachability *one = NULL, *other = NULL;
  bool online = false;
  check(rt_set_log(RT_LOG_DEBUG, on_log, NULL, NULL));
  check(rt_loop_new(&loop));
  check(rt_reachability_new(loop, RT_REACHABILITY_AUTO, &one));
  check(rt_reachability_new(loop, RT_REACHABILITY_AUTO, &other));
  check(rt_reachability_on_change(one, tell, "", NULL));
  check(rt_reachability_is_online(other, &online));
  tell(online, "");
  for (;;) {
    struct pollfd fds[] = {{.fd = rt_loop_fd(loop), .events = POLLIN},
                           {.fd = STDIN_FILENO, .events = POLLIN}};
    if (poll(fds, 2, -1) < 0) return 2;
    if (fds[0].revents) check(rt_loop_dispatch(loop, 0));
    if (fds[1].revents) break;
  }
  rt_reachability_free(one);
  rt_reachability_free(other);
  rt_loop_free(loop);
  check(rt_set_log(RT_LOG_OFF, NULL, NULL, NULL));
  return 0;
}
