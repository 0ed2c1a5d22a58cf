// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/host.h"
#include "curtail/rpc/when_all.h"
#include "desk.curtail.h"

namespace curtail::desk {

struct DoorService final : Door::CoroutineService {
  explicit DoorService(Clerk::Stub stub) : clerk(stub) {}
  Coroutine Enter(Context& ctx, const Form& request, Form* reply) override {
    auto [stamped] = co_await WhenAll(ctx, Ask(clerk, Clerk::kStamp, request));
    if (!stamped.ok()) co_return stamped.status();
    *reply = *std::move(stamped);
    co_return absl::OkStatus();
  }
  const Clerk::Stub clerk;
};

HostedService HostedDoor() {
  return {.name = "door",
          .make = [](Env& env) { return std::make_unique<DoorService>(env.Stub<Clerk>("clerk")); }};
}

}  // namespace curtail::desk
