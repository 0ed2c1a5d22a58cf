// SPDX-License-Identifier: Apache-2.0
//
// router.h - what a mid-tier does with bytes, without sockets: a request becomes four, four replies become
// one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace curtail::bench {

inline constexpr size_t kLeaves = 4;
// Connections of a mid-tier's thread: its leaves are 0 to 3, its caller is 4.
inline constexpr size_t kCaller = kLeaves;
inline constexpr size_t kConnections = kLeaves + 1;

struct Message {
  uint32_t id = 0;       // chosen by the caller, returned with the reply
  uint32_t replies = 0;  // set by the mid-tier
  char payload[56] = {};
};
static_assert(sizeof(Message) == 64);

// Ids are smaller than this.
inline constexpr uint32_t kMaxUnderWay = 4096;

// A Router belongs to one thread.
class Router {
 public:
  Router() : missing_(kMaxUnderWay) {}

  // Bytes that arrived on `connection`; what they cause is appended to out().
  absl::Status Receive(size_t connection, const char* bytes, size_t size);
  // The bytes to be sent on `connection`; the caller of this takes it away.
  std::string& out(size_t connection) { return out_[connection]; }

  size_t under_way() const { return under_way_; }
  // Of all requests that are under way.
  size_t missing_replies() const { return missing_replies_; }

 private:
  absl::Status OnRequest(const Message& request);
  absl::Status OnReply(Message reply);

  std::array<std::string, kConnections> in_;  // incomplete messages
  std::array<std::string, kConnections> out_;
  std::vector<uint8_t> missing_;  // by id
  size_t under_way_ = 0;
  size_t missing_replies_ = 0;
};

}  // namespace curtail::bench
