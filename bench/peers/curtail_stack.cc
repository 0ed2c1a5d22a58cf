// SPDX-License-Identifier: Apache-2.0
//
// curtail_stack.cc - the fan-out as a curtail service: the threading model by name.

#include <unistd.h>

#include "curtail/rpc/channel.h"
#include "curtail/rpc/coroutine.h"
#include "curtail/rpc/server.h"
#include "fanout.curtail.h"
#include "stack.h"

namespace curtail::bench {
namespace {

class LeafService final : public Leaf::Service {
 public:
  LeafService() : Leaf::Service(/*never_waits=*/true) {}

 private:
  absl::Status Null(Context&, const Blob& request, Blob* reply) override {
    *reply = request;
    return absl::OkStatus();
  }
};

class Leaves {
 public:
  Leaves(Client* client, const std::vector<std::string>& addresses) {
    for (const std::string& address : addresses) {
      owned_.push_back(std::make_unique<Channel>(client, address));
      channels_.push_back(owned_.back().get());
    }
  }
  const std::vector<Channel*>& channels() const { return channels_; }

  // The answer to the fan-out: any of the replies, if all came.
  static absl::Status Merge(Replies<Blob> replies, Blob* reply) {
    for (const absl::StatusOr<Blob>& one : replies) {
      if (!one.ok()) return one.status();
    }
    reply->Swap(&*replies[0]);
    return absl::OkStatus();
  }

 private:
  std::vector<std::unique_ptr<Channel>> owned_;
  std::vector<Channel*> channels_;
};

// For the synchronous and fiber models.
class MidService final : public Mid::Service {
 public:
  explicit MidService(const Leaves& leaves) : leaves_(leaves) {}

  absl::Status Query(Context& ctx, const Blob& request, Blob* reply) override {
    return Leaves::Merge(ctx.Broadcast(leaves_.channels(), Leaf::kNull, request), reply);
  }

 private:
  const Leaves& leaves_;
};

// For the asynchronous models.
class CoroutineMidService final : public Mid::CoroutineService {
 public:
  explicit CoroutineMidService(const Leaves& leaves) : leaves_(leaves) {}

  Coroutine Query(Context& ctx, const Blob& request, Blob* reply) override {
    auto replies = co_await broadcast(ctx, leaves_.channels(), Leaf::kNull, request);
    co_return Leaves::Merge(std::move(replies), reply);
  }

 private:
  const Leaves& leaves_;
};

absl::Status Serve(const Config& config, std::vector<std::unique_ptr<Service>> services, const Ready& ready) {
  ServerOptions options;
  options.config = config;
  absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(std::move(options), std::move(services));
  if (!server.ok()) return server.status();
  ready((*server)->addresses()[0]);
  while (true) pause();
}

class CurtailStack final : public Stack {
 public:
  CurtailStack(const Config& mid, const Config& leaf) : mid_(mid), leaf_(leaf) {}

  absl::Status RunLeaf(const Ready& ready) override {
    std::vector<std::unique_ptr<Service>> services;
    services.push_back(std::make_unique<LeafService>());
    return Serve(leaf_, std::move(services), ready);
  }
  absl::Status RunMid(const std::vector<std::string>& addresses, const Ready& ready) override {
    Client client;
    const Leaves leaves(&client, addresses);
    std::vector<std::unique_ptr<Service>> services;
    services.push_back(std::make_unique<MidService>(leaves));
    services.push_back(std::make_unique<CoroutineMidService>(leaves));
    return Serve(mid_, std::move(services), ready);
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
