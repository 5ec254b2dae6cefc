// International host names, by libidn2, which is loaded with the first one.
#ifndef SHIM_IDNA_H
#define SHIM_IDNA_H

#include <stddef.h>

// Internal: the version script exports only rt_*.
#pragma GCC visibility push(hidden)

enum { SHIM_IDNA_OK, SHIM_IDNA_INVALID, SHIM_IDNA_MISSING };
/// Writes the ASCII form of a host name (IDNA 2008, UTS 46). Missing is libidn2.
int shim_idna(const char *name, char *out, size_t size);

#pragma GCC visibility pop

#endif
