// SPDX-License-Identifier: Apache-2.0
//
// rpc_generator.cc - sends gRPC calls with curtail's event-driven client, to all gRPC servers alike.

#include <algorithm>

#include "curtail/rpc/channel.h"
#include "fanout.curtail.h"
#include "generator.h"

namespace curtail::bench {
namespace {

constexpr uint32_t kSlots = 2048;
constexpr Nanos kCallTimeout = std::chrono::seconds(10);

class RpcGenerator final : public Generator {
 public:
  RpcGenerator(const std::string& address, const Setup& setup)
      : channel_(&client_, address, Shared(setup.connections)) {
    Blob blob;
    blob.set_payload(std::string(setup.payload, '\0'));
    request_ = blob.SerializeAsString();
    calls_.reserve(kSlots);
    for (uint32_t slot = 0; slot < kSlots; ++slot) calls_.emplace_back(this, slot);
  }

  uint32_t slots() const override { return kSlots; }
  // The channel takes its connections in turn, whatever the slot.
  bool in_turn() const override { return false; }

  void Send(uint32_t slot) override {
    channel_.Start(Mid::kQuery.path, Deadline::In(kCallTimeout), {}, request_, &calls_[slot]);
  }

  absl::Status Poll(Deadline deadline, std::vector<Done>* done) override {
    // A call that cannot be begun is over before the poll; and what ends a poll need not be a reply.
    do {
      client_.Poll(finished_.empty() ? deadline : Deadline::At(Now()));
    } while (finished_.empty() && !deadline.Expired());
    for (Done& finished : finished_) done->push_back(std::move(finished));
    finished_.clear();
    return absl::OkStatus();
  }

 private:
  static ChannelOptions Shared(int connections) {
    ChannelOptions options;
    options.connections = std::max(1, connections);
    return options;
  }

  class Call final : public Completion {
   public:
    Call(RpcGenerator* owner, uint32_t slot) : owner_(owner), slot_(slot) {}
    void Done(absl::Status&& status, std::string&& reply) override {
      owner_->OnReply(slot_, std::move(status), reply);
    }

   private:
    RpcGenerator* owner_;
    uint32_t slot_;
  };

  void OnReply(uint32_t slot, absl::Status&& status, const std::string& reply) {
    if (status.ok() && reply.size() != request_.size())
      status = absl::DataLossError("a reply of another length");
    finished_.push_back({slot, std::move(status)});
  }

  std::string request_;  // serialized
  // Before the channel, which at its end completes what is still under way.
  std::vector<Done> finished_;
  std::vector<Call> calls_;
  Client client_;
  Channel channel_;
};

}  // namespace

std::unique_ptr<Generator> MakeRpcGenerator(const std::string& address, const Setup& setup) {
  return std::make_unique<RpcGenerator>(address, setup);
}

}  // namespace curtail::bench
