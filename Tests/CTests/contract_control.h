/* Control of the test servers of Tests/Support, for the contract programs of Pusher and Meteor. */
#ifndef CONTRACT_CONTROL_H
#define CONTRACT_CONTROL_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "contract.h"

/* Asks the server to do something (its control.py). `json` may use '. */
static inline void control(const char *server, const char *action, const char *json) {
  char body[1024], request[1400], response[4096];
  struct sockaddr_in address = {.sin_family = AF_INET};
  int socket_, length = snprintf(body, sizeof body, "%s", json);
  size_t got = 0;
  ssize_t count;
  char *each;
  CHECK(length < (int)sizeof body);
  for (each = body; *each; each++)
    if (*each == '\'') *each = '"';
  length = snprintf(request, sizeof request,
                    "POST /control/%s HTTP/1.0\r\nHost: localhost\r\n"
                    "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
                    action, length, body);
  CHECK(length < (int)sizeof request);
  address.sin_port = htons((uint16_t)atoi(strrchr(server, ':') + 1));
  CHECK(inet_pton(AF_INET, "127.0.0.1", &address.sin_addr) == 1);
  CHECK((socket_ = socket(AF_INET, SOCK_STREAM, 0)) >= 0);
  CHECK(connect(socket_, (struct sockaddr *)&address, sizeof address) == 0);
  CHECK(write(socket_, request, (size_t)length) == length);
  while ((count = read(socket_, response + got, sizeof response - 1 - got)) > 0)
    got += (size_t)count;
  response[got] = '\0';
  CHECK(close(socket_) == 0);
  if (strncmp(response + 8, " 200", 4) != 0) {
    printf("%s %s: %s\n", action, body, response);
    exit(1);
  }
}

#endif
