// SPDX-License-Identifier: Apache-2.0
//
// raw_generator.cc - sends Messages: pipelined on one connection, or one at a time on each of many.

#include "generator.h"
#include "message_loop.h"

namespace curtail::bench {
namespace {

// As many as the largest closed loop; the mid-tier spends a thread on each.
constexpr uint32_t kConnections = 64;
constexpr uint32_t kPipelineSlots = 4096;

class RawGenerator final : public Generator {
 public:
  explicit RawGenerator(uint32_t slots) : slots_(slots) {}

  absl::Status Connect(const std::string& address, uint32_t connections) {
    for (uint32_t i = 0; i < connections; ++i) {
      absl::StatusOr<Fd> fd = bench::Connect(address);
      if (!fd.ok()) return fd.status();
      absl::StatusOr<MessageLoop::ConnectionId> id = loop_.AddConnection(std::move(*fd));
      if (!id.ok()) return id.status();
      connections_.push_back(*id);
    }
    return absl::OkStatus();
  }

  uint32_t slots() const override { return slots_; }

  void Send(uint32_t slot) override {
    Message message;
    message.id = slot;
    loop_.Send(connections_[slot % connections_.size()], message);
  }

  absl::Status Poll(Deadline deadline, std::vector<Done>* done) override {
    done_ = done;
    do {
      if (absl::Status turned = loop_.Turn(deadline); !turned.ok()) return turned;
    } while (done->empty() && !deadline.Expired());
    return absl::OkStatus();
  }

 private:
  void OnReply(const Message& reply) {
    done_->push_back(
        {reply.id, WellFormed(reply) ? absl::OkStatus() : absl::DataLossError("a malformed reply")});
  }

  const uint32_t slots_;
  MessageLoop loop_{[this](MessageLoop::ConnectionId, const Message& reply) { OnReply(reply); }};
  std::vector<MessageLoop::ConnectionId> connections_;
  std::vector<Done>* done_ = nullptr;  // of the Poll() in progress
};

}  // namespace

absl::StatusOr<std::unique_ptr<Generator>> MakeRawGenerator(Protocol protocol, const std::string& address) {
  const bool pipelined = protocol == Protocol::kRawPipelined;
  auto generator = std::make_unique<RawGenerator>(pipelined ? kPipelineSlots : kConnections);
  if (absl::Status connected = generator->Connect(address, pipelined ? 1 : kConnections); !connected.ok()) {
    return connected;
  }
  return generator;
}

}  // namespace curtail::bench
