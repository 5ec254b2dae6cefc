// Looking up host names, and connecting sockets.
#ifndef SHIM_DIAL_H
#define SHIM_DIAL_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Internal: the version script exports only rt_*.
#pragma GCC visibility push(hidden)

/// An IPv4 or IPv6 address with its zone, as the kernel takes it.
typedef struct shim_address {
  uint32_t length;
  uint8_t bytes[28];
} shim_address;

/// Looks up the addresses of a host: all, or only those of IP version 4 or 6. Blocks, unless
/// `is_numeric`: then the host must be an address. Returns 0, or a code of getaddrinfo().
int shim_look_up(const char *host, int ip_version, bool is_numeric, shim_address *out,
                 size_t capacity, size_t *count);
/// The text for such a code.
const char *shim_look_up_error(int code);
/// The code for a failure that may pass.
enum { SHIM_LOOK_UP_AGAIN = -3 };

/// Writes the address in network order. Returns its length, 4 or 16.
int shim_address_bytes(const shim_address *address, uint8_t out[16]);
/// 4 or 6.
int shim_address_version(const shim_address *address);
/// Writes it as "192.0.2.1:443" or "[::1]:443".
void shim_address_text(const shim_address *address, uint16_t port, char *out, size_t size);

/// How a socket is made. 0 means the kernel's choice.
typedef struct shim_socket_options {
  int receive_buffer_bytes;
  /// Whether keep-alive probes are sent; in seconds, and how many.
  int idle_time, probe_interval, probes;
  bool no_delay;
  /// The name of the interface, or the local address, from which to connect; NULL for any.
  const char *interface;
} shim_socket_options;

/// Begins to connect. Sets `is_complete` if connect() did not have to wait. Returns the socket, or
/// -1 with errno.
int shim_dial(const shim_address *address, uint16_t port, const shim_socket_options *options,
              bool *is_complete);
/// Why a socket that was connecting failed, an errno; 0 if it is connected.
int shim_dial_error(int socket);
/// Whether this errno is about this machine's network, rather than the host.
bool shim_is_local_failure(int error);
/// Whether this errno may be about the interface or local address that was asked for.
bool shim_is_interface_failure(int error);

typedef void (*shim_curl_wanted_fn)(void *user);
/// The connected socket that libcurl gets instead of making one. Each handle has one.
typedef struct shim_curl_dial {
  /// -1 for none.
  int socket;
  /// connect() has returned 0 for it.
  bool is_complete;
  /// For Unix sockets, which libcurl connects.
  int receive_buffer_bytes;
  /// libcurl needs a socket and there is none. Its attempt then fails.
  shim_curl_wanted_fn wanted;
  void *user;
} shim_curl_dial;
/// Makes libcurl get its sockets from `dial`, which must outlive the handle.
CURLcode shim_curl_set_dial(CURL *easy, shim_curl_dial *dial);
/// Closes a socket that libcurl has not taken.
void shim_curl_drop_dialed(shim_curl_dial *dial);

#pragma GCC visibility pop

#endif
