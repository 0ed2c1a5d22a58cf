// SPDX-License-Identifier: Apache-2.0
#include "apps/router/serve.h"

#include <chrono>
#include <cstdio>
#include <memory>
#include <utility>

#include "apps/router/leaf_service.h"
#include "apps/router/router_service.h"
#include "curtail/base/strings.h"
#include "curtail/exec/config.h"

namespace curtail::router {
namespace {

Nanos Milliseconds(double ms) {
  return std::chrono::duration_cast<Nanos>(std::chrono::duration<double, std::milli>(ms));
}

// What any server of ours holds resident with some connections and threads.
constexpr uint64_t kServerBytes = 16u << 20;
constexpr uint64_t kStripeBytes = 128;
constexpr uint64_t kSeenBytes = 32;
constexpr uint64_t kConnectionBytes = 32u << 10;
// That a mid-tier that starts waits for leaves that are silent.
constexpr Nanos kRecallPatience = std::chrono::seconds(5);

}  // namespace

uint64_t LeafMemory(const ServeOptions& options) {
  return kServerBytes + Stripes::kCount * (kStripeBytes + kSeenBytes) +
         static_cast<uint64_t>(options.connections) * kConnectionBytes;
}

uint64_t MidTierMemory(const ServeOptions& options) {
  return kServerBytes + Stripes::kCount * kStripeBytes +
         options.leaves.size() * static_cast<uint64_t>(options.lanes) * kConnectionBytes;
}

absl::StatusOr<int> ServeLeaf(const ServeOptions& options) {
  if (const auto config = Config::Parse(options.config); !config.ok()) return config.status();
  absl::StatusOr<Address> memcached = Address::Parse(options.memcached);
  if (!memcached.ok()) return memcached.status();
  std::vector<std::unique_ptr<Service>> services;
  services.push_back(std::make_unique<LeafService>(*std::move(memcached),
                                                   MemcachedOptions{.connections = options.connections}));
  return apps::Serve(options, std::move(services));
}

absl::StatusOr<int> ServeMidTier(const ServeOptions& options) {
  if (const auto config = Config::Parse(options.config); !config.ok()) return config.status();
  ReplicaOptions replica_options;
  replica_options.replicas = options.replicas;
  replica_options.get_timeout = Milliseconds(options.get_timeout_ms);
  replica_options.write_timeout = Milliseconds(options.write_timeout_ms);
  replica_options.probe_interval = Milliseconds(options.probe_ms);
  // A probe is worth an attempt to connect.
  ChannelOptions channel_options;
  channel_options.initial_backoff = std::min(channel_options.initial_backoff, replica_options.probe_interval);
  channel_options.max_backoff = replica_options.probe_interval;
  const apps::Peers leaves(options.leaves, options.lanes, channel_options);
  auto replicas = ReplicaSet::Create(leaves.channels(), replica_options);
  if (!replicas.ok()) return replicas.status();
  for (const std::string& line : (*replicas)->Recall(Deadline::In(kRecallPatience))) {
    std::fprintf(stderr, "router: %s\n", line.c_str());
  }
  Routing routing{.replicas = *std::move(replicas)};
  std::vector<std::unique_ptr<Service>> services;
  services.push_back(MakeRouterService(routing));
  return apps::Serve(options, std::move(services));
}

}  // namespace curtail::router
