#define _GNU_SOURCE
#include "shim_dial.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

_Static_assert(sizeof(struct sockaddr_in6) <= sizeof((shim_address){0}.bytes), "it fits");

int shim_look_up(const char *host, int ip_version, bool is_numeric, shim_address *out,
                 size_t capacity, size_t *count) {
  const int families[] = {[4] = AF_INET, [6] = AF_INET6};
  struct addrinfo hints = {.ai_family = ip_version ? families[ip_version] : AF_UNSPEC,
                           .ai_socktype = SOCK_STREAM,
                           .ai_flags = is_numeric ? AI_NUMERICHOST : 0};
  struct addrinfo *found = NULL;
  *count = 0;
  int code = getaddrinfo(host, NULL, &hints, &found);
  if (code) return code;
  for (struct addrinfo *one = found; one && *count < capacity; one = one->ai_next) {
    if (one->ai_family != AF_INET && one->ai_family != AF_INET6) continue;
    if (one->ai_addrlen > sizeof out->bytes) continue;
    out[*count].length = one->ai_addrlen;
    memcpy(out[*count].bytes, one->ai_addr, one->ai_addrlen);
    ++*count;
  }
  freeaddrinfo(found);
  return *count ? 0 : EAI_NONAME;
}

const char *shim_look_up_error(int code) { return gai_strerror(code); }

_Static_assert(SHIM_LOOK_UP_AGAIN == EAI_AGAIN, "getaddrinfo's own number");

/// A copy with the port.
static struct sockaddr_storage with_port(const shim_address *address, uint16_t port) {
  struct sockaddr_storage whole = {0};
  memcpy(&whole, address->bytes, address->length);
  if (whole.ss_family == AF_INET) ((struct sockaddr_in *)&whole)->sin_port = htons(port);
  else ((struct sockaddr_in6 *)&whole)->sin6_port = htons(port);
  return whole;
}

int shim_address_version(const shim_address *address) {
  return with_port(address, 0).ss_family == AF_INET ? 4 : 6;
}

int shim_address_bytes(const shim_address *address, uint8_t out[16]) {
  struct sockaddr_storage whole = with_port(address, 0);
  bool is_4 = whole.ss_family == AF_INET;
  if (is_4) memcpy(out, &((struct sockaddr_in *)&whole)->sin_addr, 4);
  else memcpy(out, &((struct sockaddr_in6 *)&whole)->sin6_addr, 16);
  return is_4 ? 4 : 16;
}

void shim_address_text(const shim_address *address, uint16_t port, char *out, size_t size) {
  struct sockaddr_storage whole = with_port(address, port);
  char host[64] = "";
  getnameinfo((struct sockaddr *)&whole, address->length, host, sizeof host, NULL, 0,
              NI_NUMERICHOST);
  snprintf(out, size, whole.ss_family == AF_INET ? "%s:%u" : "[%s]:%u", host, port);
}

static void set(int socket, int level, int option, int value) {
  setsockopt(socket, level, option, &value, sizeof value);
}

/// Connects from an address of the interface, for systems that reserve SO_BINDTODEVICE for root.
static int bind_to_address_of(int socket, int family, const char *name) {
  struct ifaddrs *all = NULL;
  int result = -1, cause = ENODEV;
  if (getifaddrs(&all)) return -1;
  for (struct ifaddrs *one = all; one && result; one = one->ifa_next) {
    if (!one->ifa_addr || one->ifa_addr->sa_family != family || strcmp(one->ifa_name, name))
      continue;
    socklen_t length =
        family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    result = bind(socket, one->ifa_addr, length);
    cause = errno;
  }
  freeifaddrs(all);
  errno = cause;
  return result;
}

/// - Returns: 0, or -1 with errno: EADDRNOTAVAIL if the address is of the other IP version.
static int bind_to(int socket, int family, const char *interface) {
  shim_address own;
  size_t count;
  if (!shim_look_up(interface, 0, true, &own, 1, &count)) {
    struct sockaddr_storage address = with_port(&own, 0);
    // connect() chooses the port, which several destinations can share.
    set(socket, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
    errno = EADDRNOTAVAIL;
    if (address.ss_family != family) return -1;
    return bind(socket, (struct sockaddr *)&address, own.length);
  }
  socklen_t length = (socklen_t)strlen(interface) + 1;
  if (!setsockopt(socket, SOL_SOCKET, SO_BINDTODEVICE, interface, length)) return 0;
  return errno == EPERM ? bind_to_address_of(socket, family, interface) : -1;
}

/// What cannot be set is left as it is, but for the interface.
static int set_options(int socket, int family, const shim_socket_options *options) {
  // Before connect(), which negotiates the window scale. The kernel may limit the size.
  if (options->receive_buffer_bytes > 0)
    set(socket, SOL_SOCKET, SO_RCVBUF, options->receive_buffer_bytes);
  if (options->no_delay) set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  if (options->idle_time > 0) {
    set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
    set(socket, IPPROTO_TCP, TCP_KEEPIDLE, options->idle_time);
    set(socket, IPPROTO_TCP, TCP_KEEPINTVL, options->probe_interval);
  }
  if (options->probes > 0) set(socket, IPPROTO_TCP, TCP_KEEPCNT, options->probes);
  return options->interface ? bind_to(socket, family, options->interface) : 0;
}

int shim_dial(const shim_address *address, uint16_t port, const shim_socket_options *options,
              bool *is_complete) {
  struct sockaddr_storage whole = with_port(address, port);
  int made = socket(whole.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
  *is_complete = false;
  if (made < 0) return -1;
  if (!set_options(made, whole.ss_family, options)) {
    if (!connect(made, (struct sockaddr *)&whole, address->length)) *is_complete = true;
    if (*is_complete || errno == EINPROGRESS) return made;
  }
  int cause = errno;
  close(made);
  errno = cause;
  return -1;
}

int shim_dial_error(int socket) {
  int error = 0;
  socklen_t length = sizeof error;
  return getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &length) ? errno : error;
}

bool shim_is_local_failure(int error) {
  return error == ENETUNREACH || error == EHOSTUNREACH || error == EADDRNOTAVAIL ||
         error == EAFNOSUPPORT || error == ENETDOWN;
}

bool shim_is_interface_failure(int error) {
  return error == ENODEV || error == EADDRNOTAVAIL || error == EPERM;
}

static curl_socket_t open_socket(void *user, curlsocktype purpose, struct curl_sockaddr *address) {
  shim_curl_dial *dial = user;
  (void)purpose;
  if (address->family == AF_UNIX) {
    int made = socket(AF_UNIX, address->socktype | SOCK_CLOEXEC, address->protocol);
    int bytes = dial->receive_buffer_bytes;
    if (made >= 0 && bytes > 0) set(made, SOL_SOCKET, SO_RCVBUF, bytes);
    return made;
  }
  if (dial->socket < 0) {
    if (dial->wanted) dial->wanted(dial->user);
    return CURL_SOCKET_BAD;
  }
  // libcurl reports this address as the peer's.
  struct sockaddr_storage peer;
  socklen_t length = sizeof peer;
  if (!getpeername(dial->socket, (struct sockaddr *)&peer, &length)) {
    address->family = peer.ss_family;
    address->addrlen = length;
    memcpy(&address->addr, &peer, length);
  }
  curl_socket_t taken = dial->socket;
  dial->socket = -1;
  return taken;
}

/// libcurl now calls connect(), which returns 0 at its first call after the connection is made. It
/// would fail for a connection whose connect() has returned 0 before. (libcurl 7.88 calls it even
/// after CURL_SOCKOPT_ALREADY_CONNECTED, so do not depend on that alone.)
static int before_connect(void *user, curl_socket_t socket, curlsocktype purpose) {
  const shim_curl_dial *dial = user;
  (void)socket, (void)purpose;
  return dial->is_complete ? CURL_SOCKOPT_ALREADY_CONNECTED : CURL_SOCKOPT_OK;
}

CURLcode shim_curl_set_dial(CURL *easy, shim_curl_dial *dial) {
  CURLcode result = curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
  if (!result) result = curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, dial);
  if (!result) result = curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, before_connect);
  return result ? result : curl_easy_setopt(easy, CURLOPT_SOCKOPTDATA, dial);
}

void shim_curl_drop_dialed(shim_curl_dial *dial) {
  if (dial->socket >= 0) close(dial->socket);
  dial->socket = -1;
}
