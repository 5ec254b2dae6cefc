/*
 * Sends numbers on a Spreadbot connection with an outbox, and prints each one whose call has
 * returned.
 *
 *   durable BASE_URL OUTBOX FIRST [COUNT]
 *
 * Numbers go to the path "in", from FIRST up: as texts, every third one by rt_spreadbot_post. After
 * COUNT numbers it waits for the end of its standard input. Lines out: the numbers; without COUNT,
 * "sent" for each one that the server has confirmed. Errors go to standard error.
 */
#include <inttypes.h>
#include <realtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void check(rt_status status, const char *what) {
  if (status == RT_OK) return;
  fprintf(stderr, "%s: %s\n", what, rt_last_error());
  exit(3);
}

static void on_sent(const rt_spreadbot_sent *sent, void *user) {
  if (user && sent->status == RT_OK) {
    printf("sent\n");
    fflush(stdout);
  }
  if (sent->status != RT_OK) fprintf(stderr, "send %" PRIu64 ": %s\n", sent->number, sent->message);
}

static void send(rt_spreadbot *spreadbot, long number) {
  char text[24];
  size_t length = (size_t)snprintf(text, sizeof text, "%ld", number);
  if (number % 3 == 0)
    check(rt_spreadbot_post(spreadbot, "in", "text/plain", (const uint8_t *)text, length, NULL),
          "post");
  else
    check(rt_spreadbot_send_text(spreadbot, text, length, NULL), "send");
  printf("%s\n", text);
  fflush(stdout);
}

int main(int argc, char **argv) {
  rt_loop *loop = NULL;
  rt_spreadbot *spreadbot = NULL;
  char end[64];
  if (argc < 4) return 2;
  check(rt_loop_new(&loop), "loop");
  check(rt_loop_start(loop), "start");
  check(rt_spreadbot_new(loop, argv[1], &spreadbot), argv[1]);
  check(rt_spreadbot_set_outbox(spreadbot, argv[2]), argv[2]);
  check(rt_spreadbot_on_sent(spreadbot, on_sent, argc > 4 ? NULL : loop, NULL), "on_sent");
  check(rt_spreadbot_start(spreadbot, "in"), "establish");
  long first = strtol(argv[3], NULL, 10), count = argc > 4 ? strtol(argv[4], NULL, 10) : 0;
  for (long number = first; number < first + count; number++) send(spreadbot, number);
  while (read(STDIN_FILENO, end, sizeof end) > 0) continue;
  rt_spreadbot_free(spreadbot);
  rt_loop_free(loop);
  return 0;
}
