// libcurl (7.88) reads TLS until its caller has something to process, so an HTTP/2 server that
// sends frames without content can keep it in one call forever. BIO callbacks below OpenSSL limit
// what a call can read: when the budget of a turn is spent, they report "would block". The kernel
// still has the bytes, and reports the socket again in the next turn of the loop.
#include "shim_tls.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/objects.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim_platform.h"

enum {
  /// How many bytes a second may always be without content: PINGs, WINDOW_UPDATEs, session tickets.
  IDLE_BYTES_PER_SECOND = 16 << 10,
  /// How many received bytes one byte of a body excuses: a DATA frame of one byte may be padded by
  /// 255 (RFC 9113 §6.1), and TLS adds a header and a tag.
  RECEIVED_PER_BYTE = 256,
  /// How many sent bytes excuse one received byte: the WINDOW_UPDATEs of an upload.
  SENT_PER_BYTE = 16,
  /// The most that a server may have sent of a response when it is aborted: the window that libcurl
  /// grants each HTTP/2 stream, and 7.88 also the whole connection (10 MiB since 8.4).
  STREAM_WINDOW = 32 << 20,
  /// The largest finite-field Diffie-Hellman group, of up to 10,000 bits, that the server may
  /// choose. OpenSSL computes with it in one call: 25 ms for 4,096 bits, almost 1 s for 10,000.
  DH_BITS = 4096,
  /// Our only reason in OpenSSL's list of errors.
  DH_TOO_LARGE = 1
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
/// The index of the guard in an SSL_CTX; libcurl makes one SSL_CTX for each connection.
static int guard_index = -1;
static bool is_supported;
/// The number of our errors among OpenSSL's libraries.
static int error_library;
/// CurlConnect recognizes a TLS error by the text "SSL routines".
static ERR_STRING_DATA error_texts[] = {
    {0, "SSL routines"},
    {ERR_PACK(0, 0, DH_TOO_LARGE),
     "the server chose a Diffie-Hellman group of more than 4096 bits"},
    {0, NULL}};

static void release(shim_tls_guard *guard) {
  // A chain of at most two.
  while (guard && --guard->references == 0) {
    shim_tls_guard *below = guard->below;
    free(guard);
    guard = below;
  }
}

static void hold(shim_tls_guard **place, shim_tls_guard *guard) {
  if (guard) guard->references++;
  release(*place);
  *place = guard;
}

static void context_freed(void *parent, void *pointer, CRYPTO_EX_DATA *data, int index,
                          long argument, void *user) {
  (void)parent, (void)data, (void)index, (void)argument, (void)user;
  release(pointer);
}

static void initialize(void) {
  const curl_version_info_data *info = curl_version_info(CURLVERSION_NOW);
  // If libcurl uses another TLS library, its contexts must not reach these functions.
  char expected[24];
  snprintf(expected, sizeof expected, "OpenSSL/%d.", OPENSSL_VERSION_MAJOR);
  if (!info->ssl_version || strncmp(info->ssl_version, expected, strlen(expected))) return;
  guard_index = SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, context_freed);
  is_supported = guard_index >= 0;
  error_library = ERR_get_next_error_library();
  error_texts[0].error = ERR_PACK(error_library, 0, 0);
  ERR_load_strings(error_library, error_texts);
}

static void decay(shim_tls_guard *guard, uint64_t now) {
  uint64_t spared = (now - guard->idle_since_ns) / (1000000000 / IDLE_BYTES_PER_SECOND);
  // Keep the time that is too short for a whole byte.
  if (!spared) return;
  guard->idle_since_ns = now;
  guard->idle_bytes -= spared < guard->idle_bytes ? spared : guard->idle_bytes;
}

/// Whether the budget of this turn, and the peer's conduct, allow another read.
static bool may_read(shim_tls_guard *guard) {
  if (guard->is_suspect) guard->turn->has_suspects = true;
  if (guard->is_flood || guard->is_suspect) return false;
  if (guard->turn_number != guard->turn->number) {
    guard->turn_number = guard->turn->number;
    guard->left = SHIM_TLS_BYTES_PER_TURN;
    guard->operations_left = guard->turn->operations;
    decay(guard, shim_monotonic_nanoseconds());
  }
  return guard->left > 0 && guard->operations_left > 0;
}

static void note_read(shim_tls_guard *guard, size_t count) {
  guard->left -= (int64_t)count;
  guard->operations_left--;
  size_t of_dropped = count < guard->dropped_bytes ? count : guard->dropped_bytes;
  guard->dropped_bytes -= of_dropped;
  guard->idle_bytes += count - of_dropped;
  if (guard->idle_bytes <= SHIM_TLS_IDLE_BYTES) return;
  guard->is_suspect = guard->turn->has_suspects = true;
}

static long on_bio(BIO *bio, int operation, const char *data, size_t length, int argument,
                   long other, int result, size_t *processed) {
  shim_tls_guard *guard = (shim_tls_guard *)(void *)BIO_get_callback_arg(bio);
  (void)data, (void)length, (void)argument, (void)other;
  switch (operation) {
    case BIO_CB_READ:
      if (guard->turn->reading && guard->turn->reading != guard && !guard->turn->reading->below)
        hold(&guard->turn->reading->below, guard);
      // Only the connection that reads the socket may stop, because epoll reports the socket again.
      if (!guard->below && !may_read(guard)) {
        BIO_clear_retry_flags(bio);
        BIO_set_retry_read(bio);
        return -1;
      }
      guard->outer = guard->turn->reading;
      guard->turn->reading = guard;
      break;
    case BIO_CB_READ | BIO_CB_RETURN:
      guard->turn->reading = guard->outer;
      guard->outer = NULL;
      if (result > 0 && !guard->below) note_read(guard, *processed);
      if (result == 0) guard->is_cut = true;
      break;
    case BIO_CB_WRITE | BIO_CB_RETURN:
      if (result > 0 && !guard->below) {
        guard->operations_left--;
        uint64_t excused = *processed / SENT_PER_BYTE;
        guard->idle_bytes -= excused < guard->idle_bytes ? excused : guard->idle_bytes;
      }
      break;
    default: break;
  }
  return result;
}

/// Called when a handshake begins, which is when the connection's BIO is first known, and when it
/// is done.
static void on_info(const SSL *ssl, int where, int result) {
  (void)result;
  shim_tls_guard *guard = SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), guard_index);
  if (where == SSL_CB_HANDSHAKE_DONE && guard) {
    guard->version = SSL_get_version(ssl);
    guard->cipher = SSL_get_cipher_name(ssl);
  }
  if (where != SSL_CB_HANDSHAKE_START) return;
  BIO *bio = SSL_get_rbio(ssl);
  if (!bio || !guard || BIO_get_callback_ex(bio)) return;
  BIO_set_callback_arg(bio, (char *)(void *)guard);
  BIO_set_callback_ex(bio, on_bio);
}

/// Decides what a handshake, or renegotiation, may use: what the system's configuration allows, but
/// no large finite-field Diffie-Hellman groups.
static int on_security(const SSL *ssl, const SSL_CTX *context, int operation, int bits, int number,
                       void *other, void *user) {
  const SSL_CTX *holder = context ? context : SSL_get_SSL_CTX(ssl);
  shim_tls_guard *guard = SSL_CTX_get_ex_data(holder, guard_index);
  switch (operation) {
    // TLS 1.3 and RFC 7919: groups that are not offered cannot be chosen.
    case SSL_SECOP_CURVE_SUPPORTED:
    case SSL_SECOP_CURVE_CHECK:
      if (number == NID_ffdhe6144 || number == NID_ffdhe8192) return 0;
      break;
    case SSL_SECOP_TMP_DH:
      if (EVP_PKEY_get_bits(other) <= DH_BITS) break;
      // libcurl reports the first error in the list; OpenSSL adds "dh key too small" after ours.
      ERR_raise(error_library, DH_TOO_LARGE);
      return 0;
    default: break;
  }
  return guard->security(ssl, context, operation, bits, number, other, user);
}

/// Called when libcurl has made an SSL_CTX for a new connection.
static CURLcode on_context(CURL *easy, void *context, void *user) {
  shim_tls_source *source = user;
  shim_tls_guard *guard = calloc(1, sizeof *guard);
  (void)easy;
  if (!guard) return CURLE_OUT_OF_MEMORY;
  guard->turn = source->turn;
  guard->references = 1;
  if (!SSL_CTX_set_ex_data(context, guard_index, guard)) {
    release(guard);
    return CURLE_OUT_OF_MEMORY;
  }
  SSL_CTX_set_info_callback(context, on_info);
  guard->security = SSL_CTX_get_security_callback(context);
  SSL_CTX_set_security_callback(context, on_security);
  hold(&source->guard, guard);
  return CURLE_OK;
}

void shim_tls_begin_turn(shim_tls_turn *turn, uint32_t ready) {
  uint32_t share = SHIM_TLS_OPERATIONS_PER_TURN / (ready ? ready : 1);
  turn->operations = share < SHIM_TLS_LEAST_OPERATIONS ? SHIM_TLS_LEAST_OPERATIONS : share;
}

CURLcode shim_tls_watch(CURL *easy, shim_tls_source *source) {
  pthread_once(&once, initialize);
  if (!is_supported) return CURLE_OK;
  CURLcode result = curl_easy_setopt(easy, CURLOPT_SSL_CTX_DATA, source);
  return result ? result : curl_easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, on_context);
}

void shim_tls_find(CURL *easy, shim_tls_source *source) {
  struct curl_tlssessioninfo *session = NULL;
  shim_tls_guard *guard = NULL;
  if (is_supported && !curl_easy_getinfo(easy, CURLINFO_TLS_SSL_PTR, &session) &&
      session->backend == CURLSSLBACKEND_OPENSSL && session->internals)
    guard = SSL_CTX_get_ex_data(SSL_get_SSL_CTX(session->internals), guard_index);
  hold(&source->guard, guard);
}

void shim_tls_forget(shim_tls_source *source) { hold(&source->guard, NULL); }

shim_tls_guard *shim_tls_lowest(shim_tls_guard *guard) {
  while (guard && guard->below) guard = guard->below;
  return guard;
}

void shim_tls_credit(shim_tls_guard *guard, uint64_t bytes) {
  guard = shim_tls_lowest(guard);
  if (!guard) return;
  guard->idle_bytes -= bytes < guard->idle_bytes / RECEIVED_PER_BYTE ? bytes * RECEIVED_PER_BYTE
                                                                     : guard->idle_bytes;
}

void shim_tls_drop_answer(shim_tls_guard *guard) {
  guard = shim_tls_lowest(guard);
  if (guard) guard->dropped_bytes = STREAM_WINDOW;
}

void shim_tls_judge(shim_tls_guard *guard) {
  if (!guard->is_suspect) return;
  decay(guard, shim_monotonic_nanoseconds());
  guard->is_suspect = false;
  guard->is_flood = guard->idle_bytes > SHIM_TLS_IDLE_BYTES;
}
