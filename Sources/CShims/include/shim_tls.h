// A guard below libcurl's TLS connections: how much each may read in a turn of the loop, whether a
// peer sends bytes that carry nothing or chooses cryptography that takes too long, and whether a
// connection ended without close_notify.
#ifndef SHIM_TLS_H
#define SHIM_TLS_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

struct shim_tls_guard;
struct ssl_st;
struct ssl_ctx_st;

/// What the TLS connections of one loop share. It outlives them.
typedef struct shim_tls_turn {
  /// Counts the loop's turns. Each connection may read `SHIM_TLS_BYTES_PER_TURN` in each.
  uint64_t number;
  /// How often each connection may read and write in this turn.
  uint32_t operations;
  /// The connection that reads now; NULL for none.
  struct shim_tls_guard *reading;
  /// A connection is suspected of a flood: the owner must call `shim_tls_judge` for it.
  bool has_suspects;
} shim_tls_turn;

/// One TLS connection. Everything that refers to it holds one reference.
typedef struct shim_tls_guard {
  uint32_t references;
  shim_tls_turn *turn;
  /// The TLS connection to a proxy that this one goes through; NULL for none.
  struct shim_tls_guard *below;
  /// What was reading when this one began to read.
  struct shim_tls_guard *outer;
  uint64_t turn_number;
  /// Bytes that may still be read in this turn.
  int64_t left;
  /// Reads and writes that may still be done in this turn.
  int64_t operations_left;
  /// Bytes received that have carried nothing so far. It decays with time, see tls.c.
  uint64_t idle_bytes;
  uint64_t idle_since_ns;
  /// Bytes that may still come of answers that were broken off: they are not counted.
  uint64_t dropped_bytes;
  /// Too many such bytes: nothing is read until the owner has judged.
  bool is_suspect;
  /// Judged: nothing is read any more.
  bool is_flood;
  /// What else decides which algorithms a handshake may use: the system's configuration.
  int (*security)(const struct ssl_st *ssl, const struct ssl_ctx_st *context, int operation,
                  int bits, int number, void *other, void *user);
  /// The peer closed the connection without close_notify (RFC 8446 §6.1, RFC 5246 §7.2.1).
  bool is_cut;
  /// What the handshake agreed on, in OpenSSL's words ("TLSv1.3", "TLS_AES_256_GCM_SHA384"); NULL
  /// before.
  const char *version, *cipher;
} shim_tls_guard;

/// Bytes that one connection may receive in one turn. 29,000 empty frames of HTTP/2 fit into them:
/// some milliseconds of work.
enum { SHIM_TLS_BYTES_PER_TURN = 256 << 10 };
/// Reads and writes of all connections in one turn, of which each has an equal share. A record
/// takes two reads, and the smallest ones cost more than their bytes: a KeyUpdate (RFC 8446 §4.6.3)
/// that wants an answer takes 20 µs.
enum { SHIM_TLS_OPERATIONS_PER_TURN = 2048 };
/// Enough for full records of as many bytes as a connection may receive.
enum { SHIM_TLS_LEAST_OPERATIONS = 64 };
/// Bytes that may carry nothing before a connection fails.
enum { SHIM_TLS_IDLE_BYTES = 1 << 20 };

/// What an easy handle makes connections for.
typedef struct shim_tls_source {
  shim_tls_turn *turn;
  /// The guard of the connection that it made last or is on, with a reference; NULL for none.
  shim_tls_guard *guard;
} shim_tls_source;

/// A turn begins in which so many sockets are ready.
void shim_tls_begin_turn(shim_tls_turn *turn, uint32_t ready);
/// Has the TLS connections that an easy handle makes guarded. `source` must stay valid while the
/// handle makes connections. Does nothing when libcurl's TLS library is not this OpenSSL.
CURLcode shim_tls_watch(CURL *easy, shim_tls_source *source);
/// Stores the guard of the connection that an easy handle is on now; NULL for none.
void shim_tls_find(CURL *easy, shim_tls_source *source);
/// Drops the reference.
void shim_tls_forget(shim_tls_source *source);
/// Says that received bytes carried so many bytes of headers, bodies or messages.
void shim_tls_credit(shim_tls_guard *guard, uint64_t bytes);
/// Says that an exchange ends before its answer: what is on its way of that carries nothing, and is
/// not the peer's fault. Matters on HTTP/2 alone, where the connection stays.
void shim_tls_drop_answer(shim_tls_guard *guard);
/// The suspicion ends: with the verdict that it is a flood, or without.
void shim_tls_judge(shim_tls_guard *guard);
/// The guard that reads from the socket.
shim_tls_guard *shim_tls_lowest(shim_tls_guard *guard);

#pragma GCC visibility pop

#endif
