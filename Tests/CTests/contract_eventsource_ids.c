/* Ids that wait to be written when their loop ends. */
#include "contract.h"
#include <unistd.h>

static void on_any(const char *id, size_t id_length, const char *event, size_t event_length,
                   const char *data, size_t data_length, bool had_id, void *user) {
  CHECK(id[id_length] == '\0' && event[event_length] == '\0' && data[data_length] == '\0');
  CHECK(had_id);
  ++*(int *)user;
}

int main(int argc, char **argv) {
  rt_loop *loop = new_loop();
  rt_eventsource *source = NULL;
  char url[256], path[64];
  int count = 0;
  CHECK(argc == 2);
  CHECK(snprintf(url, sizeof url, "http%s/events/3", argv[1] + 2) > 0);
  CHECK(snprintf(path, sizeof path, "/tmp/contract_loop_ids.%d", (int)getpid()) > 0);
  unlink(path);
  CHECK_OK(rt_eventsource_new(loop, url, &source));
  CHECK_OK(rt_eventsource_on_any(source, on_any, &count, NULL));
  CHECK_OK(rt_eventsource_set_id_file(source, path, NULL));
  CHECK_OK(rt_eventsource_set_confirms_ids(source, true));
  CHECK_OK(rt_eventsource_start(source));
  TURN_UNTIL(loop, count == 3);
  CHECK_OK(rt_eventsource_confirm_id(source, "2"));
  rt_loop_free(loop);
  CHECK(unlink(path) == 0);
  rt_eventsource_free(source);
  CHECK(access(path, F_OK) != 0);
  CHECK(strcat(path, ".lock") && unlink(path) == 0);
  return 0;
}
