// The plain structs of the C ABI. Swift structs cannot appear in @convention(c) types, so these are
// written in C; abigen copies them into realtime.h and into every binding's table.
#ifndef RT_TYPES_H
#define RT_TYPES_H

#include <stdint.h>

/// One message of a batch. Since 0.1.
typedef struct rt_message {
  /// Where its bytes begin, counted from the batch's base pointer.
  uint64_t offset;
  /// Its length in bytes.
  uint64_t length;
  /// An `rt_message_kind`: RT_MESSAGE_TEXT or RT_MESSAGE_BINARY.
  int32_t kind;
  /// Zero.
  int32_t reserved;
} rt_message;

#endif
