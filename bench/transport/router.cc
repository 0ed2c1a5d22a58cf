// SPDX-License-Identifier: Apache-2.0
#include "router.h"

#include <cstring>

namespace curtail::bench {
namespace {

void Append(std::string& out, const Message& message) {
  out.append(reinterpret_cast<const char*>(&message), sizeof(message));
}

}  // namespace

absl::Status Router::Receive(size_t connection, const char* bytes, size_t size) {
  std::string& in = in_[connection];
  if (!in.empty()) {  // rare: only when a message was cut
    in.append(bytes, size);
    bytes = in.data(), size = in.size();
  }
  size_t at = 0;
  for (; size - at >= sizeof(Message); at += sizeof(Message)) {
    Message message;
    std::memcpy(&message, bytes + at, sizeof(message));
    const absl::Status status = connection == kCaller ? OnRequest(message) : OnReply(message);
    if (!status.ok()) return status;
  }
  in = std::string(bytes + at, size - at);
  return absl::OkStatus();
}

absl::Status Router::OnRequest(const Message& request) {
  if (request.id >= kMaxUnderWay || missing_[request.id] != 0) return absl::DataLossError("a bad request id");
  missing_[request.id] = kLeaves;
  missing_replies_ += kLeaves;
  ++under_way_;
  for (size_t leaf = 0; leaf < kLeaves; ++leaf) Append(out_[leaf], request);
  return absl::OkStatus();
}

absl::Status Router::OnReply(Message reply) {
  if (reply.id >= kMaxUnderWay || missing_[reply.id] == 0)
    return absl::DataLossError("a reply to no request");
  --missing_replies_;
  if (--missing_[reply.id] > 0) return absl::OkStatus();
  --under_way_;
  reply.replies = kLeaves;
  Append(out_[kCaller], reply);
  return absl::OkStatus();
}

}  // namespace curtail::bench
