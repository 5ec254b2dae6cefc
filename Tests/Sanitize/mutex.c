/*
 * Lets ThreadSanitizer see Swift's Mutex.
 *
 * Its fast path is compiled into our code, where the sanitizer follows it. The slow path, taken
 * when another thread holds it or waits for it, is in the runtime's library, which is not
 * instrumented: what one thread did before it unlocked would seem unordered to the next. These
 * functions stand before the runtime's, call them, and tell the sanitizer the order they make.
 *
 * Linked into what is built with the thread sanitizer; the names are those of the toolchain's
 * libswiftSynchronization, `_MutexHandle._lockSlow`, `_tryLockSlow` and `_unlockSlow`.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#define SWIFT __attribute__((swiftcall))
#define SELF __attribute__((swift_context)) void *self
#define PREFIX "$s15Synchronization12_MutexHandleV"
#define LOCK PREFIX "9_lockSlowyys6UInt32VF"
#define TRY_LOCK PREFIX "12_tryLockSlowSbyF"
#define UNLOCK PREFIX "11_unlockSlowyyF"

void __tsan_acquire(void *address);
void __tsan_release(void *address);

SWIFT void mutex_lock_slow(uint32_t thread, SELF) __asm__(LOCK);
SWIFT bool mutex_try_lock_slow(SELF) __asm__(TRY_LOCK);
SWIFT void mutex_unlock_slow(SELF) __asm__(UNLOCK);

typedef SWIFT void (*lock_fn)(uint32_t thread, SELF);
typedef SWIFT bool (*try_lock_fn)(SELF);
typedef SWIFT void (*unlock_fn)(SELF);

/* The runtime's own; without it there is no mutex to lock. */
static void *next(const char *name) {
  void *found = dlsym(RTLD_NEXT, name);
  if (!found) abort();
  return found;
}

SWIFT void mutex_lock_slow(uint32_t thread, SELF) {
  ((lock_fn)next(LOCK))(thread, self);
  __tsan_acquire(self);
}

SWIFT bool mutex_try_lock_slow(SELF) {
  bool locked = ((try_lock_fn)next(TRY_LOCK))(self);
  if (locked) __tsan_acquire(self);
  return locked;
}

SWIFT void mutex_unlock_slow(SELF) {
  __tsan_release(self);
  ((unlock_fn)next(UNLOCK))(self);
}
