// SPDX-License-Identifier: Apache-2.0
//
// frame_generator.cc - sends frames to raw and Thrift mid-tiers: pipelined on one connection, or one at a time on each
// of many.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "frame_loop.h"
#include "generator.h"

namespace curtail::bench {
namespace {

constexpr uint32_t kPipelineSlots = 4096;
// Of Thrift's binary protocol: where a message says what it is, and what a reply says.
constexpr size_t kThriftTypeOffset = 7;
constexpr char kThriftReply = 2;

// The bytes sent, but for the id.
struct Format {
  std::string frame;
  size_t id_offset = kFrameIdOffset;
  bool thrift = false;

  // A reply is as long as its request. So it is in Thrift, where the one differs from the other in two bytes.
  bool WellFormed(std::string_view reply) const {
    return reply.size() == frame.size() && (!thrift || reply[kThriftTypeOffset] == kThriftReply);
  }
};

class FrameGenerator final : public Generator {
 public:
  FrameGenerator(Format format, uint32_t slots, bool in_turn)
      : format_(std::move(format)), slots_(slots), in_turn_(in_turn) {}

  absl::Status Connect(const std::string& address, uint32_t connections) {
    for (uint32_t i = 0; i < connections; ++i) {
      absl::StatusOr<Fd> fd = bench::Connect(address);
      if (!fd.ok()) return fd.status();
      absl::StatusOr<FrameLoop::ConnectionId> id = loop_.AddConnection(std::move(*fd));
      if (!id.ok()) return id.status();
      connections_.push_back(*id);
    }
    return absl::OkStatus();
  }

  uint32_t slots() const override { return slots_; }
  bool in_turn() const override { return in_turn_; }

  void Send(uint32_t slot) override {
    SetFrameId(&format_.frame, slot, format_.id_offset);
    loop_.Send(connections_[slot % connections_.size()], format_.frame);
  }

  absl::Status Poll(Deadline deadline, std::vector<Done>* done) override {
    done_ = done;
    do {
      if (absl::Status turned = loop_.Turn(deadline); !turned.ok()) return turned;
      if (loop_.lost() > 0) return absl::UnavailableError("the mid-tier has closed a connection");
    } while (done->empty() && !deadline.Expired());
    return absl::OkStatus();
  }

 private:
  void OnReply(std::string_view reply) {
    if (reply.size() < format_.id_offset + sizeof(uint32_t)) return;  // its request will not be answered
    const uint32_t slot = FrameId(reply, format_.id_offset);
    if (slot >= slots_) return;
    absl::Status status;
    if (!format_.WellFormed(reply)) {
      status = absl::DataLossError(
          absl::StrCat("a reply of ", reply.size(), " bytes instead of ", format_.frame.size()));
    }
    done_->push_back({slot, std::move(status)});
  }

  Format format_;
  const uint32_t slots_;
  const bool in_turn_;
  FrameLoop loop_{[this](FrameLoop::ConnectionId, std::string_view reply) { OnReply(reply); }};
  std::vector<FrameLoop::ConnectionId> connections_;
  std::vector<Done>* done_ = nullptr;  // of the Poll() in progress
};

Format MakeFormat(Protocol protocol, size_t payload) {
#ifdef CURTAIL_BENCH_THRIFT
  if (protocol == Protocol::kThriftConnections) return {ThriftRequest(payload), kThriftIdOffset, true};
#else
  (void)protocol;
#endif
  return {MakeFrame(std::string(sizeof(uint32_t) + payload, '\0'))};
}

}  // namespace

absl::StatusOr<std::unique_ptr<Generator>> MakeFrameGenerator(Protocol protocol, const std::string& address,
                                                              const Setup& setup) {
  const bool pipelined = protocol == Protocol::kRawPipelined;
  const bool asked = setup.connections > 0;
  uint32_t connections = static_cast<uint32_t>(setup.connections);
  if (!asked) connections = pipelined ? 1 : setup.outstanding;
  auto generator = std::make_unique<FrameGenerator>(
      MakeFormat(protocol, setup.payload), pipelined ? std::max(kPipelineSlots, connections) : connections,
      asked);
  if (absl::Status connected = generator->Connect(address, connections); !connected.ok()) return connected;
  return generator;
}

}  // namespace curtail::bench
