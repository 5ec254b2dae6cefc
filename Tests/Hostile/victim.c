/*
 * A client that is attacked, and measures itself.
 *
 *   victim TRANSPORT URL SECONDS [NAME=VALUE...]
 *
 * TRANSPORT is websocket, events, poll, rest, spreadbot, pusher or ddp. The program drives the loop
 * like a host, by rt_loop_fd() and rt_loop_dispatch(). It ends SECONDS after the start, `tail`
 * milliseconds after the last object or request ended, or `settle` milliseconds after the first
 * outcome, and prints one line of JSON. But first it waits for `outcomes`, `messages` and, with
 * `ends`, the end of everything: the server may need longer on a busy machine. With `late`, it
 * sends the last request when standard input is readable, because the server has made its attack by
 * then. With `memory`, the process can have only so many MiB more than at the start.
 *
 * Durations are those of this thread: time in which it was ready to run, but another process had
 * the processor, does not count (`run delay`, from /proc/thread-self/schedstat). The rest is
 * computing and waiting inside the library, to which the limits apply. So the result does not
 * depend on how busy the machine is. The plain durations are printed, too.
 */
#include "victim.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { TIMER_MS = 10 };
/* A guard against hanging. */
static const double PATIENCE_MS = 60e3;

/* The longest duration of one kind, and the same without correction. */
struct longest {
  double own_ms, wall_ms, cpu_ms;
};

struct instant {
  double own_ms, wall_ms, cpu_ms;
};

struct measurements {
  struct longest dispatch, timer_gap;
  struct instant last_fired;
  unsigned long long dispatches, fired;
  long start_kib;
};

static int schedstat = -1;

static double milliseconds(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* How long this thread has waited for a processor so far; 0 if the kernel does not say. */
static double run_delay_ms(void) {
  char text[128];
  ssize_t length = schedstat < 0 ? -1 : pread(schedstat, text, sizeof text - 1, 0);
  unsigned long long ran = 0, waited = 0;
  if (length <= 0) return 0;
  text[length] = 0;
  return sscanf(text, "%llu %llu", &ran, &waited) == 2 ? (double)waited / 1e6 : 0;
}

static struct instant now(void) {
  struct instant instant;
  double delay_ms = run_delay_ms(), before_ms;
  /* Another process may get the processor between two of the calls. */
  do {
    before_ms = delay_ms;
    instant.wall_ms = milliseconds(CLOCK_MONOTONIC);
    instant.cpu_ms = milliseconds(CLOCK_THREAD_CPUTIME_ID);
    delay_ms = run_delay_ms();
  } while (delay_ms != before_ms);
  instant.own_ms = instant.wall_ms - delay_ms;
  return instant;
}

static void keep_longest(struct longest *longest, struct instant from, struct instant until) {
  double own = until.own_ms - from.own_ms, wall = until.wall_ms - from.wall_ms;
  double cpu = until.cpu_ms - from.cpu_ms;
  if (own > longest->own_ms) longest->own_ms = own;
  if (wall > longest->wall_ms) longest->wall_ms = wall;
  if (cpu > longest->cpu_ms) longest->cpu_ms = cpu;
}

/* The processor time of the whole process, including libcurl's threads. */
static double cpu_ms(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e3 +
         (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e3;
}

static long memory_kib(const char *field) {
  char line[256];
  long found = -1;
  FILE *file = fopen("/proc/self/status", "r");
  if (!file) exit(2);
  while (fgets(line, sizeof line, file))
    if (!strncmp(line, field, strlen(field))) found = atol(line + strlen(field));
  fclose(file);
  return found;
}

const char *option(const struct victim *victim, const char *name, const char *otherwise) {
  size_t length = strlen(name);
  for (int i = 0; i < victim->option_count; i++)
    if (!strncmp(victim->options[i], name, length) && victim->options[i][length] == '=')
      return victim->options[i] + length + 1;
  return otherwise;
}

long long number(const struct victim *victim, const char *name, long long otherwise) {
  const char *text = option(victim, name, NULL);
  return text ? atoll(text) : otherwise;
}

void check(rt_status status, const char *call) {
  if (status == RT_OK) return;
  fprintf(stderr, "%s: %s: %s\n", call, rt_status_name(status), rt_last_error());
  exit(2);
}

void report(struct victim *victim, const char *kind, rt_status status, int http_status,
            bool is_final, const char *text) {
  double at = milliseconds(CLOCK_MONOTONIC);
  if (!victim->outcome_count++) {
    victim->first_outcome_ms = at;
    victim->cpu_at_first_outcome_ms = cpu_ms();
  }
  if (is_final && --victim->unfinished == 0) victim->ended_ms = at;
  /* Keeps the first ones, and the last. */
  unsigned index = victim->outcome_count - 1;
  if (index >= MAX_OUTCOMES) index = MAX_OUTCOMES - 1;
  struct outcome *outcome = &victim->outcomes[index];
  *outcome = (struct outcome){.kind = kind, .status = status, .http_status = http_status};
  outcome->is_final = is_final;
  outcome->at_ms = at - victim->began_ms;
  outcome->cpu_ms = cpu_ms();
  snprintf(outcome->text, sizeof outcome->text, "%s", text);
}

/* The address space that the process has now, and so many MiB more; 0 for any. */
static void limit_memory(long long mebibytes) {
  if (mebibytes <= 0) return;
  rlim_t bytes = ((rlim_t)memory_kib("VmSize:") << 10) + ((rlim_t)mebibytes << 20);
  if (setrlimit(RLIMIT_AS, &(struct rlimit){.rlim_cur = bytes, .rlim_max = bytes}) != 0) exit(2);
}

static void on_timer(void *user) {
  struct measurements *measurements = user;
  struct instant instant = now();
  measurements->fired += 1;
  keep_longest(&measurements->timer_gap, measurements->last_fired, instant);
  measurements->last_fired = instant;
}

/* Whether something is still expected. */
static bool is_waiting(const struct victim *victim) {
  return victim->outcome_count < number(victim, "outcomes", 0) ||
         victim->messages < (unsigned long long)number(victim, "messages", 0) ||
         (number(victim, "ends", 0) && victim->unfinished > 0);
}

static void drive(struct victim *victim, struct measurements *measurements, double seconds) {
  double tail = (double)number(victim, "tail", 400);
  double settle = (double)number(victim, "settle", 0);
  struct pollfd watched[2] = {{.fd = rt_loop_fd(victim->loop), .events = POLLIN},
                              {.fd = number(victim, "late", 0) ? 0 : -1, .events = POLLIN}};
  for (;;) {
    double time = milliseconds(CLOCK_MONOTONIC);
    bool is_over = time > victim->began_ms + seconds * 1e3;
    is_over |= settle > 0 && victim->outcome_count && time > victim->first_outcome_ms + settle;
    if (is_over && (!is_waiting(victim) || time > victim->began_ms + PATIENCE_MS)) break;
    if (victim->ended_ms > 0 && time > victim->ended_ms + tail) break;
    poll(watched, 2, TIMER_MS);
    if (watched[1].revents) {
      watched[1].fd = -1;
      send_late(victim);
    }
    struct instant before = now();
    check(rt_loop_dispatch(victim->loop, 0), "rt_loop_dispatch");
    keep_longest(&measurements->dispatch, before, now());
    measurements->dispatches += 1;
  }
  /* A timer that has stopped counts as late. */
  keep_longest(&measurements->timer_gap, measurements->last_fired, now());
}

static void print_text(const char *text) {
  putchar('"');
  for (const char *c = text; *c; c++) {
    unsigned char byte = (unsigned char)*c;
    if (byte == '"' || byte == '\\')
      printf("\\%c", byte);
    else if (byte < ' ')
      printf("\\u%04x", byte);
    else
      putchar(byte);
  }
  putchar('"');
}

static void print_longest(const char *name, struct longest longest) {
  printf("\"%s_ms\": %.1f, \"%s_wall_ms\": %.1f, \"%s_cpu_ms\": %.1f, ", name, longest.own_ms,
         name, longest.wall_ms, name, longest.cpu_ms);
}

static void print(const struct victim *victim, const struct measurements *measurements) {
  double end = milliseconds(CLOCK_MONOTONIC), cpu = cpu_ms();
  double from = victim->outcome_count ? victim->first_outcome_ms : victim->began_ms;
  double before = victim->outcome_count ? victim->cpu_at_first_outcome_ms : 0;
  printf("{\"grown_kib\": %ld, ", memory_kib("VmHWM:") - measurements->start_kib);
  print_longest("dispatch", measurements->dispatch);
  print_longest("timer_gap", measurements->timer_gap);
  printf("\"dispatches\": %llu, \"timer_fired\": %llu, ", measurements->dispatches,
         measurements->fired);
  printf("\"cpu_percent\": %.1f, \"cpu_percent_after\": %.1f, \"after_ms\": %.0f, ",
         cpu / (end - victim->began_ms) * 100, (cpu - before) / (end - from) * 100, end - from);
  printf("\"opens\": %u, \"attempts\": %u, \"messages\": %llu, \"bytes\": %llu, ", victim->opens,
         victim->attempts, victim->messages, victim->bytes);
  printf("\"unfinished\": %d, \"lasted_ms\": %.0f, \"outcome_count\": %u, \"outcomes\": [",
         victim->unfinished, end - victim->began_ms, victim->outcome_count);
  for (unsigned i = 0; i < victim->outcome_count && i < MAX_OUTCOMES; i++) {
    const struct outcome *outcome = &victim->outcomes[i];
    printf("%s{\"kind\": \"%s\", \"status\": \"%s\", \"http\": %d, \"final\": %s, ",
           i ? ", " : "", outcome->kind, rt_status_name(outcome->status), outcome->http_status,
           outcome->is_final ? "true" : "false");
    printf("\"at_ms\": %.0f, \"cpu_ms\": %.0f, \"text\": ", outcome->at_ms, outcome->cpu_ms);
    print_text(outcome->text);
    putchar('}');
  }
  printf("]}\n");
}

int main(int count, char **arguments) {
  static struct victim victim;
  static struct measurements measurements;
  if (count < 4) return 2;
  victim.option_count = count - 4;
  victim.options = arguments + 4;
  schedstat = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  measurements.last_fired = now();
  check(rt_loop_new(&victim.loop), "rt_loop_new");
  check(rt_loop_add_timer(victim.loop, TIMER_MS, TIMER_MS, on_timer, &measurements, NULL, NULL),
        "rt_loop_add_timer");
  check(rt_loop_dispatch(victim.loop, 0), "rt_loop_dispatch");
  measurements.start_kib = memory_kib("VmRSS:");
  victim.began_ms = milliseconds(CLOCK_MONOTONIC);
  limit_memory(number(&victim, "memory", 0));
  if (!attack(&victim, arguments[1], arguments[2])) return 2;
  drive(&victim, &measurements, atof(arguments[3]));
  print(&victim, &measurements);
  release();
  rt_loop_free(victim.loop);
  return 0;
}
