#define _GNU_SOURCE
#include "shim_platform.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/crypto.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

_Static_assert(SHIM_EPOLL_IN == EPOLLIN && SHIM_EPOLL_OUT == EPOLLOUT, "epoll's own numbers");
_Static_assert(SHIM_EPOLL_ERROR == EPOLLERR, "epoll's own number");
_Static_assert(SHIM_EPOLL_HANG_UP == EPOLLHUP, "epoll's own number");
_Static_assert(SHIM_EPOLL_ONCE == EPOLLONESHOT, "epoll's own numbers");
_Static_assert(SHIM_EPOLL_PEER_ENDED == EPOLLRDHUP, "epoll's own number");

/* Most programs have no such function: the count spares them the look at the thread's own. */
static atomic_uint locked_functions;
static _Thread_local unsigned own_locked_functions;

void shim_locked_function_begin(void) {
  own_locked_functions++;
  atomic_fetch_add_explicit(&locked_functions, 1, memory_order_relaxed);
}

void shim_locked_function_end(void) {
  own_locked_functions--;
  atomic_fetch_sub_explicit(&locked_functions, 1, memory_order_relaxed);
}

bool shim_is_in_locked_function(void) {
  return atomic_load_explicit(&locked_functions, memory_order_relaxed) && own_locked_functions;
}

int shim_epoll_create(void) { return epoll_create1(EPOLL_CLOEXEC); }

static int control(int epoll, int operation, int fd, uint32_t events, uint64_t token) {
  struct epoll_event event = {.events = events, .data.u64 = token};
  return epoll_ctl(epoll, operation, fd, &event);
}

int shim_epoll_add(int epoll, int fd, uint32_t events, uint64_t token) {
  return control(epoll, EPOLL_CTL_ADD, fd, events, token);
}

int shim_epoll_modify(int epoll, int fd, uint32_t events, uint64_t token) {
  return control(epoll, EPOLL_CTL_MOD, fd, events, token);
}

int shim_epoll_remove(int epoll, int fd) { return control(epoll, EPOLL_CTL_DEL, fd, 0, 0); }

int shim_epoll_add_signal(int epoll, int fd, uint64_t token) {
  return control(epoll, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLET, token);
}

enum { BATCH = 128 };

int shim_epoll_wait(int epoll, shim_ready *ready, int capacity, int timeout_ms) {
  struct epoll_event events[BATCH];
  int count = epoll_wait(epoll, events, capacity < BATCH ? capacity : BATCH, timeout_ms);
  if (count < 0) return errno == EINTR ? 0 : -1;
  for (int i = 0; i < count; i++) {
    ready[i].token = events[i].data.u64;
    ready[i].events = events[i].events;
  }
  return count;
}

int shim_descriptor_shortage(void) {
  int made = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (made < 0) return errno == EMFILE || errno == ENFILE ? errno : 0;
  close(made);
  return 0;
}

int shim_eventfd_create(void) { return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC); }

int shim_timerfd_create(void) {
  return timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
}

int shim_timerfd_set(int fd, uint64_t nanoseconds) {
  // The kernel takes seconds as a signed number; a later time is as good as never.
  const uint64_t longest = (uint64_t)INT64_MAX;
  if (nanoseconds > longest) nanoseconds = longest;
  struct itimerspec spec = {.it_value = {.tv_sec = (time_t)(nanoseconds / 1000000000),
                                         .tv_nsec = (long)(nanoseconds % 1000000000)}};
  return timerfd_settime(fd, TFD_TIMER_ABSTIME, &spec, NULL);
}

void shim_eventfd_signal(int fd) {
  // The caller may be a signal handler, which must not change errno for the code it interrupted.
  const int saved = errno;
  uint64_t one = 1;
  while (write(fd, &one, sizeof one) < 0 && errno == EINTR) {
  }
  errno = saved;
}

bool shim_is_readable(int fd) {
  struct pollfd watched = {.fd = fd, .events = POLLIN};
  return poll(&watched, 1, 0) > 0;
}

uint64_t shim_monotonic_nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

ssize_t shim_send(int fd, const void *data, size_t length) {
  return send(fd, data, length, MSG_NOSIGNAL);
}

void shim_random_bytes(void *buffer, size_t length) {
  // From the kernel: libcrypto's generator is gone once exit() has begun, and loops still run then.
  for (size_t filled = 0; filled < length;) {
    ssize_t count = getrandom((char *)buffer + filled, length - filled, 0);
    if (count > 0) filled += (size_t)count;
    else if (errno != EINTR) abort();
  }
}

uint32_t shim_fork_count;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

// Files that a forked child closes. It sets their `fd` to -1, because it must not allocate or free.
struct private_file {
  struct private_file *next;
  int fd;
};
static struct private_file *private_files;
static pthread_mutex_t private_lock = PTHREAD_MUTEX_INITIALIZER;

static void before_fork(void) { pthread_mutex_lock(&private_lock); }
static void after_fork(void) { pthread_mutex_unlock(&private_lock); }

static void in_child(void) {
  __atomic_fetch_add(&shim_fork_count, 1, __ATOMIC_RELAXED);
  for (struct private_file *file = private_files; file; file = file->next) {
    if (file->fd >= 0) close(file->fd);
    file->fd = -1;
  }
  pthread_mutex_unlock(&private_lock);
}

static void watch_forks(void) { pthread_atfork(before_fork, after_fork, in_child); }

void shim_fork_watch(void) { pthread_once(&fork_once, watch_forks); }

int shim_private_open(const char *path, int flags, mode_t mode) {
  shim_fork_watch();
  struct private_file *file = malloc(sizeof *file);
  if (!file) return -1;
  // Under the lock, so that no child is forked in between: its copy of the descriptor would keep
  // the file's lock. fork() then waits for open(), so opening a pipe must not wait for its other
  // end. A slow file system delays both.
  pthread_mutex_lock(&private_lock);
  int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK, mode), fault = errno;
  *file = (struct private_file){.next = private_files, .fd = fd};
  if (fd >= 0) private_files = file;
  pthread_mutex_unlock(&private_lock);
  if (fd < 0) free(file);
  errno = fault;
  return fd;
}

void shim_private_close(int fd) {
  pthread_mutex_lock(&private_lock);
  struct private_file **place = &private_files;
  while (*place && (*place)->fd != fd) place = &(*place)->next;
  struct private_file *file = *place;
  if (file) {
    *place = file->next;
    close(fd);
  }
  pthread_mutex_unlock(&private_lock);
  free(file);
}

struct start {
  void (*run)(void *user);
  void *user;
};

static void *run_thread(void *argument) {
  struct start start = *(struct start *)argument;
  free(argument);
  start.run(start.user);
  return NULL;
}

int shim_thread_start(uintptr_t *out, const char *name, void (*run)(void *user), void *user) {
  struct start *start = malloc(sizeof *start);
  if (!start) return ENOMEM;
  *start = (struct start){run, user};
  // The host's signals are for the host's threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  int failure = pthread_create(&thread, NULL, run_thread, start);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (failure) {
    free(start);
    return failure;
  }
  pthread_setname_np(thread, name);
  *out = (uintptr_t)thread;
  return 0;
}

void shim_thread_join(uintptr_t thread) { pthread_join((pthread_t)thread, NULL); }
void shim_thread_detach(uintptr_t thread) { pthread_detach((pthread_t)thread); }

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;
static CURLcode curl_result;

static void init_curl(void) {
  // The process may exit while a loop's thread uses libcrypto, which must not be torn down then.
  // Has no effect if the host initialized libcrypto before.
  OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
  curl_result = curl_global_init(CURL_GLOBAL_DEFAULT);
}

CURLcode shim_curl_global_init(void) {
  pthread_once(&curl_once, init_curl);
  return curl_result;
}

CURLcode shim_curl_set_long(CURL *easy, CURLoption option, long value) {
  return curl_easy_setopt(easy, option, value);
}

CURLcode shim_curl_set_pointer(CURL *easy, CURLoption option, void *value) {
  return curl_easy_setopt(easy, option, value);
}

CURLcode shim_curl_set_string(CURL *easy, CURLoption option, const char *value) {
  return curl_easy_setopt(easy, option, value);
}

CURLcode shim_curl_set_close_socket(CURL *easy, shim_curl_close_socket_fn fn, void *user) {
  CURLcode result = curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, fn);
  return result ? result : curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, user);
}

CURLSH *shim_curl_dns_share(void) {
  CURLSH *share = curl_share_init();
  if (share && curl_share_setopt(share, CURLSHOPT_SHARE, CURL_LOCK_DATA_DNS) != CURLSHE_OK) {
    curl_share_cleanup(share);
    return NULL;
  }
  return share;
}

const char *shim_curl_default_ca_file(void) {
  return curl_version_info(CURLVERSION_NOW)->cainfo;
}

CURLcode shim_curl_active_socket(CURL *easy, curl_socket_t *out) {
  return curl_easy_getinfo(easy, CURLINFO_ACTIVESOCKET, out);
}

CURLcode shim_curl_set_offset(CURL *easy, CURLoption option, curl_off_t value) {
  return curl_easy_setopt(easy, option, value);
}

CURLcode shim_curl_set_data(CURL *easy, CURLoption function, shim_curl_data_fn fn,
                          CURLoption user_option, void *user) {
  CURLcode result = curl_easy_setopt(easy, function, fn);
  return result ? result : curl_easy_setopt(easy, user_option, user);
}

CURLcode shim_curl_set_progress(CURL *easy, shim_curl_progress_fn fn, void *user) {
  CURLcode result = curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, fn);
  if (!result) result = curl_easy_setopt(easy, CURLOPT_XFERINFODATA, user);
  return result ? result : curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
}

static int connected(void *user, char *address, char *own_address, int port, int own_port) {
  (void)own_address;
  shim_curl_notes *notes = user;
  if (notes->is_connected && notes->goes_out_once && !notes->was_not_begun && !notes->was_cut) {
    notes->was_kept_back = 1;
    return CURL_PREREQFUNC_ABORT;
  }
  // If it cut the connection, sending fails, and libcurl repeats the request on a fresh one.
  notes->was_cut =
      notes->cut_if_dirty && notes->cut_if_dirty(notes->cut_user, address, port, own_port);
  shim_tls_find(notes->easy, &notes->tls);
  // Not needed if it uses a connection of another handle.
  shim_curl_drop_dialed(&notes->dial);
  notes->was_repeated = notes->is_connected;
  notes->is_connected = 1;
  return CURL_PREREQFUNC_OK;
}

CURLcode shim_curl_set_notes(CURL *easy, shim_curl_notes *notes) {
  notes->easy = easy;
  notes->dial.socket = -1;
  CURLcode result = curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, notes->error_text);
  if (!result) result = shim_tls_watch(easy, &notes->tls);
  if (!result) result = shim_curl_set_dial(easy, &notes->dial);
  if (!result) result = curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, connected);
  return result ? result : curl_easy_setopt(easy, CURLOPT_PREREQDATA, notes);
}

void shim_curl_clear_notes(shim_curl_notes *notes) {
  shim_tls_forget(&notes->tls);
  notes->is_connected = notes->goes_out_once = notes->was_not_begun = 0;
  notes->was_cut = notes->was_kept_back = notes->was_repeated = 0;
  shim_curl_drop_dialed(&notes->dial);
  notes->error_text[0] = 0;
}

const char *shim_curl_error_text(const shim_curl_notes *notes) { return notes->error_text; }

CURLcode shim_curl_set_debug(CURL *easy, shim_curl_debug_fn fn, void *user) {
  CURLcode result = curl_easy_setopt(easy, CURLOPT_DEBUGFUNCTION, fn);
  return result ? result : curl_easy_setopt(easy, CURLOPT_DEBUGDATA, user);
}

uint64_t shim_curl_request_delay(CURL *easy) {
  curl_off_t microseconds = 0;
  curl_easy_getinfo(easy, CURLINFO_PRETRANSFER_TIME_T, &microseconds);
  return microseconds > 0 ? (uint64_t)microseconds * 1000 : 0;
}

uint64_t shim_curl_bytes_received(CURL *easy) {
  curl_off_t count = 0;
  curl_easy_getinfo(easy, CURLINFO_SIZE_DOWNLOAD_T, &count);
  return count > 0 ? (uint64_t)count : 0;
}

bool shim_curl_kept_socket(CURL *easy, curl_socket_t *out) {
  long made = 0;
  curl_easy_getinfo(easy, CURLINFO_NUM_CONNECTS, &made);
  return made > 0 && !shim_curl_active_socket(easy, out) && *out != CURL_SOCKET_BAD;
}

int shim_curl_os_error(CURL *easy) {
  long code = 0;
  curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &code);
  return (int)code;
}

bool shim_curl_awaits_tls(CURL *easy) {
  // libcurl counts a connection once TCP is connected, but sets its time after all handshakes.
  long made = 0;
  curl_off_t secured = 0;
  curl_easy_getinfo(easy, CURLINFO_NUM_CONNECTS, &made);
  curl_easy_getinfo(easy, CURLINFO_APPCONNECT_TIME_T, &secured);
  return made > 0 && secured == 0;
}

int shim_curl_connect_status(CURL *easy) {
  long status = 0;
  curl_easy_getinfo(easy, CURLINFO_HTTP_CONNECTCODE, &status);
  return (int)status;
}

bool shim_curl_was_reused(CURL *easy) {
  long made = 1;
  return curl_easy_getinfo(easy, CURLINFO_NUM_CONNECTS, &made) == CURLE_OK && made == 0;
}

int shim_curl_http_version(CURL *easy) {
  long version = 0;
  curl_easy_getinfo(easy, CURLINFO_HTTP_VERSION, &version);
  switch (version) {
    case CURL_HTTP_VERSION_1_0: return 10;
    case CURL_HTTP_VERSION_1_1: return 11;
    case CURL_HTTP_VERSION_2_0: return 20;
    case CURL_HTTP_VERSION_3: return 30;
    // libcurl does not report the version of a refused CONNECT.
    default: return shim_curl_connect_status(easy) == 407 ? 11 : 0;
  }
}

CURLMcode shim_curl_multi_set_socket(CURLM *multi, shim_curl_socket_fn fn, void *user) {
  CURLMcode result = curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, fn);
  return result ? result : curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, user);
}

void shim_curl_multi_keep_connections(CURLM *multi) {
  curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, (long)INT_MAX);
}

CURLMcode shim_curl_multi_set_timer(CURLM *multi, shim_curl_timer_fn fn, void *user) {
  CURLMcode result = curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, fn);
  return result ? result : curl_multi_setopt(multi, CURLMOPT_TIMERDATA, user);
}

intptr_t shim_curl_number(CURL *easy) {
  void *mark = NULL;
  curl_easy_getinfo(easy, CURLINFO_PRIVATE, &mark);
  return (intptr_t)mark;
}

bool shim_curl_multi_next_done(CURLM *multi, intptr_t *number, CURLcode *result) {
  int left;
  for (CURLMsg *message; (message = curl_multi_info_read(multi, &left));) {
    if (message->msg == CURLMSG_DONE) {
      *number = shim_curl_number(message->easy_handle);
      *result = message->data.result;
      return true;
    }
  }
  return false;
}

int shim_errno(void) { return errno; }

void shim_set_errno(int number) { errno = number; }

int shim_open(const char *path, int flags, mode_t mode) { return open(path, flags, mode); }

bool shim_is_regular(mode_t mode) { return S_ISREG(mode); }
