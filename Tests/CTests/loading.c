/* Loads the library named by the argument and checks that nothing else happened: no thread, no
 * descriptor, no signal handler. Prints the milliseconds of processor time that it took, in all and
 * without libcurl, which brings most of the other libraries. */
#include <dirent.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CHECK(condition)                                             \
  do {                                                               \
    if (!(condition)) {                                              \
      printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                       \
    }                                                                \
  } while (0)

static int entries(const char *folder) {
  int count = 0;
  DIR *directory = opendir(folder);
  const struct dirent *entry;
  CHECK(directory != NULL);
  for (entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
    if (entry->d_name[0] != '.') count++;
  }
  closedir(directory);
  return count;
}

typedef struct state {
  int threads, descriptors;
  void (*handlers[65])(int);
  sigset_t blocked;
} state;

static void look(state *s) {
  int number;
  memset(s, 0, sizeof *s);
  s->threads = entries("/proc/self/task");
  s->descriptors = entries("/proc/self/fd");
  for (number = 1; number <= 64; number++) {
    struct sigaction action;
    /* sigaction() fails for the two signals that the C library reserves. */
    if (sigaction(number, NULL, &action) == 0) s->handlers[number] = action.sa_handler;
  }
  CHECK(sigprocmask(SIG_BLOCK, NULL, &s->blocked) == 0);
}

static double cpu_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

int main(int argc, char **argv) {
  state before, after;
  double begin, middle, end;
  void *library;
  const char *(*version)(void);
  CHECK(argc == 2);
  look(&before);
  begin = cpu_ms();
  CHECK(dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL) != NULL);
  middle = cpu_ms();
  library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  end = cpu_ms();
  if (library == NULL) {
    printf("%s\n", dlerror());
    return 1;
  }
  look(&after);
  CHECK(before.threads == 1 && after.threads == 1);
  CHECK(before.descriptors == after.descriptors);
  CHECK(memcmp(before.handlers, after.handlers, sizeof before.handlers) == 0);
  CHECK(memcmp(&before.blocked, &after.blocked, sizeof before.blocked) == 0);
  *(void **)&version = dlsym(library, "rt_version");
  CHECK(version != NULL && version()[0] != '\0');
  CHECK(dlclose(library) == 0);
  CHECK(version()[0] != '\0'); /* still loaded, by -z nodelete */
  printf("%.3f %.3f\n", end - begin, end - middle);
  return 0;
}
