// SPDX-License-Identifier: Apache-2.0
//
// Front: composes posts and reads timelines by calling the others, several at once where it can.
#include <atomic>

#include "curtail/rpc/host.h"
#include "curtail/rpc/when_all.h"
#include "toy.curtail.h"

namespace curtail::toy {

struct FrontService final : Front::CoroutineService {
  explicit FrontService(Env& env)
      : text(env.Stub<Text>("text")),
        user(env.Stub<User>("user")),
        storage(env.Stub<PostStorage>("post")),
        timeline(env.Stub<Timeline>("timeline")) {}
  Coroutine Compose(Context& ctx, const Post& request, Post* reply) override {
    Person author;
    author.set_user(request.user());
    auto checked =
        co_await WhenAllOk(ctx, Ask(text, Text::kProcess, request.words()), Ask(user, User::kCheck, author));
    if (!checked.ok()) co_return checked.status();
    reply->set_id(request.user() + "-" + std::to_string(next.fetch_add(1)));
    reply->set_user(request.user());
    *reply->mutable_words() = std::get<0>(*checked);
    reply->set_author(std::get<1>(*checked).name());
    auto kept = co_await WhenAllOk(ctx, Ask(storage, PostStorage::kStore, *reply),
                                   Ask(timeline, Timeline::kAppend, *reply));
    co_return kept.status();
  }
  Coroutine Read(Context& ctx, const Person& request, Posts* reply) override {
    auto [written, newest] =
        co_await WhenAll(ctx, Ask(timeline, Timeline::kGet, request), Ask(user, User::kNewest, request));
    if (!written.ok()) co_return written.status();
    if (!newest.ok() && !absl::IsNotFound(newest.status())) co_return newest.status();
    std::vector<Post> wanted;
    for (const std::string& id : written->ids()) wanted.emplace_back().set_id(id);
    const std::vector<Channel*> channels(wanted.size(), storage.channel());
    for (auto& post : co_await fan_out(ctx, channels, PostStorage::kFetch, std::move(wanted))) {
      if (!post.ok()) co_return post.status();
      *reply->add_posts() = *std::move(post);
    }
    co_return absl::OkStatus();
  }
  const Text::Stub text;
  const User::Stub user;
  const PostStorage::Stub storage;
  const Timeline::Stub timeline;
  std::atomic<uint64_t> next{0};  // a counter only
};

HostedService HostedFront() {
  return {.name = "front", .make = [](Env& env) { return std::make_unique<FrontService>(env); }};
}

}  // namespace curtail::toy
