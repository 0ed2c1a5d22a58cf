// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/channel.h"

#include <algorithm>
#include <utility>

#include "curtail/rpc/client/balancer/balancer.h"
#include "curtail/rpc/client/channel_impl.h"
#include "curtail/rpc/client/resolver/target.h"
#include "curtail/rpc/fan_out.h"
#include "curtail/rpc/in_process.h"

namespace curtail {

Channel::Impl::Impl(Client* c, std::string t, ChannelOptions o)
    : client(c),
      target(std::move(t)),
      options(std::move(o)),
      secure(options.tls != nullptr && !options.tls->options().insecure_skip_verify) {
  wrong_ = Connect();
}

Channel::Impl::Impl(Client* c, const InProcess* service, ChannelOptions o)
    : client(c), in_process(service), target(service->name()), options(std::move(o)), secure(true) {}

Channel::Impl::~Impl() {
  if (only_ != nullptr) only_->Abort();
  if (servers_ != nullptr) servers_->Close();
}

// Makes what finds connections.
absl::Status Channel::Impl::Connect() {
  internal::Target parsed;
  std::shared_ptr<Resolver> resolver = options.resolver;
  if (resolver == nullptr) {
    absl::StatusOr<internal::Target> understood = internal::ParseTarget(target);
    if (!understood.ok()) return understood.status();
    parsed = *std::move(understood);
    resolver = std::move(parsed.resolver);
  } else {
    parsed.authority = target;
  }
  internal::BalancerOptions balancer = {.name = options.balancer, .hash_key = options.hash_key};
  internal::Observation observation;
  if (absl::Status configured = Configure(&balancer, &observation); !configured.ok()) return configured;
  const bool observes = observation.outcomes || observation.health_service;
  if (!internal::IsBalancer(balancer.name)) return internal::MakeBalancer(balancer, {}).status();
  auto settings = std::make_shared<const internal::ConnectSettings>(
      target, options, std::move(parsed.authority), std::move(observation));
  if (!resolver->Changes()) {
    const absl::StatusOr<std::vector<Address>> addresses = resolver->Resolve();
    if (!addresses.ok()) return addresses.status();
    if (addresses->size() == 1 && !observes) {
      secure |= addresses->front().family() == AF_UNIX;
      only_ = std::make_unique<internal::Subchannel>(std::move(settings), addresses->front(), nullptr);
      return absl::OkStatus();
    }
  }
  servers_ = std::make_shared<internal::Servers>(std::move(settings), std::move(resolver), balancer,
                                                 &client->impl_->lookups);
  return absl::OkStatus();
}

absl::Status Channel::Impl::Configure(internal::BalancerOptions* balancer,
                                      internal::Observation* observation) {
  internal::ServiceConfig config;
  if (!options.service_config.empty()) {
    absl::StatusOr<internal::ServiceConfig> read = internal::ParseServiceConfig(options.service_config);
    if (!read.ok()) return read.status();
    config = *std::move(read);
    if (config.balancer) {
      *balancer = *config.balancer;
      if (balancer->hash_key.empty()) balancer->hash_key = options.hash_key;
    }
    observation->outcomes = balancer->outliers.has_value();
    if (observation->outcomes && balancer->outliers->consecutive_failures)
      observation->row = balancer->outliers->consecutive_failures->threshold;
    observation->health_service = config.health_service;
  }
  if (balancer->name == internal::kWeightedRoundRobin)
    observation->error_penalty = balancer->weights.error_penalty;
  if (config.methods.empty() && !options.wait_for_ready) return absl::OkStatus();
  policy_ = std::make_unique<internal::CallPolicy>(std::move(config), options.wait_for_ready);
  return absl::OkStatus();
}

absl::Status Channel::Impl::Resolve() { return servers_ == nullptr ? wrong_ : servers_->Known(Now()); }

bool Channel::Impl::Answered() const {
  return only_ != nullptr ? only_->Answered() : servers_ != nullptr && servers_->Answered();
}

Channel::Channel(Client* client, std::string target, ChannelOptions options)
    : impl_(std::make_unique<Impl>(client, std::move(target), std::move(options))) {}

Channel::Channel(Client* client, const InProcess* service, ChannelOptions options)
    : impl_(std::make_unique<Impl>(client, service, std::move(options))) {}

Channel::~Channel() = default;

const std::string& Channel::target() const { return impl_->target; }

absl::Status Channel::Call(Context& ctx, std::string_view path, const google::protobuf::MessageLite& request,
                           google::protobuf::MessageLite* reply, ReplyMetadata* metadata) {
  Channel* const self = this;
  const google::protobuf::MessageLite* const in = &request;
  absl::Status status;
  if (metadata != nullptr) metadata->Clear();
  internal::CallAll(ctx, {.channels = {&self, 1},
                          .path = path,
                          .requests = {&in, 1},
                          .replies = {&reply, 1},
                          .statuses = {&status, 1},
                          .metadata = {&metadata, 1}});
  return status;
}

}  // namespace curtail
