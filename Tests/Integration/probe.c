/*
 * A WebSocket client driven over standard input, for the integration tests.
 *
 *   probe URL [OPTION=VALUE]...
 *
 * Commands, one a line: text LENGTH SEED, binary LENGTH SEED, ping, pause, resume, buffered, count,
 * state, close [CODE [REASON]], free. Events are printed one a line as they come. It ends after the
 * close callback, or after free; exit code 2 is an error in its own use.
 */
#include <errno.h>
#include <poll.h>
#include <realtime.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

struct probe {
  rt_websocket *websocket;
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

static void on_open(const char *subprotocol, const char *extensions, void *user) {
  (void)user;
  say("open [%s] [%s]", subprotocol, extensions);
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

static void on_error(rt_status status, const char *message, void *user) {
  (void)user;
  say("error %s %s", rt_status_name(status), message);
}

static void on_close(uint16_t code, const char *reason, size_t length, bool clean, void *user) {
  say("close %d %s %.*s", code, clean ? "clean" : "unclean", (int)length, reason);
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

static void on_destroy(void *user) { ((struct probe *)user)->destroyed += 1; }

static rt_status set(struct probe *probe, const char *name, const char *text) {
  rt_websocket *websocket = probe->websocket;
  long long value = strtoll(text, NULL, 10);
  static const struct {
    const char *name;
    rt_status (*set)(rt_websocket *, int64_t);
  } times[] = {
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
    rt_status (*set)(rt_websocket *, int32_t);
  } numbers[] = {
      {"compression_level", rt_websocket_set_compression_level},
      {"client_max_window_bits", rt_websocket_set_client_max_window_bits},
      {"server_max_window_bits", rt_websocket_set_server_max_window_bits},
  };
  static const struct {
    const char *name;
    rt_status (*set)(rt_websocket *, bool);
  } flags[] = {
      {"compression", rt_websocket_set_compression},
      {"client_no_context_takeover", rt_websocket_set_client_no_context_takeover},
      {"server_no_context_takeover", rt_websocket_set_server_no_context_takeover},
  };
#define LOOK_UP(table)                                                    \
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)               \
    if (strcmp(name, table[i].name) == 0) return table[i].set(websocket, value);
  LOOK_UP(times)
  LOOK_UP(sizes)
  LOOK_UP(numbers)
#undef LOOK_UP
  for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
    if (strcmp(name, flags[i].name) == 0) return flags[i].set(websocket, value != 0);
  if (strcmp(name, "max_inflate_ratio") == 0)
    return rt_websocket_set_max_inflate_ratio(websocket, (uint32_t)value);
  if (strcmp(name, "ca_file") == 0) return rt_websocket_set_ca_file(websocket, text);
  if (strcmp(name, "subprotocol") == 0) return rt_websocket_add_subprotocol(websocket, text);
  if (strcmp(name, "authorization") == 0)
    return rt_websocket_add_header(websocket, "Authorization", text);
  if (strcmp(name, "print") == 0) {
    probe->prints_messages = value != 0;
    return RT_OK;
  }
  fprintf(stderr, "probe: unknown option %s\n", name);
  exit(2);
}

/* Bytes that compress to about two thirds: a new letter wherever the generator says so. */
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

static void run(rt_loop *loop, struct probe *probe) {
  struct pollfd watched[] = {{.fd = rt_loop_fd(loop), .events = POLLIN},
                             {.fd = STDIN_FILENO, .events = POLLIN}};
  while (!probe->ended) {
    if (poll(watched, 2, -1) < 0 && errno != EINTR) exit(2);
    if (watched[0].revents && rt_loop_dispatch(loop, 0) != RT_OK) exit(2);
    if (watched[1].revents && !probe->ended && !read_commands(probe)) watched[1].fd = -1;
  }
}

int main(int argc, char **argv) {
  struct probe probe = {.prints_messages = true};
  rt_loop *loop = NULL;
  if (argc < 2 || rt_loop_new(&loop) != RT_OK) return 2;
  if (rt_websocket_new(loop, argv[1], &probe.websocket) != RT_OK) {
    say("failed new %s", rt_last_error());
    rt_loop_free(loop);
    return 2;
  }
  for (int i = 2; i < argc; i++) {
    char *equals = strchr(argv[i], '=');
    if (!equals) return 2;
    *equals = '\0';
    if (set(&probe, argv[i], equals + 1) != RT_OK) say("failed %s %s", argv[i], rt_last_error());
  }
  rt_websocket_on_open(probe.websocket, on_open, &probe, on_destroy);
  rt_websocket_on_message(probe.websocket, on_message, &probe, on_destroy);
  rt_websocket_on_error(probe.websocket, on_error, &probe, on_destroy);
  rt_websocket_on_close(probe.websocket, on_close, &probe, on_destroy);
  rt_websocket_on_drained(probe.websocket, on_drained, &probe, on_destroy);
  rt_websocket_on_pong(probe.websocket, on_pong, &probe, on_destroy);
  if (rt_websocket_start(probe.websocket) == RT_OK) run(loop, &probe);
  rt_websocket_free(probe.websocket);
  rt_loop_free(loop);
  say("destroyed %d", probe.destroyed);
  return 0;
}
