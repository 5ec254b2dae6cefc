/*
 * Lets ThreadSanitizer see Swift's Mutex.
 *
 * The fast path is compiled into our code, where the sanitizer follows it. The slow path, used when
 * another thread holds the mutex or waits for it, is in the runtime's library, which is not
 * instrumented: the sanitizer would miss the order between an unlock and the next lock. These
 * functions replace the runtime's: they call them and report the order.
 *
 * Linked into builds with the thread sanitizer. The names are those of the toolchain's
 * libswiftSynchronization: `_MutexHandle._lockSlow`, `_tryLockSlow` and `_unlockSlow`.
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

/* The runtime's function; without the runtime's library there is no mutex to lock. */
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
