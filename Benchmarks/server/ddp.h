// A Meteor server (DDP), as much as clients need for many documents and many changes.
#pragma once

#include "connection.h"

/// The messages of two publications, `items` and `changes`. They are framed before a client
/// connects.
struct ddp_data {
  char name[64];
  uint8_t *bytes;
  /// Where the documents end and the changes begin.
  size_t documents_end;
  size_t changes_end;
  /// The length of all titles.
  uint64_t titles;
  /// The sum of all numbers in the messages, and of those that the documents have in the end.
  uint64_t sent;
  uint64_t stored;
  struct ddp_data *next;
};

/// The data of `ddp-load-DOCUMENTS`; of `ddp-stay-DOCUMENTS-CHANGES`, which changes a field that
/// documents are not sorted by; or of `ddp-move-DOCUMENTS-CHANGES`, which changes one that they are
/// sorted by. NULL for another name.
const struct ddp_data *ddp_data_named(const char *name);
/// Answers a message of the client.
bool ddp_message(struct connection *c);
/// Continues to send a publication, and then that it is ready.
bool ddp_flood(struct connection *c);
