#ifndef SHIM_LOCK_H
#define SHIM_LOCK_H

#include <stdbool.h>
#include <stdint.h>

// A lock in four bytes: 0 is free, 1 is held, 2 is held while others may wait.

void shim_lock_slowly(uint32_t *word);
void shim_unlock_slowly(uint32_t *word);

static inline bool shim_try_lock(uint32_t *word) {
  uint32_t free = 0;
  return __atomic_compare_exchange_n(word, &free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static inline void shim_lock(uint32_t *word) {
  if (!shim_try_lock(word)) shim_lock_slowly(word);
}

static inline void shim_unlock(uint32_t *word) {
  if (__atomic_exchange_n(word, 0, __ATOMIC_RELEASE) == 2) shim_unlock_slowly(word);
}

#endif
