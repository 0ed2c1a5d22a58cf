// SPDX-License-Identifier: Apache-2.0
//
// Compose review: gathers the five parts of a review, which five services put at once, and stores it.
//
//  1  Each part sets its bit in the cache, by compare and set. So a part that is put again counts once, and one call at least
//     finds the review complete. Parts that the cache loses make no review.
//  2  That call stores the review as pending, then lists it for its author and its movie and counts its stars, all at once.
//  3  The acknowledgement is one write of review-storage. Until then nobody sees the review.
//
// If a step fails, the call takes the review back, which is one write of review-storage, too. It removes the review from the
// lists afterwards. If this process dies, a Finisher takes back what stays pending. Each step may be repeated, and
// a late one changes nothing.
#include <chrono>

#include "apps/kit/forward.h"
#include "apps/kit/jobs/finisher.h"
#include "apps/kit/run_here.h"
#include "apps/kit/wall_clock.h"
#include "apps/media/data.h"
#include "curtail/base/strings.h"
#include "curtail/exec/aside.h"
#include "curtail/store/memcached.h"

namespace curtail::media {

constexpr Nanos kTakeBackTime = std::chrono::seconds(2);
constexpr uint32_t kAllParts = 0b11111;

struct ComposeReviewService final : ComposeReview::CoroutineService {
  ComposeReviewService(StoreAddress address, Env& e)
      : cache(std::move(address)), env(e), finisher([this](auto stopping) { return FinishLeft(stopping); }) {
    finisher.WorkWhileServing(env);
  }

  Coroutine Put(Context& ctx, const Part& request, Composed* reply) override {
    if (request.part_case() == Part::PART_NOT_SET) co_return absl::InvalidArgumentError("there is no part");
    Composition all;
    absl::Status status = co_await Aside([&] { return Gather(ctx.deadline(), request, &all); });
    if (!status.ok() || all.have() != kAllParts) co_return status;
    all.mutable_review()->set_created_ms(apps::NowMs());
    co_return co_await Store(ctx, all.review(), reply->mutable_review());
  }

  // Sets `*all` to what has come so far, this part included.
  absl::Status Gather(Deadline deadline, const Part& part, Composition* all) {
    const std::string key = Join("compose", part.request());
    const uint32_t bit = 1u << (part.part_case() - Part::kReview);
    bool found = false, stored = false;
    while (!stored) {
      std::string bytes;
      uint64_t version = 0;
      if (absl::Status got = cache.GetVersioned(key, deadline, &found, &bytes, &version); !got.ok())
        return got;
      all->Clear();
      if (found && !all->ParseFromString(bytes)) return absl::DataLossError("the cache has no composition");
      if ((all->have() & bit) != 0) return absl::OkStatus();
      all->set_have(all->have() | bit);
      Add(part, all->mutable_review());
      bytes = all->SerializeAsString();
      absl::Status set = found ? cache.Replace(key, bytes, version, deadline, &stored)
                               : cache.Set(key, bytes, /*if_absent=*/true, deadline, &stored);
      if (!set.ok()) return set;
    }
    return absl::OkStatus();
  }

  static void Add(const Part& part, Review* review) {
    if (part.has_movie()) {
      review->set_movie(part.movie().id());
      review->set_title(part.movie().title());
      review->set_year(part.movie().year());
    } else if (part.has_opinion()) {
      review->set_stars(part.opinion().stars());
      review->set_viewing(part.opinion().viewing());
    } else if (part.has_author()) {
      *review->mutable_author() = part.author();
    } else if (part.part_case() == Part::kText) {
      review->set_text(part.text());
    } else {
      review->set_id(part.review());
    }
  }

  Coroutine Store(Context& ctx, const Review& review, Review* reply) {
    Context named(&ctx);
    apps::Once(ctx, review.author().id()).HandOn(named);
    auto [stored] = co_await WhenAll(named, Ask(storage, ReviewStorage::kStore, review));
    // After these errors nothing was stored.
    if (absl::IsAlreadyExists(stored.status()) || absl::IsAborted(stored.status())) co_return stored.status();
    if (!stored.ok()) co_return co_await TakeBack(ctx, review, stored.status());
    *reply = *std::move(stored);
    const ReviewRef ref = RefOf(*reply);
    const auto listed =
        co_await WhenAll(ctx, Ask(user_review, UserReview::kAdd, ref),
                         Ask(movie_review, MovieReview::kAdd, ref), Ask(rating, Rating::kAdd, ref));
    absl::Status status = apps::FirstErrorOf(listed);
    if (status.ok()) {
      auto [acknowledged] =
          co_await WhenAll(ctx, Ask(storage, ReviewStorage::kAcknowledge, IdsOf(reply->id())));
      status = acknowledged.status();
    }
    if (!status.ok()) status = co_await TakeBack(ctx, *reply, status);
    if (!status.ok()) reply->Clear();
    co_return status;
  }

  // Ends with `why`; or well, as the review is acknowledged.
  Coroutine TakeBack(Context& ctx, const Review& review, absl::Status why) {
    Context last(&ctx, Deadline::In(kTakeBackTime));
    auto [deleted] = co_await WhenAll(last, Ask(storage, ReviewStorage::kDelete, review));
    if (absl::IsFailedPrecondition(deleted.status())) co_return absl::OkStatus();
    if (!deleted.ok()) co_return why;
    const ReviewRef ref = RefOf(review);
    const auto removed =
        co_await WhenAll(last, Ask(user_review, UserReview::kRemove, ref),
                         Ask(movie_review, MovieReview::kRemove, ref), Ask(rating, Rating::kRemove, ref));
    if (apps::FirstErrorOf(removed).ok())
      co_await WhenAll(last, Ask(storage, ReviewStorage::kSettle, IdsOf(review.id())));
    co_return why;
  }

  // A round of the finisher.
  absl::Status FinishLeft(absl::FunctionRef<bool()> stopping) {
    apps::IdPage page;
    ReviewList left;
    do {
      left.Clear();
      Context ctx(kTakeBackTime);
      if (absl::Status listed = storage.ListLeft(ctx, page, &left); !listed.ok()) return listed;
      for (const Review& review : left.reviews()) {
        if (stopping()) return absl::OkStatus();
        Context one(kTakeBackTime);
        apps::RunHere(TakeBack(one, review, absl::OkStatus())).IgnoreError();
        page.set_after(review.id());
      }
    } while (!left.reviews().empty());
    return absl::OkStatus();
  }

  static ReviewRef RefOf(const Review& review) {
    ReviewRef ref;
    ref.set_review(review.id());
    ref.set_movie(review.movie());
    ref.set_author(review.author().id());
    ref.set_stars(review.stars());
    return ref;
  }

  std::vector<DeclaredPath> Paths() const override {
    return {{"Put", {storage, user_review, movie_review, rating}}};
  }

  Memcached cache;
  Env& env;
  const ReviewStorage::Stub storage = env.Stub<ReviewStorage>("review-storage");
  const UserReview::Stub user_review = env.Stub<UserReview>("user-review");
  const MovieReview::Stub movie_review = env.Stub<MovieReview>("movie-review");
  const Rating::Stub rating = env.Stub<Rating>("rating");
  apps::Finisher finisher;
};

HostedService HostedComposeReview() {
  return {.name = "compose-review", .stores = {"compose-cache"}, .make = [](Env& env) -> MadeService {
            auto address = StoreAddress::Parse(env.Store("compose-cache").front());
            if (!address.ok()) return address.status();
            return std::make_unique<ComposeReviewService>(*std::move(address), env);
          }};
}

}  // namespace curtail::media
