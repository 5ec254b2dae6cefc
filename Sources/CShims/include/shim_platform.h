// Linux functions that the Glibc module lacks (macros with casts, epoll_event's packed union,
// eventfd), and libcurl's variadic setters.
#ifndef SHIM_PLATFORM_H
#define SHIM_PLATFORM_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "shim_dial.h"
#include "shim_tls.h"

// Internal: the version script exports only rt_*.
#pragma GCC visibility push(hidden)

// epoll. Watched and reported events are bit sets of these.
enum {
  SHIM_EPOLL_IN = 1,
  SHIM_EPOLL_OUT = 4,
  SHIM_EPOLL_ERROR = 8,
  SHIM_EPOLL_HANG_UP = 16,
  SHIM_EPOLL_PEER_ENDED = 1 << 13,
  SHIM_EPOLL_ONCE = 1 << 30
};

typedef struct shim_ready {
  uint64_t token;
  uint32_t events;
} shim_ready;

int shim_epoll_create(void);
int shim_epoll_add(int epoll, int fd, uint32_t events, uint64_t token);
int shim_epoll_modify(int epoll, int fd, uint32_t events, uint64_t token);
int shim_epoll_remove(int epoll, int fd);
/// Watches an eventfd or timerfd edge-triggered: each signal is reported once, without being read.
int shim_epoll_add_signal(int epoll, int fd, uint64_t token);
/// Fills up to `capacity` entries. Returns how many; 0 after a timeout or signal; -1 with errno.
int shim_epoll_wait(int epoll, shim_ready *ready, int capacity, int timeout_ms);

/// EMFILE or ENFILE if no descriptor can be opened now, else 0.
int shim_descriptor_shortage(void);

int shim_eventfd_create(void);
int shim_timerfd_create(void);
/// Sets an absolute time on the monotonic clock; 0 disarms.
int shim_timerfd_set(int fd, uint64_t nanoseconds);
void shim_eventfd_signal(int fd);
/// Whether `fd` is readable now.
bool shim_is_readable(int fd);
uint64_t shim_monotonic_nanoseconds(void);

/// send() without SIGPIPE.
ssize_t shim_send(int fd, const void *data, size_t length);

/// Fills the buffer with random bytes from the kernel. Never fails.
void shim_random_bytes(void *buffer, size_t length);

/// Starts counting this process's forks.
void shim_fork_watch(void);
extern uint32_t shim_fork_count;
/// The number of forks since `shim_fork_watch`. Inline, like the next one, because each call of a
/// handle needs it.
static inline uint32_t shim_fork_generation(void) {
  return __atomic_load_n(&shim_fork_count, __ATOMIC_RELAXED);
}

/// open() for a file that is locked by flock(2). A forked child closes its copy of the descriptor
/// at once; otherwise the lock would outlive this process until the child ends.
int shim_private_open(const char *path, int flags, mode_t mode);
/// Closes what `shim_private_open` opened. Only the process that opened it may call this.
void shim_private_close(int fd);

/// Starts `run(user)` on a thread with all signals blocked, to be joined or detached. Returns 0 or
/// an errno.
int shim_thread_start(uintptr_t *out, const char *name, void (*run)(void *user), void *user);
void shim_thread_join(uintptr_t thread);
void shim_thread_detach(uintptr_t thread);
/// The calling thread's number: unique among living threads, even, and never 0.
static inline uintptr_t shim_thread_self(void) { return (uintptr_t)__builtin_thread_pointer(); }
/// A function of the user begins on this thread, and ends, that runs while a lock of the library is
/// held: this thread must not run a loop meanwhile.
void shim_locked_function_begin(void);
void shim_locked_function_end(void);
/// Whether this thread is inside such a function.
bool shim_is_in_locked_function(void);

/// libcurl's variadic functions.
CURLcode shim_curl_global_init(void);
CURLcode shim_curl_set_long(CURL *easy, CURLoption option, long value);
CURLcode shim_curl_set_pointer(CURL *easy, CURLoption option, void *value);
CURLcode shim_curl_set_string(CURL *easy, CURLoption option, const char *value);
typedef int (*shim_curl_close_socket_fn)(void *user, curl_socket_t socket);
CURLcode shim_curl_set_close_socket(CURL *easy, shim_curl_close_socket_fn fn, void *user);
/// A DNS cache of an easy handle's own; NULL without memory.
CURLSH *shim_curl_dns_share(void);
/// libcurl's built-in path of the CA file; NULL for none.
const char *shim_curl_default_ca_file(void);
CURLcode shim_curl_active_socket(CURL *easy, curl_socket_t *out);
CURLcode shim_curl_set_offset(CURL *easy, CURLoption option, curl_off_t value);
/// For CURLOPT_WRITEFUNCTION, CURLOPT_HEADERFUNCTION and CURLOPT_READFUNCTION.
typedef size_t (*shim_curl_data_fn)(char *data, size_t size, size_t count, void *user);
CURLcode shim_curl_set_data(CURL *easy, CURLoption function, shim_curl_data_fn fn,
                          CURLoption user_option, void *user);
typedef int (*shim_curl_progress_fn)(void *user, curl_off_t to_receive, curl_off_t received,
                                   curl_off_t to_send, curl_off_t sent);
CURLcode shim_curl_set_progress(CURL *easy, shim_curl_progress_fn fn, void *user);
typedef int (*shim_curl_debug_fn)(CURL *easy, curl_infotype kind, char *text, size_t length,
                                void *user);
/// Receives libcurl's log of a transfer, under CURLOPT_VERBOSE. `fn` is also called for data.
CURLcode shim_curl_set_debug(CURL *easy, shim_curl_debug_fn fn, void *user);
/// Nanoseconds from the start of a transfer until its request could be sent; 0 before.
uint64_t shim_curl_request_delay(CURL *easy);
/// Bytes of the response's body so far, before they are decoded.
uint64_t shim_curl_bytes_received(CURL *easy);
/// Bytes of the request's body that the peer's kernel has acknowledged.
/// - socket: carries the request.
/// - since_ms: how long ago it last acknowledged any; 0 if that is unknown.
uint64_t shim_curl_bytes_arrived(CURL *easy, int socket, uint32_t *since_ms);
/// The local port of a socket; 0 if it has none.
int shim_socket_own_port(int socket);
/// Shuts down a connected socket if it leads to this address and has unread input.
bool shim_socket_cut_if_dirty(int socket, const char *address, int port);
/// Called before a request is sent: shuts down a kept connection that has input. Returns whether it
/// did.
typedef bool (*shim_curl_cut_fn)(void *user, const char *address, int port, int own_port);
/// What libcurl's callbacks record for a handle.
typedef struct {
  /// Called before each request is sent.
  shim_curl_cut_fn cut_if_dirty;
  void *cut_user;
  /// The TLS connection that the handle uses.
  shim_tls_source tls;
  /// The socket for its next connection.
  shim_curl_dial dial;
  CURL *easy;
  /// The connection is established, and the request is being sent.
  _Bool is_connected;
  /// `goes_out_once`: the request must not be repeated. When a kept connection ends before a
  /// response, libcurl repeats the request itself, on the next kept one. `was_not_begun`: it may be
  /// repeated, because the server said that it did not process it.
  _Bool goes_out_once, was_not_begun;
  /// The last connection was cut before the request was sent, so the request may be repeated.
  _Bool was_cut;
  /// libcurl would have repeated the request, and was prevented.
  _Bool was_kept_back;
  /// libcurl has repeated the request. It counts that over all exchanges of a handle, and fails the
  /// sixth time.
  _Bool was_repeated;
  char error_text[CURL_ERROR_SIZE];
} shim_curl_notes;
CURLcode shim_curl_set_notes(CURL *easy, shim_curl_notes *notes);
void shim_curl_clear_notes(shim_curl_notes *notes);
const char *shim_curl_error_text(const shim_curl_notes *notes);
/// For a finished transfer: the socket of the connection that was made for it and is kept. Returns
/// false for none.
bool shim_curl_kept_socket(CURL *easy, curl_socket_t *out);
/// For a finished transfer: whether it reused a connection.
bool shim_curl_was_reused(CURL *easy);
/// 10, 11, 20, 30; 0 before the response.
int shim_curl_http_version(CURL *easy);
/// The errno of the last failure to connect; 0 for none.
int shim_curl_os_error(CURL *easy);
// C macros and variadic functions, which Swift cannot call without its runtime's overlay.
int shim_errno(void);
void shim_set_errno(int number);
/// open(). `mode` matters only if the flags create a file.
int shim_open(const char *path, int flags, mode_t mode);
/// Whether the mode is that of a regular file.
bool shim_is_regular(mode_t mode);
/// Writes the two addresses of a connected socket, each as "192.0.2.1:443", "[::1]:443" or the path
/// of a Unix socket; "" for none.
void shim_socket_addresses(int socket, char *remote, char *local, size_t size);
/// How many written bytes of a connected socket the peer's kernel has not acknowledged; 0 if that
/// is unknown.
int shim_unacknowledged_bytes(int socket);
/// The two addresses of a transfer's connection, as libcurl reports them. Zeros mean none.
typedef struct shim_curl_ends {
  char remote[48], local[48];
  long remote_port, local_port;
} shim_curl_ends;

/// Reads the addresses.
/// - Returns: whether they have changed.
bool shim_curl_find_ends(CURL *easy, shim_curl_ends *ends);
/// Writes them in the same form as a socket's. Not usable for a Unix socket.
void shim_curl_addresses(const shim_curl_ends *ends, char *remote, char *local, size_t size);
/// TCP is connected, but the TLS handshake has not finished.
bool shim_curl_awaits_tls(CURL *easy);
/// The status of a proxy's response to CONNECT; 0 for none.
int shim_curl_connect_status(CURL *easy);

typedef int (*shim_curl_socket_fn)(CURL *easy, curl_socket_t socket, int what, void *user,
                                 void *socket_user);
typedef int (*shim_curl_timer_fn)(CURLM *multi, long timeout_ms, void *user);
CURLMcode shim_curl_multi_set_socket(CURLM *multi, shim_curl_socket_fn fn, void *user);
/// Leaves it to us how many connections are kept.
void shim_curl_multi_keep_connections(CURLM *multi);
CURLMcode shim_curl_multi_set_timer(CURLM *multi, shim_curl_timer_fn fn, void *user);
/// The value of CURLOPT_PRIVATE.
intptr_t shim_curl_number(CURL *easy);
/// The next finished transfer: its value of CURLOPT_PRIVATE, and its result. Returns false for
/// none.
bool shim_curl_multi_next_done(CURLM *multi, intptr_t *number, CURLcode *result);

#pragma GCC visibility pop

#endif
