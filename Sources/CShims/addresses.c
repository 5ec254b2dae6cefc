// The two ends of a connection, as text for people and logs.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
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

void shim_curl_addresses(CURL *easy, char *remote, char *local, size_t size) {
  char *host = NULL;
  long port = 0;
  curl_easy_getinfo(easy, CURLINFO_PRIMARY_IP, &host);
  curl_easy_getinfo(easy, CURLINFO_PRIMARY_PORT, &port);
  join(remote, size, host, port);
  host = NULL;
  curl_easy_getinfo(easy, CURLINFO_LOCAL_IP, &host);
  curl_easy_getinfo(easy, CURLINFO_LOCAL_PORT, &port);
  join(local, size, host, port);
}
