// SPDX-License-Identifier: Apache-2.0
//
// Clerk: takes 10 ms for each form, in which it holds its thread. So a thread serves at most 100 a second.
#include <chrono>
#include <thread>

#include "curtail/rpc/host.h"
#include "curtail/rpc/when_all.h"
#include "desk.curtail.h"

namespace curtail::desk {

struct ClerkService final : Clerk::Service {
  explicit ClerkService(Archive::Stub stub) : archive(stub) {}
  absl::Status Stamp(Context& ctx, const Form& request, Form* reply) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    auto [filed] = AwaitAll(ctx, Ask(archive, Archive::kFile, request));
    if (filed.ok()) *reply = *std::move(filed);
    return filed.status();
  }
  const Archive::Stub archive;
};

HostedService HostedClerk() {
  return {.name = "clerk",
          .make = [](Env& env) { return std::make_unique<ClerkService>(env.Stub<Archive>("archive")); }};
}

}  // namespace curtail::desk
