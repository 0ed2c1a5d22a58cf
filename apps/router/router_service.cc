// SPDX-License-Identifier: Apache-2.0
#include "apps/router/router_service.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/router/write.h"
#include "curtail/base/log.h"
#include "curtail/rpc/coroutine.h"
#include "curtail/store/memcached_codec.h"
#include "router.curtail.h"

namespace curtail::router {
namespace {

absl::Status Check(const SetRequest& request) {
  absl::Status status = memcached::CheckKey(request.key());
  return status.ok() ? memcached::CheckValue(request.value()) : status;
}

StoreSet ForLeaves(const SetRequest& request) {
  StoreSet store;
  store.set_key(request.key());
  store.set_value(request.value());
  return store;
}

StoreDelete ForLeaves(const DeleteRequest& request) {
  StoreDelete store;
  store.set_key(request.key());
  return store;
}

template <class Reply>
absl::Status Report(const Write& write, Reply* reply) {
  reply->set_taken(write.taken());
  reply->set_replicas(write.replicas());
  return write.Finish();
}

// A cold replica gets a key back when it is asked for, once. Returns true when the key was sent.
Co<bool> RunRefill(Routing& routing, Context& ctx, const GetRequest& request, const GetAttempts& attempts) {
  Refill refill(routing, ctx, attempts);
  if (!refill.Begin(request.key())) co_return false;
  StoreSet store;
  store.set_key(request.key());
  auto replies = co_await broadcast(refill.context(), refill.source(), Store::kGet, request);
  if (!refill.TakeSource(std::move(replies), &store)) co_return false;
  const auto ignored = co_await broadcast(refill.context(), refill.channels(), Store::kSet, store);
  co_return true;
}

class RouterService final : public Router::CoroutineService {
 public:
  explicit RouterService(Routing& routing) : routing_(routing) {}

  Coroutine Get(Context& ctx, const GetRequest& request, GetReply* reply) override;
  Coroutine Set(Context& ctx, const SetRequest& request, SetReply* reply) override;
  Coroutine Delete(Context& ctx, const DeleteRequest& request, DeleteReply* reply) override;
  Coroutine Replicas(Context& ctx, const ReplicasRequest& request, ReplicasReply* reply) override;
  std::vector<DeclaredPath> Paths() const override {
    const std::vector<PathCall> leaves = {Store::kServiceName};
    return {{"Get", leaves}, {"Set", leaves}, {"Delete", leaves}, {"Replicas", {}}};
  }

 private:
  Routing& routing_;
};

Coroutine RouterService::Get(Context& ctx, const GetRequest& request, GetReply* reply) {
  if (absl::Status status = memcached::CheckKey(request.key()); !status.ok()) co_return status;
  GetAttempts attempts(routing_, ctx, request.key());
  while (attempts.Next()) {
    attempts.Take(co_await broadcast(attempts.context(), attempts.channels(), Store::kGet, request), reply);
  }
  if (attempts.WantsRefill()) co_await RunRefill(routing_, ctx, request, attempts);
  co_return attempts.Finish();
}

Coroutine RouterService::Set(Context& ctx, const SetRequest& request, SetReply* reply) {
  if (absl::Status status = Check(request); !status.ok()) co_return status;
  StoreSet store = ForLeaves(request);
  Write write(routing_, ctx);
  if (absl::Status status = write.Begin(request.key()); !status.ok()) co_return status;
  while (write.Next()) {
    write.Address(&store);
    write.Take(co_await broadcast(write.context(), write.channels(), Store::kSet, store));
  }
  co_return Report(write, reply);
}

Coroutine RouterService::Delete(Context& ctx, const DeleteRequest& request, DeleteReply* reply) {
  if (absl::Status status = memcached::CheckKey(request.key()); !status.ok()) co_return status;
  StoreDelete store = ForLeaves(request);
  Write write(routing_, ctx);
  if (absl::Status status = write.Begin(request.key()); !status.ok()) co_return status;
  while (write.Next()) {
    write.Address(&store);
    write.Take(co_await broadcast(write.context(), write.channels(), Store::kDelete, store));
  }
  reply->set_found(write.done());
  co_return Report(write, reply);
}

Coroutine RouterService::Replicas(Context&, const ReplicasRequest&, ReplicasReply* reply) {
  routing_.replicas->Describe(reply);
  co_return absl::OkStatus();
}

}  // namespace

std::unique_ptr<Service> MakeRouterService(Routing& routing) {
  return std::make_unique<RouterService>(routing);
}

namespace {

// That a mid-tier that starts waits for leaves that are silent.
constexpr Nanos kRecallPatience = std::chrono::seconds(5);

struct MidTierOptions {
  int replicas = 1;
  double get_timeout_ms = 250;
  double write_timeout_ms = 1000;
  double probe_ms = 500;
};

MadeService MakeMidTier(const MidTierOptions& options, Env& env) {
  ReplicaOptions replica_options;
  replica_options.replicas = options.replicas;
  replica_options.get_timeout = FromMillis(options.get_timeout_ms);
  replica_options.write_timeout = FromMillis(options.write_timeout_ms);
  replica_options.probe_interval = FromMillis(options.probe_ms);
  // A probe is worth an attempt to connect.
  ChannelOptions channel_options;
  channel_options.initial_backoff = std::min(channel_options.initial_backoff, replica_options.probe_interval);
  channel_options.max_backoff = replica_options.probe_interval;
  auto replicas = ReplicaSet::Create(env.Channels("leaf", channel_options), replica_options);
  if (!replicas.ok()) return replicas.status();
  for (const std::string& line : (*replicas)->Recall(Deadline::In(kRecallPatience))) {
    Log(Severity::kWarning, line, {}, "router");
  }
  Routing& routing = env.Keep(std::make_unique<Routing>());
  routing.replicas = *std::move(replicas);
  return MakeRouterService(routing);
}

}  // namespace

HostedService HostedMidTier() {
  auto options = std::make_shared<MidTierOptions>();
  return {.name = "mid-tier",
          .flags =
              [options](Flags& flags) {
                constexpr FlagRange kMs{1, 60000};
                flags.Add("--replicas", &options->replicas, "mid-tier: leaves that hold a shard", {1, 16});
                flags.Add("--get-timeout", &options->get_timeout_ms,
                          "mid-tier: ms a replica may take over a get before another is asked", kMs);
                flags.Add("--write-timeout", &options->write_timeout_ms,
                          "mid-tier: ms a replica may take over a write before it is ejected", kMs);
                flags.Add("--probe", &options->probe_ms, "mid-tier: ms between looks at an ejected replica",
                          kMs);
              },
          .make = [options](Env& env) { return MakeMidTier(*options, env); },
          .memory = [](Env& env) -> absl::StatusOr<uint64_t> {
            constexpr uint64_t kServer = 16u << 20, kStripe = 128, kConnection = 32u << 10;
            return kServer + Stripes::kCount * kStripe + env.Count("leaf") * kConnection;
          }};
}

}  // namespace curtail::router
