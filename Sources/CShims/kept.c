// Idle connections that libcurl keeps for the next exchange.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "shim_platform.h"

int shim_socket_own_port(int socket) {
  struct sockaddr_storage own;
  socklen_t length = sizeof own;
  if (getsockname(socket, (struct sockaddr *)&own, &length)) return 0;
  if (own.ss_family == AF_INET) return ntohs(((struct sockaddr_in *)&own)->sin_port);
  if (own.ss_family == AF_INET6) return ntohs(((struct sockaddr_in6 *)&own)->sin6_port);
  return 0;
}

static bool leads_to(int socket, const char *address, int port) {
  struct sockaddr_storage peer;
  socklen_t length = sizeof peer;
  char text[INET6_ADDRSTRLEN];
  if (getpeername(socket, (struct sockaddr *)&peer, &length)) return false;
  bool is_6 = peer.ss_family == AF_INET6;
  const struct sockaddr_in6 *six = (struct sockaddr_in6 *)&peer;
  const struct sockaddr_in *four = (struct sockaddr_in *)&peer;
  const void *bytes = is_6 ? (const void *)&six->sin6_addr : (const void *)&four->sin_addr;
  if (ntohs(is_6 ? six->sin6_port : four->sin_port) != port) return false;
  return inet_ntop(peer.ss_family, bytes, text, sizeof text) && !strcmp(text, address);
}

bool shim_socket_cut_if_dirty(int socket, const char *address, int port) {
  char byte;
  if (recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 0) return false;
  return leads_to(socket, address, port) && !shutdown(socket, SHUT_RDWR);
}
