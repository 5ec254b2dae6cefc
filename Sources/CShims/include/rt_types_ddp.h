// More plain structs of the C ABI, for Meteor clients. See rt_types.h.
#ifndef RT_TYPES_DDP_H
#define RT_TYPES_DDP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// A change of a Meteor client's status. Since 0.1.
typedef struct rt_ddp_status_change {
  /// The size of the struct in the library that filled it.
  size_t struct_bytes;
  /// The status now, an `rt_ddp_status`.
  int32_t new_status;
  /// The number of attempts in a row that have failed.
  uint32_t retry_count;
  /// The time until the next attempt, in the status waiting; otherwise -1.
  int64_t retry_in_ms;
  /// Why the client failed; "" otherwise.
  const char *reason;
  /// Its length in bytes.
  size_t reason_length;
  /// What ended the connection, an `rt_status`; RT_OK if it ended as requested.
  int32_t status;
  /// Zero.
  int32_t reserved;
  /// A sentence about it; "" for none.
  const char *message;
} rt_ddp_status_change;

/// A live query that has ended by itself. Since 0.1.
typedef struct rt_ddp_query_end {
  /// The size of the struct in the library that filled it.
  size_t struct_bytes;
  /// The query's number.
  uint64_t query;
  /// The collection.
  const char *collection;
  /// Its length in bytes.
  size_t collection_length;
  /// Why it ended, an `rt_status`: RT_ERROR_INVALID_ARGUMENT.
  int32_t status;
  /// Zero.
  int32_t reserved;
  /// A sentence about it.
  const char *message;
} rt_ddp_query_end;

/// Why a call or a subscription failed. Since 0.1.
typedef struct rt_ddp_error {
  /// The size of the struct in the library that filled it.
  size_t struct_bytes;
  /// Where it comes from, an `rt_ddp_error_kind`.
  int32_t kind;
  /// Whether the code is a number, as old servers send it.
  bool code_is_number;
  /// What programs compare, such as `not-found` or `403`.
  const char *code;
  /// Its length in bytes.
  size_t code_length;
  /// A sentence for people, whose wording depends on the server's version; "" for none.
  const char *reason;
  /// Its length in bytes.
  size_t reason_length;
  /// Further data as EJSON text; "" for none.
  const char *details;
  /// Its length in bytes.
  size_t details_length;
  /// The server's whole error as JSON text; "" for other errors.
  const char *source;
  /// Its length in bytes.
  size_t source_length;
} rt_ddp_error;

/// How a call ended, or a stage of it. Since 0.1.
typedef struct rt_ddp_outcome {
  /// The size of the struct in the library that filled it.
  size_t struct_bytes;
  /// What is reported, an `rt_ddp_stage`.
  int32_t stage;
  /// Which write of `rt_ddp_write` it is about, from 0; 0 for other calls.
  int32_t index;
  /// The value as EJSON text with a NUL after it; `null` if the call has failed.
  const char *value;
  /// Its length in bytes.
  size_t value_length;
  /// Why the call has failed; NULL if it has not.
  const rt_ddp_error *error;
} rt_ddp_outcome;

/// What happened to a subscription. Since 0.1.
typedef struct rt_ddp_subscription_event {
  /// The size of the struct in the library that filled it.
  size_t struct_bytes;
  /// What happened, an `rt_ddp_subscription`.
  int32_t event;
  /// Zero.
  int32_t reserved;
  /// Why the server has ended it; NULL if it gave no reason.
  const rt_ddp_error *error;
} rt_ddp_subscription_event;

/// A document. Since 0.1.
typedef struct rt_ddp_document {
  /// The size of the struct in the library that filled it.
  size_t struct_bytes;
  /// The id as EJSON text with a NUL after it: `"abc"` in quotes, or an ObjectID.
  const char *id;
  /// Its length in bytes.
  size_t id_length;
  /// The document as EJSON text with a NUL after it; an object with the member `_id`, unless the
  /// query leaves it out.
  const char *document;
  /// Its length in bytes.
  size_t document_length;
} rt_ddp_document;

/// A change of a document, or of a place in the result of a live query. Since 0.1.
typedef struct rt_ddp_change {
  /// The size of the struct in the library that filled it.
  size_t struct_bytes;
  /// The number that `rt_ddp_observe` returned; 0 for a change of the local documents.
  uint64_t query;
  /// What happened, an `rt_ddp_change_kind`.
  int32_t kind;
  /// Whether it belongs to the result that a live query began with.
  bool initial;
  /// Whether it is the last of those that were made together.
  bool last;
  /// The name of the collection.
  const char *collection;
  /// Its length in bytes.
  size_t collection_length;
  /// The document's id as EJSON text with a NUL after it.
  const char *id;
  /// Its length in bytes.
  size_t id_length;
  /// The fields that are new or have another value, as EJSON text with a NUL after it; `{}` if
  /// there are none. Without `_id`.
  const char *fields;
  /// Its length in bytes.
  size_t fields_length;
  /// The names of the fields that are gone, as a JSON array with a NUL after it.
  const char *cleared;
  /// Its length in bytes.
  size_t cleared_length;
  /// For a live query: the id of the document that follows an added or moved one, as EJSON text; ""
  /// at the end.
  const char *before;
  /// Its length in bytes.
  size_t before_length;
} rt_ddp_change;

/// A document's positions in the result of a live query. Since 0.1.
typedef struct rt_ddp_positions {
  /// In the result before.
  uint64_t old_index;
  /// In the result now.
  uint64_t new_index;
} rt_ddp_positions;

/// How the result of a live query changed, by positions. Removing the entries of `deleted` and the
/// sources of `moved`, from the end on, and then inserting those of `inserted` and the targets of
/// `moved`, from the start on, turns the old result into the new one. Since 0.1.
typedef struct rt_ddp_index_changes {
  /// The size of the struct in the library that filled it.
  size_t struct_bytes;
  /// The number that `rt_ddp_observe_indexes` returned.
  uint64_t query;
  /// Whether it is the result that the query began with.
  bool initial;
  /// Positions in the old result, ascending.
  const uint64_t *deleted;
  /// How many there are.
  size_t deleted_count;
  /// Positions in the new result, ascending.
  const uint64_t *inserted;
  /// How many there are.
  size_t inserted_count;
  /// Documents that moved, by new position.
  const rt_ddp_positions *moved;
  /// How many there are.
  size_t moved_count;
  /// Documents whose fields changed, moved or not, by new position.
  const rt_ddp_positions *updated;
  /// How many there are.
  size_t updated_count;
  /// The ids of the new result as an EJSON array with a NUL after it.
  const char *ids;
  /// Its length in bytes.
  size_t ids_length;
} rt_ddp_index_changes;

/// What happened to one document of a live query's result: an element of an `rt_ddp_batch`. Each
/// text has a NUL after it. This struct never grows. Since 0.1.
typedef struct rt_ddp_feed_change {
  /// The document's id as EJSON text.
  const char *id;
  /// Its length in bytes.
  size_t id_length;
  /// The document's position in the result before; -1 if it is new.
  int64_t old_index;
  /// Its position in the result now; -1 if it is gone.
  int64_t new_index;
  /// Whether it was and is in the result, and its place among the other documents has changed.
  bool moved;
  /// Whether it was and is in the result, and its fields have changed.
  bool changed;
  /// The document now, as EJSON text, if it is new or has changed and the feed has
  /// `RT_DDP_FEED_DOCUMENTS`; otherwise "". With the member `_id`, unless the query leaves it out.
  const char *document;
  /// Its length in bytes.
  size_t document_length;
  /// The document before, in the same form, if it has changed or is gone and the feed has
  /// `RT_DDP_FEED_OLD_DOCUMENTS`; otherwise "".
  const char *old_document;
  /// Its length in bytes.
  size_t old_document_length;
  /// The fields that are new or have another value, as EJSON text without `_id`, if the document is
  /// new or has changed and the feed has `RT_DDP_FEED_FIELDS`; otherwise "".
  const char *fields;
  /// Its length in bytes.
  size_t fields_length;
  /// The names of the fields that are gone, as a JSON array, under the same conditions; otherwise
  /// "".
  const char *cleared;
  /// Its length in bytes.
  size_t cleared_length;
  /// The id of the document that follows, as EJSON text, if the document is new or has moved; "" at
  /// the end. Applied one after the other, the changes always find that document in the list.
  const char *before;
  /// Its length in bytes.
  size_t before_length;
} rt_ddp_feed_change;

/// The changes of a live query's result that were taken together. Since 0.1.
typedef struct rt_ddp_batch {
  /// The size of the struct in the library that filled it.
  size_t struct_bytes;
  /// Whether it is the first one: its changes are the present result, all of it new.
  bool initial;
  /// How many documents the result has now.
  size_t document_count;
  /// The changes, each of another document: those that are gone by their old positions, then the
  /// others by their new ones. Remove those that are gone or moved from the end of the old result
  /// on, then insert those that are new or moved in their order, then replace those that changed.
  const rt_ddp_feed_change *changes;
  /// Their number; 0 if the first result is empty.
  size_t change_count;
} rt_ddp_batch;

/// A change of the user who is logged in. Since 0.1.
typedef struct rt_ddp_account_event {
  /// The size of the struct in the library that filled it.
  size_t struct_bytes;
  /// What happened, an `rt_ddp_account`.
  int32_t event;
  /// For `RT_DDP_ACCOUNT_LOGGING_IN`: whether a login is in progress now; otherwise false. See
  /// `rt_ddp_is_logging_in`.
  bool logging_in;
  /// For `RT_DDP_ACCOUNT_USER`: the user who is logged in now; "" for nobody. For
  /// `RT_DDP_ACCOUNT_STORE`: the token's user. Otherwise "".
  const char *user_id;
  /// Its length in bytes.
  size_t user_id_length;
  /// For `RT_DDP_ACCOUNT_STORE`: what to keep, one line of text; otherwise "".
  const char *token;
  /// Its length in bytes.
  size_t token_length;
  /// For `RT_DDP_ACCOUNT_RESUME_FAILED`: the server's error; otherwise NULL.
  const rt_ddp_error *error;
} rt_ddp_account_event;

/// How a method is called. Fill it with zeros, then set `struct_bytes` and what you need. Since
/// 0.1.
typedef struct rt_ddp_call_options {
  /// The size of the struct in the program that filled it.
  size_t struct_bytes;
  /// The time limit for the whole call; 0 without limit.
  int64_t timeout_ms;
  /// Which stages are reported: the sum of 1 << stage. 0 means `RT_DDP_STAGE_COMPLETED`.
  uint32_t stages;
  /// Earlier calls are finished before it is sent, and it is finished before later ones are.
  bool wait;
  /// If the connection is lost before its result, the call fails: it is not sent again, because it
  /// could run twice on the server.
  bool no_retry;
  /// If its stub fails, the call fails, and nothing is sent.
  bool throw_stub_errors;
} rt_ddp_call_options;

#endif
