// A guard below libcurl's TLS connections. It limits how much each may read in a turn of the loop,
// detects peers that send bytes without content or choose cryptography that takes too long, and
// detects connections that ended without close_notify.
#ifndef SHIM_TLS_H
#define SHIM_TLS_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

struct shim_tls_guard;
struct ssl_st;
struct ssl_ctx_st;

/// State that the TLS connections of one loop share. It outlives them.
typedef struct shim_tls_turn {
  /// Counts the loop's turns. Each connection may read `SHIM_TLS_BYTES_PER_TURN` in each.
  uint64_t number;
  /// How many reads and writes each connection may do in this turn.
  uint32_t operations;
  /// The connection that is reading now; NULL for none.
  struct shim_tls_guard *reading;
  /// True if a connection is suspected of a flood: the owner must call `shim_tls_judge` for it.
  bool has_suspects;
} shim_tls_turn;

/// One TLS connection. Every reference to it is counted.
typedef struct shim_tls_guard {
  uint32_t references;
  shim_tls_turn *turn;
  /// The TLS connection to a proxy that this one goes through; NULL for none.
  struct shim_tls_guard *below;
  /// The connection that was reading when this one began to read.
  struct shim_tls_guard *outer;
  uint64_t turn_number;
  /// Bytes that may still be read in this turn.
  int64_t left;
  /// Reads and writes that may still be done in this turn.
  int64_t operations_left;
  /// Received bytes that have carried no content so far. Decays with time; see tls.c.
  uint64_t idle_bytes;
  uint64_t idle_since_ns;
  /// Bytes that may still arrive of aborted responses. They do not count as idle.
  uint64_t dropped_bytes;
  /// Too many idle bytes: nothing is read until the owner has called `shim_tls_judge`.
  bool is_suspect;
  /// Judged a flood: nothing is read any more.
  bool is_flood;
  /// The previous security callback, which applies the system's policy on algorithms as well.
  int (*security)(const struct ssl_st *ssl, const struct ssl_ctx_st *context, int operation,
                  int bits, int number, void *other, void *user);
  /// The peer closed the connection without close_notify (RFC 8446 §6.1, RFC 5246 §7.2.1).
  bool is_cut;
  /// What the handshake agreed on, in OpenSSL's words ("TLSv1.3", "TLS_AES_256_GCM_SHA384"); NULL
  /// before.
  const char *version, *cipher;
} shim_tls_guard;

/// Bytes that one connection may receive in one turn. 29,000 empty HTTP/2 frames fit, which take
/// some milliseconds.
enum { SHIM_TLS_BYTES_PER_TURN = 256 << 10 };
/// Reads and writes of all connections in one turn; each has an equal share. A record takes two
/// reads, and the smallest ones cost more than their bytes: a KeyUpdate (RFC 8446 §4.6.3) that
/// requests a response takes 20 µs.
enum { SHIM_TLS_OPERATIONS_PER_TURN = 2048 };
/// Enough for full records with as many bytes as a connection may receive.
enum { SHIM_TLS_LEAST_OPERATIONS = 64 };
/// Bytes without content after which a connection fails.
enum { SHIM_TLS_IDLE_BYTES = 1 << 20 };

/// The TLS connections of one easy handle.
typedef struct shim_tls_source {
  shim_tls_turn *turn;
  /// The guard of its current or last connection, with a reference; NULL for none.
  shim_tls_guard *guard;
} shim_tls_source;

/// Begins a turn in which this many sockets are ready.
void shim_tls_begin_turn(shim_tls_turn *turn, uint32_t ready);
/// Guards the TLS connections that an easy handle makes. `source` must stay valid as long as the
/// handle makes connections. Does nothing if libcurl's TLS library is not this OpenSSL.
CURLcode shim_tls_watch(CURL *easy, shim_tls_source *source);
/// Stores the guard of the easy handle's current connection; NULL for none.
void shim_tls_find(CURL *easy, shim_tls_source *source);
/// Releases the reference.
void shim_tls_forget(shim_tls_source *source);
/// Credits bytes that carried headers, bodies or messages.
void shim_tls_credit(shim_tls_guard *guard, uint64_t bytes);
/// An exchange was aborted before its response: bytes of it that are still arriving carry no
/// content, through no fault of the peer. Matters only for HTTP/2, where the connection continues.
void shim_tls_drop_answer(shim_tls_guard *guard);
/// Ends a suspicion: the connection is a flood, or not.
void shim_tls_judge(shim_tls_guard *guard);
/// The guard of the connection that reads from the socket.
shim_tls_guard *shim_tls_lowest(shim_tls_guard *guard);

#pragma GCC visibility pop

#endif
