// What a program that the host executes must not inherit, and environment variables.
#ifndef SHIM_INHERIT_H
#define SHIM_INHERIT_H

#include <curl/curl.h>

#pragma GCC visibility push(hidden)

/// Sets FD_CLOEXEC on the pair of sockets that libcurl (7.88) wakes a multi handle by. Call right
/// after `curl_multi_init`. Does nothing if the pair is not found: later versions set the flag.
void shim_curl_keep_wakeup_from_children(CURLM *multi);

/// Sets FD_CLOEXEC on the pair of sockets by which a thread of libcurl's (7.88) says that its name
/// lookup has ended, given the end that libcurl waits for. Does nothing for any other socket.
void shim_curl_keep_lookup_from_children(int fd);

/// An environment variable; NULL if it is not set, empty, or if the process has more rights than
/// its user (secure_getenv).
const char *shim_environment(const char *name);

#pragma GCC visibility pop

#endif
