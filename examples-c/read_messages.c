/*
 * Prints the messages of a path, each once and in order, over whichever transport works.
 *
 *   read_messages https://example.org news
 */
#include <realtime.h>
#include <stdio.h>

int main(int argc, char **argv) {
  rt_spreadbot *spreadbot = NULL;
  rt_event *message = NULL;
  if (argc != 3) fprintf(stderr, "usage: read_messages URL PATH\n");
  if (argc != 3 || rt_spreadbot_new(NULL, argv[1], &spreadbot)) return 2;
  rt_status status = rt_spreadbot_connect(spreadbot, argv[2], -1);
  while (!status && !(status = rt_spreadbot_receive(spreadbot, -1, &message))) {
    printf("%s: %s\n", message->id, message->data);
    fflush(stdout);
    rt_event_free(message);
  }
  fprintf(stderr, "read_messages: %s\n", rt_last_error());
  rt_spreadbot_free(spreadbot);
  return 1;
}
