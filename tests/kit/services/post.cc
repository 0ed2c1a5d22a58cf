// SPDX-License-Identifier: Apache-2.0
//
// Post: keeps posts in a memcached, and has user name their authors.
#include "curtail/rpc/host.h"
#include "curtail/rpc/when_all.h"
#include "curtail/store/memcached.h"
#include "toy.curtail.h"

namespace curtail::toy {

struct PostService final : PostStorage::CoroutineService {
  PostService(User::Stub stub, StoreAddress address) : user(stub), cache(std::move(address)) {}
  Coroutine Store(Context& ctx, const Post& request, Post* reply) override {
    bool stored = false;
    *reply = request;
    co_return cache.Set(request.id(), request.SerializeAsString(), false, ctx.deadline(), &stored);
  }
  Coroutine Fetch(Context& ctx, const Post& request, Post* reply) override {
    bool found = false;
    std::string bytes;
    if (absl::Status got = cache.Get(request.id(), ctx.deadline(), &found, &bytes); !got.ok()) co_return got;
    if (!found || !reply->ParseFromString(bytes)) co_return absl::NotFoundError("no such post");
    Person author;
    author.set_user(reply->user());
    auto [checked] = co_await WhenAll(ctx, Ask(user, User::kCheck, author));
    if (checked.ok()) reply->set_author(checked->name());
    co_return checked.status();
  }
  const User::Stub user;
  Memcached cache;
};

HostedService HostedPost() {
  return {.name = "post", .stores = {"post-cache"}, .make = [](Env& env) -> MadeService {
            auto address = StoreAddress::Parse(env.Store("post-cache").front());
            if (!address.ok()) return address.status();
            return std::make_unique<PostService>(env.Stub<User>("user"), *address);
          }};
}

}  // namespace curtail::toy
