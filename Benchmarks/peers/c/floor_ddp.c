// The floor of Meteor's documents: a header parser and librealtime's own JSON reader, which also
// checks that the text is UTF-8. It keeps no documents and has no live queries.
#include <stdlib.h>
#include <string.h>

#include "../../server/wire.h"
#include "floor_connect.h"
#include "meter.h"

enum { READ_BYTES = 256 << 10, OTHER = 0, DOCUMENT = 1, READY = 2, BROKEN = -1 };

/// Reads a message in place, and adds up the length of the title and the numbers of its document.
/// \returns what it is.
long floor_read_ddp(
    const uint8_t *message, size_t length, uint64_t *titles, uint64_t *numbers);

struct stream {
  struct link link;
  uint8_t *buffer;
  size_t have;
  size_t at;
};

static void send_text(struct link *link, const char *text) {
  uint8_t frame[256];
  size_t length = strlen(text);
  size_t header = ws_put_header(frame, WS_FIN | WS_TEXT, length, WS_MASKED);
  uint32_t key = link_mask_key();
  memcpy(frame + header, &key, 4);
  ws_mask(frame + header + 4, (const uint8_t *)text, length, key);
  link_write(link, frame, header + 4 + length);
}

/// Waits for the next message.
static const uint8_t *next_message(struct stream *from, size_t *size) {
  for (;;) {
    uint64_t length = 0;
    const uint8_t *start = from->buffer + from->at;
    size_t rest = from->have - from->at, header = ws_get_header(start, rest, &length);
    if (header && rest - header >= length) {
      from->at += header + (size_t)length;
      *size = (size_t)length;
      return start + header;
    }
    memmove(from->buffer, start, rest);
    from->at = 0;
    from->have = rest;
    ssize_t got = link_read(&from->link, from->buffer + rest, READ_BYTES - rest);
    if (got <= 0) meter_fail("the flood ended early");
    from->have += (size_t)got;
  }
}

/// Reads a publication. \returns how many documents or changes it had.
static uint64_t read_publication(struct stream *from, const char *subscription) {
  uint64_t count = 0;
  send_text(&from->link, subscription);
  for (;;) {
    size_t length;
    const uint8_t *message = next_message(from, &length);
    long kind = floor_read_ddp(message, length, &meter.bytes, &meter.checksum);
    if (kind == BROKEN) meter_fail("a message is not JSON");
    if (kind == READY) return count;
    count += kind == DOCUMENT;
  }
}

int main(int argc, char **argv) {
  task_read(argc, argv);
  bool is_load = task_is("ddp-load");
  if (!is_load && !task_is("ddp-changes")) return NOT_SUPPORTED;
  struct stream stream = {.buffer = malloc(READ_BYTES)};
  stream.have = link_open(&stream.link, 0, "", stream.buffer, READ_BYTES);
  send_text(&stream.link, "{\"msg\":\"connect\",\"version\":\"1\",\"support\":[\"1\"]}");
  if (is_load) meter_start();
  uint64_t documents = read_publication(
      &stream, "{\"msg\":\"sub\",\"id\":\"1\",\"name\":\"items\",\"params\":[]}");
  meter.messages = documents;
  if (!is_load) {
    meter_start();
    meter.messages = read_publication(
        &stream, "{\"msg\":\"sub\",\"id\":\"2\",\"name\":\"changes\",\"params\":[]}");
  }
  meter_stop();
  meter_report();
}
