// SPDX-License-Identifier: Apache-2.0
//
// rpc_generator.cc - sends gRPC calls with curtail's event-driven client, to curtail and grpc++ servers
// alike.

#include "curtail/rpc/channel.h"
#include "fanout.curtail.h"
#include "generator.h"

namespace curtail::bench {
namespace {

constexpr uint32_t kSlots = 2048;
constexpr Nanos kCallTimeout = std::chrono::seconds(10);

class RpcGenerator final : public Generator {
 public:
  explicit RpcGenerator(const std::string& address) : channel_(&client_, address) {
    Blob blob;
    blob.set_payload(std::string(kPayloadBytes, '\0'));
    request_ = blob.SerializeAsString();
    calls_.reserve(kSlots);
    for (uint32_t slot = 0; slot < kSlots; ++slot) calls_.emplace_back(this, slot);
  }

  uint32_t slots() const override { return kSlots; }

  void Send(uint32_t slot) override {
    channel_.Start(Mid::kQuery.path, Deadline::In(kCallTimeout), {}, request_, &calls_[slot]);
  }

  absl::Status Poll(Deadline deadline, std::vector<Done>* done) override {
    // A call that cannot be begun is over before the poll.
    client_.Poll(finished_.empty() ? deadline : Deadline::At(Now()));
    for (Done& finished : finished_) done->push_back(std::move(finished));
    finished_.clear();
    return absl::OkStatus();
  }

 private:
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

  Client client_;
  Channel channel_;
  std::string request_;  // serialized
  std::vector<Call> calls_;
  std::vector<Done> finished_;
};

}  // namespace

std::unique_ptr<Generator> MakeRpcGenerator(const std::string& address) {
  return std::make_unique<RpcGenerator>(address);
}

}  // namespace curtail::bench
