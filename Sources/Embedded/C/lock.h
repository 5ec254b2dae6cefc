#ifndef EMBEDDED_LOCK_H
#define EMBEDDED_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "shim_watch.h"

// A lock in four bytes: 0 is free, 1 is held, 2 is held while others may wait.

void embedded_lock_slowly(uint32_t *word);
void embedded_unlock_slowly(uint32_t *word);

static inline bool embedded_try_lock(uint32_t *word) {
  uint32_t free = 0;
  if (!__atomic_compare_exchange_n(word, &free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
    return false;
  shim_acquired(word);
  return true;
}

static inline void embedded_lock(uint32_t *word) {
  if (!embedded_try_lock(word)) embedded_lock_slowly(word);
}

static inline void embedded_unlock(uint32_t *word) {
  shim_releases(word);
  if (__atomic_exchange_n(word, 0, __ATOMIC_RELEASE) == 2) embedded_unlock_slowly(word);
}

#endif
