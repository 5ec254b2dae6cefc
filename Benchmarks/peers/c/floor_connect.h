// How the floor client connects: a blocking socket, OpenSSL for wss, one request.
#pragma once

#include <openssl/ssl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct link {
  int fd;
  SSL *tls;
};

/// Connects and performs the handshake. `receive_bytes` is SO_RCVBUF, 0 for the kernel's default;
/// `extension` is a header line or "". Bytes after the response's head are copied to `rest`.
/// \returns their number.
size_t link_open(
    struct link *to, int receive_bytes, const char *extension, uint8_t *rest, size_t room);
ssize_t link_read(struct link *from, void *buffer, size_t room);
void link_write(struct link *to, const void *data, size_t length);
/// Sends a close frame, waits for the peer's and closes the socket.
void link_close(struct link *which);
/// A mask key: unpredictable for a page that cannot see the process, without a system call each
/// time.
uint32_t link_mask_key(void);
