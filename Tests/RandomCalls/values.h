/* The values that arguments are drawn from: valid ones first, for calls that must succeed. */
#ifndef VALUES_H
#define VALUES_H

#define COUNT(list) (sizeof(list) / sizeof *(list))
#define ONE_OF(c, list) ((list)[(c)->behaves ? 0 : below((c), COUNT(list))])
#define draw_text(c, list) draw_from((c), (list), COUNT(list))

enum { MOST_URLS = 48, URL_BYTES = 160, BIG_BYTES = 100000 };

/* Set from the program's arguments. */
static const char *URLS[MOST_URLS];
static size_t url_count;
enum { OF_WEBSOCKET, OF_HTTP, OF_REST, OF_DDP, OF_OTHERS, URL_GROUPS };
/* Where the URLs of each server start. */
static size_t url_starts[URL_GROUPS + 1];

static char big_text[BIG_BYTES + 1];
static const char *const TEXTS[] = {
    "good", "", "a b", "caf\xc3\xa9", "\xff\xfe", "line\nline", "carriage\r", "x:y", "42", big_text,
};
static const char *const NAMES[] = {"X-Name", "Host", "Authorization", "a,b", "", "\xc3\xa9",
                                    "Expect", "Content-Length", big_text};
static const char *const METHODS[] = {"GET", "POST", "HEAD", "PUT", "DELETE", "get", "", "A B",
                                      big_text};
static const char *const REASONS[] = {"done", "", "\xff", big_text};
static const char *const ADDRESSES[] = {"127.0.0.1", "::1", "127.0.0.2", "", "*", "a b", "\xff"};
static const char *const CHANNELS[] = {"news", "private-a", "presence-a", "private-encrypted-a",
                                       "cache-a", "presence-b", "", "a b", "\xff", big_text};
static uint32_t pusher_port;
/* EJSON for Meteor clients: lists of parameters, objects such as modifiers, and ids. */
static const char *const EJSONS[] = {
    "[]", "[[\"all\"],[\"good\",1]]", "[1,null,{\"$binary\":\"AA==\"}]", "{}", "null", "{", "",
    "\xff", big_text,
};
static const char *const WRITES[] = {
    "[{\"insert\":\"good\",\"document\":{}},{\"remove\":\"good\",\"id\":\"a\"}]",
    "[{\"update\":\"good\",\"id\":\"a\",\"modifier\":{\"$set\":{\"b\":1}}}]",
    "[]", "[{}]", "[{\"insert\":5,\"document\":[]}]", "{}", "{", "", "\xff", big_text,
};
static const char *const SCHEMAS[] = {
    "[{\"name\":\"Player\",\"relationships\":[{\"name\":\"team\",\"to\":\"Team\",\"inverse\":"
    "\"players\"}]},{\"name\":\"Team\",\"relationships\":[{\"name\":\"players\",\"to\":\"Player\","
    "\"many\":true,\"inverse\":\"team\",\"storage\":false}]}]",
    "[{\"name\":\"Player\"}]", "[]", "[{}]", "{}", "{", "", "\xff", big_text,
};
static const char *const MODELS[] = {"Player", "Team", "Nobody", "", "\xff", big_text};
static const char *const MODEL_CHANGES[] = {
    "[{\"delete\":\"Team\",\"id\":\"t\"}]",
    "[{\"insert\":\"Team\",\"id\":\"t\",\"object\":{\"playerIds\":[\"a\"]}}]",
    "[{\"insert\":\"Player\",\"id\":\"a\",\"object\":{\"teamId\":\"t\"}}]",
    "[{\"update\":\"Player\",\"id\":\"a\",\"to\":{\"teamId\":null,\"b\":1}}]",
    "[]", "[{}]", "{", "", "\xff", big_text,
};
static const char *const OBJECTS[] = {
    "{}", "{\"_id\":\"a\",\"b\":1}", "{\"$set\":{\"b\":{\"$date\":5}}}", "{\"b\":{\"$gt\":0}}",
    "{\"sort\":{\"b\":-1},\"limit\":2}", "{\"$where\":\"1\"}", "{\"b\":{\"$regex\":\"(a*)*$\"}}",
    "\"a\"", "[]", "{", "", "\xff", big_text,
};
static const char *const DOCUMENT_IDS[] = {
    "\"a\"", "{\"$type\":\"oid\",\"$value\":\"0123456789abcdef01234567\"}", "5", "null", "[]", "{",
    "", "\xff", big_text,
};
static const char *const EVENTS[] = {"odd", "message", "", "error", "a\nb", "\xff"};
/* All in the program's own folder. */
static const char *const PATHS[] = {"file", "other", "", "none/such", "link", "\xff"};
static const char *const TARGETS[] = {
    "/echo",     "/status/503", "/status/204",  "/flaky/a/2", "/redirect/3", "/loop",
    "/bytes/70000", "/chunks/b/1", "/short/c/1", "/token",    "/reset/d/1",  "/slow/20",
    "/bad",      "",            "relative",     "//",         "/\xff",       "/a b",
    "/events/3", "/poll/2",     big_text,
};

static const char *draw_from(struct caller *c, const char *const *list, size_t count) {
  if (list == URLS) count = url_count;
  if (seldom(c, 40)) return NULL;
  if (c->behaves || (c->is_careful && list != URLS && list != TARGETS)) return list[0];
  return list[below(c, count)];
}

static bool draw_null(struct caller *c) { return c->gives_null || seldom(c, 30); }

static bool draw_bool(struct caller *c) { return c->behaves || below(c, 2); }

static int32_t draw_enum(struct caller *c, int32_t least, int32_t most) {
  if (c->behaves) return least < 0 ? 0 : least;
  return least - 1 + (int32_t)below(c, (size_t)(most - least + 3));
}

static int32_t draw_i32(struct caller *c) {
  static const int32_t values[] = {9, 0, 1, 2, 5, 8, 15, 20, 80, 443, 503, -1, 1 << 20, INT32_MAX,
                                   INT32_MIN};
  return ONE_OF(c, values);
}

static uint32_t draw_u32(struct caller *c) {
  static const uint32_t values[] = {1, 0, 2, 3, 10, 1000, 1 << 20, UINT32_MAX};
  return ONE_OF(c, values);
}

static int64_t draw_i64(struct caller *c) {
  static const int64_t values[] = {20, 0, 1, 2, 5, 10, 50, 200, 5000, 3153600000000, 3153600000001,
                                   -1, INT64_MAX, INT64_MIN};
  return ONE_OF(c, values);
}

static uint64_t draw_id(struct caller *c) {
  if (seldom(c, 8)) return draw(c);
  return atomic_load_explicit(&ids[below(c, IDS)], memory_order_relaxed);
}

static uint16_t draw_u16(struct caller *c) {
  static const uint16_t values[] = {1000, 0, 1001, 1002, 1005, 1006, 1011, 2999, 3000, 4999, 65535};
  return ONE_OF(c, values);
}

static size_t draw_size(struct caller *c) {
  static const size_t values[] = {4096, 0, 1, 16, 1024, 65536, 1 << 24, SIZE_MAX / 2, SIZE_MAX};
  return ONE_OF(c, values);
}

static double draw_double(struct caller *c) {
  const double values[] = {2, 1, 1.5, 0, -1, 1e300, HUGE_VAL, nan("")};
  return ONE_OF(c, values);
}

/* Short: a turn that waits long tests nothing. */
static int32_t draw_wait(struct caller *c) {
  static const int32_t values[] = {0, 0, 0, 0, 1, 2, 5, -2, INT32_MIN};
  return ONE_OF(c, values);
}

struct bytes {
  const void *data;
  size_t length;
};

/* The library must refuse a length that is too large without reading the memory. */
static struct bytes draw_bytes(struct caller *c) {
  static const size_t lengths[] = {5, 0, 1, 100, 126, 1021, 5000, 70000, BIG_BYTES};
  struct bytes bytes = {big_text, ONE_OF(c, lengths)};
  if (seldom(c, 30)) bytes.data = NULL;
  else if (seldom(c, 60)) bytes.length = SIZE_MAX / 8 + 1 + below(c, 1000);
  else if (seldom(c, 10)) bytes.data = "\xff\xfe\xfd\xfc\xfb", bytes.length = below(c, 6);
  return bytes;
}

static size_t draw_transports(struct caller *c, int32_t transports[4]) {
  size_t count = c->behaves ? 1 : below(c, 5);
  for (size_t i = 0; i < count; i++) transports[i] = draw_enum(c, 1, 3);
  return count;
}

static int64_t draw_body(struct caller *c, size_t capacity) {
  static const int64_t values[] = {RT_REST_BODY_END, RT_REST_BODY_WAIT, RT_REST_BODY_FAIL};
  if (c->behaves || below(c, 3) == 0) return ONE_OF(c, values);
  return (int64_t)(1 + below(c, capacity));
}

/* Makes the URLs: paths on the servers, and invalid ones. */
static void set_up_values(
    const char *websocket, const char *http, const char *rest, const char *pusher,
    const char *ddp) {
  static char texts[MOST_URLS][URL_BYTES];
  static const char *const of_websocket[] = {"/echo", "/push/500", "/close/1000",
                                             "/close/1012", "/drop", "/refuse", "/redirect/2",
                                             "/flaky/r/1", "/stall", "/headers"};
  static const char *const of_http[] = {"/events/50", "/tokens", "/poll/20", "/gone", ""};
  static const char *const of_rest[] = {"", "/echo", "/redirect/2", "/token", "/silent/x/1"};
  static const char *const of_ddp[] = {"", "/none"};
  static const char *const others[] = {
      "ws://127.0.0.1:1/", "http://127.0.0.1:1/", "http://user:secret@127.0.0.1:1/", "",
      "nonsense", "ws://", "http://[", "ftp://127.0.0.1/", "http://127.0.0.1:99999/",
      "http://127.0.0.1/a?b", "wss://127.0.0.1:1/", "\xff", big_text};
  const struct {
    const char *base;
    const char *const *paths;
    size_t count;
  } all[] = {{websocket, of_websocket, COUNT(of_websocket)},
             {http, of_http, COUNT(of_http)},
             {rest, of_rest, COUNT(of_rest)},
             {ddp, of_ddp, COUNT(of_ddp)},
             {"", others, COUNT(others)}};
  memset(big_text, 'a', BIG_BYTES);
  pusher_port = (uint32_t)atoi(strrchr(pusher, ':') + 1);
  for (size_t i = 0; i < COUNT(all); i++) {
    url_starts[i] = url_count;
    for (size_t j = 0; j < all[i].count; j++) {
      CONTROL(url_count < MOST_URLS, "too many URLs");
      URLS[url_count] = all[i].paths[j];
      if (*all[i].base) {
        snprintf(texts[url_count], URL_BYTES, "%s%s", all[i].base, all[i].paths[j]);
        URLS[url_count] = texts[url_count];
      }
      url_count++;
    }
  }
  url_starts[URL_GROUPS] = url_count;
}

/* The first URL of a server if the call must succeed. */
static const char *draw_url(struct caller *c, int group) {
  size_t first = url_starts[group];
  return URLS[c->behaves ? first : first + below(c, url_starts[group + 1] - first)];
}

#endif
