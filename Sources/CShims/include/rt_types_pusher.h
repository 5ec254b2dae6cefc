// More plain structs of the C ABI, for Pusher connections. See rt_types.h.
#ifndef RT_TYPES_PUSHER_H
#define RT_TYPES_PUSHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// An event of a Pusher connection. Its texts are never NULL. In a callback they point into the
/// received message, so no NUL follows them. Since 0.1.
typedef struct rt_pusher_event {
  /// The size of the struct in the library that filled it.
  size_t struct_bytes;
  /// The event's name, UTF-8.
  const char *event;
  /// Its length in bytes.
  size_t event_length;
  /// The channel's name; "" for an event without a channel.
  const char *channel;
  /// Its length in bytes.
  size_t channel_length;
  /// The data, UTF-8: usually JSON text; "" for none.
  const char *data;
  /// Its length in bytes.
  size_t data_length;
  /// The id of the user who sent it, which servers add to client events on presence channels; ""
  /// for none.
  const char *user_id;
  /// Its length in bytes.
  size_t user_id_length;
  /// The whole message as it was received; for events that the library makes, as a server would
  /// send them.
  const char *message;
  /// Its length in bytes.
  size_t message_length;
  /// The channel's number (`rt_pusher_channel_get_number`); 0 for an event without a channel.
  uint64_t channel_number;
  /// The form of the data, an `rt_pusher_data`.
  int32_t data_kind;
} rt_pusher_event;

/// Events that one call has taken together. They and their texts live until the batch is freed.
/// Since 0.1.
typedef struct rt_pusher_batch {
  /// The size of the struct in the library that filled it.
  size_t struct_bytes;
  /// The events, in the order received.
  const rt_pusher_event *events;
  /// How many there are, at least one.
  size_t event_count;
} rt_pusher_batch;

/// One event of a batch. Offsets are from the batch's base pointer. Since 0.1.
typedef struct rt_pusher_record {
  /// The channel's number (`rt_pusher_channel_get_number`); 0 for an event without a channel.
  uint64_t channel_number;
  /// The offset of the event's name.
  uint64_t event_offset;
  /// Its length in bytes.
  uint64_t event_length;
  /// The offset of the data.
  uint64_t data_offset;
  /// Its length in bytes.
  uint64_t data_length;
  /// The offset of the id of the user who sent it.
  uint64_t user_id_offset;
  /// Its length in bytes; 0 for none.
  uint64_t user_id_length;
  /// The offset of the whole message.
  uint64_t message_offset;
  /// Its length in bytes.
  uint64_t message_length;
  /// The form of the data, an `rt_pusher_data`.
  int32_t data_kind;
  /// Zero.
  int32_t reserved;
} rt_pusher_record;

/// A change of a Pusher connection's state. Since 0.1.
typedef struct rt_pusher_state_change {
  /// The size of the struct in the library that filled it.
  size_t struct_bytes;
  /// The state before, an `rt_state`.
  int32_t old_state;
  /// The state now, an `rt_state`.
  int32_t new_state;
  /// Why the connection was lost or ended, an `rt_status`; RT_OK if nothing failed.
  int32_t status;
  /// The close code of the server, or of the error by which it ended the connection; 0 for none.
  int32_t close_code;
  /// The reason in its close frame, or the text of that error; "" for none.
  const char *close_reason;
  /// Its length in bytes.
  size_t close_reason_length;
  /// A sentence about the failure; "" for none.
  const char *message;
  /// The time until the next attempt, in the state `RT_STATE_WAITING`; -1 if there is none, or if
  /// it waits for a network.
  int64_t retry_in_ms;
  /// The number of attempts that have failed since the connection was last established.
  uint32_t attempts;
} rt_pusher_state_change;

/// An error that the server reported by `pusher:error`. The connection continues. Since 0.1.
typedef struct rt_pusher_error {
  /// The size of the struct in the library that filled it.
  size_t struct_bytes;
  /// Pusher's error code, such as 4301 for a rejected client event; 0 without one.
  int32_t code;
  /// Whether the server sent a code.
  bool has_code;
  /// The server's text, UTF-8; "" for none.
  const char *message;
  /// Its length in bytes.
  size_t message_length;
  /// The channel that the server named, UTF-8; "" for none.
  const char *channel;
  /// Its length in bytes.
  size_t channel_length;
} rt_pusher_error;

/// The result of a subscription, or its count of subscribers. Since 0.1.
typedef struct rt_pusher_subscription {
  /// The size of the struct in the library that filled it.
  size_t struct_bytes;
  /// The channel's name.
  const char *channel;
  /// The channel's number (`rt_pusher_channel_get_number`).
  uint64_t channel_number;
  /// RT_OK, or why the subscription failed, an `rt_status`.
  int32_t status;
  /// The status of the authorization response, or the one in the server's refusal; 0 without one.
  int32_t http_status;
  /// A sentence about the failure; "" for none.
  const char *message;
  /// The headers of the authorization response: "Name: value" lines, each ended by LF. Values need
  /// not be UTF-8.
  const char *headers;
  /// Their length in bytes.
  size_t headers_length;
  /// The body of the authorization response, or the data of the server's refusal, without the
  /// signatures that they quote; "" for none.
  const uint8_t *body;
  /// Its length in bytes.
  size_t body_length;
  /// How many connections are subscribed; -1 if the server has not said.
  int64_t count;
} rt_pusher_subscription;

/// A client event that was dropped. Since 0.1.
typedef struct rt_pusher_trigger_failure {
  /// The size of the struct in the library that filled it.
  size_t struct_bytes;
  /// The channel's name.
  const char *channel;
  /// The channel's number (`rt_pusher_channel_get_number`).
  uint64_t channel_number;
  /// The event's name.
  const char *event;
  /// Why, an `rt_status`.
  int32_t status;
  /// A sentence about the failure.
  const char *message;
} rt_pusher_trigger_failure;

/// A member of a presence channel. Since 0.1.
typedef struct rt_pusher_member {
  /// The size of the struct in the library that filled it.
  size_t struct_bytes;
  /// The channel's name.
  const char *channel;
  /// The channel's number (`rt_pusher_channel_get_number`).
  uint64_t channel_number;
  /// The user's id, UTF-8.
  const char *user_id;
  /// Its length in bytes.
  size_t user_id_length;
  /// What the channel's authorization says about the user, as JSON text; "" for nothing.
  const char *user_info;
  /// Its length in bytes.
  size_t user_info_length;
} rt_pusher_member;

/// The signed-in user. Since 0.1.
typedef struct rt_pusher_user {
  /// The size of the struct in the library that filled it.
  size_t struct_bytes;
  /// The user's id, UTF-8.
  const char *user_id;
  /// Its length in bytes.
  size_t user_id_length;
  /// The user's data as JSON text, as the server confirmed it.
  const char *user_data;
  /// Its length in bytes.
  size_t user_data_length;
} rt_pusher_user;

/// A text of a list. This struct never grows. Since 0.1.
typedef struct rt_text {
  /// The text, UTF-8, with a NUL after it.
  const char *text;
  /// Its length in bytes.
  size_t text_length;
} rt_text;

/// Users on the watchlist of the signed-in user, all of whom went online, or all offline. Since
/// 0.1.
typedef struct rt_pusher_watchlist {
  /// The size of the struct in the library that filled it.
  size_t struct_bytes;
  /// Whether they are online now.
  bool online;
  /// Their ids.
  const rt_text *user_ids;
  /// How many there are.
  size_t user_id_count;
} rt_pusher_watchlist;

/// What is to be authorized. Since 0.1.
typedef struct rt_pusher_auth_request {
  /// The size of the struct in the library that filled it.
  size_t struct_bytes;
  /// The connection's socket id, UTF-8, which the signature must include.
  const char *socket_id;
  /// Its length in bytes.
  size_t socket_id_length;
  /// The channels, each name followed by LF; "" for a sign-in.
  const char *channels;
  /// The length of all names with their LFs, in bytes.
  size_t channels_length;
  /// The number of channels; 0 for a sign-in. Above 1 only with `auth_batch_size`.
  size_t count;
  /// Whether the user signs in (`rt_pusher_sign_in`).
  bool is_user;
} rt_pusher_auth_request;

/// The result of a call for push notifications. Since 0.1.
typedef struct rt_pusher_push_result {
  /// The size of the struct in the library that filled it.
  size_t struct_bytes;
  /// The call, an `rt_pusher_push`.
  int32_t kind;
  /// RT_OK, or the failure, an `rt_status`.
  int32_t status;
  /// The status of the response; 0 without one.
  int32_t http_status;
  /// After a registration the id of this client, otherwise the interest; for
  /// RT_PUSHER_PUSH_SET_SUBSCRIPTIONS all interests, each followed by LF. UTF-8.
  const char *name;
  /// Its length in bytes.
  size_t name_length;
  /// A sentence about the failure; "" for none.
  const char *message;
  /// The body of the response that refused the call; "" for none.
  const uint8_t *body;
  /// Its length in bytes.
  size_t body_length;
} rt_pusher_push_result;

#endif
