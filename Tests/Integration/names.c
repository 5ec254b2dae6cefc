/*
 * Preloaded into a client: answers for *.names.test from the file that NAMES names.
 *
 * Each line has a host and its addresses; the host "HOST!" has none yet, and the lookup ends when
 * the line has changed. Each lookup of such a host is appended to the file LOOKUPS.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef int lookup(const char *, const char *, const struct addrinfo *, struct addrinfo **);

enum { LINE = 1024 };

static FILE *file_of(const char *variable, const char *mode) {
  const char *path = getenv(variable);
  return path ? fopen(path, mode) : NULL;
}

/* The line of the host without its name, in `line`. */
static char *addresses_of(const char *host, char line[LINE]) {
  FILE *file = file_of("NAMES", "r");
  char *found = NULL;
  while (file && !found && fgets(line, LINE, file)) {
    size_t length = strcspn(line, " \n");
    if (length == strlen(host) && !strncmp(line, host, length)) found = line + length;
  }
  if (file) fclose(file);
  return found;
}

static void note(const char *host) {
  FILE *file = file_of("LOOKUPS", "a");
  if (!file) return;
  fprintf(file, "%s\n", host);
  fclose(file);
}

int getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                struct addrinfo **out) {
  lookup *real;
  char line[LINE], *rest, *address, *next = NULL;
  struct addrinfo *all = NULL, **end = &all;
  *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
  if (!host || !strstr(host, ".names.test")) return real(host, service, hints, out);
  note(host);
  while ((rest = addresses_of(host, line)) && strchr(rest, '!'))
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  if (!rest) return EAI_NONAME;
  for (address = strtok_r(rest, " \n", &next); address; address = strtok_r(NULL, " \n", &next))
    if (!real(address, service, hints, end))
      while (*end) end = &(*end)->ai_next;
  *out = all;
  return all ? 0 : EAI_AGAIN;
}
