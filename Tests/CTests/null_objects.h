/* The objects of the program that null_tests.py prints: one of each type of handle, not started, so
 * that options can still be set. */
#ifndef NULL_OBJECTS_H
#define NULL_OBJECTS_H

#include "contract_pusher.h"

typedef struct objects {
  rt_loop *rt_loop;
  rt_network *rt_network;
  rt_backoff *rt_backoff;
  rt_reachability *rt_reachability;
  rt_websocket *rt_websocket;
  rt_eventsource *rt_eventsource;
  rt_eventstream_parser *rt_eventstream_parser;
  rt_longpoll *rt_longpoll;
  rt_rest *rt_rest;
  rt_rest_request *rt_rest_request;
  rt_rest_response *rt_rest_response;
  rt_call *rt_call;
  rt_spreadbot *rt_spreadbot;
  rt_pusher *rt_pusher;
  rt_pusher_channel *rt_pusher_channel;
  rt_pusher_authorization *rt_pusher_authorization;
  rt_ddp *rt_ddp;
  rt_ddp_feed *rt_ddp_feed;
  rt_ddp_models *rt_ddp_models;
  rt_ddp_stub *rt_ddp_stub;
  /* What a callback calls. */
  void (*next)(struct objects *);
} objects;

static const int32_t a_transport = RT_SPREADBOT_TRANSPORT_POLL;
static const rt_ddp_call_options a_rt_ddp_call_options = {
    .struct_bytes = sizeof a_rt_ddp_call_options};
static const rt_pusher_event a_rt_pusher_event = {
    .struct_bytes = sizeof a_rt_pusher_event, .message = "{\"ab\":1}", .message_length = 8};

/* Those whose creation ends the time in which options can be set. */
static inline void create_parts(objects *o) {
  CHECK_OK(rt_pusher_subscribe(o->rt_pusher, "private-a", &o->rt_pusher_channel));
  CHECK_OK(rt_ddp_feed_new(o->rt_ddp, "players", NULL, NULL, 0, &o->rt_ddp_feed));
  CHECK_OK(rt_ddp_models_new(o->rt_ddp, "[{\"name\":\"Player\"}]", &o->rt_ddp_models));
}

static int wrong;

static inline bool is_null_refused(int32_t status) {
  return status == RT_ERROR_INVALID_ARGUMENT && strstr(rt_last_error(), "NULL");
}

static inline void report(int32_t status, const char *function, const char *name,
                          const char *what) {
  printf("%s: %s is %s, but NULL returned %s: %s\n", function, name, what, rt_status_name(status),
         status < 0 ? rt_last_error() : "");
  wrong = 1;
}

static inline void required(int32_t status, const char *function, const char *name) {
  if (!is_null_refused(status)) report(status, function, name, "required");
}

static inline void nullable(int32_t status, const char *function, const char *name) {
  if (is_null_refused(status)) report(status, function, name, "nullable");
}

#endif
