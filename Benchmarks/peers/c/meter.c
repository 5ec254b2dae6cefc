#define _GNU_SOURCE
#include "meter.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "../../server/messages.h"

struct task task;
struct meter meter;

static struct rusage cpu_start, cpu_end;
static uint64_t wall_start, wall_end, asked;
static uint64_t *round_trips;
static long idle_before, idle_after, peak_kib;
static bool is_measured, is_idle;

void meter_fail(const char *what) {
  fprintf(stderr, "%s\n", what);
  exit(1);
}

static void *allocate(size_t size) {
  void *memory = malloc(size);
  if (!memory) meter_fail("out of memory");
  return memory;
}

void task_read(int argc, char **argv) {
  if (argc < 4) meter_fail("usage: client MODE URL COUNT [SIZE] [CA-FILE]");
  task.mode = argv[1];
  task.url = argv[2];
  task.count = strtoull(argv[3], NULL, 10);
  task.size = argc > 4 ? strtoull(argv[4], NULL, 10) : 0;
  task.ca_file = argc > 5 ? argv[5] : NULL;
  task.tls = strncmp(task.url, "wss:", 4) == 0;
  const char *host = strstr(task.url, "://");
  if (!host || sscanf(host + 3, "%63[^:]:%7[0-9]", task.host, task.port) != 2) {
    meter_fail("the URL needs host, port and path");
  }
  task.path = strchr(host + 3, '/');
  if (!task.path || task.count == 0) meter_fail("a path and a count above 0 are needed");
  if (task_is("echo")) {
    round_trips = allocate(task.count * sizeof *round_trips);
    memset(round_trips, 1, task.count * sizeof *round_trips);
  }
}

bool task_is(const char *mode) { return strcmp(task.mode, mode) == 0; }

static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

void meter_start(void) {
  wall_start = now();
  getrusage(RUSAGE_SELF, &cpu_start);
}

static long peak_resident_kib(void) {
  char line[256];
  long kib = 0;
  FILE *file = fopen("/proc/self/status", "r");
  while (file && fgets(line, sizeof line, file)) sscanf(line, "VmHWM: %ld", &kib);
  if (file) fclose(file);
  return kib;
}

void meter_stop(void) {
  getrusage(RUSAGE_SELF, &cpu_end);
  wall_end = now();
  peak_kib = peak_resident_kib();
  is_measured = true;
}

void meter_sent(const char *text, size_t length) {
  char copy[96] = "";
  uint64_t wrong = 1;
  memcpy(copy, text, length < sizeof copy ? length : sizeof copy - 1);
  sscanf(copy, "%" SCNu64 " %" SCNu64 " %" SCNu64, &meter.messages, &meter.bytes, &wrong);
  if (wrong) meter_fail("the server received other bytes than were sent");
}

void meter_ask(void) { asked = now(); }

bool meter_answer(const void *data, size_t length) {
  round_trips[meter.messages] = now() - asked;
  if (length != task.size || ((const uint8_t *)data)[length - 1] != pattern_at(length - 1)) {
    meter_fail("the echo differs from what was sent");
  }
  return meter_message(data, length);
}

/// Resident bytes of this process.
static long resident(void) {
  long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (!file || fscanf(file, "%*d %ld", &pages) != 1) meter_fail("/proc/self/statm");
  fclose(file);
  return pages * sysconf(_SC_PAGESIZE);
}

void meter_idle_before(void) {
  struct rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  idle_before = resident();
  is_idle = true;
  meter_start();
}

void meter_idle_after(void) {
  meter_stop();
  idle_after = resident();
}

uint8_t *meter_payload(void) {
  uint8_t *bytes = allocate(task.size + 1);
  for (size_t i = 0; i < task.size; i++) bytes[i] = pattern_at(i);
  return bytes;
}

static uint64_t cpu(const struct timeval *time) {
  return (uint64_t)time->tv_sec * 1000000000 + (uint64_t)time->tv_usec * 1000;
}

static int ascending(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

void meter_report(void) {
  if (!is_measured) meter_fail("the connection ended before the last message");
  uint64_t ns = cpu(&cpu_end.ru_utime) + cpu(&cpu_end.ru_stime) - cpu(&cpu_start.ru_utime) -
                cpu(&cpu_start.ru_stime);
  printf(
      "{\"messages\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"cpu_ns\": %" PRIu64
      ", \"wall_ns\": %" PRIu64 ", \"peak_rss_kib\": %ld",
      meter.messages, meter.bytes, ns, wall_end - wall_start, peak_kib);
  if (meter.checksum) printf(", \"checksum\": %" PRIu64, meter.checksum);
  if (meter.documents) printf(", \"documents\": %" PRIu64, meter.documents);
  if (meter.requests) printf(", \"requests\": %" PRIu64, meter.requests);
  if (round_trips) {
    qsort(round_trips, task.count, sizeof *round_trips, ascending);
    printf(
        ", \"p50_ns\": %" PRIu64 ", \"p99_ns\": %" PRIu64, round_trips[task.count / 2],
        round_trips[task.count * 99 / 100]);
  }
  if (is_idle) {
    printf(", \"idle_bytes\": %.1f", (double)(idle_after - idle_before) / (double)task.count);
  }
  printf("}\n");
  fflush(stdout);
  _exit(0);
}
