// What the kernel knows about a connection: its addresses, as text for people and logs, and how
// much of what was sent has arrived.
#include <arpa/inet.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "shim_platform.h"

static void join(char *text, size_t size, const char *host, long port) {
  text[0] = 0;
  if (!host || !host[0]) return;
  snprintf(text, size, strchr(host, ':') ? "[%s]:%ld" : "%s:%ld", host, port);
}

static void describe(const struct sockaddr_storage *address, socklen_t length, char *text,
                     size_t size) {
  char host[INET6_ADDRSTRLEN];
  const struct sockaddr_in *four = (const struct sockaddr_in *)address;
  const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)address;
  const struct sockaddr_un *path = (const struct sockaddr_un *)address;
  text[0] = 0;
  switch (address->ss_family) {
    case AF_INET:
      if (inet_ntop(AF_INET, &four->sin_addr, host, sizeof host))
        join(text, size, host, ntohs(four->sin_port));
      break;
    case AF_INET6:
      if (inet_ntop(AF_INET6, &six->sin6_addr, host, sizeof host))
        join(text, size, host, ntohs(six->sin6_port));
      break;
    case AF_UNIX:
      // An abstract name, which begins with a NUL, is shown as "".
      if (length > offsetof(struct sockaddr_un, sun_path))
        snprintf(text, size, "%.*s", (int)(length - offsetof(struct sockaddr_un, sun_path)),
                 path->sun_path);
      break;
    default: break;
  }
}

void shim_socket_addresses(int socket, char *remote, char *local, size_t size) {
  struct sockaddr_storage address;
  socklen_t length = sizeof address;
  remote[0] = local[0] = 0;
  if (!getpeername(socket, (struct sockaddr *)&address, &length))
    describe(&address, length, remote, size);
  length = sizeof address;
  if (!getsockname(socket, (struct sockaddr *)&address, &length))
    describe(&address, length, local, size);
}

static bool find_end(CURL *easy, CURLINFO host_info, CURLINFO port_info, char *host, size_t size,
                     long *port) {
  char *new_host = NULL;
  long new_port = 0;
  curl_easy_getinfo(easy, host_info, &new_host);
  curl_easy_getinfo(easy, port_info, &new_port);
  if (!new_host) new_host = "";
  if (new_port == *port && !strncmp(host, new_host, size - 1)) return false;
  *port = new_port;
  strncpy(host, new_host, size - 1);
  return true;
}

bool shim_curl_find_ends(CURL *easy, shim_curl_ends *ends) {
  bool is_other = find_end(easy, CURLINFO_PRIMARY_IP, CURLINFO_PRIMARY_PORT, ends->remote,
                           sizeof ends->remote, &ends->remote_port);
  return find_end(easy, CURLINFO_LOCAL_IP, CURLINFO_LOCAL_PORT, ends->local, sizeof ends->local,
                  &ends->local_port) ||
         is_other;
}

void shim_curl_addresses(const shim_curl_ends *ends, char *remote, char *local, size_t size) {
  join(remote, size, ends->remote, ends->remote_port);
  join(local, size, ends->local, ends->local_port);
}

int shim_unacknowledged_bytes(int socket) {
  int count = 0;
  return ioctl(socket, SIOCOUTQ, &count) == 0 && count > 0 ? count : 0;
}

uint64_t shim_curl_bytes_arrived(CURL *easy, int socket, uint32_t *since_ms) {
  curl_off_t count = 0;
  struct tcp_info info = {0};
  socklen_t size = sizeof info;
  *since_ms = 0;
  curl_easy_getinfo(easy, CURLINFO_SIZE_UPLOAD_T, &count);
  count -= shim_unacknowledged_bytes(socket);
  if (!getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size)) *since_ms = info.tcpi_last_ack_recv;
  return count > 0 ? (uint64_t)count : 0;
}
