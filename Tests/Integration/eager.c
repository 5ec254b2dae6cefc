/*
 * Preloaded into a client: its servers seem to answer at once and without end. A request that
 * libcurl sends is followed by a wait for the response, and each read by a wait for more.
 *
 * At the end it prints the most connections that one call of libcurl has read from for long.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>

typedef int action(void *, int, int, int *);
typedef ssize_t receive(int, void *, size_t, int);
typedef ssize_t transmit(int, const void *, size_t, int);

enum { SOCKETS = 1024, LONG = 50, PATIENCE = 1000000 };

static bool is_inside;
static int reads[SOCKETS];
static int most;

/* At least one pause, so that reading takes long on any machine. */
static void wait_for(int socket) {
  struct timespec pause = {.tv_nsec = 100000};
  int ready = 0;
  for (int i = 0; is_inside && i < PATIENCE && !ready; i++) {
    nanosleep(&pause, NULL);
    if (ioctl(socket, FIONREAD, &ready)) return;
  }
}

ssize_t send(int socket, const void *data, size_t length, int flags) {
  transmit *next = (transmit *)dlsym(RTLD_NEXT, "send");
  ssize_t sent = next(socket, data, length, flags);
  wait_for(socket);
  return sent;
}

ssize_t recv(int socket, void *data, size_t length, int flags) {
  receive *next = (receive *)dlsym(RTLD_NEXT, "recv");
  wait_for(socket);
  if (is_inside && socket < SOCKETS) reads[socket] += 1;
  return next(socket, data, length, flags);
}

int curl_multi_socket_action(void *multi, int socket, int events, int *running) {
  /* It is loaded by now, but not for all, so that RTLD_NEXT does not find it. */
  void *curl = dlopen("libcurl.so.4", RTLD_NOLOAD | RTLD_LAZY);
  action *next = (action *)dlsym(curl, "curl_multi_socket_action");
  memset(reads, 0, sizeof reads);
  is_inside = true;
  int code = next(multi, socket, events, running);
  is_inside = false;
  int busy = 0;
  for (int i = 0; i < SOCKETS; i++) busy += reads[i] >= LONG;
  if (busy > most) most = busy;
  return code;
}

__attribute__((destructor)) static void end(void) { printf("%d\n", most); }
