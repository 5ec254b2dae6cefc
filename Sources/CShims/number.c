// Parsing numbers.
#define _GNU_SOURCE
#include <locale.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "shim_search.h"

double shim_double(const char *text) {
  // Created once and never freed. The program's own locale may change at any time.
  static _Atomic(locale_t) kept;
  locale_t c = atomic_load_explicit(&kept, memory_order_acquire);
  if (!c) {
    locale_t none = NULL;
    c = newlocale(LC_ALL_MASK, "C", NULL);
    if (c && !atomic_compare_exchange_strong(&kept, &none, c)) {
      freelocale(c);
      c = none;
    }
  }
  return c ? strtod_l(text, NULL, c) : strtod(text, NULL);
}
