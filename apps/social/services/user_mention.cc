// SPDX-License-Identifier: Apache-2.0
//
// User mention: which users the names in a text mean.
#include <algorithm>

#include "apps/social/data.h"
#include "curtail/rpc/host.h"
#include "curtail/rpc/when_all.h"
#include "users.curtail.h"

namespace curtail::social {

struct UserMentionService final : UserMention::CoroutineService {
  explicit UserMentionService(Env& e) : env(e) {}

  Coroutine Resolve(Context& ctx, const Names& request, People* reply) override {
    std::vector<std::string> names(request.names().begin(), request.names().end());
    std::ranges::sort(names);
    names.erase(std::ranges::unique(names).begin(), names.end());
    if (names.empty()) co_return absl::OkStatus();
    Names each;
    each.mutable_names()->Assign(names.begin(), names.end());
    auto [found] = co_await WhenAll(ctx, Ask(user, User::kByName, each));
    if (found.ok()) *reply = *std::move(found);
    co_return found.status();
  }

  std::vector<DeclaredPath> Paths() const override { return {{"Resolve", {user}}}; }

  Env& env;
  const User::Stub user = env.Stub<User>("user");
};

HostedService HostedUserMention() {
  return {.name = "user-mention", .make = [](Env& env) { return std::make_unique<UserMentionService>(env); }};
}

}  // namespace curtail::social
