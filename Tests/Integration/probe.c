/*
 * A WebSocket client for the integration tests, driven over standard input.
 *
 *   probe URL [OPTION=VALUE]...
 *
 * Commands, one per line: text LENGTH SEED, binary LENGTH SEED, ping, pause, resume, buffered,
 * count, state, socket, other URL, close [CODE [REASON]], free. Events are printed as they come,
 * one per line; log lines go to standard error. It ends after the close callback, or after free;
 * exit code 2 means wrong usage.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <realtime.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>

struct probe {
  rt_loop *loop;
  rt_websocket *websocket, *other;
  rt_network *network;
  bool has_network;
  const char *ca_file;
  bool prints_messages;
  unsigned long long messages, bytes;
  uLong checksum;
  int destroyed;
  bool ended;
};

static void say(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vprintf(format, arguments);
  va_end(arguments);
  putchar('\n');
  fflush(stdout);
}

static void on_open(const rt_opened *opened, void *user) {
  (void)user;
  say("open [%s] [%s]", opened->subprotocol, opened->extensions);
}

static void on_message(rt_message_kind kind, const uint8_t *data, size_t length, void *user) {
  struct probe *probe = user;
  probe->messages += 1;
  probe->bytes += length;
  probe->checksum = crc32_z(probe->checksum, data, length);
  if (probe->prints_messages)
    say("%s %zu %08lx", kind == RT_MESSAGE_TEXT ? "text" : "binary", length,
        crc32_z(0, data, length));
}

static void on_error(const rt_failure *failure, void *user) {
  (void)user;
  if (failure->http_status)
    say("refused %d [%s] %zu %zu %08lx", failure->http_status, failure->http_reason,
        failure->headers_length, failure->body_length,
        crc32_z(0, failure->body, failure->body_length));
  if (failure->status != RT_ERROR_CLOSED)
    say("error %s %s", rt_status_name(failure->status), failure->message);
  if (!failure->fatal)
    say("lost %d attempt %u in %lld", failure->close_code, failure->attempt,
        (long long)failure->retry_in_ms);
}

static bool on_reconnect(uint32_t attempt, void *user) {
  (void)user;
  say("attempt %u", attempt);
  return true;
}

static void on_close(const rt_closed *closed, void *user) {
  say("close %d %s %.*s", closed->code, closed->clean ? "clean" : "unclean",
      (int)closed->reason_length, closed->reason);
  ((struct probe *)user)->ended = true;
}

static void on_drained(void *user) {
  (void)user;
  say("drained");
}

static void on_pong(int64_t round_trip_us, void *user) {
  (void)user;
  say("pong %s", round_trip_us >= 0 ? "measured" : "negative");
}

static void on_log(rt_log_level level, const char *line, void *user) {
  (void)user;
  fprintf(stderr, "log %d %s\n", level, line);
}

static void on_destroy(void *user) { ((struct probe *)user)->destroyed += 1; }

/* Sets a network option; false if `name` is not one. */
static bool set_network(rt_network *network, const char *name, const char *text, rt_status *out) {
  long long value = strtoll(text, NULL, 10);
  static const struct {
    const char *name;
    rt_status (*set)(rt_network *, const char *);
  } texts[] = {
      {"network_ca_file", rt_network_set_ca_file}, {"ca_path", rt_network_set_ca_path},
      {"pin", rt_network_add_pinned_public_key},   {"proxy", rt_network_set_proxy},
      {"no_proxy", rt_network_set_no_proxy},       {"unix_socket", rt_network_set_unix_socket},
      {"interface", rt_network_set_interface},
  };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    if (strcmp(name, texts[i].name) == 0) return *out = texts[i].set(network, text), true;
  if (strcmp(name, "min_tls") == 0) {
    *out = rt_network_set_min_tls_version(network, (rt_tls_version)value);
  } else if (strcmp(name, "insecure") == 0) {
    *out = rt_network_set_insecure_skip_verification(network, value != 0);
  } else if (strcmp(name, "ip_version") == 0) {
    *out = rt_network_set_ip_version(network, (rt_ip_version)value);
  } else if (strcmp(name, "no_delay") == 0) {
    *out = rt_network_set_tcp_no_delay(network, value != 0);
  } else if (strcmp(name, "keep_alive_ms") == 0) {
    *out = rt_network_set_tcp_keep_alive_ms(network, value);
  } else if (strcmp(name, "receive_buffer_bytes") == 0) {
    *out = rt_network_set_receive_buffer_bytes(network, (size_t)value);
  } else if (strcmp(name, "resolve") == 0) {
    char host[256], address[64];
    int port;
    if (sscanf(text, "%255[^:]:%d:%63s", host, &port, address) != 3) exit(2);
    *out = rt_network_add_resolve(network, host, port, address);
  } else if (strcmp(name, "client_certificate") == 0) {
    char certificate[256], key[256] = "", password[64];
    int fields = sscanf(text, "%255[^,],%255[^,],%63s", certificate, key, password);
    *out = rt_network_set_client_certificate(
        network, certificate, fields > 1 ? key : NULL, fields > 2 ? password : NULL);
  } else {
    return false;
  }
  return true;
}

/* reconnect=INITIAL_MS,MAX_MS,ATTEMPTS: without jitter, so that delays are predictable. */
static rt_status set_reconnect(rt_websocket *websocket, const char *text) {
  long long initial_ms, max_ms;
  unsigned attempts;
  rt_backoff *backoff = NULL;
  if (sscanf(text, "%lld,%lld,%u", &initial_ms, &max_ms, &attempts) != 3) exit(2);
  if (rt_backoff_new(&backoff) != RT_OK) exit(2);
  rt_backoff_set_initial_delay_ms(backoff, initial_ms);
  rt_backoff_set_max_delay_ms(backoff, max_ms);
  rt_backoff_set_max_attempts(backoff, attempts);
  rt_backoff_set_jitter(backoff, RT_JITTER_NONE);
  rt_status status = rt_websocket_set_reconnect(websocket, backoff);
  rt_backoff_free(backoff);
  return status;
}

/* Sets an option with one number; false if `name` is not one. */
static bool set_number(
    rt_websocket *websocket, const char *name, long long value, rt_status *out) {
  static const struct {
    const char *name;
    rt_status (*set)(rt_websocket *, int64_t);
  } times[] = {
      {"idle_timeout_ms", rt_websocket_set_idle_timeout_ms},
      {"open_timeout_ms", rt_websocket_set_open_timeout_ms},
      {"close_timeout_ms", rt_websocket_set_close_timeout_ms},
      {"ping_interval_ms", rt_websocket_set_ping_interval_ms},
      {"pong_timeout_ms", rt_websocket_set_pong_timeout_ms},
  };
  static const struct {
    const char *name;
    rt_status (*set)(rt_websocket *, size_t);
  } sizes[] = {
      {"max_message_bytes", rt_websocket_set_max_message_bytes},
      {"max_header_bytes", rt_websocket_set_max_header_bytes},
      {"max_frame_bytes", rt_websocket_set_max_frame_bytes},
      {"send_high_water_bytes", rt_websocket_set_send_high_water_bytes},
      {"send_limit_bytes", rt_websocket_set_send_limit_bytes},
      {"compression_min_bytes", rt_websocket_set_compression_min_bytes},
  };
  static const struct {
    const char *name;
    rt_status (*set)(rt_websocket *, uint32_t);
  } counts[] = {
      {"compression_level", rt_websocket_set_compression_level},
      {"client_max_window_bits", rt_websocket_set_client_max_window_bits},
      {"server_max_window_bits", rt_websocket_set_server_max_window_bits},
      {"max_inflate_ratio", rt_websocket_set_max_inflate_ratio},
      {"max_redirects", rt_websocket_set_max_redirects},
      {"offline_queue", rt_websocket_set_offline_queue},
  };
  static const struct {
    const char *name;
    rt_status (*set)(rt_websocket *, bool);
  } flags[] = {
      {"allow_insecure_redirects", rt_websocket_set_allow_insecure_redirects},
      {"compression", rt_websocket_set_compression},
      {"require_pong", rt_websocket_set_require_pong},
      {"client_no_context_takeover", rt_websocket_set_client_no_context_takeover},
      {"server_no_context_takeover", rt_websocket_set_server_no_context_takeover},
  };
#define LOOK_UP(table, number)                              \
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) \
    if (strcmp(name, table[i].name) == 0) return *out = table[i].set(websocket, number), true;
  LOOK_UP(times, value)
  LOOK_UP(sizes, (size_t)value)
  LOOK_UP(counts, (uint32_t)value)
  LOOK_UP(flags, value != 0)
#undef LOOK_UP
  return false;
}

static rt_status set(struct probe *probe, const char *name, const char *text) {
  rt_websocket *websocket = probe->websocket;
  rt_status status;
  if (set_number(websocket, name, strtoll(text, NULL, 10), &status)) return status;
  if (set_network(probe->network, name, text, &status)) {
    probe->has_network = true;
    return status;
  }
  if (strcmp(name, "ca_file") == 0) {
    probe->ca_file = text;
    return RT_OK;
  }
  if (strcmp(name, "reconnect") == 0) return set_reconnect(websocket, text);
  if (strcmp(name, "subprotocol") == 0) return rt_websocket_add_subprotocol(websocket, text);
  if (strcmp(name, "redirect_origin") == 0)
    return rt_websocket_add_redirect_origin(websocket, text);
  if (strcmp(name, "authorization") == 0)
    return rt_websocket_add_header(websocket, "Authorization", text);
  if (strcmp(name, "log") == 0) return rt_set_log(atoi(text), on_log, NULL, NULL);
  if (strcmp(name, "print") == 0) {
    probe->prints_messages = strcmp(text, "0") != 0;
    return RT_OK;
  }
  fprintf(stderr, "probe: unknown option %s\n", name);
  exit(2);
}

/* Sends bytes that compress to about two thirds: the generator decides when the letter changes. */
static rt_status send_pattern(struct probe *probe, bool text, size_t length, unsigned seed) {
  uint8_t *bytes = malloc(length ? length : 1);
  if (!bytes) return RT_ERROR_SYSTEM;
  uint32_t state = seed;
  for (size_t i = 0; i < length; i++) {
    state = state * 1664525 + 1013904223;
    bytes[i] = (uint8_t)('A' + (state >> 24) % 32);
  }
  rt_status status = text ? rt_websocket_send_text(probe->websocket, (char *)bytes, length)
                          : rt_websocket_send_binary(probe->websocket, bytes, length);
  say("sent %08lx", crc32_z(0, bytes, length));
  free(bytes);
  return status;
}

/* Prints the kernel's options of each TCP connection of this process. */
static void tell_sockets(void) {
  int count = 0;
  for (int fd = 3; fd < 1024; fd++) {
    struct sockaddr_storage peer;
    int values[5] = {0};
    static const int names[5][2] = {{IPPROTO_TCP, TCP_NODELAY},
                                    {SOL_SOCKET, SO_KEEPALIVE},
                                    {IPPROTO_TCP, TCP_KEEPIDLE},
                                    {IPPROTO_TCP, TCP_KEEPINTVL},
                                    {SOL_SOCKET, SO_RCVBUF}};
    socklen_t length = sizeof peer;
    if (getpeername(fd, (struct sockaddr *)&peer, &length) != 0) continue;
    if (peer.ss_family != AF_INET && peer.ss_family != AF_INET6) continue;
    for (int i = 0; i < 5; i++) {
      length = sizeof values[i];
      if (getsockopt(fd, names[i][0], names[i][1], &values[i], &length) != 0) exit(2);
    }
    count += 1;
    say("socket v%d no_delay %d keep_alive %d idle %d interval %d receive_buffer %d",
        peer.ss_family == AF_INET ? 4 : 6, values[0] != 0, values[1] != 0, values[2], values[3],
        values[4]);
  }
  if (count == 0) say("no socket");
}

static void on_other_open(const rt_opened *opened, void *user) {
  (void)opened, (void)user;
  say("other open");
}

static void on_other_error(const rt_failure *failure, void *user) {
  (void)user;
  say("other error %s %s", rt_status_name(failure->status), failure->message);
}

/* Starts a second connection on the same loop, without any options. */
static rt_status start_other(struct probe *probe, const char *url) {
  rt_websocket_free(probe->other);
  probe->other = NULL;
  rt_status status = rt_websocket_new(probe->loop, url, &probe->other);
  if (status != RT_OK) return status;
  rt_websocket_on_open(probe->other, on_other_open, probe, NULL);
  rt_websocket_on_error(probe->other, on_other_error, probe, NULL);
  return rt_websocket_start(probe->other);
}

static void execute(struct probe *probe, const char *line) {
  rt_status status = RT_OK;
  char word[16] = "", reason[200] = "";
  unsigned long number = 0, seed = 0;
  int fields = sscanf(line, "%15s %lu %lu", word, &number, &seed);
  if (strcmp(word, "text") == 0 || strcmp(word, "binary") == 0) {
    status = send_pattern(probe, word[0] == 't', number, (unsigned)seed);
  } else if (strcmp(word, "ping") == 0) {
    status = rt_websocket_ping(probe->websocket, NULL, 0);
  } else if (strcmp(word, "pause") == 0) {
    status = rt_websocket_pause(probe->websocket);
    say("paused");
  } else if (strcmp(word, "resume") == 0) {
    status = rt_websocket_resume(probe->websocket);
  } else if (strcmp(word, "buffered") == 0) {
    say("buffered %zu", rt_websocket_buffered_bytes(probe->websocket));
  } else if (strcmp(word, "count") == 0) {
    say("count %llu %llu %08lx", probe->messages, probe->bytes, probe->checksum);
  } else if (strcmp(word, "state") == 0) {
    say("state %d", rt_websocket_get_state(probe->websocket));
  } else if (strcmp(word, "socket") == 0) {
    tell_sockets();
  } else if (strcmp(word, "other") == 0) {
    status = start_other(probe, strchr(line, ' ') ? strchr(line, ' ') + 1 : "");
  } else if (strcmp(word, "close") == 0) {
    bool has_reason = sscanf(line, "%*s %*u %199[^\n]", reason) == 1;
    status = rt_websocket_close(
        probe->websocket, (uint16_t)(fields > 1 ? number : 0), has_reason ? reason : NULL);
  } else if (strcmp(word, "free") == 0) {
    rt_websocket_free(probe->websocket);
    probe->websocket = NULL;
    probe->ended = true;
  } else {
    fprintf(stderr, "probe: unknown command %s", line);
    exit(2);
  }
  if (status != RT_OK) say("failed %s %s", rt_status_name(status), rt_last_error());
}

static bool read_commands(struct probe *probe) {
  static char buffer[4096];
  static size_t held;
  ssize_t count = read(STDIN_FILENO, buffer + held, sizeof buffer - 1 - held);
  if (count <= 0) return count < 0 && errno == EINTR;
  held += (size_t)count;
  for (char *end; !probe->ended && (end = memchr(buffer, '\n', held));) {
    *end = '\0';
    execute(probe, buffer);
    held -= (size_t)(end - buffer) + 1;
    memmove(buffer, end + 1, held);
  }
  return true;
}

static void run(struct probe *probe) {
  struct pollfd watched[] = {{.fd = rt_loop_fd(probe->loop), .events = POLLIN},
                             {.fd = STDIN_FILENO, .events = POLLIN}};
  while (!probe->ended) {
    if (poll(watched, 2, -1) < 0 && errno != EINTR) exit(2);
    if (watched[0].revents && rt_loop_dispatch(probe->loop, 0) != RT_OK) exit(2);
    if (watched[1].revents && !probe->ended && !read_commands(probe)) watched[1].fd = -1;
  }
}

static void listen_to(struct probe *probe) {
  rt_websocket *websocket = probe->websocket;
  rt_websocket_on_open(websocket, on_open, probe, on_destroy);
  rt_websocket_on_message(websocket, on_message, probe, on_destroy);
  rt_websocket_on_error(websocket, on_error, probe, on_destroy);
  rt_websocket_on_reconnect(websocket, on_reconnect, probe, on_destroy);
  rt_websocket_on_closed(websocket, on_close, probe, on_destroy);
  rt_websocket_on_drained(websocket, on_drained, probe, on_destroy);
  rt_websocket_on_pong(websocket, on_pong, probe, on_destroy);
}

int main(int argc, char **argv) {
  struct probe probe = {.prints_messages = true};
  if (argc < 2 || rt_loop_new(&probe.loop) != RT_OK) return 2;
  if (rt_network_new(&probe.network) != RT_OK) return 2;
  if (rt_websocket_new(probe.loop, argv[1], &probe.websocket) != RT_OK) {
    say("failed new %s", rt_last_error());
    rt_network_free(probe.network);
    rt_loop_free(probe.loop);
    return 2;
  }
  for (int i = 2; i < argc; i++) {
    char *equals = strchr(argv[i], '=');
    if (!equals) return 2;
    *equals = '\0';
    if (set(&probe, argv[i], equals + 1) != RT_OK) say("failed %s %s", argv[i], rt_last_error());
  }
  if (probe.has_network) rt_websocket_set_network(probe.websocket, probe.network);
  if (probe.ca_file) rt_websocket_set_ca_file(probe.websocket, probe.ca_file);
  rt_network_free(probe.network);
  listen_to(&probe);
  if (rt_websocket_start(probe.websocket) == RT_OK) run(&probe);
  rt_websocket_free(probe.websocket);
  rt_websocket_free(probe.other);
  rt_loop_free(probe.loop);
  say("destroyed %d", probe.destroyed);
  return 0;
}
