/*
 * Many threads, few objects over HTTP: event sources, long polls and REST clients are created,
 * used, closed and freed at the same time, for a sanitizer to watch.
 *
 *   stress_http SECONDS URL... REFUSING
 *
 * The server of the last URL refuses all credentials; its objects wait for them most of the time,
 * while their options are set.
 *
 * Objects are in slots. Any number of threads use a slot at a time; a thread that frees or replaces
 * its object has it exclusively, as the contract requires. Half of the slots are on a loop with its
 * own thread, half on one that main dispatches. The exit code is 1 if user data was not destroyed
 * exactly once, or a request was not answered exactly once.
 */
#include <pthread.h>
#include <realtime.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { THREADS = 4, SLOTS = 12 };

enum kind { SOURCE, POLL, CLIENT, KINDS };

struct slot {
  pthread_rwlock_t lock;
  rt_loop *loop;
  enum kind kind;
  bool awaits;
  /* One of these, depending on the kind. */
  rt_eventsource *source;
  rt_longpoll *poll;
  rt_rest *client;
};

static struct slot slots[SLOTS];
static rt_loop *loops[2];
static rt_reachability *reachabilities[2];
static char **urls;
static int url_count;
static atomic_bool ends;
static atomic_ulong given, destroyed, asked, answered, events, calls;

/* Counts user data when it is passed, and when it is destroyed. */
static void *give(void) {
  atomic_fetch_add(&given, 1);
  return calloc(1, 1);
}

static void on_destroy(void *user) {
  atomic_fetch_add(&destroyed, 1);
  free(user);
}

static void on_event(const rt_event *event, void *user) {
  if (event->id[event->id_length] || event->event[event->event_length]
      || event->data[event->data_length]) abort();
  atomic_fetch_add(&events, 1);
  *(volatile char *)user += 1;
}

static void on_error(const rt_failure *failure, void *user) {
  *(volatile char *)user += (char)strlen(failure->message);
}

static rt_credentials on_credentials(const rt_failure *refusal, void *user) {
  *(volatile char *)user += (char)refusal->http_status;
  return RT_CREDENTIALS_LATER;
}

static void on_done(rt_rest_response *response, void *user) {
  size_t length;
  const uint8_t *body = rt_rest_response_body(response, &length);
  for (size_t i = 0; i < length; i++) *(volatile char *)user += (char)body[i];
  atomic_fetch_add(&answered, 1);
}

static rt_eventsource *new_source(rt_loop *loop, const char *url) {
  rt_eventsource *source = NULL;
  if (rt_eventsource_new(loop, url, &source) != RT_OK) return NULL;
  rt_eventsource_set_reconnection_time_ms(source, 1);
  rt_eventsource_set_max_delay_ms(source, 5);
  rt_eventsource_on_message(source, on_event, give(), on_destroy);
  rt_eventsource_on_any(source, on_event, give(), on_destroy);
  rt_eventsource_on_error(source, on_error, give(), on_destroy);
  rt_eventsource_on_credentials(source, on_credentials, give(), on_destroy);
  rt_eventsource_set_reachability(source, reachabilities[loop == loops[1]]);
  rt_eventsource_start(source);
  return source;
}

static rt_longpoll *new_poll(rt_loop *loop, const char *url) {
  rt_longpoll *poll = NULL;
  if (rt_longpoll_new(loop, url, &poll) != RT_OK) return NULL;
  rt_longpoll_set_interval_ms(poll, 1);
  rt_longpoll_set_max_delay_ms(poll, 5);
  rt_longpoll_on_error(poll, on_error, give(), on_destroy);
  rt_longpoll_on_credentials(poll, on_credentials, give(), on_destroy);
  rt_longpoll_set_reachability(poll, reachabilities[loop == loops[1]]);
  rt_longpoll_start(poll);
  return poll;
}

static rt_rest *new_client(rt_loop *loop, const char *url) {
  rt_rest *client = NULL;
  if (rt_rest_new(loop, url, &client) != RT_OK) return NULL;
  rt_rest_set_base_delay_ms(client, 1);
  rt_rest_set_max_delay_ms(client, 5);
  return client;
}

static void fill(struct slot *slot, unsigned *seed) {
  const char *url = urls[rand_r(seed) % url_count];
  slot->kind = rand_r(seed) % KINDS;
  slot->awaits = url == urls[url_count - 1];
  slot->source = slot->kind == SOURCE ? new_source(slot->loop, url) : NULL;
  slot->poll = slot->kind == POLL ? new_poll(slot->loop, url) : NULL;
  slot->client = slot->kind == CLIENT ? new_client(slot->loop, url) : NULL;
}

static void empty(struct slot *slot) {
  rt_eventsource_free(slot->source);
  rt_longpoll_free(slot->poll);
  rt_rest_free(slot->client);
  slot->source = NULL;
  slot->poll = NULL;
  slot->client = NULL;
}

/* Sets options, which fails unless credentials are awaited. */
static void set_source(rt_eventsource *source, unsigned what) {
  char url[256];
  const char *next = urls[what / 16 % url_count];
  switch (what % 6) {
    case 0: rt_eventsource_set_url(source, next); break;
    case 1: rt_eventsource_set_header(source, "X-Token", next); break;
    case 2: rt_eventsource_get_url(source, url, sizeof url, NULL); break;
    case 3:
      if (what % 420 == 3) rt_eventsource_credentials_ready(source, true);
      break;
    default: rt_eventsource_clear_headers(source);
  }
}

static void set_poll(rt_longpoll *poll, unsigned what) {
  char url[256];
  const char *next = urls[what / 16 % url_count];
  switch (what % 6) {
    case 0: rt_longpoll_set_url(poll, next); break;
    case 1: rt_longpoll_set_header(poll, "X-Token", next); break;
    case 2: rt_longpoll_get_url(poll, url, sizeof url, NULL); break;
    case 3:
      if (what % 420 == 3) rt_longpoll_credentials_ready(poll, true);
      break;
    default: rt_longpoll_clear_headers(poll);
  }
}

static void use_source(rt_eventsource *source, unsigned what) {
  char id[32];
  uint64_t listener;
  switch (what % 10) {
    case 0: rt_eventsource_pause(source); break;
    case 1: rt_eventsource_restart(source); break;
    case 2:
      rt_eventsource_add_listener(source, "odd", on_event, give(), on_destroy, &listener);
      if (what % 20 == 2) rt_eventsource_remove_listener(source, listener);
      break;
    case 3: rt_eventsource_remove_listeners(source, "odd"); break;
    case 4: rt_eventsource_get_last_event_id(source, id, sizeof id, NULL); break;
    case 5: rt_eventsource_on_any(source, on_event, give(), on_destroy); break;
    case 6: rt_eventsource_get_state(source); break;
    case 7:
      if (what % 70 == 7) rt_eventsource_close(source);
      break;
    default: rt_eventsource_resume(source);
  }
}

static void use_poll(rt_longpoll *poll, unsigned what) {
  switch (what % 6) {
    case 0: rt_longpoll_pause(poll); break;
    case 1: rt_longpoll_restart(poll); break;
    case 2: rt_longpoll_get_state(poll); break;
    case 3:
      if (what % 42 == 3) rt_longpoll_close(poll);
      break;
    default: rt_longpoll_resume(poll);
  }
}

static void use_client(struct slot *slot, unsigned what) {
  rt_rest_request *request = NULL;
  uint64_t id = 0;
  switch (what % 8) {
    case 0: rt_rest_cancel(slot->client, what); break;
    case 1:
      if (what % 80 == 1) rt_rest_close(slot->client);
      break;
    default:
      if (rt_rest_request_new(slot->client, what % 3 ? "GET" : "POST", "", &request)) return;
      if (what % 3 == 0) {
        rt_rest_request_set_body(request, (const uint8_t *)"body", 4, "text/plain");
      }
      void *user = give();
      if (rt_rest_request_send(request, on_done, user, on_destroy, &id, NULL) == RT_OK) {
        atomic_fetch_add(&asked, 1);
        if (what % 5 == 0) rt_rest_cancel(slot->client, id);
      }
      rt_rest_request_free(request);
  }
}

static void *work(void *argument) {
  unsigned seed = (unsigned)(uintptr_t)argument;
  while (!atomic_load(&ends)) {
    struct slot *slot = &slots[rand_r(&seed) % SLOTS];
    unsigned what = (unsigned)rand_r(&seed);
    if (what % 400 == 399) {
      pthread_rwlock_wrlock(&slot->lock);
      empty(slot);
      fill(slot, &seed);
    } else {
      pthread_rwlock_rdlock(&slot->lock);
      if (slot->source && slot->awaits && what % 50) set_source(slot->source, what / 7);
      else if (slot->source) use_source(slot->source, what);
      if (slot->poll && slot->awaits && what % 50) set_poll(slot->poll, what / 7);
      else if (slot->poll) use_poll(slot->poll, what);
      if (slot->client) use_client(slot, what);
    }
    pthread_rwlock_unlock(&slot->lock);
    if (what % 5 == 0) rt_reachability_set_online(reachabilities[what % 2], what % 3 != 0);
    atomic_fetch_add(&calls, 1);
    /* Let the loops have their turns, too. */
    if (what % 4 == 0) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  }
  return NULL;
}

int main(int argc, char **argv) {
  pthread_t threads[THREADS];
  unsigned seed = 1;
  if (argc < 3) return 2;
  time_t end = time(NULL) + atoi(argv[1]);
  urls = argv + 2;
  url_count = argc - 2;
  for (int i = 0; i < 2; i++) {
    if (rt_loop_new(&loops[i]) != RT_OK) return 2;
    if (rt_reachability_new(loops[i], RT_REACHABILITY_MANUAL, &reachabilities[i])) return 2;
  }
  if (rt_loop_start(loops[0]) != RT_OK) return 2;
  for (int i = 0; i < SLOTS; i++) {
    pthread_rwlock_init(&slots[i].lock, NULL);
    slots[i].loop = loops[i % 2];
    fill(&slots[i], &seed);
  }
  for (uintptr_t i = 0; i < THREADS; i++)
    pthread_create(&threads[i], NULL, work, (void *)(i + 1));
  while (time(NULL) < end) rt_loop_dispatch(loops[1], 20);
  atomic_store(&ends, true);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < SLOTS; i++) empty(&slots[i]);
  for (int i = 0; i < 2; i++) rt_reachability_free(reachabilities[i]);
  rt_loop_dispatch(loops[1], 0);
  rt_loop_stop_and_wait(loops[0]);
  for (int i = 0; i < 2; i++) rt_loop_free(loops[i]);
  printf("%lu calls, %lu events, %lu of %lu requests answered, %lu of %lu user data destroyed\n",
         atomic_load(&calls), atomic_load(&events), atomic_load(&answered), atomic_load(&asked),
         atomic_load(&destroyed), atomic_load(&given));
  return atomic_load(&given) == atomic_load(&destroyed)
                 && atomic_load(&asked) == atomic_load(&answered)
             ? 0
             : 1;
}
