// Linux's rtnetlink: how a program hears of links, addresses and routes (rtnetlink(7)).
#ifndef SHIM_NETLINK_H
#define SHIM_NETLINK_H

#include <stdint.h>
#include <sys/types.h>

// The version script exports rt_*: these are the library's own, and stay inside.
#pragma GCC visibility push(hidden)

/// A socket that hears of every change of links, addresses and routes, or, for questions, of none.
/// It never blocks. -1 with errno where the system forbids it.
int shim_netlink_open(_Bool hears_changes);
/// Asks for all links (RTM_GETLINK), addresses or routes; 0, or -1 with errno.
int shim_netlink_ask(int fd, uint16_t type, uint32_t sequence);
/// One datagram of the kernel's: its length; 0 for one of someone else's; -1 with errno, EMSGSIZE
/// for one that did not fit.
ssize_t shim_netlink_receive(int fd, void *buffer, size_t capacity);
/// Reads away what has come, a bounded part of it when more comes all the time.
/// True if there was anything; one that was lost for want of room counts.
_Bool shim_netlink_drain(int fd);

/// Writes an IPv4 or IPv6 address in network order: 4 or 16, the bytes written; 0 for other text.
int shim_address_parse(const char *text, uint8_t bytes[16]);

#pragma GCC visibility pop

#endif
