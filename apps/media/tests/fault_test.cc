// SPDX-License-Identifier: Apache-2.0
//
// Users write reviews while services die, stand still and have no room.
//
// Property of reviews: an acknowledged review is in both lists once, as it was written. One that was refused as the second of a viewing has a
// first. Once the application is idle, a review is in both lists or in none, and the ratings are the sums of the lists.
//
// Property of money: an acknowledged rental is ACTIVE, or REFUNDED if its refund was sent, and a request has one rental. Once the application
// is idle, a wallet has its deposits, less the price of each rental that is ACTIVE. The books agree (`media audit`), which
// means that no transaction creates money, no wallet was ever below 0, and a refused rental holds nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "apps/kit/testing/actors.h"
#include "apps/kit/testing/faults.h"
#include "apps/media/tests/media_testing.h"
#include "curtail/base/strings.h"

namespace curtail::media {
namespace {

constexpr size_t kMovies = 5, kActors = 4;
constexpr uint64_t kViewings = 1000;
// Short, so that a service that stands still does not hold up the test.
constexpr Nanos kPatience = std::chrono::milliseconds(500);

class MediaFaults : public PartedMediaTest {
 protected:
  // The user, the movie and the viewing.
  using Key = std::tuple<size_t, size_t, uint64_t>;

  static bool IsOfFault(const absl::Status& status) {
    return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
           absl::IsResourceExhausted(status);
  }

  // Half of the requests have a name, and are repeated once if their outcome is unknown.
  apps::Actors::Did ComposeOne(Rng& rng) {
    const Key key(rng.Below(kUsers), rng.Below(kMovies), rng.Below(kViewings));
    const auto [user, movie, viewing] = key;
    const uint64_t number = next_.fetch_add(1);
    ReviewRequest request =
        ReviewOf(user, movie, Join("review ", number), static_cast<uint32_t>(rng.Below(11)));
    request.set_viewing(viewing);
    const std::string name = rng.Below(2) == 0 ? Join("request ", number) : "";
    {
      const std::lock_guard lock(mu_);
      written_.emplace(request.text(), key);
    }
    Review review;
    absl::Status status = Compose(request, &review, name, kPatience);
    if (!name.empty() && IsOfFault(status)) status = Compose(request, &review, name, kPatience);
    const std::lock_guard lock(mu_);
    if (status.ok()) {
      EXPECT_EQ(review.text(), request.text());
      EXPECT_TRUE(acknowledged_.emplace(review.id(), review.SerializeAsString()).second) << "twice";
      return apps::Actors::Did::kWrote;
    }
    if (absl::IsAlreadyExists(status)) {
      second_.insert(key);
    } else {
      EXPECT_TRUE(IsOfFault(status) || absl::IsAborted(status)) << status;
    }
    return apps::Actors::Did::kFailedToWrite;
  }

  struct Lists {
    std::map<uint64_t, std::string> of_movies, of_users;
    std::vector<RatingSum> stars{kMovies};  // of the lists
  };

  // Empty if the lists, the ratings and the answers are of one state.
  std::string Complaint() {
    Lists all;
    for (size_t i = 0; i < kMovies + kUsers; ++i) {
      std::vector<Review> reviews;
      const absl::Status read = i < kMovies ? ListOfMovie(i, &reviews) : ListOfUser(i - kMovies, &reviews);
      if (!read.ok()) return read.ToString();
      for (const Review& review : reviews) {
        auto& list = i < kMovies ? all.of_movies : all.of_users;
        if (!list.emplace(review.id(), review.SerializeAsString()).second) return Join(review.id(), " twice");
        if (i >= kMovies) continue;
        all.stars[i].set_reviews(all.stars[i].reviews() + 1);
        all.stars[i].set_stars(all.stars[i].stars() + review.stars());
      }
    }
    if (all.of_movies != all.of_users) return "the lists of movies and of users differ";
    for (size_t movie = 0; movie < kMovies; ++movie) {
      RatingSum sum;
      if (absl::Status read = Rating(movie, &sum); !read.ok()) return read.ToString();
      if (sum.SerializeAsString() != all.stars[movie].SerializeAsString())
        return Join("the sums of movie ", movie, " are ", sum.ShortDebugString(), ", not ",
                    all.stars[movie].ShortDebugString());
    }
    return ComplaintOfAnswers(all);
  }

  std::string ComplaintOfAnswers(const Lists& all) {
    const std::lock_guard lock(mu_);
    std::set<Key> viewings;
    for (const auto& [id, bytes] : all.of_movies) {
      Review review;
      review.ParseFromString(bytes);
      const auto written = written_.find(review.text());
      if (written == written_.end()) return "nobody wrote " + review.text();
      if (!viewings.insert(written->second).second)
        return Join("two reviews of the viewing of ", review.text());
    }
    for (const auto& [id, bytes] : acknowledged_) {
      const auto listed = all.of_movies.find(id);
      if (listed == all.of_movies.end()) return Join(id, " is lost");
      if (listed->second != bytes) return Join(id, " has changed");
    }
    for (const Key& key : second_) {
      if (!viewings.contains(key))
        return "a review was refused as a second one, but no first one was acknowledged";
    }
    return {};
  }

  void ExpectOneStateWhenIdle() {
    const Deadline deadline = Deadline::In(kMaxTestWait);
    std::string complaint;
    while (!(complaint = Complaint()).empty() && !deadline.Expired()) BetweenLooks();
    EXPECT_EQ(complaint, "");
  }

  const uint64_t seed_ = TestSeed();
  std::atomic<uint64_t> next_{0};
  std::mutex mu_;  // guards the next three while users act
  std::map<std::string, Key> written_;
  std::map<uint64_t, std::string> acknowledged_;
  std::set<Key> second_;
  apps::Actors actors_;  // ends first
};

TEST_F(MediaFaults, WhatWasAcknowledgedIsKeptStress) {
  apps::FaultSchedule schedule(seed_, &actors_);
  for (const char* kept : {"review-storage", "user-review", "movie-review", "rating", "compose-review"})
    schedule.Add(apps::KillOf(app_.get(), kept));
  schedule.Add(apps::KillOf(app_.get(), "compose-cache"));
  schedule.AddOneOf({apps::KillOf(app_.get(), "review-cache"), apps::KillOf(app_.get(), "movie-cache")});
  schedule.AddOneOf({apps::KillOf(app_.get(), "unique-id"), apps::KillOf(app_.get(), "user"),
                     apps::KillOf(app_.get(), "text"), apps::KillOf(app_.get(), "movie-id"),
                     apps::KillOf(app_.get(), "movie-info"), apps::KillOf(app_.get(), "front-end")});
  schedule.AddOneOf({apps::StallOf(app_.get(), "user-review"), apps::StallOf(app_.get(), "compose-review")});
  schedule.AddOneOf(
      {apps::StallOf(app_.get(), "review-storage"), apps::StallOf(app_.get(), "compose-cache")});
  for (const char* kept : {"review-storage", "user-review"})
    schedule.Add(apps::FullDiskOf(app_.get(), kept, /*refuses=*/true));
  for (size_t i = 0; i < kActors; ++i)
    actors_.Begin(seed_ + i, [this](Rng& rng) { actors_.Note(ComposeOne(rng)); });
  schedule.Run();
  actors_.Rest();
  const absl::Status quiet = app_->AwaitQuiet(Deadline::In(kMaxTestWait));
  EXPECT_TRUE(quiet.ok()) << quiet;
  EXPECT_FALSE(acknowledged_.empty());
  ExpectOneStateWhenIdle();
}

TEST_F(MediaFaults, AReviewWhoseServiceDiesBetweenStepsIsTakenBack) {
  app_->Stall("movie-review");
  const ReviewRequest request = ReviewOf(0, 0, "half way", 9);
  written_.emplace(request.text(), Key(0, 0, 0));
  Review review;
  EXPECT_TRUE(absl::IsDeadlineExceeded(Compose(request, &review, "a key", kPatience)));
  app_->Kill("compose-review");
  app_->GoOn("movie-review");
  std::vector<Review> listed;
  ASSERT_TRUE(ListOfUser(0, &listed).ok());
  EXPECT_TRUE(listed.empty()) << "it is not acknowledged";
  ASSERT_TRUE(app_->Restart("compose-review").ok());
  ExpectOneStateWhenIdle();
  const Deadline deadline = Deadline::In(kMaxTestWait);
  absl::Status again;
  do again = Compose(request, &review, "a key");
  while (absl::IsAborted(again) && !deadline.Expired());
  ASSERT_TRUE(again.ok()) << again;
  acknowledged_.emplace(review.id(), review.SerializeAsString());
  ExpectOneStateWhenIdle();
}

TEST_F(MediaFaults, AReviewThatIsNotAcknowledgedMakesNoOtherTheSecond) {
  app_->Stall("movie-review");
  apps::AllAtOnce(kActors, seed_, [&](Rng&, size_t actor) {
    Review review;
    const absl::Status status = Compose(ReviewOf(0, 0, Join("at once ", actor), 1), &review, {}, kPatience);
    EXPECT_TRUE(IsOfFault(status) || absl::IsAborted(status)) << status;
  });
  app_->GoOn("movie-review");
}

class MoneyFaults : public MediaFaults {
 protected:
  static constexpr int64_t kPaidIn = 300;
  // The answers that a user got, and its requests.
  struct Known {
    std::map<std::string, uint64_t> rentals;  // by the name of the request, as acknowledged
    std::set<uint64_t> refunds;               // sent
    std::set<uint64_t> refunded;              // acknowledged
    int64_t deposits = kDeposit;
    std::vector<std::string> unanswered;  // of the deposits
  };

  apps::Actors::Did ActOnce(Rng& rng) {
    const size_t user = rng.Below(kUsers);
    const uint64_t act = rng.Below(10), number = next_.fetch_add(1);
    if (act < 2) return RefundOne(rng, user);
    if (act < 3) return PayIn(user, Join("deposit ", number));
    return RentOne(rng, user, Join("request ", number));
  }

  // Each request is repeated once if its outcome is unknown, or it was refused.
  apps::Actors::Did RentOne(Rng& rng, size_t user, const std::string& name) {
    const size_t movie = rng.Below(kMovies);
    const auto days = 1 + static_cast<uint32_t>(rng.Below(3));
    Rental rental;
    absl::Status status = RentMovie(user, movie, days, &rental, name, kPatience);
    if (!status.ok()) status = RentMovie(user, movie, days, &rental, name, kPatience);
    if (!status.ok()) {
      EXPECT_TRUE(IsOfFault(status) || absl::IsFailedPrecondition(status)) << status;
      return absl::IsFailedPrecondition(status) ? apps::Actors::Did::kOther
                                                : apps::Actors::Did::kFailedToWrite;
    }
    EXPECT_EQ(rental.movie(), films_[movie].id);
    const std::lock_guard lock(mu_);
    known_[user].rentals[name] = rental.id();
    return apps::Actors::Did::kWrote;
  }

  apps::Actors::Did RefundOne(Rng& rng, size_t user) {
    uint64_t id = 0;
    {
      const std::lock_guard lock(mu_);
      const auto& rentals = known_[user].rentals;
      if (rentals.empty()) return apps::Actors::Did::kOther;
      id = std::next(rentals.begin(), static_cast<ptrdiff_t>(rng.Below(rentals.size())))->second;
      known_[user].refunds.insert(id);
    }
    Rental rental;
    const absl::Status status = RefundRental(user, id, &rental, kPatience);
    EXPECT_TRUE(status.ok() || IsOfFault(status)) << status;
    if (!status.ok()) return apps::Actors::Did::kFailedToWrite;
    const std::lock_guard lock(mu_);
    known_[user].refunded.insert(id);
    return apps::Actors::Did::kWrote;
  }

  // A deposit without an answer is repeated in the end.
  apps::Actors::Did PayIn(size_t user, const std::string& name) {
    Wallet wallet;
    const absl::Status status = Deposit(user, kPaidIn, &wallet, name, kPatience);
    EXPECT_TRUE(status.ok() || IsOfFault(status)) << status;
    const std::lock_guard lock(mu_);
    known_[user].deposits += kPaidIn;
    if (!status.ok()) known_[user].unanswered.push_back(name);
    return status.ok() ? apps::Actors::Did::kWrote : apps::Actors::Did::kFailedToWrite;
  }

  void ExpectMoneyToBeRight(size_t user) {
    const Known& known = known_[user];
    for (const std::string& name : known.unanswered) {
      Wallet wallet;
      const absl::Status status = Deposit(user, kPaidIn, &wallet, name);
      EXPECT_TRUE(status.ok()) << status;
    }
    std::map<uint64_t, Rental> rentals;
    int64_t cents = known.deposits;
    for (const Rental& rental : RentalsOf(user)) {
      EXPECT_NE(rental.state(), Rental::PENDING) << rental.ShortDebugString();
      if (rental.state() == Rental::ACTIVE) cents -= rental.cents();
      rentals[rental.id()] = rental;
    }
    EXPECT_EQ(CentsOf(user), cents) << "user " << user;
    std::set<uint64_t> ids;
    for (const auto& [name, id] : known.rentals) {
      EXPECT_TRUE(ids.insert(id).second) << "two requests have one rental";
      ASSERT_TRUE(rentals.contains(id)) << name << " is lost";
      const Rental::State state = rentals[id].state();
      EXPECT_TRUE(state == Rental::ACTIVE || (state == Rental::REFUNDED && known.refunds.contains(id)))
          << rentals[id].ShortDebugString();
      EXPECT_TRUE(state == Rental::REFUNDED || !known.refunded.contains(id)) << "its refund is lost";
    }
    for (const auto& [id, rental] : rentals)
      EXPECT_TRUE(rental.state() != Rental::REFUNDED || known.refunds.contains(id)) << "nobody refunded it";
  }

  // Guarded by mu_ while users act.
  std::vector<Known> known_ = std::vector<Known>(kUsers);
};

TEST_F(MoneyFaults, RentalsArePaidOnceOrNotAtAllStress) {
  apps::FaultSchedule schedule(seed_, &actors_);
  for (const char* kept : {"rent", "payment-auth"}) {
    for (int kill = 0; kill < 2; ++kill) schedule.Add(apps::KillOf(app_.get(), kept));
    schedule.Add(apps::StallOf(app_.get(), kept));
    schedule.Add(apps::FullDiskOf(app_.get(), kept, /*refuses=*/true));
  }
  schedule.AddOneOf({apps::KillOf(app_.get(), "unique-id"), apps::KillOf(app_.get(), "movie-info"),
                     apps::KillOf(app_.get(), "front-end")});
  for (size_t i = 0; i < kActors; ++i)
    actors_.Begin(seed_ + i, [this](Rng& rng) { actors_.Note(ActOnce(rng)); });
  schedule.Run();
  actors_.Rest();
  const absl::Status quiet = app_->AwaitQuiet(Deadline::In(kMaxTestWait));
  EXPECT_TRUE(quiet.ok()) << quiet;
  ExpectAuditedWhenIdle();
  for (size_t user = 0; user < kUsers; ++user) ExpectMoneyToBeRight(user);
}

}  // namespace
}  // namespace curtail::media
