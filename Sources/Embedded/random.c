// Swift's standard library takes its random numbers from arc4random_buf, which glibc has only since
// 2.36. Defined here, the library also loads on older systems.
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

void arc4random_buf(void *bytes, size_t count) {
  unsigned char *next = bytes;
  while (count > 0) {
    ssize_t filled = getrandom(next, count, 0);
    if (filled < 0 && errno == EINTR) continue;
    // Fails only on kernels without getrandom(2), older than 3.17; predictable keys are worse.
    if (filled <= 0) abort();
    next += filled;
    count -= (size_t)filled;
  }
}
