// SPDX-License-Identifier: Apache-2.0
//
// message.h - the message of the raw stacks: a length, an id, 64 bytes. Host byte order: it never leaves the
// machine.
#pragma once

#include <cstdint>

#include "stack.h"

namespace curtail::bench {

struct Message {
  uint32_t length = sizeof(Message) - sizeof(uint32_t);  // of what follows
  uint32_t id = 0;                                       // chosen by the caller, returned with the reply
  char payload[kPayloadBytes] = {};
};
static_assert(sizeof(Message) == 8 + kPayloadBytes);

inline bool WellFormed(const Message& message) {
  return message.length == sizeof(Message) - sizeof(uint32_t);
}

}  // namespace curtail::bench
