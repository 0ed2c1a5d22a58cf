// SPDX-License-Identifier: Apache-2.0
//
// curtail_stack.cc - the fan-out as a curtail service: straight-line handlers, the threading model by name.

#include <unistd.h>

#include "curtail/rpc/channel.h"
#include "curtail/rpc/server.h"
#include "fanout.curtail.h"
#include "stack.h"

namespace curtail::bench {
namespace {

class LeafService final : public Leaf::Service {
  absl::Status Null(Context&, const Blob& request, Blob* reply) override {
    *reply = request;
    return absl::OkStatus();
  }
};

class MidService final : public Mid::Service {
 public:
  MidService(Client* client, const std::vector<std::string>& leaves) {
    for (const std::string& leaf : leaves) {
      channels_.push_back(std::make_unique<Channel>(client, leaf));
      leaves_.push_back(channels_.back().get());
    }
  }

  absl::Status Query(Context& ctx, const Blob& request, Blob* reply) override {
    std::vector<absl::StatusOr<Blob>> replies =
        ctx.FanOut(leaves_, Leaf::kNull, std::vector<Blob>(leaves_.size(), request));
    for (const absl::StatusOr<Blob>& one : replies) {
      if (!one.ok()) return one.status();
    }
    *reply = std::move(*replies[0]);
    return absl::OkStatus();
  }

 private:
  std::vector<std::unique_ptr<Channel>> channels_;
  std::vector<Channel*> leaves_;
};

absl::Status Serve(const Config& config, std::unique_ptr<Service> service, const Ready& ready) {
  ServerOptions options;
  options.config = config;
  std::vector<std::unique_ptr<Service>> services;
  services.push_back(std::move(service));
  absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(std::move(options), std::move(services));
  if (!server.ok()) return server.status();
  ready((*server)->addresses()[0]);
  while (true) pause();
}

class CurtailStack final : public Stack {
 public:
  CurtailStack(const Config& mid, const Config& leaf) : mid_(mid), leaf_(leaf) {}

  absl::Status RunLeaf(const Ready& ready) override {
    return Serve(leaf_, std::make_unique<LeafService>(), ready);
  }
  absl::Status RunMid(const std::vector<std::string>& leaves, const Ready& ready) override {
    Client client;
    return Serve(mid_, std::make_unique<MidService>(&client, leaves), ready);
  }

 private:
  const Config mid_;
  const Config leaf_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Stack>> MakeCurtail(const std::string& config,
                                                   const std::string& leaf_config) {
  absl::StatusOr<Config> mid = Config::Parse(config);
  if (!mid.ok()) return mid.status();
  absl::StatusOr<Config> leaf = Config::Parse(leaf_config);
  if (!leaf.ok()) return leaf.status();
  return std::make_unique<CurtailStack>(*mid, *leaf);
}

}  // namespace curtail::bench
