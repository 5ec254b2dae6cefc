/* Blocking calls that wait for a connection and for its messages, with the library's own loop or
 * one on a thread, from one thread or several. */
#include <pthread.h>
#include <unistd.h>

#include "contract.h"

static void expect_text(rt_websocket *websocket, const char *text) {
  rt_received *message = NULL;
  CHECK_OK(rt_websocket_receive(websocket, PATIENCE_MS, &message));
  CHECK(message->struct_bytes == sizeof *message && message->kind == RT_MESSAGE_TEXT);
  CHECK(message->length == strlen(text));
  CHECK(strcmp((const char *)message->data, text) == 0);
  rt_received_free(message);
}

static void converses(const char *server, rt_loop *loop) {
  rt_websocket *websocket = new_websocket(loop, server, "/echo");
  rt_received *message = NULL;
  CHECK_STATUS(rt_websocket_receive(websocket, 0, &message), RT_ERROR_STATE);
  CHECK_OK(rt_websocket_connect(websocket, -1));
  CHECK_OK(rt_websocket_connect(websocket, 0));
  CHECK_STATUS(rt_websocket_receive(websocket, 0, &message), RT_ERROR_TIMEOUT);
  CHECK_STATUS(rt_websocket_receive(websocket, 10, &message), RT_ERROR_TIMEOUT);
  CHECK(message == NULL);
  CHECK_OK(rt_websocket_send_text(websocket, "hello", 5));
  expect_text(websocket, "hello");
  CHECK_OK(rt_websocket_send_binary(websocket, (const uint8_t *)"", 0));
  CHECK_OK(rt_websocket_receive(websocket, -1, &message));
  CHECK(message->kind == RT_MESSAGE_BINARY && message->length == 0 && message->data[0] == 0);
  rt_received_free(message);
  rt_received_free(NULL);
  CHECK_STATUS(rt_websocket_receive(websocket, -2, &message), RT_ERROR_INVALID_ARGUMENT);
  CHECK(strstr(rt_last_error(), "-1 or more"));
  CHECK_STATUS(rt_websocket_receive(websocket, 0, NULL), RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_websocket_close(websocket, 1000, "done"));
  CHECK_STATUS(rt_websocket_receive(websocket, -1, &message), RT_ERROR_CLOSED);
  CHECK(strstr(rt_last_error(), "1000"));
  CHECK_STATUS(rt_websocket_connect(websocket, 0), RT_ERROR_CLOSED);
  rt_websocket_free(websocket);
}

static void on_loss(const rt_failure *failure, void *user) {
  (void)failure;
  __atomic_store_n((bool *)user, true, __ATOMIC_SEQ_CST);
}

static rt_websocket *lost(rt_loop *loop, const char *server, const char *path, int64_t delay_ms) {
  static bool is_lost;
  rt_backoff *backoff;
  rt_websocket *websocket = new_websocket(loop, server, path);
  CHECK_OK(rt_backoff_new(&backoff));
  CHECK_OK(rt_backoff_set_initial_delay_ms(backoff, delay_ms));
  CHECK_OK(rt_websocket_set_reconnect(websocket, backoff));
  rt_backoff_free(backoff);
  is_lost = false;
  CHECK_OK(rt_websocket_on_error(websocket, on_loss, &is_lost, NULL));
  CHECK_OK(rt_websocket_connect(websocket, PATIENCE_MS));
  while (!__atomic_load_n(&is_lost, __ATOMIC_SEQ_CST)) usleep(1000);
  return websocket;
}

/* A lost connection is not open until it has reconnected. */
static void waits_for_the_next_connection(const char *server) {
  rt_websocket *websocket = lost(NULL, server, "/flaky/one/1", 60000);
  CHECK_STATUS(rt_websocket_connect(websocket, 10), RT_ERROR_TIMEOUT);
  rt_websocket_free(websocket);
  websocket = lost(NULL, server, "/flaky/two/1", 1);
  CHECK_OK(rt_websocket_connect(websocket, PATIENCE_MS));
  CHECK_OK(rt_websocket_send_text(websocket, "again", 5));
  expect_text(websocket, "again");
  rt_websocket_free(websocket);
}

/* Far more messages than may wait: the rest stays with the peer, and none are lost. */
static void slow_receiver(const char *server) {
  rt_websocket *websocket = new_websocket(NULL, server, "/push/5000");
  rt_received *message = NULL;
  int number, previous = -1;
  CHECK_OK(rt_websocket_connect(websocket, -1));
  for (number = 0; number < 5000; number++) {
    CHECK_OK(rt_websocket_receive(websocket, PATIENCE_MS, &message));
    CHECK(atoi((const char *)message->data) == previous + 1 || number == 0);
    previous = atoi((const char *)message->data);
    rt_received_free(message);
  }
  rt_websocket_free(websocket);
}

/* A pause by the caller: room in the inbox does not end it. */
static void pauses_while_full(const char *server) {
  rt_websocket *websocket = new_websocket(NULL, server, "/push/5000");
  rt_received *message = NULL;
  int taken = 0;
  CHECK_OK(rt_websocket_connect(websocket, -1));
  CHECK_OK(rt_websocket_receive(websocket, PATIENCE_MS, &message));
  rt_received_free(message);
  CHECK_OK(rt_websocket_pause(websocket));
  for (taken = 1; rt_websocket_receive(websocket, 100, &message) == RT_OK; taken++)
    rt_received_free(message);
  CHECK(taken < 2000);
  CHECK_OK(rt_websocket_resume(websocket));
  for (; taken < 5000; taken++) {
    CHECK_OK(rt_websocket_receive(websocket, PATIENCE_MS, &message));
    rt_received_free(message);
  }
  rt_websocket_free(websocket);
}

/* Messages from before the end can be received after it; then the call returns how it ended. */
static void receives_the_end(const char *server) {
  rt_received *message = NULL;
  rt_websocket *websocket = new_websocket(NULL, server, "/close/4321");
  CHECK_OK(rt_websocket_connect(websocket, PATIENCE_MS));
  CHECK_STATUS(rt_websocket_receive(websocket, -1, &message), RT_ERROR_CLOSED);
  CHECK(strstr(rt_last_error(), "4321") && strstr(rt_last_error(), "because"));
  rt_websocket_free(websocket);
  websocket = new_websocket(NULL, server, "/drop");
  CHECK_OK(rt_websocket_connect(websocket, PATIENCE_MS));
  CHECK_STATUS(rt_websocket_receive(websocket, -1, &message), RT_ERROR_CONNECTION_LOST);
  rt_websocket_free(websocket);
  websocket = new_websocket(NULL, server, "/refuse");
  CHECK_STATUS(rt_websocket_connect(websocket, -1), RT_ERROR_HTTP_STATUS);
  CHECK_STATUS(rt_websocket_receive(websocket, -1, &message), RT_ERROR_HTTP_STATUS);
  rt_websocket_free(websocket);
  CHECK(message == NULL);
}

struct receiver {
  pthread_t thread;
  pid_t number;
  rt_websocket *websocket;
  int received;
  rt_status end;
};

static void *receive_all(void *user) {
  struct receiver *receiver = user;
  rt_received *message = NULL;
  __atomic_store_n(&receiver->number, gettid(), __ATOMIC_SEQ_CST);
  while (!(receiver->end = rt_websocket_receive(receiver->websocket, -1, &message))) {
    __atomic_add_fetch(&receiver->received, 1, __ATOMIC_SEQ_CST);
    rt_received_free(message);
  }
  return NULL;
}

static void several_receive(const char *server) {
  rt_websocket *websocket = new_websocket(NULL, server, "/push/300");
  struct receiver receivers[3];
  int index, sum = 0;
  CHECK_OK(rt_websocket_connect(websocket, -1));
  for (index = 0; index < 3; index++) {
    receivers[index] = (struct receiver){.websocket = websocket};
    CHECK(!pthread_create(&receivers[index].thread, NULL, receive_all, &receivers[index]));
  }
  CHECK_OK(rt_websocket_close(websocket, 1000, NULL));
  for (index = 0; index < 3; index++) {
    CHECK(!pthread_join(receivers[index].thread, NULL));
    CHECK(receivers[index].end == RT_ERROR_CLOSED);
    sum += receivers[index].received;
  }
  /* Messages after the close are not delivered. */
  CHECK(sum <= 300);
  rt_websocket_free(websocket);
}

/* Messages that nobody receives are freed with their connection: under valgrind a leak is an error.
 * */
static void unreceived_messages_are_freed(const char *server) {
  rt_websocket *websocket = new_websocket(NULL, server, "/push/20");
  rt_websocket_statistics statistics = {0};
  CHECK_OK(rt_websocket_connect(websocket, -1));
  while (statistics.messages_received < 20) {
    CHECK_OK(rt_websocket_get_statistics(websocket, &statistics, sizeof statistics));
    usleep(1000);
  }
  rt_websocket_free(websocket);
}

/* Freeing the connection, or its loop, ends another thread's wait. */
static void freed_while_one_waits(const char *server, bool frees_loop) {
  rt_loop *loop = new_loop();
  rt_websocket *websocket = new_websocket(loop, server, "/echo");
  struct receiver receiver = {.websocket = websocket};
  CHECK_OK(rt_loop_start(loop));
  CHECK_OK(rt_websocket_connect(websocket, -1));
  CHECK_OK(rt_websocket_send_text(websocket, "x", 1));
  CHECK(!pthread_create(&receiver.thread, NULL, receive_all, &receiver));
  while (!__atomic_load_n(&receiver.received, __ATOMIC_SEQ_CST) || !sleeps(receiver.number)) {
    usleep(1000);
  }
  if (frees_loop) {
    rt_loop_free(loop);
  } else {
    rt_websocket_free(websocket);
  }
  CHECK(!pthread_join(receiver.thread, NULL));
  CHECK(receiver.end == RT_ERROR_CLOSED);
  if (frees_loop) {
    rt_websocket_free(websocket);
  } else {
    rt_loop_free(loop);
  }
}

/* Freeing the loop ends the wait, even while the connection waits for its next attempt. */
static void loop_freed_between_attempts(const char *server) {
  rt_loop *loop = new_loop();
  rt_websocket *websocket;
  struct receiver receiver;
  CHECK_OK(rt_loop_start(loop));
  websocket = lost(loop, server, "/flaky/three/1", 60000);
  receiver = (struct receiver){.websocket = websocket};
  CHECK(!pthread_create(&receiver.thread, NULL, receive_all, &receiver));
  while (!__atomic_load_n(&receiver.number, __ATOMIC_SEQ_CST) || !sleeps(receiver.number)) {
    usleep(1000);
  }
  rt_loop_free(loop);
  CHECK(!pthread_join(receiver.thread, NULL));
  CHECK(receiver.end == RT_ERROR_CLOSED);
  rt_websocket_free(websocket);
}

/* Closed between two connections, the end has the program's code, as when it is connected. */
static void closed_between_attempts(const char *server) {
  rt_websocket *websocket = lost(NULL, server, "/flaky/four/1", 60000);
  rt_received *message = NULL;
  CHECK_OK(rt_websocket_close(websocket, 1000, "enough"));
  CHECK_STATUS(rt_websocket_receive(websocket, -1, &message), RT_ERROR_CLOSED);
  CHECK(strstr(rt_last_error(), "closed with 1000 (enough)"));
  CHECK(message == NULL);
  rt_websocket_free(websocket);
}

struct callbacks {
  rt_websocket *websocket;
  rt_status connect, receive;
  int messages;
};

static void on_message(rt_message_kind kind, const uint8_t *data, size_t length, void *user) {
  struct callbacks *callbacks = user;
  rt_received *message = NULL;
  (void)kind, (void)data, (void)length;
  callbacks->connect = rt_websocket_connect(callbacks->websocket, -1);
  callbacks->receive = rt_websocket_receive(callbacks->websocket, -1, &message);
  __atomic_add_fetch(&callbacks->messages, 1, __ATOMIC_SEQ_CST);
}

/* While a callback gets the messages, no thread can wait for them. */
static void beside_callbacks(const char *server) {
  rt_websocket *websocket = new_websocket(NULL, server, "/echo");
  struct callbacks callbacks = {.websocket = websocket};
  rt_received *message = NULL;
  CHECK_OK(rt_websocket_on_message(websocket, on_message, &callbacks, NULL));
  CHECK_OK(rt_websocket_connect(websocket, -1));
  CHECK_STATUS(rt_websocket_receive(websocket, -1, &message), RT_ERROR_STATE);
  CHECK_OK(rt_websocket_send_text(websocket, "x", 1));
  while (!__atomic_load_n(&callbacks.messages, __ATOMIC_SEQ_CST)) usleep(1000);
  CHECK(callbacks.connect == RT_ERROR_REENTRANT && callbacks.receive == RT_ERROR_REENTRANT);
  rt_websocket_free(websocket);
  /* A connection that was started with callbacks can be waited for, but has no inbox. */
  websocket = new_websocket(NULL, server, "/echo");
  CHECK_OK(rt_websocket_start(websocket));
  CHECK_OK(rt_websocket_connect(websocket, PATIENCE_MS));
  CHECK(rt_websocket_get_state(websocket) == RT_STATE_OPEN);
  CHECK_STATUS(rt_websocket_receive(websocket, -1, &message), RT_ERROR_STATE);
  CHECK_OK(rt_websocket_close(websocket, 1000, NULL));
  CHECK_STATUS(rt_websocket_connect(websocket, -1), RT_ERROR_CLOSED);
  rt_websocket_free(websocket);
}

static void count_message(rt_message_kind kind, const uint8_t *data, size_t length, void *user) {
  (void)kind, (void)data, (void)length;
  __atomic_add_fetch((int *)user, 1, __ATOMIC_SEQ_CST);
}

/* A callback that is set later gets the messages that have not been received yet, even more than
 * may wait. When it is removed, messages wait in the inbox again. */
static void callback_for_a_while(const char *server) {
  enum { ALL = 5000 };
  rt_websocket *websocket = new_websocket(NULL, server, "/push/5000");
  rt_received *message = NULL;
  int told = 0, taken = 1;
  rt_status status;
  CHECK_OK(rt_websocket_connect(websocket, -1));
  CHECK_OK(rt_websocket_receive(websocket, PATIENCE_MS, &message));
  rt_received_free(message);
  CHECK_OK(rt_websocket_on_message(websocket, count_message, &told, NULL));
  while (!__atomic_load_n(&told, __ATOMIC_SEQ_CST)) usleep(1000);
  while (taken + __atomic_load_n(&told, __ATOMIC_SEQ_CST) < ALL) {
    status = rt_websocket_receive(websocket, -1, &message);
    CHECK(status == RT_OK || status == RT_ERROR_STATE);
    if (status == RT_OK) {
      rt_received_free(message);
      taken++;
    } else {
      usleep(1000);
    }
  }
  rt_websocket_free(websocket);

  websocket = new_websocket(NULL, server, "/echo");
  told = 0;
  CHECK_OK(rt_websocket_connect(websocket, -1));
  CHECK_OK(rt_websocket_on_message(websocket, count_message, &told, NULL));
  CHECK_OK(rt_websocket_send_text(websocket, "told", 4));
  while (!__atomic_load_n(&told, __ATOMIC_SEQ_CST)) usleep(1000);
  CHECK_STATUS(rt_websocket_receive(websocket, -1, &message), RT_ERROR_STATE);
  CHECK_OK(rt_websocket_on_message(websocket, NULL, NULL, NULL));
  CHECK_OK(rt_websocket_send_text(websocket, "waits", 5));
  expect_text(websocket, "waits");
  rt_websocket_free(websocket);
}

int main(int argc, char **argv) {
  rt_loop *loop = new_loop();
  CHECK(argc == 2);
  CHECK_OK(rt_loop_start(loop));
  converses(argv[1], NULL);
  converses(argv[1], loop);
  waits_for_the_next_connection(argv[1]);
  slow_receiver(argv[1]);
  pauses_while_full(argv[1]);
  receives_the_end(argv[1]);
  several_receive(argv[1]);
  unreceived_messages_are_freed(argv[1]);
  freed_while_one_waits(argv[1], false);
  freed_while_one_waits(argv[1], true);
  loop_freed_between_attempts(argv[1]);
  closed_between_attempts(argv[1]);
  beside_callbacks(argv[1]);
  callback_for_a_while(argv[1]);
  CHECK_OK(rt_loop_stop_and_wait(loop));
  rt_loop_free(loop);
  return 0;
}
