/*
 * Shared by the programs in this folder: random numbers, values that arguments are drawn from, a
 * table of handles that threads take and return, and user data that knows whether it is alive.
 *
 * A program defines `acts` (called by each callback after reading its arguments) and `destroyed`
 * (called by each destroy function), and includes calls.inc, which generate.py prints.
 */
#ifndef CALLS_H
#define CALLS_H

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "realtime.h"

#define CONTROL(condition, ...)                                                  \
  do {                                                                           \
    if (!(condition)) {                                                          \
      fprintf(stderr, "%s:%d: ", __FILE__, __LINE__);                            \
      fprintf(stderr, __VA_ARGS__);                                              \
      fprintf(stderr, "\n");                                                     \
      abort();                                                                   \
    }                                                                            \
  } while (0)

enum { MOST_KINDS = 20, MOST_CALLBACKS = 64, SLOTS = 5, MOST_NESTED = 32, IDS = 64 };

/* One thread's state. A callback uses that of the thread it runs on. */
struct caller {
  atomic_bool is_used;
  uint64_t random;
  /* The depth of nested callbacks on this thread. */
  int depth;
  /* All arguments are valid, for tests that need each call to succeed. */
  bool behaves;
  /* The arguments of this call are valid, except those that may be any of many. */
  bool is_careful;
  /* Callbacks and outputs are NULL. */
  bool gives_null;
  /* The generation of new user data. */
  int generation;
  /* If not NULL, all handles come from here instead of the table. */
  void **fixed;
  rt_rest_response *response;
  /* The stub that runs; NULL outside. */
  rt_ddp_stub *stub;
  /* The running calls, outermost first, for the watchdog. */
  atomic_int calls;
  const char *_Atomic names[MOST_NESTED];
  _Atomic int64_t since_ms[MOST_NESTED];
  unsigned long count;
};

typedef void (*caller_fn)(struct caller *c);

struct function {
  const char *name;
  caller_fn call;
  /* The kind of its first argument; KINDS if it is not a handle. */
  int kind;
  bool is_setter, takes_user;
};

/* Whether several threads may use a handle of this kind at a time. */
static bool is_shared(int kind);
static void free_handle(int kind, void *handle);

/* MARK: Random numbers, by SplitMix64: a seed is a run. */

static uint64_t draw(struct caller *c) {
  uint64_t z = (c->random += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

static size_t below(struct caller *c, size_t count) { return (size_t)(draw(c) % count); }

/* True once in `count` times, but never if arguments must be valid. */
static bool seldom(struct caller *c, size_t count) {
  return !c->behaves && !c->is_careful && below(c, count) == 0;
}

static int64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* MARK: User data */

enum { ALIVE = 1, DESTROYED = 2, UNOWNED = 3 };

struct user {
  atomic_int state;
  /* How many destroy functions led to this one. */
  int generation;
  caller_fn made_by;
};

enum { USERS_EACH = 4096, MOST_CHUNKS = 4096 };
static struct user *_Atomic user_chunks[MOST_CHUNKS];
static atomic_uint user_chunk_count;
static atomic_ulong users_made, users_destroyed;
static struct user the_nobody = {.state = UNOWNED};

static void acts(struct caller *c);
static void destroyed(struct caller *c, struct user *user);
static struct caller *this_caller(void);

static struct user *nobody(void) { return &the_nobody; }

/* Never returned to the allocator, so that a use after its destruction is found. */
static struct user *new_user(struct caller *c, caller_fn made_by) {
  static _Thread_local struct user *chunk;
  static _Thread_local size_t left;
  struct user *user;
  if (left == 0) {
    left = USERS_EACH;
    chunk = calloc(left, sizeof *chunk);
    unsigned number = atomic_fetch_add(&user_chunk_count, 1);
    CONTROL(chunk && number < MOST_CHUNKS, "no memory for user data");
    atomic_store(&user_chunks[number], chunk);
  }
  user = &chunk[--left];
  user->made_by = made_by;
  user->generation = c->generation;
  atomic_store(&user->state, ALIVE);
  atomic_fetch_add(&users_made, 1);
  return user;
}

/* The name of the function that received it. */
static const char *maker(const struct user *user);

static void name_survivors(void) {
  for (unsigned i = 0; i < atomic_load(&user_chunk_count); i++) {
    struct user *chunk = atomic_load(&user_chunks[i]);
    for (int j = 0; chunk && j < USERS_EACH; j++)
      if (atomic_load(&chunk[j].state) == ALIVE)
        fprintf(stderr, "not destroyed: user data of %s\n", maker(&chunk[j]));
  }
}

static void destroy_user(void *pointer) {
  struct user *user = pointer;
  int state = atomic_exchange(&user->state, DESTROYED);
  CONTROL(state == ALIVE, "user data was destroyed twice, that of %s", maker(user));
  struct caller *c = this_caller();
  c->depth++;
  destroyed(c, user);
  c->depth--;
  /* Last, so that the count includes only destroy functions that have ended. */
  atomic_fetch_add(&users_destroyed, 1);
}

static rt_destroy_fn destroyer(struct user *user) {
  return user == &the_nobody ? NULL : destroy_user;
}

static void check_alive(const void *user) {
  int state = atomic_load(&((struct user *)user)->state);
  CONTROL(state == ALIVE || state == UNOWNED, "a callback has user data that was destroyed");
}

/* How often each type of callback was called. */
static atomic_ulong callback_counts[MOST_CALLBACKS];

static struct caller *callback_begins(void *user, int type) {
  struct caller *c = this_caller();
  atomic_fetch_add_explicit(&callback_counts[type], 1, memory_order_relaxed);
  check_alive(user);
  c->depth++;
  return c;
}


/* A callback may free its own handle: its user data lives until the callback has returned. */
static void callback_ends(struct caller *c, void *user) {
  check_alive(user);
  c->depth--;
}

/* MARK: Arguments of callbacks */

static void read_bytes(const void *data, size_t length) {
  const volatile uint8_t *bytes = data;
  unsigned sum = 0;
  CONTROL(bytes || length == 0, "NULL with a length of %zu", length);
  for (size_t i = 0; i < length; i += i + 64 < length ? 64 : 1) sum += bytes[i];
  (void)sum;
}

static void read_text(const char *text) {
  if (text) read_bytes(text, strlen(text) + 1);
}

static void read_messages(const uint8_t *base, const rt_message *messages, size_t count) {
  CONTROL(count > 0, "no messages");
  for (size_t i = 0; i < count; i++) read_bytes(base + messages[i].offset, messages[i].length);
}

static void read_events(const uint8_t *base, const rt_pusher_record *events, size_t count) {
  CONTROL(count > 0, "no events");
  for (size_t i = 0; i < count; i++) {
    read_bytes(base + events[i].event_offset, events[i].event_length);
    read_bytes(base + events[i].data_offset, events[i].data_length);
    read_bytes(base + events[i].user_id_offset, events[i].user_id_length);
    read_bytes(base + events[i].message_offset, events[i].message_length);
  }
}

/* An event outside a callback. */
static const char the_message[] = "{\"event\":\"e\",\"X-Name\":[1]}";
static const rt_ddp_call_options call_options[] = {
    {.struct_bytes = sizeof(rt_ddp_call_options), .stages = 7, .throw_stub_errors = true},
    {.struct_bytes = sizeof(rt_ddp_call_options), .wait = true, .no_retry = true},
};

static const rt_pusher_event the_event = {
    .struct_bytes = sizeof the_event, .event = "e", .event_length = 1, .channel = "", .data = "",
    .user_id = "", .message = the_message, .message_length = sizeof the_message - 1};

/* MARK: Running calls */

static void begin_call(struct caller *c, const char *name) {
  int level = atomic_load_explicit(&c->calls, memory_order_relaxed);
  c->count++;
  if (level < MOST_NESTED) {
    atomic_store_explicit(&c->names[level], name, memory_order_relaxed);
    atomic_store_explicit(&c->since_ms[level], now_ms(), memory_order_relaxed);
  }
  atomic_store_explicit(&c->calls, level + 1, memory_order_relaxed);
}

static void end_call(struct caller *c) {
  atomic_fetch_sub_explicit(&c->calls, 1, memory_order_relaxed);
}

/* A function that must not fail; NULL for none. */
static const char *expects_success;

static void note_result(const char *name, int64_t result) {
  if (result >= 0) return;
  read_text(rt_last_error());
  CONTROL(!expects_success || strcmp(name, expects_success) != 0, "%s: %s (%s)", name,
          rt_status_name((rt_status)result), rt_last_error());
}

/* MARK: Handles */

/* users: how many threads use it; -1 if one thread has it exclusively. */
struct slot {
  atomic_int users;
  void *_Atomic handle;
  struct caller *_Atomic owner;
  int owned;
};

static struct slot slots[MOST_KINDS][SLOTS];

static bool lock_alone(struct slot *slot) {
  int none = 0;
  return atomic_compare_exchange_strong_explicit(&slot->users, &none, -1, memory_order_acquire,
                                                 memory_order_relaxed);
}

/* Does not order threads that share a handle: that is the library's task. */
static bool lock_shared(struct slot *slot) {
  int users = atomic_load_explicit(&slot->users, memory_order_relaxed);
  while (users >= 0) {
    if (atomic_compare_exchange_weak_explicit(&slot->users, &users, users + 1,
                                              memory_order_acquire, memory_order_relaxed))
      return true;
  }
  return false;
}

static void unlock(struct slot *slot) {
  if (atomic_load_explicit(&slot->users, memory_order_relaxed) == -1)
    atomic_store_explicit(&slot->users, 0, memory_order_release);
  else
    atomic_fetch_sub_explicit(&slot->users, 1, memory_order_release);
}

/* A handle that this thread may use until `give_back`; NULL if there is none, or at random. */
static void *take(struct caller *c, int kind) {
  if (c->fixed) return c->fixed[kind];
  if (seldom(c, 60)) return NULL;
  size_t first = below(c, SLOTS);
  for (size_t i = 0; i < SLOTS; i++) {
    struct slot *slot = &slots[kind][(first + i) % SLOTS];
    void *handle = atomic_load_explicit(&slot->handle, memory_order_relaxed);
    if (!handle) continue;
    if (!is_shared(kind)) {
      if (lock_alone(slot)) {
        atomic_store_explicit(&slot->owner, c, memory_order_relaxed);
      } else if (atomic_load_explicit(&slot->users, memory_order_relaxed) != -1 ||
                 atomic_load_explicit(&slot->owner, memory_order_relaxed) != c) {
        continue;
      }
      slot->owned++;
    } else if (!lock_shared(slot)) {
      continue;
    }
    handle = atomic_load_explicit(&slot->handle, memory_order_relaxed);
    if (handle) return handle;
    if (!is_shared(kind) && --slot->owned > 0) continue;
    if (!is_shared(kind)) atomic_store_explicit(&slot->owner, NULL, memory_order_relaxed);
    unlock(slot);
  }
  return NULL;
}

static void give_back(struct caller *c, int kind, const void *handle) {
  if (c->fixed || !handle) return;
  for (size_t i = 0; i < SLOTS; i++) {
    struct slot *slot = &slots[kind][i];
    if (atomic_load_explicit(&slot->handle, memory_order_relaxed) != handle) continue;
    /* A channel may be in several slots, with a reference for each: unlock any that is in use. */
    if (is_shared(kind) && atomic_load_explicit(&slot->users, memory_order_relaxed) <= 0) continue;
    if (!is_shared(kind)) {
      if (--slot->owned > 0) return;
      atomic_store_explicit(&slot->owner, NULL, memory_order_relaxed);
    }
    unlock(slot);
    return;
  }
  CONTROL(false, "a handle that was not taken");
}

/* Removes a handle that no thread uses from the table, so that it can be freed. */
static void *grab(struct caller *c, int kind) {
  size_t first = below(c, SLOTS);
  for (size_t i = 0; i < SLOTS; i++) {
    struct slot *slot = &slots[kind][(first + i) % SLOTS];
    if (!lock_alone(slot)) continue;
    void *handle = atomic_exchange_explicit(&slot->handle, NULL, memory_order_relaxed);
    unlock(slot);
    if (handle) return handle;
  }
  return NULL;
}

/* Puts a handle into the table, and frees the one that it replaces. */
static void keep(struct caller *c, int kind, void *handle) {
  if (!handle) return;
  /* Otherwise two threads could use it at once, each as its only user. */
  for (size_t i = 0; i < SLOTS && !is_shared(kind); i++)
    CONTROL(atomic_load_explicit(&slots[kind][i].handle, memory_order_relaxed) != handle,
            "a handle that belongs to one thread was given out twice");
  size_t first = below(c, SLOTS);
  for (size_t i = 0; i < SLOTS && !c->fixed; i++) {
    struct slot *slot = &slots[kind][(first + i) % SLOTS];
    if (!lock_alone(slot)) continue;
    handle = atomic_exchange_explicit(&slot->handle, handle, memory_order_relaxed);
    unlock(slot);
    break;
  }
  free_handle(kind, handle);
}

/* Numbers of timers, requests, listeners and sends. */
static _Atomic uint64_t ids[IDS];

static void note_id(struct caller *c, uint64_t id) {
  if (id) atomic_store_explicit(&ids[below(c, IDS)], id, memory_order_relaxed);
}

/* MARK: Values */

#include "values.h"

#endif
