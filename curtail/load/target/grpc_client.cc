// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/target/grpc_client.h"

#include <utility>

#include "curtail/base/mutex.h"
#include "curtail/rpc/client/channel_impl.h"

namespace curtail::internal {
namespace {

// Keeps what calls refer to that no thread polls any more: it must outlive them, which is for ever.
void Abandon(std::shared_ptr<void> thing) {
  static Mutex mu;
  static auto* const kept = new std::vector<std::shared_ptr<void>>;  // never destroyed, always reachable
  MutexLock lock(mu);
  kept->push_back(std::move(thing));
}

}  // namespace

GrpcClient::GrpcClient(const TargetOptions& options) : client_(std::make_unique<Client>()) {
  ChannelOptions channel = options.channel;
  channel.arrival_times = !options.stream;
  for (const std::string& target : options.targets) {
    channels_.push_back(std::make_unique<Channel>(client_.get(), target, channel));
  }
}

GrpcClient::~GrpcClient() {
  if (in_flight_ == 0) return;
  // No thread polls this client again, so the calls never complete; but no connection of theirs may go.
  for (auto& channel : channels_) Abandon(std::move(channel));
  Abandon(std::move(client_));
}

absl::Status GrpcClient::Resolve() {
  for (const auto& channel : channels_) {
    if (absl::Status status = channel->impl().Resolve(); !status.ok()) return status;
  }
  return absl::OkStatus();
}

void GrpcClient::Start(size_t target, std::string_view method, Deadline deadline, const Metadata& metadata,
                       std::string_view message, LoadCompletion* done) {
  ++in_flight_;
  channels_[target]->Start(method, deadline, metadata, message, done);
}

size_t GrpcClient::Poll(Deadline deadline) {
  const size_t ended = client_->Poll(deadline);
  in_flight_ -= ended;
  return ended;
}

bool GrpcClient::Answered(size_t target) const { return channels_[target]->impl().Answered(); }

}  // namespace curtail::internal
