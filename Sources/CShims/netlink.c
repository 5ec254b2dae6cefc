#define _GNU_SOURCE
#include "shim_netlink.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef RTEXT_FILTER_SKIP_STATS
#define RTEXT_FILTER_SKIP_STATS (1 << 3)
#endif

int shim_netlink_open(_Bool hears_changes) {
  int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
  if (fd < 0) return -1;
  struct sockaddr_nl address = {.nl_family = AF_NETLINK};
  if (hears_changes)
    address.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR |
                        RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE;
  if (bind(fd, (struct sockaddr *)&address, sizeof address) == 0) return fd;
  int cause = errno;
  close(fd);
  errno = cause;
  return -1;
}

int shim_netlink_ask(int fd, uint16_t type, uint32_t sequence) {
  // All three requests begin with a family, 0 for any. A link's can also have a mask of what to
  // leave out, which older kernels ignore.
  struct {
    struct nlmsghdr header;
    struct ifinfomsg body;
    struct rtattr attribute;
    uint32_t mask;
  } question = {
      .header = {.nlmsg_type = type,
                 .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
                 .nlmsg_seq = sequence},
      .attribute = {.rta_type = IFLA_EXT_MASK, .rta_len = RTA_LENGTH(sizeof(uint32_t))},
      .mask = RTEXT_FILTER_SKIP_STATS,
  };
  size_t length = type == RTM_GETLINK    ? sizeof question
                  : type == RTM_GETADDR ? NLMSG_LENGTH(sizeof(struct ifaddrmsg))
                                        : NLMSG_LENGTH(sizeof(struct rtmsg));
  question.header.nlmsg_len = (uint32_t)length;
  struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
  ssize_t sent = sendto(fd, &question, length, 0, (struct sockaddr *)&kernel, sizeof kernel);
  return sent == (ssize_t)length ? 0 : -1;
}

ssize_t shim_netlink_receive(int fd, void *buffer, size_t capacity) {
  struct sockaddr_nl sender = {.nl_family = AF_UNSPEC};
  struct iovec part = {.iov_base = buffer, .iov_len = capacity};
  struct msghdr message = {
      .msg_name = &sender, .msg_namelen = sizeof sender, .msg_iov = &part, .msg_iovlen = 1};
  ssize_t length;
  do {
    length = recvmsg(fd, &message, 0);
  } while (length < 0 && errno == EINTR);
  if (length < 0) return -1;
  if (message.msg_flags & MSG_TRUNC) {
    errno = EMSGSIZE;
    return -1;
  }
  // Other processes can write to a netlink socket, too.
  return sender.nl_family == AF_NETLINK && sender.nl_pid == 0 ? length : 0;
}

_Bool shim_netlink_drain(int fd) {
  enum { MOST = 1024 };
  char first;
  _Bool found = 0;
  for (int i = 0; i < MOST; i++) {
    // Reading the first byte discards the rest of the datagram.
    if (recv(fd, &first, 1, MSG_DONTWAIT) >= 0 || errno == ENOBUFS) found = 1;
    else if (errno != EINTR) break;
  }
  return found;
}

int shim_address_parse(const char *text, uint8_t bytes[16]) {
  if (inet_pton(AF_INET, text, bytes) == 1) return 4;
  return inet_pton(AF_INET6, text, bytes) == 1 ? 16 : 0;
}
