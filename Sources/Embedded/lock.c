// The waiting half of the lock (futex(2)).
#include "lock.h"

#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

void embedded_lock_slowly(uint32_t *word) {
  // A thread that has waited cannot know whether others still wait, so it marks the lock as
  // contended.
  while (__atomic_exchange_n(word, 2, __ATOMIC_ACQUIRE) != 0)
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
  shim_acquired(word);
}

void embedded_unlock_slowly(uint32_t *word) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
