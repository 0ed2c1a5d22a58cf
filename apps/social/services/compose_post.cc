// SPDX-License-Identifier: Apache-2.0
//
// Compose post: asks for all parts of a post at once, stores it, then tells the timelines.
//
// A post is acknowledged when it is stored, in its author's timeline and in the queue of the home timelines. If one of
// these fails, the post is taken back. Deletion goes the other way round and ends with the post itself, so that one
// that failed half way can be repeated.
#include <chrono>

#include "content.curtail.h"
#include "curtail/rpc/host.h"
#include "curtail/rpc/when_all.h"
#include "timelines.curtail.h"
#include "users.curtail.h"

namespace curtail::social {

constexpr Nanos kTakeBackTime = std::chrono::seconds(2);

struct ComposePostService final : ComposePost::CoroutineService {
  explicit ComposePostService(Env& env)
      : text(env.Stub<Text>("text")),
        media(env.Stub<Media>("media")),
        unique_id(env.Stub<UniqueId>("unique-id")),
        user(env.Stub<User>("user")),
        url_shorten(env.Stub<UrlShorten>("url-shorten")),
        storage(env.Stub<PostStorage>("post-storage")),
        user_timeline(env.Stub<UserTimeline>("user-timeline")),
        write_home(env.Stub<WriteHomeTimeline>("write-home-timeline")) {}

  Coroutine Compose(Context& ctx, const Draft& request, Post* reply) override {
    if (request.text().empty() && request.media().empty())
      co_return absl::InvalidArgumentError("an empty post");
    PlainText plain;
    plain.set_text(request.text());
    MediaItems items;
    *items.mutable_media() = request.media();
    IdCount one;
    one.set_count(1);
    Ids author;
    author.add_ids(request.author());
    auto parts = co_await WhenAllOk(ctx, Ask(text, Text::kProcess, plain), Ask(media, Media::kCreate, items),
                                    Ask(unique_id, UniqueId::kNext, one), Ask(user, User::kById, author));
    if (!parts.ok()) co_return parts.status();
    auto& [processed, kept_media, ids, people] = *parts;
    if (people.people_size() != 1) co_return absl::NotFoundError("there is no such author");
    reply->set_id(ids.ids(0));
    *reply->mutable_author() = people.people(0);
    reply->mutable_text()->swap(*processed.mutable_text());
    reply->mutable_urls()->Swap(processed.mutable_urls());
    reply->mutable_mentions()->Swap(processed.mutable_mentions());
    reply->mutable_media()->Swap(kept_media.mutable_media());
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    reply->set_created_ms(std::chrono::duration_cast<std::chrono::milliseconds>(now).count());

    auto [stored] = co_await WhenAll(ctx, Ask(storage, PostStorage::kStore, *reply));
    absl::Status status = stored.status();
    if (status.ok()) {
      auto told = co_await WhenAllOk(ctx, Ask(user_timeline, UserTimeline::kAppend, EntryOf(*reply)),
                                     Ask(write_home, WriteHomeTimeline::kEnqueue, JobOf(*reply, false)));
      status = told.status();
    }
    if (!status.ok()) {
      Context last(&ctx, Deadline::In(kTakeBackTime));
      co_await WhenAll(last, Ask(storage, PostStorage::kDelete, RefOf(*reply)),
                       Ask(url_shorten, UrlShorten::kDelete, UrlsOf(*reply)),
                       Ask(media, Media::kDelete, MediaOf(*reply)));
    }
    co_return status;
  }

  Coroutine Delete(Context& ctx, const PostOfAuthor& request, Nothing*) override {
    Ids id;
    id.add_ids(request.post());
    auto [found] = co_await WhenAll(ctx, Ask(storage, PostStorage::kRead, id));
    if (!found.ok()) co_return found.status();
    if (found->posts().empty()) co_return absl::NotFoundError("there is no such post");
    const Post& post = found->posts(0);
    if (post.author().id() != request.author())
      co_return absl::PermissionDeniedError("the post is another's");
    auto told = co_await WhenAllOk(ctx, Ask(user_timeline, UserTimeline::kRemove, EntryOf(post)),
                                   Ask(write_home, WriteHomeTimeline::kEnqueue, JobOf(post, true)),
                                   Ask(url_shorten, UrlShorten::kDelete, UrlsOf(post)),
                                   Ask(media, Media::kDelete, MediaOf(post)));
    if (!told.ok()) co_return told.status();
    auto [deleted] = co_await WhenAll(ctx, Ask(storage, PostStorage::kDelete, request));
    co_return deleted.status();
  }

  std::vector<DeclaredPath> Paths() const override {
    const std::string stored(PostStorage::kServiceName), media_of(Media::kServiceName);
    const std::string urls(UrlShorten::kServiceName), own(UserTimeline::kServiceName);
    const std::string homes(WriteHomeTimeline::kServiceName);
    return {{"Compose",
             {std::string(Text::kServiceName), media_of, std::string(UniqueId::kServiceName),
              std::string(User::kServiceName), urls, stored, own, homes}},
            {"Delete", {stored, own, homes, urls, media_of}}};
  }

  static PostOfAuthor RefOf(const Post& post) {
    PostOfAuthor ref;
    ref.set_post(post.id());
    ref.set_author(post.author().id());
    return ref;
  }
  static TimelineEntry EntryOf(const Post& post) {
    TimelineEntry entry;
    entry.set_user(post.author().id());
    entry.set_post(post.id());
    return entry;
  }
  static FanOutJob JobOf(const Post& post, bool remove) {
    FanOutJob job;
    job.set_post(post.id());
    job.set_author(post.author().id());
    for (const Person& mentioned : post.mentions()) job.add_mentioned(mentioned.id());
    job.set_remove(remove);
    return job;
  }
  static Urls UrlsOf(const Post& post) {
    Urls urls;
    *urls.mutable_urls() = post.urls();
    return urls;
  }
  static Ids MediaOf(const Post& post) {
    Ids ids;
    for (const MediaItem& item : post.media()) ids.add_ids(item.id());
    return ids;
  }

  const Text::Stub text;
  const Media::Stub media;
  const UniqueId::Stub unique_id;
  const User::Stub user;
  const UrlShorten::Stub url_shorten;
  const PostStorage::Stub storage;
  const UserTimeline::Stub user_timeline;
  const WriteHomeTimeline::Stub write_home;
};

HostedService HostedComposePost() {
  return {.name = "compose-post",
          .calls = {"text", "media", "unique-id", "user", "url-shorten", "post-storage", "user-timeline",
                    "write-home-timeline"},
          .make = [](Env& env) { return std::make_unique<ComposePostService>(env); }};
}

}  // namespace curtail::social
