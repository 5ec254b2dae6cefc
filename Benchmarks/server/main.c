// The neutral server of the benchmarks: one thread, one epoll, no library except OpenSSL for wss.
//
//     server serve CERTIFICATE KEY     prints `PORT TLS-PORT`, then serves until it is killed
//     server expect KIND COUNT         prints the sums of COUNT messages: payload checksum wire;
//                                      for a Meteor server's: titles sent wire stored (ddp.h)
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <signal.h>
#include <unistd.h>

#include "connection.h"
#include "ddp.h"

enum { READ_BYTES = 1 << 18, EVENTS = 256 };

static int queue;
static int listeners[2];
static SSL_CTX *context;

static void fail(const char *what) {
  fprintf(stderr, "server: %s: %s\n", what, strerror(errno));
  exit(1);
}

static int listen_anywhere(unsigned *port) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), one = 1;
  struct sockaddr_in address = {
      .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (bind(fd, (struct sockaddr *)&address, size) < 0 || listen(fd, 4096) < 0) fail("listen");
  getsockname(fd, (struct sockaddr *)&address, &size);
  *port = ntohs(address.sin_port);
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
  if (epoll_ctl(queue, EPOLL_CTL_ADD, fd, &event) < 0) fail("epoll_ctl");
  return fd;
}

static void make_context(const char *certificate, const char *key) {
  context = SSL_CTX_new(TLS_server_method());
  // No resumption, so every connect includes a full handshake.
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  if (SSL_CTX_use_certificate_chain_file(context, certificate) != 1 ||
      SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1) {
    fail("the certificate");
  }
}

static void end(struct connection *c) {
  if (c->tls) {
    SSL_shutdown(c->tls);
    SSL_free(c->tls);
  }
  close(c->fd);
  free(c->text);
  free(c->answer);
  free(c);
}

static void accept_all(int listener) {
  for (;;) {
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC), one = 1;
    if (fd < 0) return;
    struct connection *c = calloc(1, sizeof *c);
    if (!c) fail("accept");
    c->fd = fd;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (listener == listeners[1]) {
      c->tls = SSL_new(context);
      SSL_set_fd(c->tls, fd);
      SSL_set_accept_state(c->tls);
    }
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = c};
    if (epoll_ctl(queue, EPOLL_CTL_ADD, fd, &event) < 0) fail("epoll_ctl");
  }
}

/// \returns like recv: above 0 for bytes, 0 at the end, -1 if there are none now.
static ssize_t receive(struct connection *c, uint8_t *buffer) {
  if (!c->tls) {
    ssize_t got = recv(c->fd, buffer, READ_BYTES, 0);
    return got < 0 && errno != EAGAIN ? 0 : got;
  }
  int got = SSL_read(c->tls, buffer, READ_BYTES);
  if (got > 0) return got;
  return SSL_get_error(c->tls, got) == SSL_ERROR_WANT_READ ? -1 : 0;
}

static void serve(struct connection *c, uint32_t events) {
  static uint8_t buffer[READ_BYTES];
  if ((events & EPOLLOUT) && c->flood_at > 0 && !connection_flood(c)) return end(c);
  for (;;) {
    ssize_t got = receive(c, buffer);
    if (got < 0) return;
    if (got == 0 || !connection_received(c, buffer, (size_t)got)) return end(c);
  }
}

static _Noreturn void run(const char *certificate, const char *key) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  struct rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  signal(SIGPIPE, SIG_IGN);
  make_context(certificate, key);
  queue = epoll_create1(EPOLL_CLOEXEC);
  unsigned ports[2];
  for (int i = 0; i < 2; i++) listeners[i] = listen_anywhere(&ports[i]);
  printf("%u %u\n", ports[0], ports[1]);
  fflush(stdout);
  for (;;) {
    struct epoll_event events[EVENTS];
    int count = epoll_wait(queue, events, EVENTS, -1);
    for (int i = 0; i < count; i++) {
      if (events[i].data.ptr) {
        serve(events[i].data.ptr, events[i].events);
      } else {
        accept_all(listeners[0]);
        accept_all(listeners[1]);
      }
    }
  }
}

/// \returns false if no data has this name.
static bool print_documents(const char *kind, const char *count) {
  char name[64];
  snprintf(name, sizeof name, "%s-%s", kind, count);
  const struct ddp_data *data = ddp_data_named(name);
  if (!data) return false;
  printf(
      "%llu %llu %zu %llu\n", (unsigned long long)data->titles, (unsigned long long)data->sent,
      data->changes_end, (unsigned long long)data->stored);
  return true;
}

int main(int argc, char **argv) {
  if (argc == 4 && strcmp(argv[1], "serve") == 0) run(argv[2], argv[3]);
  if (argc == 4 && strcmp(argv[1], "expect") == 0 && flood_named(argv[2])) {
    struct totals totals = flood_totals(flood_named(argv[2]), strtoull(argv[3], NULL, 10));
    printf(
        "%llu %llu %llu\n", (unsigned long long)totals.payload,
        (unsigned long long)totals.checksum, (unsigned long long)totals.wire);
    return 0;
  }
  if (argc == 4 && strcmp(argv[1], "expect") == 0 && print_documents(argv[2], argv[3])) return 0;
  fprintf(stderr, "usage: server serve CERTIFICATE KEY | server expect KIND COUNT\n");
  return 2;
}
