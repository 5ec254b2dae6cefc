#define _GNU_SOURCE
#include "shim_inherit.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>

/// Whether it is an unnamed stream socket of the Unix domain that programs would inherit.
static bool may_be_libcurls(int fd) {
  int flags = fcntl(fd, F_GETFD), type = 0;
  struct sockaddr_un address;
  socklen_t length = sizeof address, type_length = sizeof type;
  return flags >= 0 && !(flags & FD_CLOEXEC) &&
         !getsockname(fd, (struct sockaddr *)&address, &length) && address.sun_family == AF_UNIX &&
         length == sizeof(sa_family_t) &&
         !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_length) && type == SOCK_STREAM;
}

/// How many bytes wait to be read from a socket, and how many its peer has not read.
typedef struct {
  int fd, unread, unsent;
} queues;

static queues queues_of(int fd) {
  queues found = {.fd = fd};
  if (ioctl(fd, SIOCINQ, &found.unread)) found.unread = -1;
  if (ioctl(fd, SIOCOUTQ, &found.unsent)) found.unsent = -1;
  return found;
}

enum { MOST_CANDIDATES = 1024 };

/// libcurl does not tell which sockets it uses, so we recognize them by their behaviour: each
/// wake-up writes one byte into the pair, and a poll reads all bytes.
static void mark(CURLM *multi, queues *before, int count) {
  for (int bytes = 1; bytes <= 2; bytes++) {
    curl_multi_wakeup(multi);
    int left = 0;
    for (int i = 0; i < count; i++) {
      queues now = queues_of(before[i].fd);
      bool is_reader = now.unread == bytes && now.unsent == 0;
      bool is_writer = now.unread == 0 && now.unsent > before[i].unsent;
      if (is_reader || is_writer) before[left++] = now;
    }
    count = left;
  }
  int ready = 0;
  curl_multi_poll(multi, NULL, 0, 0, &ready);
  for (int i = 0; i < count; i++) {
    queues now = queues_of(before[i].fd);
    if (now.unread == 0 && now.unsent == 0) fcntl(before[i].fd, F_SETFD, FD_CLOEXEC);
  }
}

void shim_curl_keep_wakeup_from_children(CURLM *multi) {
  DIR *folder = opendir("/proc/self/fd");
  queues *candidates = calloc(MOST_CANDIDATES, sizeof *candidates);
  if (folder && candidates) {
    int count = 0;
    for (struct dirent *entry; (entry = readdir(folder)) && count < MOST_CANDIDATES;) {
      if (entry->d_name[0] == '.') continue;
      int fd = atoi(entry->d_name);
      if (!may_be_libcurls(fd)) continue;
      queues found = queues_of(fd);
      if (found.unread == 0 && found.unsent == 0) candidates[count++] = found;
    }
    mark(multi, candidates, count);
  }
  free(candidates);
  if (folder) closedir(folder);
}

enum { MARK_BYTES = 16, MOST_DISTANCE = 1024 };

/// Whether exactly these bytes wait in a socket that may be libcurl's. Does not consume them.
static bool has_mark(int fd, const uint8_t *mark) {
  uint8_t found[MARK_BYTES];
  return may_be_libcurls(fd) && queues_of(fd).unread == MARK_BYTES &&
         recv(fd, found, MARK_BYTES, MSG_PEEK | MSG_DONTWAIT) == MARK_BYTES &&
         !memcmp(found, mark, MARK_BYTES);
}

/// The other end of a pair, to which `mark` was sent; -1 if it is not found. The kernel gives a
/// pair the two lowest free numbers, so they are close to each other.
static int partner_of(int fd, const uint8_t *mark) {
  for (int distance = 1; distance <= MOST_DISTANCE; distance++) {
    if (has_mark(fd + distance, mark)) return fd + distance;
    if (fd >= distance && has_mark(fd - distance, mark)) return fd - distance;
  }
  return -1;
}

void shim_curl_keep_lookup_from_children(int fd) {
  if (!may_be_libcurls(fd)) return;
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  // libcurl only writes to the other end and only reads from this one. So random bytes that we send
  // the other way identify the other end, and do no harm if they stay.
  uint8_t mark[MARK_BYTES];
  if (getrandom(mark, sizeof mark, GRND_NONBLOCK) != sizeof mark ||
      send(fd, mark, sizeof mark, MSG_DONTWAIT | MSG_NOSIGNAL) != sizeof mark)
    return;
  int partner = partner_of(fd, mark);
  if (partner < 0) return;
  fcntl(partner, F_SETFD, FD_CLOEXEC);
  recv(partner, mark, sizeof mark, MSG_DONTWAIT);
}

const char *shim_environment(const char *name) {
  const char *value = secure_getenv(name);
  return value && *value ? value : NULL;
}
