/* Working objects, for events that only happen to these: created and started. Needs calls.inc. */
#ifndef OBJECTS_H
#define OBJECTS_H

static const char *maker(const struct user *user) {
  for (size_t i = 0; i < COUNT(FUNCTIONS); i++)
    if (FUNCTIONS[i].call == user->made_by) return FUNCTIONS[i].name;
  return "nobody";
}

/* A connection to the Pusher server, which signs what it subscribes to. */
static rt_status make_pusher(rt_loop *loop, rt_pusher **out) {
  rt_status status = rt_pusher_new(loop, "demo", out);
  if (status != RT_OK) return status;
  CONTROL(rt_pusher_set_host(*out, "127.0.0.1") == RT_OK, "no host");
  CONTROL(rt_pusher_set_port(*out, pusher_port) == RT_OK, "no port");
  CONTROL(rt_pusher_set_use_tls(*out, false) == RT_OK, "no choice of TLS");
  CONTROL(rt_pusher_set_secret(*out, "demo-secret") == RT_OK, "no secret");
  return RT_OK;
}

/* Creates a handle of this kind on the loop in `handles`, and the handles that it needs, with a URL
 * of one of its servers. */
static rt_status make_one(struct caller *c, int kind, void **handles) {
  rt_loop *loop = handles[KIND_rt_loop];
  void **out = &handles[kind];
  switch (kind) {
    case KIND_rt_network: return rt_network_new((rt_network **)out);
    case KIND_rt_backoff: return rt_backoff_new((rt_backoff **)out);
    case KIND_rt_reachability:
      return rt_reachability_new(loop, RT_REACHABILITY_MANUAL, (rt_reachability **)out);
    case KIND_rt_websocket:
      return rt_websocket_new(loop, draw_url(c, OF_WEBSOCKET), (rt_websocket **)out);
    case KIND_rt_eventsource:
      return rt_eventsource_new(loop, draw_url(c, OF_HTTP), (rt_eventsource **)out);
    case KIND_rt_eventstream_parser:
      return rt_eventstream_parser_new((rt_eventstream_parser **)out);
    case KIND_rt_longpoll: return rt_longpoll_new(loop, draw_url(c, OF_HTTP), (rt_longpoll **)out);
    case KIND_rt_rest: return rt_rest_new(loop, draw_url(c, OF_REST), (rt_rest **)out);
    case KIND_rt_rest_request:
      return rt_rest_request_new(handles[KIND_rt_rest], draw_text(c, METHODS),
                                 draw_text(c, TARGETS), (rt_rest_request **)out);
    case KIND_rt_spreadbot:
      return rt_spreadbot_new(loop, draw_url(c, OF_HTTP), (rt_spreadbot **)out);
    case KIND_rt_ddp: return rt_ddp_new(loop, draw_url(c, OF_DDP), (rt_ddp **)out);
    case KIND_rt_ddp_feed:
      return rt_ddp_feed_new(handles[KIND_rt_ddp], "players", NULL, NULL, 7,
                             (rt_ddp_feed **)out);
    case KIND_rt_ddp_models:
      return rt_ddp_models_new(handles[KIND_rt_ddp], SCHEMAS[0], (rt_ddp_models **)out);
    case KIND_rt_pusher: return make_pusher(loop, (rt_pusher **)out);
    case KIND_rt_pusher_channel:
      return rt_pusher_subscribe(handles[KIND_rt_pusher], draw_text(c, CHANNELS),
                                 (rt_pusher_channel **)out);
    /* Only callbacks receive these, or calls return them. */
    case KIND_rt_call:
    case KIND_rt_pusher_authorization: *out = NULL; return RT_OK;
    default: CONTROL(false, "no rule makes a handle of kind %d", kind);
  }
  return RT_ERROR_INVALID_ARGUMENT;
}

/* Makes the calls that start the object, on the handles in `c->fixed`. */
static void start(struct caller *c, int kind) {
  if (kind == KIND_rt_websocket) call_rt_websocket_start(c);
  if (kind == KIND_rt_eventsource) call_rt_eventsource_start(c);
  if (kind == KIND_rt_longpoll) call_rt_longpoll_start(c);
  if (kind == KIND_rt_spreadbot) call_rt_spreadbot_start(c);
  if (kind == KIND_rt_rest_request) call_rt_rest_request_send(c);
  if (kind == KIND_rt_ddp) {
    call_rt_ddp_set_stub(c);
    call_rt_ddp_declare(c);
    call_rt_ddp_start(c);
    call_rt_ddp_subscribe(c);
    call_rt_ddp_observe(c);
    call_rt_ddp_call(c);
    call_rt_ddp_insert(c);
  }
  if (kind == KIND_rt_pusher) {
    for (size_t i = 0; i < 4; i++) call_rt_pusher_subscribe(c);
    call_rt_pusher_sign_in(c);
    call_rt_pusher_start(c);
  }
}

#endif
