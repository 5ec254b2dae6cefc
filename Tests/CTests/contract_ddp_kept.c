/* Documents that are kept between runs. */
#include "contract_ddp.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/stat.h>

static void heard_current(void *user) { note(user, "current"); }

static atomic_int files_begun, files_ended;

static void on_thread(rt_thread_event event, const char *name, void *user) {
  (void)user;
  if (strcmp(name, "realtime-file") == 0)
    atomic_fetch_add(event == RT_THREAD_BEGIN ? &files_begun : &files_ended, 1);
}

static void documents_are_kept_in_a_file(rt_loop *loop, const char *server) {
  heard h;
  char path[] = "/tmp/rt-ddp-XXXXXX", file[64], lock[72];
  struct stat status;
  uint64_t count;
  int descriptor;
  rt_ddp *ddp;
  CHECK(mkdtemp(path) != NULL);
  snprintf(file, sizeof file, "%s/documents", path);
  snprintf(lock, sizeof lock, "%s.lock", file);
  make_players(server);
  ddp = new_ddp(&h, loop, server);
  CHECK_OK(rt_ddp_set_document_file(ddp, file));
  CHECK(rt_ddp_has_stale_documents(ddp) == 0);
  connect_ddp(&h);
  CHECK_OK(rt_set_thread_hook(on_thread, NULL, NULL));
  subscribe(&h, "all");
  /* A thread of its own writes the file. */
  TURN_UNTIL(loop, files_ended > 0);
  CHECK_OK(rt_set_thread_hook(NULL, NULL, NULL));
  rt_ddp_free(ddp);
  settle(loop);
  CHECK(stat(file, &status) == 0 && (status.st_mode & 0777) == 0600);
  control(server, "remove", "{'collection': 'players', 'id': 'b'}");
  ddp = new_ddp(&h, loop, server);
  CHECK_OK(rt_ddp_set_document_file(ddp, file));
  CHECK_OK(rt_ddp_on_current(ddp, heard_current, &h, heard_destroyed));
  CHECK_OK(rt_ddp_count(ddp, "players", &count));
  CHECK(count == 2 && rt_ddp_has_stale_documents(ddp) == 1);
  CHECK_STATUS(rt_ddp_set_document_file(ddp, NULL), RT_ERROR_STATE);
  connect_ddp(&h);
  subscribe(&h, "all");
  CHECK(strcmp(h.text, "current;") == 0 && rt_ddp_has_stale_documents(ddp) == 0);
  CHECK_OK(rt_ddp_count(ddp, "players", &count));
  CHECK(count == 1);
  rt_ddp_free(ddp);
  settle(loop);
  CHECK(h.destroyed == 1);
  descriptor = open(file, O_WRONLY | O_TRUNC);
  CHECK(write(descriptor, "mine\n", 5) == 5 && close(descriptor) == 0);
  ddp = new_ddp(&h, loop, server);
  CHECK_OK(rt_ddp_set_document_file(ddp, file));
  CHECK_STATUS(rt_ddp_start(ddp), RT_ERROR_STORE);
  CHECK(strstr(rt_last_error(), "was not written by librealtime"));
  rt_ddp_free(ddp);
  CHECK_STATUS(rt_ddp_has_stale_documents(NULL), RT_ERROR_INVALID_ARGUMENT);
  CHECK(unlink(file) == 0 && unlink(lock) == 0 && rmdir(path) == 0);
}

int main(int argc, char **argv) {
  rt_loop *loop;
  CHECK(argc == 2);
  loop = new_loop();
  documents_are_kept_in_a_file(loop, argv[1]);
  TURN_UNTIL(loop, files_begun == files_ended);
  rt_loop_free(loop);
  return 0;
}
