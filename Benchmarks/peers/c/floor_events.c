// The floor of event streams: libcurl's write callback and memchr. It copies only an incomplete
// line at the end of a chunk, checks nothing, and knows two fields.
#define _GNU_SOURCE
#include <curl/curl.h>
#include <string.h>

#include "meter.h"

enum { MAX_LINE = 64 << 10 };

static char rest[MAX_LINE];
static size_t rest_length;
static const char *data;
static size_t data_length;
static char kept[MAX_LINE];

/// \returns true for the last event.
static bool take_line(const char *line, size_t length) {
  if (length == 0) {
    bool is_last = data && meter_message(data, data_length);
    data = NULL;
    return is_last;
  }
  if (length > 6 && memcmp(line, "data: ", 6) == 0) {
    data = line + 6;
    data_length = length - 6;
  }
  return false;
}

static size_t take(char *chunk, size_t size, size_t count, void *user) {
  (void)size, (void)user;
  const char *at = chunk, *end = chunk + count;
  while (at < end) {
    const char *line_end = memchr(at, '\n', (size_t)(end - at));
    size_t length = (size_t)((line_end ? line_end : end) - at);
    if (rest_length || !line_end) {
      if (length > MAX_LINE - rest_length) meter_fail("a line is too long");
      memcpy(rest + rest_length, at, length);
      rest_length += length;
    }
    if (!line_end) break;
    bool is_last = rest_length ? take_line(rest, rest_length) : take_line(at, length);
    rest_length = 0;
    if (is_last) {
      meter_stop();
      return 0;
    }
    at = line_end + 1;
  }
  // The event continues in the next chunk: its data must not be lost with this one.
  if (data && data != kept) {
    memcpy(kept, data, data_length);
    data = kept;
  }
  return count;
}

int main(int argc, char **argv) {
  task_read(argc, argv);
  if (!task_is("events") && !task_is("events-tick")) return NOT_SUPPORTED;
  curl_global_init(CURL_GLOBAL_DEFAULT);
  CURL *easy = curl_easy_init();
  struct curl_slist *headers = curl_slist_append(NULL, "Accept: text/event-stream");
  curl_easy_setopt(easy, CURLOPT_URL, task.url);
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take);
  meter_start();
  CURLcode result = curl_easy_perform(easy);
  if (result != CURLE_WRITE_ERROR || meter.messages != task.count) {
    meter_fail(curl_easy_strerror(result));
  }
  meter_report();
}
