// Keeps descriptors from programs that the host executes; reads environment variables.
#ifndef SHIM_INHERIT_H
#define SHIM_INHERIT_H

#include <curl/curl.h>

#pragma GCC visibility push(hidden)

/// Sets FD_CLOEXEC on the pair of sockets with which libcurl (7.88) wakes a multi handle. Call it
/// right after `curl_multi_init`. Does nothing if the pair is not found: later versions set the
/// flag.
void shim_curl_keep_wakeup_from_children(CURLM *multi);

/// Sets FD_CLOEXEC on the pair of sockets with which a thread of libcurl (7.88) reports that its
/// name lookup has ended. `fd` is the end that libcurl waits for. Does nothing for other sockets.
void shim_curl_keep_lookup_from_children(int fd);

/// An environment variable; NULL if it is not set, empty, or if the process has more rights than
/// its user (secure_getenv).
const char *shim_environment(const char *name);

#pragma GCC visibility pop

#endif
