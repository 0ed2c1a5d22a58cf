// SPDX-License-Identifier: Apache-2.0
//
// Compose post: asks for all parts of a post at once, stores it, then tells the timelines.
//
// A post is acknowledged when it is stored, in its author's timeline and in the queues of the home timelines and of the
// search, and a reply or repost when it is listed with what it refers to. If one of these fails, the post is taken back, and
// its uploads wait for another one. The queues come last: where taking back fails, too, none has a post at home that is not
// in its author's timeline.
//
// Uploads are kept just before the post is stored. So if this process dies, a post that is stored has them. If it dies before
// that, they expire. If it dies between the two, or taking back fails, they stay for good without a post.
//
// Only what this call has made is taken back: a row that was there before it is another post's.
//
// A repost without a text is listed before it is stored, and an author has one of a post. If this process dies between the two,
// or taking back fails, one is listed that never comes about. The author's next repost of that post takes its place once it is
// older than any call: a post is stored within kMostTime of its id, or never. Only if post-storage stands still for a minute
// more, with the older one in hand, both are stored.
//
// A deletion is one write of post-storage, which hides the post. The caller waits a second for the rest. If that is not
// enough, or this process dies, a Finisher goes on.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <random>

#include "apps/kit/accounts/gone.h"
#include "apps/kit/accounts/id_source.h"
#include "apps/kit/forward.h"
#include "apps/kit/jobs/finisher.h"
#include "apps/kit/once.h"
#include "apps/kit/run_here.h"
#include "apps/social/common/posts.h"
#include "apps/social/data.h"
#include "content.curtail.h"
#include "curtail/base/log.h"
#include "curtail/base/strings.h"
#include "curtail/rpc/host.h"
#include "curtail/rpc/when_all.h"
#include "reactions.curtail.h"
#include "search.curtail.h"
#include "timelines.curtail.h"
#include "users.curtail.h"

namespace curtail::social {

constexpr Nanos kTakeBackTime = std::chrono::seconds(2), kFinishTime = std::chrono::seconds(1);
// Of a composition; and the age of a post that is stored by now, if it will ever be. Ids may be ten seconds ahead.
constexpr Nanos kMostTime = std::chrono::minutes(1);
constexpr std::chrono::milliseconds kSettledAge = std::chrono::minutes(2);
// Deleted posts that a caller waits for. There are several if a post is repeated.
constexpr int kMostWaitedFor = 16;

struct ComposePostService final : ComposePost::CoroutineService {
  explicit ComposePostService(Env& e)
      : env(e), finisher([this](absl::FunctionRef<bool()> stopping) { return FinishLeft(stopping); }) {
    finisher.WorkWhileServing(env);
  }

  Coroutine Compose(Context& ctx, const Draft& request, Post* reply) override {
    ctx.ShortenDeadline(Deadline::In(kMostTime));
    const apps::Once once(ctx, request.author());
    if (!once.named()) co_return co_await ComposeNew(ctx, once, request, reply);
    absl::Status status = co_await FindNamed(ctx, once, request.author(), reply);
    if (!status.ok() || reply->id() != 0) co_return status;
    status = co_await ComposeNew(ctx, once, request, reply);
    if (status.ok()) co_return status;
    // Another request of this name may have come first, and have the uploads.
    Post first;
    absl::Status found = co_await FindNamed(ctx, once, request.author(), &first);
    if (!found.ok() || first.id() == 0) co_return status;
    reply->Swap(&first);
    co_return absl::OkStatus();
  }

  Coroutine ComposeNew(Context& ctx, const apps::Once& once, const Draft& request, Post* reply) {
    const uint64_t repost = request.repost_of(), target = repost == 0 ? request.reply_to() : repost;
    if (request.text().empty() && request.media().empty() && repost == 0)
      co_return absl::InvalidArgumentError("an empty post");
    if (repost != 0 && request.reply_to() != 0)
      co_return absl::InvalidArgumentError("a post replies or reposts, not both");
    if (target != 0) {
      ViewRequest view;
      view.set_viewer(request.author());
      view.add_ids(target);
      auto [seen] = co_await WhenAll(ctx, Ask(read_post, ReadPost::kRead, view));
      if (!seen.ok()) co_return seen.status();
      if (seen->posts().empty()) co_return absl::NotFoundError("there is no such post to refer to");
      Refer(seen->posts(0), repost != 0, reply);
    }
    PlainText plain;
    plain.set_text(request.text());
    MediaItems items;
    *items.mutable_media() = request.media();
    items.set_owner(request.author());
    items.set_draft(drafts.fetch_add(1, std::memory_order_relaxed));
    items.set_keeps(true);
    IdCount one;
    one.set_count(1);
    // All are waited for, so that none comes after it was taken back.
    auto parts = co_await WhenAll(ctx, Ask(text, Text::kProcess, plain), Ask(media, Media::kCreate, items),
                                  Ask(unique_id, UniqueId::kNext, one),
                                  Ask(user, User::kById, IdOf(request.author())));
    auto& [processed, made_media, ids, people] = parts;
    absl::Status status = processed.status();
    for (const absl::Status& other : {made_media.status(), ids.status(), people.status()})
      status.Update(other);
    if (status.ok() && people->people_size() != 1) status = apps::GoneError();
    if (processed.ok()) {
      reply->mutable_text()->swap(*processed->mutable_text());
      reply->mutable_urls()->Swap(processed->mutable_urls());
      reply->mutable_mentions()->Swap(processed->mutable_mentions());
    }
    if (made_media.ok()) reply->mutable_media()->Swap(made_media->mutable_media());
    if (status.ok()) status = co_await Keep(ctx, UploadsOf(items));
    if (!status.ok()) {
      (co_await ForgetParts(ctx, items, *reply)).IgnoreError();
      co_return status;
    }
    reply->set_id(ids->ids(0));
    *reply->mutable_author() = people->people(0);
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    reply->set_created_ms(std::chrono::duration_cast<std::chrono::milliseconds>(now).count());

    Made made;
    status = co_await Store(ctx, once, *reply, &made);
    if (status.ok()) status = co_await Tell(ctx, once, *reply);
    if (!status.ok()) (co_await TakeBack(ctx, once, items, *reply, made)).IgnoreError();
    co_return status;
  }

  // The last steps for a post that is stored, and in its author's timeline.
  Coroutine Tell(Context& ctx, const apps::Once& once, const Post& post) {
    auto told = co_await WhenAllOk(ctx, Ask(write_home, WriteHomeTimeline::kEnqueue, JobOf(post, false)),
                                   Ask(search, Search::kEnqueue, IndexJobOf(post, false)));
    if (!told.ok() || !once.named()) co_return told.status();
    Context named(&ctx);
    once.HandOn(named);
    auto [acknowledged] = co_await WhenAll(named, Ask(storage, PostStorage::kAcknowledge, RefOf(post)));
    co_return acknowledged.status();
  }

  // For a post that the first request of this name has stored, and no more for sure. What is done twice is as once.
  Coroutine GoOn(Context& ctx, const apps::Once& once, const Post& post) {
    auto [listed] = co_await WhenAll(ctx, Ask(user_timeline, UserTimeline::kAppend, EntryOf(post)));
    if (!listed.ok()) co_return listed.status();
    co_return co_await Tell(ctx, once, post);
  }

  // Sets `*post` to the answer of the first request of this name, if there was one.
  Coroutine FindNamed(Context& ctx, const apps::Once& once, uint64_t author, Post* post) {
    Context named(&ctx);
    once.HandOn(named);
    UserId of;
    of.set_user(author);
    auto [first] = co_await WhenAll(named, Ask(storage, PostStorage::kFindNamed, of));
    if (!first.ok()) co_return first.status();
    post->Swap(first->mutable_post());
    if (post->id() == 0 || first->acknowledged()) co_return absl::OkStatus();
    co_return co_await GoOn(ctx, once, *post);
  }

  // The parts of a post that a call has made, or may have made; `entry` is that of its author's timeline. ALREADY_EXISTS says
  // that it has not.
  struct Made {
    bool reference = false, row = false, entry = false;
  };

  Coroutine Keep(Context& ctx, MediaItems uploads) {
    if (uploads.media().empty()) co_return absl::OkStatus();
    auto [kept] = co_await WhenAll(ctx, Ask(media, Media::kKeep, uploads));
    // A service from before Keep() has kept them since Create().
    co_return absl::IsUnimplemented(kept.status()) ? absl::OkStatus() : kept.status();
  }

  Coroutine TakeBack(Context& ctx, const apps::Once& once, const MediaItems& items, const Post& post,
                     Made made) {
    Context last(&ctx, Deadline::In(kTakeBackTime));
    if (made.row) {
      PostOfAuthor refused = RefOf(post);
      refused.set_refused(true);
      Context named(&last);
      once.HandOn(named);
      auto [deleted] = co_await WhenAll(named, Ask(storage, PostStorage::kDelete, refused));
      // A post that is still there stays in the timeline, with its parts.
      if (deleted.ok()) {
        (co_await FinishAll(last, *deleted)).IgnoreError();
      } else if (!absl::IsNotFound(deleted.status())) {
        co_return deleted.status();
      }
    }
    if (made.entry) co_await WhenAll(last, Ask(user_timeline, UserTimeline::kRemove, EntryOf(post)));
    if (made.reference) co_await WhenAll(last, Ask(repost_reply, RepostReply::kRemove, ReferenceOf(post)));
    co_return co_await ForgetParts(ctx, items, post);
  }

  // Of what was made for `items` and a post that does not come about. Uploads wait for another one.
  Coroutine ForgetParts(Context& ctx, const MediaItems& items, const Post& post) {
    Context last(&ctx, Deadline::In(kTakeBackTime));
    Ids described;
    for (int i = 0; i < std::min(items.media_size(), post.media_size()); ++i)
      if (items.media(i).id() == 0) described.add_ids(post.media(i).id());
    auto forgot = co_await WhenAllOk(last, Ask(url_shorten, UrlShorten::kDelete, UrlsOf(post)),
                                     Ask(media, Media::kRelease, UploadsOf(items)),
                                     Ask(media, Media::kDelete, described));
    co_return forgot.status();
  }

  // Also puts it into its author's timeline, which shows it once it is stored.
  // A reference comes first, as it may be refused: whoever follows it before the post is stored finds nothing yet.
  Coroutine Store(Context& ctx, const apps::Once& once, const Post& post, Made* made) {
    if (post.reply_to() != 0 || post.has_original()) {
      absl::Status added = co_await AddReference(ctx, ReferenceOf(post));
      made->reference = !absl::IsAlreadyExists(added);
      if (!added.ok()) co_return added;
    }
    // Both are waited for, so that none comes after it was taken back. An entry for another author's post shows nothing.
    Context named(&ctx);
    once.HandOn(named);
    auto [stored, listed] = co_await WhenAll(named, Ask(storage, PostStorage::kStore, post),
                                             Ask(user_timeline, UserTimeline::kAppend, EntryOf(post)));
    made->entry = !absl::IsAlreadyExists(stored.status());
    made->row = made->entry && !IsRefusal(stored);
    if (!made->entry) co_return absl::AbortedError("another post has the id of this one; try again");
    if (!stored.ok()) co_return stored.status();
    if (stored->post().id() != 0) co_return absl::AbortedError("another request of this name came first");
    co_return listed.status();
  }

  // The post is surely not stored: what it refers to, or its author, is gone, or another request of its name came first.
  static bool IsRefusal(const absl::StatusOr<Named>& stored) {
    if (stored.ok()) return stored->post().id() != 0;
    return absl::IsNotFound(stored.status()) || absl::IsUnauthenticated(stored.status());
  }

  Coroutine AddReference(Context& ctx, Reference reference) {
    auto [added] = co_await WhenAll(ctx, Ask(repost_reply, RepostReply::kAdd, reference));
    if (!absl::IsAlreadyExists(added.status()) || !reference.bare()) co_return added.status();
    uint64_t left = 0;
    absl::Status found = co_await FindLeft(ctx, reference, &left);
    if (!found.ok()) co_return found;
    if (left == 0) co_return added.status();
    reference.set_instead_of(left);
    auto [taken] = co_await WhenAll(ctx, Ask(repost_reply, RepostReply::kAdd, reference));
    co_return taken.status();
  }

  // Sets `*left` to the repost that is listed in the place of this one, if it was never stored and never will be.
  Coroutine FindLeft(Context& ctx, const Reference& reference, uint64_t* left) {
    auto [known] = co_await WhenAll(ctx, Ask(repost_reply, RepostReply::kFind, reference));
    if (absl::IsUnimplemented(known.status())) co_return absl::OkStatus();  // a service from before Find()
    if (!known.ok()) co_return known.status();
    if (known->post() == 0 || known->post() >= apps::IdBefore(reference.post(), kSettledAge))
      co_return absl::OkStatus();
    auto [stored] = co_await WhenAll(ctx, Ask(storage, PostStorage::kRead, IdOf(known->post())));
    if (!stored.ok()) co_return stored.status();
    if (stored->posts().empty()) *left = known->post();
    co_return absl::OkStatus();
  }

  Coroutine Delete(Context& ctx, const PostOfAuthor& request, Nothing*) override {
    Context named(&ctx);
    apps::Once(ctx, request.author()).HandOn(named);
    auto [deleted] = co_await WhenAll(named, Ask(storage, PostStorage::kDelete, request));
    if (!deleted.ok()) co_return deleted.status();
    Context soon(&ctx);
    soon.ShortenDeadline(Deadline::In(kFinishTime));
    (co_await FinishAll(soon, *deleted)).IgnoreError();
    co_return absl::OkStatus();
  }

  Coroutine Finish(Context& ctx, const Post& post, Nothing*) override {
    const Ids id = IdOf(post.id());
    // All are waited for, so that each comes as far as it can.
    const auto told = co_await WhenAll(
        ctx, Ask(user_timeline, UserTimeline::kRemove, EntryOf(post)),
        Ask(write_home, WriteHomeTimeline::kEnqueue, JobOf(post, true)),
        Ask(search, Search::kEnqueue, IndexJobOf(post, true)),
        Ask(url_shorten, UrlShorten::kDelete, UrlsOf(post)), Ask(media, Media::kDelete, MediaOf(post)),
        Ask(media_frontend, MediaFrontend::kDelete, MediaOf(post)), Ask(favorite, Favorite::kForget, id),
        Ask(repost_reply, RepostReply::kForget, id));
    if (absl::Status status = apps::FirstErrorOf(told); !status.ok()) co_return status;
    auto [settled] = co_await WhenAll(ctx, Ask(storage, PostStorage::kSettle, id));
    co_return settled.status();
  }

  Coroutine FinishAll(Context& ctx, const Posts& deleted) {
    absl::Status status;
    for (int i = 0; i < std::min(deleted.posts_size(), kMostWaitedFor); ++i)
      status.Update(co_await Finish(ctx, deleted.posts(i), nullptr));
    co_return status;
  }

  // A round of the finisher.
  absl::Status FinishLeft(absl::FunctionRef<bool()> stopping) {
    absl::Status status;
    PostsOfAuthor page;
    Posts left;
    do {
      left.Clear();
      Context ctx(kFinishTime);
      if (absl::Status listed = storage.ListDeleted(ctx, page, &left); !listed.ok()) return listed;
      for (const Post& post : left.posts()) {
        if (stopping()) return status;
        Context one(kFinishTime);
        status.Update(apps::RunHere(Finish(one, post, nullptr)));
        page.set_after(post.id());
      }
    } while (!left.posts().empty());
    return status;
  }

  std::vector<DeclaredPath> Paths() const override {
    const std::vector<PathCall> deletion = {storage,  user_timeline, write_home, url_shorten,   media,
                                            favorite, repost_reply,  search,     media_frontend};
    return {{"Compose",
             {text, media, unique_id, user, url_shorten, storage, user_timeline, write_home, read_post,
              repost_reply, search, media_frontend, favorite}},
            {"Delete", deletion},
            {"Finish", deletion}};
  }

  // Has `post` refer to `target`. Whoever repeats a repost without a text repeats what that repeats.
  static void Refer(const Post& target, bool repost, Post* post) {
    if (!repost) return post->set_reply_to(target.id());
    const Post& original = IsBareRepost(target) ? target.original() : target;
    post->mutable_original()->set_id(original.id());
    *post->mutable_original()->mutable_author() = original.author();
  }
  static Reference ReferenceOf(const Post& post) {
    Reference reference;
    reference.set_post(post.id());
    reference.set_author(post.author().id());
    reference.set_repost(post.has_original());
    reference.set_bare(IsBareRepost(post));
    reference.set_of(post.has_original() ? post.original().id() : post.reply_to());
    return reference;
  }
  static Ids IdOf(uint64_t id) {
    Ids ids;
    ids.add_ids(id);
    return ids;
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
  static apps::IndexJob IndexJobOf(const Post& post, bool remove) {
    apps::IndexJob job;
    job.set_id(post.id());
    if (!remove) job.set_text(post.text());
    job.set_remove(remove);
    return job;
  }
  static Urls UrlsOf(const Post& post) {
    Urls urls;
    *urls.mutable_urls() = post.urls();
    return urls;
  }
  static MediaItems UploadsOf(const MediaItems& items) {
    MediaItems uploads;
    uploads.set_draft(items.draft());
    for (const MediaItem& item : items.media())
      if (item.id() != 0) uploads.add_media()->set_id(item.id());
    return uploads;
  }
  static Ids MediaOf(const Post& post) {
    Ids ids;
    for (const MediaItem& item : post.media()) ids.add_ids(item.id());
    return ids;
  }

  std::random_device seed;
  // Atomic; relaxed, a count from a random number on: of this process and this start.
  std::atomic<uint64_t> drafts{std::uniform_int_distribution<uint64_t>(1, uint64_t{1} << 62)(seed)};
  Env& env;
  const Text::Stub text = env.Stub<Text>("text");
  const Media::Stub media = env.Stub<Media>("media");
  const MediaFrontend::Stub media_frontend = env.Stub<MediaFrontend>("media-frontend");
  const UniqueId::Stub unique_id = env.Stub<UniqueId>("unique-id");
  const User::Stub user = env.Stub<User>("user");
  const UrlShorten::Stub url_shorten = env.Stub<UrlShorten>("url-shorten");
  const PostStorage::Stub storage = env.Stub<PostStorage>("post-storage");
  const ReadPost::Stub read_post = env.Stub<ReadPost>("read-post");
  const Favorite::Stub favorite = env.Stub<Favorite>("favorite");
  const RepostReply::Stub repost_reply = env.Stub<RepostReply>("repost-reply");
  const Search::Stub search = env.Stub<Search>("search");
  const UserTimeline::Stub user_timeline = env.Stub<UserTimeline>("user-timeline");
  const WriteHomeTimeline::Stub write_home = env.Stub<WriteHomeTimeline>("write-home-timeline");
  apps::Finisher finisher;
};

HostedService HostedComposePost() {
  return {.name = "compose-post", .make = [](Env& env) { return std::make_unique<ComposePostService>(env); }};
}

}  // namespace curtail::social
