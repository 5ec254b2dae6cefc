// Tells valgrind's Helgrind about locks that are not those of pthreads. It would report each use of
// what they guard as a race otherwise. Outside valgrind this costs one comparison.
#ifndef SHIM_WATCH_H
#define SHIM_WATCH_H

#include <stdbool.h>

/// Whether the process runs under valgrind.
extern bool shim_is_watched;

void shim_note_release(const void *lock);
void shim_note_acquisition(const void *lock);

/// Call before a lock is released.
static inline void shim_releases(const void *lock) {
  if (__builtin_expect(shim_is_watched, false)) shim_note_release(lock);
}

/// Call when a lock is held.
static inline void shim_acquired(const void *lock) {
  if (__builtin_expect(shim_is_watched, false)) shim_note_acquisition(lock);
}

#endif
