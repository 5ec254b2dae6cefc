// The floor of Pusher's events: a header parser and librealtime's own JSON reader, which also
// checks that the text is UTF-8. It knows no channels and no handlers.
#include <stdlib.h>
#include <string.h>

#include "../../server/wire.h"
#include "floor_connect.h"
#include "meter.h"

enum { READ_BYTES = 256 << 10, MAX_FRAME = 1024 };

/// Reads a message in place. `quantity`, if not NULL, receives this member of the data's own JSON.
/// \returns the length of the data; -1 if the message has none.
long floor_read(const uint8_t *message, size_t length, uint64_t *quantity);

static void subscribe(struct link *link) {
  static const char text[] = "{\"event\":\"pusher:subscribe\",\"data\":{\"channel\":\"chat\"}}";
  uint8_t frame[128];
  size_t length = sizeof text - 1;
  size_t header = ws_put_header(frame, WS_FIN | WS_TEXT, length, WS_MASKED);
  uint32_t key = link_mask_key();
  memcpy(frame + header, &key, 4);
  ws_mask(frame + header + 4, (const uint8_t *)text, length, key);
  link_write(link, frame, header + 4 + length);
}

int main(int argc, char **argv) {
  task_read(argc, argv);
  bool reads_json = task_is("pusher-json");
  if (!task_is("pusher") && !reads_json) return NOT_SUPPORTED;
  uint8_t *buffer = malloc(READ_BYTES);
  struct link link;
  size_t have = link_open(&link, 0, "", buffer, READ_BYTES), ignored = 0;
  // The server's greeting may already be there.
  while (have < 2 || have < 2 + (buffer[1] & 0x7fu)) {
    have += (size_t)link_read(&link, buffer + have, READ_BYTES - have);
  }
  have = 0;
  meter_start();
  subscribe(&link);
  for (bool is_last = false; !is_last;) {
    ssize_t got = link_read(&link, buffer + have, READ_BYTES - have);
    if (got <= 0) meter_fail("the flood ended early");
    have += (size_t)got;
    size_t at = 0;
    while (!is_last) {
      uint64_t length = 0, quantity = 0;
      size_t header = ws_get_header(buffer + at, have - at, &length);
      if (!header || have - at - header < length) break;
      bool is_event = ignored > 0;
      long size = floor_read(
          buffer + at + header, (size_t)length, is_event && reads_json ? &quantity : NULL);
      if (size < 0) meter_fail("a message is not an event");
      at += header + (size_t)length;
      // The first is the answer to the subscription.
      if (ignored++ == 0) continue;
      meter.bytes += (size_t)size;
      meter.checksum += quantity;
      is_last = ++meter.messages == task.count;
    }
    memmove(buffer, buffer + at, have - at);
    have -= at;
  }
  meter_stop();
  meter_report();
}
