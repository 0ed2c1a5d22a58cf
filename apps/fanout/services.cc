// SPDX-License-Identifier: Apache-2.0
#include "apps/fanout/services.h"

#include <string>
#include <utility>

#include "curtail/rpc/coroutine.h"
#include "fanout.curtail.h"

namespace curtail::fanout {
namespace {

class LeafService final : public Leaf::Service {
 public:
  LeafService() : Leaf::Service(/*never_waits=*/true) {}

  absl::Status Echo(Context& /*ctx*/, const Blob& request, Blob* reply) override {
    *reply = request;
    return absl::OkStatus();
  }
};

class MidTier final : public Fanout::CoroutineService {
 public:
  explicit MidTier(std::vector<Channel*> leaves) : leaves_(std::move(leaves)) {}

  Coroutine Query(Context& ctx, const Blob& request, Blob* reply) override {
    auto replies = co_await broadcast(ctx, leaves_, Leaf::kEcho, request);
    for (const absl::StatusOr<Blob>& one : replies) {
      if (!one.ok()) co_return one.status();
    }
    reply->Swap(&*replies[0]);
    co_return absl::OkStatus();
  }

  std::vector<DeclaredPath> Paths() const override { return {{"Query", {Leaf::kServiceName}}}; }

 private:
  const std::vector<Channel*> leaves_;
};

}  // namespace

std::unique_ptr<Service> MakeLeaf() { return std::make_unique<LeafService>(); }

std::unique_ptr<Service> MakeMidTier(std::vector<Channel*> leaves) {
  return std::make_unique<MidTier>(std::move(leaves));
}

HostedService HostedLeaf() {
  return {.name = "leaf", .make = [](Env&) -> MadeService { return MakeLeaf(); }};
}

HostedService HostedMidTier() {
  return {.name = "mid-tier",
          .make = [](Env& env) -> MadeService { return MakeMidTier(env.Channels("leaf")); }};
}

}  // namespace curtail::fanout
