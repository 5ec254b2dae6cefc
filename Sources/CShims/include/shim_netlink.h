// Linux's rtnetlink, which reports links, addresses and routes (rtnetlink(7)).
#ifndef SHIM_NETLINK_H
#define SHIM_NETLINK_H

#include <stdint.h>
#include <sys/types.h>

// Internal: the version script exports only rt_*.
#pragma GCC visibility push(hidden)

/// Opens a socket that never blocks. It receives every change of links, addresses and routes, or
/// none if it is for requests. Returns -1 with errno if the system forbids it.
int shim_netlink_open(_Bool hears_changes);
/// Requests all links (RTM_GETLINK), addresses or routes. Returns 0, or -1 with errno.
int shim_netlink_ask(int fd, uint16_t type, uint32_t sequence);
/// Receives one datagram from the kernel. Returns its length; 0 if another sender's; -1 with errno,
/// which is EMSGSIZE if it did not fit.
ssize_t shim_netlink_receive(int fd, void *buffer, size_t capacity);
/// Reads and drops what has arrived, up to a limit. Returns true if there was anything, including a
/// datagram that was lost because the buffer was full.
_Bool shim_netlink_drain(int fd);

/// Writes an IPv4 or IPv6 address in network order. Returns its length, 4 or 16; 0 for other text.
int shim_address_parse(const char *text, uint8_t bytes[16]);

#pragma GCC visibility pop

#endif
