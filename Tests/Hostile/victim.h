/* Shared by the two halves of the victim: options, measurements and outcomes. */
#ifndef VICTIM_H
#define VICTIM_H

#include <realtime.h>

enum { MAX_OUTCOMES = 24, TEXT_BYTES = 400 };

/** One thing that the library reported: a failure, the end of a request, the end of an object. */
struct outcome {
  const char *kind;
  rt_status status;
  int http_status;
  bool is_final;
  /* When it was reported, and what processor time the process had spent by then. */
  double at_ms, cpu_ms;
  char text[TEXT_BYTES];
};

struct victim {
  rt_loop *loop;
  int option_count;
  char **options;
  struct outcome outcomes[MAX_OUTCOMES];
  unsigned outcome_count, opens, attempts;
  unsigned long long messages, bytes;
  /* How many objects or requests have not ended yet. */
  int unfinished;
  double began_ms, first_outcome_ms, ended_ms;
  double cpu_at_first_outcome_ms;
};

/** The value of the option `name=value`, or `otherwise`. */
const char *option(const struct victim *victim, const char *name, const char *otherwise);
long long number(const struct victim *victim, const char *name, long long otherwise);

/** Ends the program if a call of the library failed. */
void check(rt_status status, const char *call);
/** Records an outcome; a final one ends an object or a request. */
void report(struct victim *victim, const char *kind, rt_status status, int http_status,
            bool is_final, const char *text);

/** Creates and starts the object of a transport; false if there is none with this name. */
bool attack(struct victim *victim, const char *transport, const char *url);
/** With `late=1`: sends the last request, after the attack on the others. */
void send_late(struct victim *victim);
/** Frees what `attack` has created. */
void release(void);

#endif
