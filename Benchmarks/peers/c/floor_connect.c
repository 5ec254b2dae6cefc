#define _GNU_SOURCE
#include "floor_connect.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../server/wire.h"
#include "meter.h"

uint32_t link_mask_key(void) {
  static uint32_t keys[1024];
  static size_t used = 1024;
  if (used == 1024) {
    if (getrandom(keys, sizeof keys, 0) != sizeof keys) meter_fail("getrandom");
    used = 0;
  }
  return keys[used++];
}

static void open_tls(struct link *to) {
  static SSL_CTX *context;
  if (!context) {
    context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    if (!task.ca_file || SSL_CTX_load_verify_locations(context, task.ca_file, NULL) != 1) {
      meter_fail("no CA file");
    }
  }
  to->tls = SSL_new(context);
  SSL_set_tlsext_host_name(to->tls, task.host);
  SSL_set1_host(to->tls, task.host);
  SSL_set_fd(to->tls, to->fd);
  if (SSL_connect(to->tls) != 1) meter_fail("the TLS handshake failed");
}

static void open_socket(struct link *to, int receive_bytes) {
  struct sockaddr_in address = {
      .sin_family = AF_INET,
      .sin_port = htons((uint16_t)atoi(task.port)),
      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int one = 1;
  to->tls = NULL;
  to->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (receive_bytes) {
    setsockopt(to->fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
  }
  setsockopt(to->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  if (connect(to->fd, (struct sockaddr *)&address, sizeof address) < 0) meter_fail("connect");
}

ssize_t link_read(struct link *from, void *buffer, size_t room) {
  if (from->tls) return SSL_read(from->tls, buffer, (int)room);
  return recv(from->fd, buffer, room, 0);
}

void link_write(struct link *to, const void *data, size_t length) {
  const uint8_t *from = data;
  while (length > 0) {
    ssize_t sent = to->tls ? SSL_write(to->tls, from, (int)length)
                           : send(to->fd, from, length, MSG_NOSIGNAL);
    if (sent <= 0) meter_fail("the connection broke while sending");
    from += sent;
    length -= (size_t)sent;
  }
}

size_t link_open(
    struct link *to, int receive_bytes, const char *extension, uint8_t *rest, size_t room) {
  open_socket(to, receive_bytes);
  if (task.tls) open_tls(to);
  uint8_t nonce[16];
  char key[32], accept[32], request[512], answer[2048];
  for (int i = 0; i < 4; i++) memcpy(nonce + 4 * i, &(uint32_t){link_mask_key()}, 4);
  EVP_EncodeBlock((uint8_t *)key, nonce, sizeof nonce);
  ws_accept(key, accept);
  int length = snprintf(
      request, sizeof request,
      "GET %s HTTP/1.1\r\nHost: %s:%s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
      "Sec-WebSocket-Key: %s\r\nSec-WebSocket-Version: 13\r\n%s\r\n",
      task.path, task.host, task.port, key, extension);
  link_write(to, request, (size_t)length);
  size_t have = 0;
  char *end = NULL;
  while (!end) {
    ssize_t got = link_read(to, answer + have, sizeof answer - 1 - have);
    if (got <= 0) meter_fail("no answer to the handshake");
    have += (size_t)got;
    answer[have] = 0;
    end = strstr(answer, "\r\n\r\n");
  }
  if (strncmp(answer, "HTTP/1.1 101", 12) != 0 || !strstr(answer, accept)) {
    meter_fail("the handshake was refused");
  }
  size_t left = have - (size_t)(end + 4 - answer);
  if (left > room) meter_fail("more than was asked for");
  if (left) memcpy(rest, end + 4, left);
  return left;
}

void link_close(struct link *which) {
  uint8_t frame[8] = {WS_FIN | WS_CLOSE, WS_MASKED | 2}, answer[64];
  uint8_t code[2] = {1000 >> 8, 1000 & 255};
  uint32_t key = link_mask_key();
  memcpy(frame + 2, &key, 4);
  ws_mask(frame + 6, code, 2, key);
  link_write(which, frame, sizeof frame);
  ssize_t got = link_read(which, answer, sizeof answer);
  if (got < 2 || answer[0] != (WS_FIN | WS_CLOSE)) meter_fail("no close frame came back");
  if (which->tls) {
    SSL_shutdown(which->tls);
    SSL_free(which->tls);
  }
  close(which->fd);
}
