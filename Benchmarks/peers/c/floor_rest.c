// The floor of requests: libcurl's multi interface on epoll, with one easy handle per concurrent
// request. The handles are created once; each request only sets the URL. Bodies are counted and
// dropped, headers ignored; the request is the same as librealtime's, byte for byte.
#define _GNU_SOURCE
#include <curl/curl.h>
#include <stdio.h>
#include <sys/epoll.h>

#include "meter.h"

enum { MAX_PARALLEL = 64, EVENTS = 64 };

struct slot {
  CURL *easy;
  size_t length;
  uint8_t last;
};

static struct slot slots[MAX_PARALLEL];
static CURLM *multi;
static int queue;
static long timeout_ms = -1;
static uint64_t begun;

static size_t take(char *data, size_t size, size_t count, void *user) {
  struct slot *slot = user;
  (void)size;
  slot->length += count;
  slot->last = (uint8_t)data[count - 1];
  return count;
}

static int watch(CURL *easy, curl_socket_t fd, int what, void *user, void *known) {
  struct epoll_event event = {.data.fd = fd};
  (void)easy, (void)user;
  if (what & CURL_POLL_IN) event.events |= EPOLLIN;
  if (what & CURL_POLL_OUT) event.events |= EPOLLOUT;
  if (what == CURL_POLL_REMOVE) event.events = 0;
  int change = !event.events ? EPOLL_CTL_DEL : known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
  epoll_ctl(queue, change, fd, &event);
  curl_multi_assign(multi, fd, event.events ? &slots : NULL);
  return 0;
}

static int set_timer(CURLM *of, long ms, void *user) {
  (void)of, (void)user;
  timeout_ms = ms;
  return 0;
}

static void begin(struct slot *slot) {
  slot->length = 0;
  begun++;
  curl_easy_setopt(slot->easy, CURLOPT_URL, task.url);
  curl_multi_add_handle(multi, slot->easy);
}

static void make(struct slot *slot) {
  slot->easy = curl_easy_init();
  curl_easy_setopt(slot->easy, CURLOPT_WRITEFUNCTION, take);
  curl_easy_setopt(slot->easy, CURLOPT_WRITEDATA, slot);
  curl_easy_setopt(slot->easy, CURLOPT_PRIVATE, slot);
  curl_easy_setopt(slot->easy, CURLOPT_NOSIGNAL, 1L);
  // The same request as librealtime's, because libcurl's work depends on it.
  curl_easy_setopt(slot->easy, CURLOPT_USERAGENT, "librealtime/0.1.0");
  curl_easy_setopt(slot->easy, CURLOPT_ACCEPT_ENCODING, "");
}

/// \returns true after the last response.
static bool finish_some(void) {
  int left;
  for (CURLMsg *message; (message = curl_multi_info_read(multi, &left));) {
    struct slot *slot;
    long status = 0;
    if (message->data.result != CURLE_OK) meter_fail(curl_easy_strerror(message->data.result));
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &slot);
    curl_easy_getinfo(slot->easy, CURLINFO_RESPONSE_CODE, &status);
    if (status != 200) meter_fail("the status is not 200");
    meter.checksum += slot->last;
    meter.bytes += slot->length;
    curl_multi_remove_handle(multi, slot->easy);
    if (++meter.messages == task.count) return true;
    if (begun < task.count) begin(slot);
  }
  return false;
}

static void run(void) {
  struct epoll_event events[EVENTS];
  int running;
  do {
    if (timeout_ms == 0) {
      timeout_ms = -1;
      curl_multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &running);
      continue;
    }
    int count = epoll_wait(queue, events, EVENTS, (int)timeout_ms);
    if (count == 0) timeout_ms = 0;
    for (int i = 0; i < count; i++) {
      int mask = (events[i].events & EPOLLIN ? CURL_CSELECT_IN : 0) |
                 (events[i].events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
                 (events[i].events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0);
      curl_multi_socket_action(multi, events[i].data.fd, mask, &running);
    }
  } while (!finish_some());
}

int main(int argc, char **argv) {
  unsigned parallel;
  task_read(argc, argv);
  if (sscanf(task.mode, "rest-%u", &parallel) != 1 || parallel > MAX_PARALLEL) {
    return NOT_SUPPORTED;
  }
  queue = epoll_create1(EPOLL_CLOEXEC);
  meter_start();
  // librealtime does this with its first request.
  curl_global_init(CURL_GLOBAL_DEFAULT);
  multi = curl_multi_init();
  curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, watch);
  curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, set_timer);
  for (unsigned i = 0; i < parallel && i < task.count; i++) {
    make(&slots[i]);
    begin(&slots[i]);
  }
  run();
  meter_stop();
  meter_report();
}
