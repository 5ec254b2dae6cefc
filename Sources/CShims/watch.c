// Client requests of valgrind: instructions without effect outside it.
#include "shim_watch.h"

#if __has_include(<valgrind/helgrind.h>)
#include <valgrind/helgrind.h>
#else
// Valgrind's headers are not installed, so nothing is announced.
#define RUNNING_ON_VALGRIND 0
#define ANNOTATE_HAPPENS_BEFORE(lock) (void)(lock)
#define ANNOTATE_HAPPENS_AFTER(lock) (void)(lock)
#endif

bool shim_is_watched = false;

__attribute__((constructor)) static void look(void) { shim_is_watched = RUNNING_ON_VALGRIND != 0; }

void shim_note_release(const void *lock) { ANNOTATE_HAPPENS_BEFORE(lock); }
void shim_note_acquisition(const void *lock) { ANNOTATE_HAPPENS_AFTER(lock); }
