// SPDX-License-Identifier: Apache-2.0
#include "apps/router/router_testing.h"

#include <gmock/gmock.h>

#include <utility>

#include "apps/router/leaf_service.h"
#include "curtail/rpc/server_testing.h"

namespace curtail::router {

Deployment::Deployment(const std::string& config, size_t shards, ReplicaOptions options)
    : config_(config), options_(options) {
  const size_t count = shards * static_cast<size_t>(options.replicas);
  // Servers start threads: all processes are forked before them.
  for (size_t i = 0; i < count; ++i) memcacheds_.emplace_back(dir_.File("m" + std::to_string(i)));
  ChannelOptions channel_options;
  channel_options.max_backoff = channel_options.initial_backoff = std::chrono::milliseconds(10);
  for (size_t i = 0; i < count; ++i) {
    leaves_.push_back(StartServer(
        config,
        std::make_unique<LeafService>(*StoreAddress::Parse(memcacheds_[i].address()), MemcachedOptions{})));
    channels_.push_back(std::make_unique<Channel>(&client_, leaves_.back()->addresses()[0], channel_options));
  }
  EXPECT_THAT(StartMidTier(kPatience), testing::IsEmpty());
}

std::vector<std::string> Deployment::StartMidTier(Nanos patience) {
  std::vector<Channel*> leaves;
  for (const auto& channel : channels_) leaves.push_back(channel.get());
  auto replicas = ReplicaSet::Create(std::move(leaves), options_);
  EXPECT_TRUE(replicas.ok()) << replicas.status();
  routing_.replicas = *std::move(replicas);
  std::vector<std::string> found = routing_.replicas->Recall(Deadline::In(patience));
  mid_tier_ = StartServer(config_, MakeRouterService(routing_));
  front_ = std::make_unique<Channel>(&front_client_, mid_tier_->addresses()[0]);
  return found;
}

std::vector<std::string> Deployment::RestartMidTier(Nanos patience) {
  front_.reset();
  mid_tier_.reset();
  routing_.replicas.reset();
  return StartMidTier(patience);
}

absl::Status Deployment::Set(const std::string& key, const std::string& value, SetReply* reply,
                             Nanos patience) {
  SetRequest request;
  request.set_key(key);
  request.set_value(value);
  Context ctx(patience);
  return Router::Stub(front_.get()).Set(ctx, request, reply);
}

SetReply Deployment::Set(const std::string& key, const std::string& value) {
  SetReply reply;
  const absl::Status status = Set(key, value, &reply);
  EXPECT_TRUE(status.ok()) << status;
  return reply;
}

absl::Status Deployment::Get(const std::string& key, GetReply* reply, Nanos patience) {
  GetRequest request;
  request.set_key(key);
  Context ctx(patience);
  return Router::Stub(front_.get()).Get(ctx, request, reply);
}

std::string Deployment::Get(const std::string& key) {
  GetReply reply;
  const absl::Status status = Get(key, &reply);
  if (!status.ok()) return status.ToString();
  return reply.found() ? reply.value() : "(none)";
}

absl::Status Deployment::Delete(const std::string& key, DeleteReply* reply) {
  DeleteRequest request;
  request.set_key(key);
  Context ctx(kPatience);
  return Router::Stub(front_.get()).Delete(ctx, request, reply);
}

std::vector<Replica> Deployment::Replicas() {
  ReplicasReply reply;
  Context ctx(kPatience);
  const absl::Status status = Router::Stub(front_.get()).Replicas(ctx, ReplicasRequest(), &reply);
  EXPECT_TRUE(status.ok()) << status;
  return {reply.replicas().begin(), reply.replicas().end()};
}

}  // namespace curtail::router
