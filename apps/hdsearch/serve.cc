// SPDX-License-Identifier: Apache-2.0
#include "apps/hdsearch/serve.h"

#include <cstdio>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "apps/hdsearch/data_spec.h"
#include "apps/hdsearch/leaf_service.h"
#include "apps/hdsearch/parallel.h"
#include "apps/hdsearch/search_service.h"
#include "apps/hdsearch/vector_store.h"
#include "curtail/exec/config.h"
#include "curtail/rpc/channel.h"
#include "curtail/rpc/server.h"
#include "curtail/rpc/server_main.h"

namespace curtail::hdsearch {
namespace {

int Threads(const ServeOptions& options) { return options.threads > 0 ? options.threads : CpuCount(); }

absl::StatusOr<int> Serve(const ServeOptions& options, const Config& config,
                          std::vector<std::unique_ptr<Service>> services) {
  ServerOptions server_options;
  server_options.listen = options.listen;
  server_options.config = config;
  server_options.admin = options.admin;
  server_options.policy = options.policy;
  server_options.profile = options.profile;
  server_options.any_machine = options.any_machine;
  server_options.slo =
      std::chrono::duration_cast<Nanos>(std::chrono::duration<double, std::milli>(options.slo_ms));
  absl::StatusOr<std::unique_ptr<Server>> server =
      Server::Start(std::move(server_options), std::move(services));
  if (!server.ok()) return server.status();
  for (const std::string& address : (*server)->addresses()) std::printf("ready %s\n", address.c_str());
  std::fflush(stdout);
  return ServeUntilSignal(**server,
                          std::chrono::duration_cast<Nanos>(std::chrono::duration<double>(options.drain_s)));
}

}  // namespace

absl::StatusOr<int> ServeLeaf(const ServeOptions& options) {
  absl::StatusOr<Config> config = Config::Parse(options.config);
  if (!config.ok()) return config.status();
  absl::StatusOr<Shard> shard = Shard::Parse(options.shard);
  if (!shard.ok()) return shard.status();
  absl::StatusOr<DataSpec> data = DataSpec::Parse(options.data);
  if (!data.ok()) return data.status();
  auto store = VectorStore::Load(*data, *shard, LoadOptions{Threads(options), options.quiet});
  if (!store.ok()) return store.status();
  std::vector<std::unique_ptr<Service>> services;
  services.push_back(std::make_unique<LeafService>(*std::move(store)));
  return Serve(options, *config, std::move(services));
}

absl::StatusOr<int> ServeMidTier(const ServeOptions& options) {
  absl::StatusOr<Config> config = Config::Parse(options.config);
  if (!config.ok()) return config.status();
  if (options.leaves.empty()) {
    return absl::InvalidArgumentError(
        "a mid-tier needs its leaves: --leaf ADDR for each shard, in shard order");
  }
  absl::StatusOr<DataSpec> data = DataSpec::Parse(options.data);
  if (!data.ok()) return data.status();
  auto index = HashIndex::Build(*data, options.index, Threads(options), options.quiet);
  if (!index.ok()) return index.status();
  if ((*index)->shape().rows < options.leaves.size()) {
    return absl::InvalidArgumentError(absl::StrCat(options.leaves.size(), " leaves, but only ",
                                                   (*index)->shape().rows, " images; use fewer leaves"));
  }
  Client client(ClientOptions{.lanes = options.lanes});
  std::vector<std::unique_ptr<Channel>> channels;
  std::vector<Channel*> leaves;
  for (const std::string& address : options.leaves) {
    channels.push_back(std::make_unique<Channel>(&client, address));
    leaves.push_back(channels.back().get());
  }
  const QueryPlanner planner(*std::move(index), std::move(leaves));
  return Serve(options, *config, SearchServices(planner));
}

}  // namespace curtail::hdsearch
