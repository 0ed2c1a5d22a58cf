// SPDX-License-Identifier: Apache-2.0
//
// User: names of users, and what they wrote last. Calls post, which calls it.
#include "curtail/rpc/host.h"
#include "curtail/rpc/when_all.h"
#include "toy.curtail.h"

namespace curtail::toy {

struct UserService final : User::CoroutineService {
  UserService(PostStorage::Stub p, Timeline::Stub t) : post(p), timeline(t) {}
  Coroutine Check(Context&, const Person& request, Person* reply) override {
    if (request.user() == "nobody") co_return absl::NotFoundError("there is no user nobody");
    reply->set_name("User " + request.user());
    co_return absl::OkStatus();
  }
  Coroutine Newest(Context& ctx, const Person& request, Post* reply) override {
    auto [written] = co_await WhenAll(ctx, Ask(timeline, Timeline::kGet, request));
    if (!written.ok()) co_return written.status();
    if (written->ids().empty()) co_return absl::NotFoundError("no posts");
    reply->set_id(*written->ids().rbegin());
    auto [fetched] = co_await WhenAll(ctx, Ask(post, PostStorage::kFetch, *reply));
    if (fetched.ok()) *reply = *fetched;
    co_return fetched.status();
  }
  const PostStorage::Stub post;
  const Timeline::Stub timeline;
};

HostedService HostedUser() {
  return {.name = "user", .make = [](Env& env) {
            return std::make_unique<UserService>(env.Stub<PostStorage>("post"),
                                                 env.Stub<Timeline>("timeline"));
          }};
}

}  // namespace curtail::toy
