/*
 * Runs the loop on its own thread: rt_loop_start(), then calls from main. Callbacks run on the
 * loop's thread, so a mutex guards the data they share with main.
 *
 *   background_thread ws://127.0.0.1:8080/echo [CA.pem]
 */
#include <pthread.h>
#include <realtime.h>
#include <stdio.h>
#include <string.h>

enum { MESSAGE_COUNT = 10 };

struct shared {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  int received;
  bool open, closed, failed;
};

static void lock(struct shared *shared) { pthread_mutex_lock(&shared->mutex); }

static void unlock_and_tell(struct shared *shared) {
  pthread_cond_signal(&shared->changed);
  pthread_mutex_unlock(&shared->mutex);
}

static void on_open(const rt_opened *opened, void *user) {
  (void)opened;
  struct shared *shared = user;
  lock(shared);
  shared->open = true;
  unlock_and_tell(shared);
}

static void on_message(rt_message_kind kind, const uint8_t *data, size_t length, void *user) {
  (void)kind;
  struct shared *shared = user;
  printf("%.*s\n", (int)length, (const char *)data);
  lock(shared);
  shared->received += 1;
  unlock_and_tell(shared);
}

static void on_error(const rt_failure *failure, void *user) {
  struct shared *shared = user;
  fprintf(stderr, "background_thread: %s: %s\n", rt_status_name(failure->status), failure->message);
  lock(shared);
  shared->failed = true;
  unlock_and_tell(shared);
}

static void on_close(const rt_closed *closed, void *user) {
  (void)closed;
  struct shared *shared = user;
  lock(shared);
  shared->closed = true;
  unlock_and_tell(shared);
}

static bool converse(rt_websocket *websocket, struct shared *shared) {
  lock(shared);
  while (!shared->open && !shared->closed) pthread_cond_wait(&shared->changed, &shared->mutex);
  pthread_mutex_unlock(&shared->mutex);

  /* Send without the lock, because callbacks may need it in the meantime. */
  for (int i = 0; i < MESSAGE_COUNT; i++) {
    char text[32];
    int length = snprintf(text, sizeof text, "message %d", i);
    if (rt_websocket_send_text(websocket, text, (size_t)length) != RT_OK) break;
  }
  lock(shared);
  while (shared->received < MESSAGE_COUNT && !shared->closed)
    pthread_cond_wait(&shared->changed, &shared->mutex);
  pthread_mutex_unlock(&shared->mutex);

  rt_websocket_close(websocket, 1000, NULL);
  lock(shared);
  while (!shared->closed) pthread_cond_wait(&shared->changed, &shared->mutex);
  bool ok = shared->received == MESSAGE_COUNT && !shared->failed;
  pthread_mutex_unlock(&shared->mutex);
  return ok;
}

int main(int argc, char **argv) {
  struct shared shared = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
  rt_loop *loop = NULL;
  rt_websocket *websocket = NULL;
  bool ok = false;
  if (argc < 2 || argc > 3) {
    fprintf(stderr, "usage: background_thread URL [CA-FILE]\n");
    return 2;
  }
  if (rt_loop_new(&loop) == RT_OK && rt_websocket_new(loop, argv[1], &websocket) == RT_OK &&
      (argc == 2 || rt_websocket_set_ca_file(websocket, argv[2]) == RT_OK)) {
    rt_websocket_on_open(websocket, on_open, &shared, NULL);
    rt_websocket_on_message(websocket, on_message, &shared, NULL);
    rt_websocket_on_error(websocket, on_error, &shared, NULL);
    rt_websocket_on_closed(websocket, on_close, &shared, NULL);
    ok = rt_websocket_start(websocket) == RT_OK && rt_loop_start(loop) == RT_OK &&
         converse(websocket, &shared);
  }
  if (!ok) fprintf(stderr, "background_thread: failed %s\n", rt_last_error());
  rt_websocket_free(websocket);
  rt_loop_stop_and_wait(loop); /* No callback uses `shared` after this. */
  rt_loop_free(loop);
  return ok ? 0 : 1;
}
