#include "json.h"

#include <string.h>

struct reader {
  const char *at;
  const char *end;
};

static void skip_blanks(struct reader *from) {
  while (from->at < from->end &&
         (*from->at == ' ' || *from->at == '\n' || *from->at == '\r' || *from->at == '\t')) {
    from->at++;
  }
}

static bool take(struct reader *from, char byte) {
  skip_blanks(from);
  if (from->at == from->end || *from->at != byte) return false;
  from->at++;
  return true;
}

/// \returns the length without quotation marks; -1 if there is no string.
static long take_string(struct reader *from, const char **start) {
  if (!take(from, '"')) return -1;
  *start = from->at;
  for (; from->at < from->end; from->at++) {
    if (*from->at == '"') return from->at++ - *start;
    if (*from->at == '\\') from->at++;
    if ((unsigned char)*from->at < 0x20) return -1;
  }
  return -1;
}

static bool take_number(struct reader *from, uint64_t *value) {
  const char *start = from->at;
  *value = 0;
  for (; from->at < from->end; from->at++) {
    char byte = *from->at;
    if (byte >= '0' && byte <= '9') {
      *value = *value * 10 + (uint64_t)(byte - '0');
    } else if (byte != '.' && byte != '-' && byte != '+' && byte != 'e' && byte != 'E') {
      break;
    }
  }
  return from->at > start;
}

uint64_t json_number(const char *text, size_t length, const char *name) {
  struct reader from = {text, text + length};
  size_t name_length = strlen(name);
  uint64_t value, found = 0;
  if (!take(&from, '{')) return 0;
  do {
    const char *member, *content;
    long size = take_string(&from, &member);
    if (size < 0 || !take(&from, ':')) return 0;
    skip_blanks(&from);
    if (from.at < from.end && *from.at == '"') {
      if (take_string(&from, &content) < 0) return 0;
    } else if (!take_number(&from, &value)) {
      return 0;
    } else if ((size_t)size == name_length && memcmp(member, name, name_length) == 0) {
      found = value;
    }
  } while (take(&from, ','));
  return take(&from, '}') ? found : 0;
}
