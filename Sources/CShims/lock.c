// The waiting half of a lock (futex(2)), for the build whose Swift has none.
#include "shim_lock.h"

#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

void shim_lock_slowly(uint32_t *word) {
  // Whoever has waited cannot know whether others still do.
  while (__atomic_exchange_n(word, 2, __ATOMIC_ACQUIRE) != 0)
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
}

void shim_unlock_slowly(uint32_t *word) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
