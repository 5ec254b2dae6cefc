/* Runs the cases that null_tests.py has printed. */

static void refuse_connection(rt_rest_response *response, void *user) {
  objects *o = user;
  o->rt_rest_response = rt_rest_response_retain(response);
}

/* New objects for one case, which may change or start them. */
static objects *create(objects *o, rt_loop *loop, rt_rest_response *response, rt_call *call) {
  memset(o, 0, sizeof *o);
  o->rt_loop = loop;
  o->rt_rest_response = response;
  o->rt_call = call;
  CHECK_OK(rt_network_new(&o->rt_network));
  CHECK_OK(rt_backoff_new(&o->rt_backoff));
  CHECK_OK(rt_reachability_new(loop, RT_REACHABILITY_MANUAL, &o->rt_reachability));
  CHECK_OK(rt_websocket_new(loop, "ws://127.0.0.1:1/", &o->rt_websocket));
  CHECK_OK(rt_eventsource_new(loop, "http://127.0.0.1:1/", &o->rt_eventsource));
  CHECK_OK(rt_eventstream_parser_new(&o->rt_eventstream_parser));
  CHECK_OK(rt_longpoll_new(loop, "http://127.0.0.1:1/", &o->rt_longpoll));
  CHECK_OK(rt_rest_new(loop, "http://127.0.0.1:1/", &o->rt_rest));
  CHECK_OK(rt_rest_request_new(o->rt_rest, "POST", "/", &o->rt_rest_request));
  CHECK_OK(rt_spreadbot_new(loop, "http://127.0.0.1:1/", &o->rt_spreadbot));
  CHECK_OK(rt_pusher_new(loop, "demo", &o->rt_pusher));
  CHECK_OK(rt_ddp_new(loop, "ws://127.0.0.1:1/websocket", &o->rt_ddp));
  return o;
}

static void destroy(objects *o) {
  rt_ddp_models_free(o->rt_ddp_models);
  rt_ddp_feed_free(o->rt_ddp_feed);
  rt_ddp_free(o->rt_ddp);
  rt_pusher_channel_free(o->rt_pusher_channel);
  rt_pusher_free(o->rt_pusher);
  rt_spreadbot_free(o->rt_spreadbot);
  rt_rest_request_free(o->rt_rest_request);
  rt_rest_free(o->rt_rest);
  rt_longpoll_free(o->rt_longpoll);
  rt_eventstream_parser_free(o->rt_eventstream_parser);
  rt_eventsource_free(o->rt_eventsource);
  rt_websocket_free(o->rt_websocket);
  rt_reachability_free(o->rt_reachability);
  rt_backoff_free(o->rt_backoff);
  rt_network_free(o->rt_network);
}

static void in_stub(rt_ddp_stub *stub, const char *params, size_t length, void *user) {
  objects *o = user;
  (void)params, (void)length;
  o->rt_ddp_stub = stub;
  o->next(o);
}

static void take_authorization(const rt_pusher_auth_request *request,
                               rt_pusher_authorization *authorization, void *user) {
  objects *o = user;
  CHECK(request->count == 1 && request->socket_id_length > 0);
  o->rt_pusher_authorization = authorization;
}

/* Each case answers another authorization. */
static void with_authorizations(objects *o, rt_loop *loop, const char *server) {
  heard h;
  rt_pusher *pusher = new_pusher(&h, loop, server);
  CHECK_OK(rt_pusher_on_authorize(pusher, take_authorization, o, NULL));
  CHECK_OK(rt_pusher_start(pusher));
  for (size_t i = 0; i < sizeof cases_rt_pusher_authorization / sizeof(void *); i++) {
    o->rt_pusher_authorization = NULL;
    CHECK_OK(rt_pusher_subscribe(pusher, "private-a", NULL));
    TURN_UNTIL(loop, o->rt_pusher_authorization);
    cases_rt_pusher_authorization[i](o);
    rt_pusher_authorization_free(o->rt_pusher_authorization);
    CHECK_OK(rt_pusher_unsubscribe(pusher, "private-a"));
  }
  rt_pusher_free(pusher);
}

int main(int argc, char **argv) {
  objects o;
  rt_call *call = NULL;
  rt_rest_response *response;
  rt_loop *loop = new_loop();
  CHECK(argc == 2);
  create(&o, loop, NULL, NULL);
  CHECK_OK(rt_rest_request_send(o.rt_rest_request, refuse_connection, &o, NULL, NULL, &call));
  TURN_UNTIL(loop, o.rt_rest_response);
  response = o.rt_rest_response;
  destroy(&o);
  for (size_t i = 0; i < sizeof cases_any / sizeof(void *); i++) {
    create(&o, loop, response, call);
    cases_any[i](&o);
    destroy(&o);
  }
  for (size_t i = 0; i < sizeof cases_rt_ddp_stub / sizeof(void *); i++) {
    create(&o, loop, response, call);
    o.next = cases_rt_ddp_stub[i];
    CHECK_OK(rt_ddp_declare(o.rt_ddp, "players", 0));
    CHECK_OK(rt_ddp_set_stub(o.rt_ddp, "do", in_stub, &o, NULL));
    CHECK_OK(rt_ddp_call(o.rt_ddp, "do", NULL, NULL, NULL, NULL, NULL, NULL));
    CHECK(o.rt_ddp_stub);
    destroy(&o);
  }
  create(&o, loop, response, call);
  with_authorizations(&o, loop, argv[1]);
  destroy(&o);
  rt_call_free(call);
  rt_rest_response_free(response);
  rt_loop_free(loop);
  return wrong;
}
