/* If one address of a name does not answer, the same attempt tries the next one 250 ms later (RFC
 * 8305), whatever its time limit. */
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "contract.h"

static const char *const addresses[] = {"127.0.0.1", "127.0.0.2"};

static struct addrinfo *make(const char *address, int port, struct addrinfo *next) {
  struct addrinfo *made = calloc(1, sizeof *made + sizeof(struct sockaddr_in));
  struct sockaddr_in *at = (struct sockaddr_in *)(made + 1);
  at->sin_family = AF_INET;
  at->sin_port = htons((uint16_t)port);
  CHECK(inet_pton(AF_INET, address, &at->sin_addr) == 1);
  made->ai_family = AF_INET;
  made->ai_socktype = SOCK_STREAM;
  made->ai_addrlen = sizeof *at;
  made->ai_addr = (struct sockaddr *)at;
  made->ai_next = next;
  return made;
}

/* Replaces libc's function: every name has both addresses. */
int getaddrinfo(const char *restrict name, const char *restrict service,
                const struct addrinfo *restrict hints, struct addrinfo **restrict found) {
  int port = service ? atoi(service) : 0;
  (void)name, (void)hints;
  *found = make(addresses[0], port, make(addresses[1], port, NULL));
  return 0;
}

void freeaddrinfo(struct addrinfo *list) {
  while (list) {
    struct addrinfo *next = list->ai_next;
    free(list);
    list = next;
  }
}

static int listener(const char *address, int *port, int backlog) {
  int made = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)*port)};
  socklen_t size = sizeof at;
  CHECK(made >= 0 && inet_pton(AF_INET, address, &at.sin_addr) == 1);
  CHECK(bind(made, (struct sockaddr *)&at, size) == 0 && listen(made, backlog) == 0);
  CHECK(getsockname(made, (struct sockaddr *)&at, &size) == 0);
  *port = ntohs(at.sin_port);
  return made;
}

/* Its accept queue is full, so connecting to it never succeeds or fails. */
static int full_listener(const char *address, int *port, int fillers[2]) {
  int made = listener(address, port, 0), index;
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)*port)};
  CHECK(inet_pton(AF_INET, address, &at.sin_addr) == 1);
  for (index = 0; index < 2; index++) {
    fillers[index] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    (void)connect(fillers[index], (struct sockaddr *)&at, sizeof at);
  }
  return made;
}

static int accepted(rt_loop *loop, int alive) {
  int64_t begun = now_ms();
  int taken = -1;
  while (taken < 0) {
    CHECK_OK(rt_loop_dispatch(loop, 20));
    taken = accept4(alive, NULL, NULL, SOCK_NONBLOCK);
    CHECK(now_ms() < begun + 30000);
  }
  CHECK(now_ms() >= begun + 240);
  return taken;
}

static void by_websocket(rt_loop *loop, rt_network *network, int port, int alive) {
  rt_websocket *ws;
  char url[64];
  snprintf(url, sizeof url, "ws://two.test:%d", port);
  CHECK_OK(rt_websocket_new(loop, url, &ws));
  CHECK_OK(rt_websocket_set_network(ws, network));
  CHECK_OK(rt_websocket_set_open_timeout_ms(ws, 0));
  CHECK_OK(rt_websocket_start(ws));
  close(accepted(loop, alive));
  rt_websocket_free(ws);
}

static void on_done(rt_rest_response *response, void *user) {
  (void)response;
  ++*(int *)user;
}

int main(void) {
  rt_loop *loop = new_loop();
  rt_network *network;
  rt_rest *rest;
  rt_rest_request *get;
  int fillers[2], port = 0, ended = 0;
  int dead = full_listener(addresses[0], &port, fillers);
  int alive = listener(addresses[1], &port, 8);
  char url[64];

  CHECK_OK(rt_network_new(&network));
  CHECK_OK(rt_network_set_proxy(network, ""));
  snprintf(url, sizeof url, "http://two.test:%d", port);
  CHECK_OK(rt_rest_new(loop, url, &rest));
  CHECK_OK(rt_rest_set_network(rest, network));
  CHECK_OK(rt_rest_set_attempt_timeout_ms(rest, 0));
  CHECK_OK(rt_rest_set_attempts(rest, 1));
  CHECK_OK(rt_rest_request_new(rest, "GET", "/", &get));
  CHECK_OK(rt_rest_request_send(get, on_done, &ended, NULL, NULL, NULL));
  close(accepted(loop, alive));
  CHECK(!ended);
  by_websocket(loop, network, port, alive);

  rt_rest_request_free(get);
  rt_rest_free(rest);
  rt_network_free(network);
  rt_loop_free(loop);
  close(fillers[0]);
  close(fillers[1]);
  close(dead);
  close(alive);
  return 0;
}
