// SPDX-License-Identifier: Apache-2.0
//
// Random users at once, beside a model of what each was told: while nothing fails, and while the services of pages, rentals and streams die
// and stand still. fault_test.cc has the services that write reviews.
//
// Property, of all that users are told meanwhile (apps/kit/testing/history.h):
//  1. A review that was acknowledged is in the list of its movie and of its user once, as it was written. A second one of a viewing is
//     refused only if there is a first one.
//  2. A page has parts of its movie only, and names what is missing. The rating is the sum of its reviews.
//  3. A stream is opened, and a segment sent, only while there is an active rental of that movie. A rental of which a segment was sent is not
//     refunded.
//  4. A wallet has what was paid in, less the active rentals. A rental is refused only if the wallet may have had too little.
// Once the application is idle, `media audit` finds no fault.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "apps/kit/testing/actors.h"
#include "apps/kit/testing/facts.h"
#include "apps/kit/testing/faults.h"
#include "apps/kit/testing/history.h"
#include "apps/media/common/rentals.h"
#include "apps/media/tests/media_testing.h"
#include "curtail/base/strings.h"
#include "streams.curtail.h"

namespace curtail::media {
namespace {

using apps::Operation;
using apps::Outcome;
using apps::Possible;
using apps::Span;
using Code = absl::StatusCode;
using Did = apps::Actors::Did;

class MediaModel : public PartedMediaTest {
 protected:
  static constexpr size_t kMovies = 3, kActors = 4;
  static constexpr uint64_t kViewings = 8;
  // Short, so that a service that stands still does not hold up the test.
  static constexpr Nanos kPatience = std::chrono::milliseconds(700);

  struct ReviewEntry {
    size_t user = 0, movie = 0;
    Review review;
  };
  struct RentalEntry {
    size_t user = 0, movie = 0;
    int64_t cents = 0;
  };
  // A user and a movie; a viewing.
  using Pair = std::pair<size_t, size_t>;
  using Viewing = std::tuple<size_t, size_t, uint64_t>;

  static bool IsOfFault(const absl::Status& status) {
    return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
           absl::IsResourceExhausted(status);
  }
  static Did DidOf(const Operation& told) {
    if (told.ok()) return Did::kWrote;
    return told.outcome == Outcome::kRefused ? Did::kOther : Did::kFailedToWrite;
  }

  void SetUp() override {
    PartedMediaTest::SetUp();
    WriteVideos();
    streaming_ = Connect("streaming");
  }

  Did Act(Rng& rng) {
    const size_t user = rng.Below(kUsers), movie = rng.Below(kMovies);
    switch (rng.Below(8)) {
      case 0:
      case 1:
        return Write(rng, user, movie);
      case 2:
        return Rent(rng, user, movie);
      case 3:
        return Refund(rng);
      case 4:
        return Watch(user, movie);
      case 5:
        ReadLists(user, movie);
        return Did::kOther;
      case 6:
        ReadPage(movie);
        return Did::kOther;
      default:
        ReadWallet(user);
        return Did::kOther;
    }
  }

  // ----- acts

  // `call` is repeated by its key at once, and, if its outcome is unknown then, once nothing fails any more. `record` gets what is told first,
  // and if that is of unknown outcome again what is told in the end.
  Operation Keyed(const std::function<absl::Status(Nanos)>& call, const std::set<Code>& refusals,
                  const std::function<void(const Operation&)>& record) {
    const Operation told = history_.Do(
        [&] {
          absl::Status status = call(kPatience);
          return IsOfFault(status) ? call(kPatience) : status;
        },
        refusals);
    record(told);
    if (told.outcome != Outcome::kUnknown) return told;
    const std::lock_guard lock(mu_);
    unanswered_.push_back([=, this] {
      Operation last = history_.Insist([&] { return call(kMaxTestWait); }, refusals);
      last.span.began = told.span.began;
      record(last);
    });
    return told;
  }

  Did Write(Rng& rng, size_t user, size_t movie) {
    const Viewing viewing(user, movie, rng.Below(kViewings));
    const std::string name = Join("review ", next_.fetch_add(1));
    ReviewRequest request = ReviewOf(user, movie, name, static_cast<uint32_t>(rng.Below(11)));
    request.set_viewing(std::get<2>(viewing));
    const auto written = std::make_shared<Review>();
    const Operation told =
        Keyed([=, this](Nanos patience) { return Compose(request, written.get(), name, patience); },
              {Code::kAlreadyExists, Code::kAborted},
              [=, this](const Operation& by) {
                if (by.code() == Code::kAlreadyExists) {
                  history_.Later([=, this] {
                    EXPECT_TRUE(reviewed_.In(viewing, by.span).yes)
                        << name << " was refused as a second one" << StepsOf(by.span);
                  });
                }
                if (by.ok()) {
                  EXPECT_EQ(written->text(), name);
                  reviews_.Add(written->id(), {user, movie, *written}, by);
                }
                reviewed_.Set(viewing, true, by);
              });
    return DidOf(told);
  }

  Did Rent(Rng& rng, size_t user, size_t movie) {
    const std::string name = Join("rental ", next_.fetch_add(1));
    const auto days = 1 + static_cast<uint32_t>(rng.Below(3));
    const auto rental = std::make_shared<Rental>();
    const Operation told = Keyed(
        [=, this](Nanos patience) { return RentMovie(user, movie, days, rental.get(), name, patience); },
        {Code::kFailedPrecondition},
        [=, this](const Operation& by) {
          if (by.ok()) {
            EXPECT_EQ(rental->movie(), films_[movie].id);
            rentals_.Add(rental->id(), {user, movie, rental->cents()}, by);
          }
          if (by.outcome == Outcome::kRefused && !faults_) {
            history_.Later([=, this] {
              EXPECT_LT(CentsIn(user, by.span).first, PriceOf(days)) << name << StepsOf(by.span);
            });
          }
        });
    return DidOf(told);
  }

  Did Refund(Rng& rng) {
    const auto [id, entry] = rentals_.Any(rng, [](const RentalEntry&, bool active) { return active; });
    if (id == 0) return Did::kOther;
    const Pair of(entry.user, entry.movie);
    const Operation told = history_.Do(
        [&, id = id, user = entry.user] {
          Rental rental;
          absl::Status status = RefundRental(user, id, &rental, kPatience);
          return IsOfFault(status) ? RefundRental(user, id, &rental, kPatience) : status;
        },
        {Code::kFailedPrecondition});
    if (told.outcome != Outcome::kRefused) rentals_.Remove(id, told);
    history_.Later([=, this, id = id] {
      if (told.outcome == Outcome::kRefused) {
        EXPECT_TRUE(watched_.In(of, told.span).yes || rentals_.Exists(id, told.span).no)
            << "rental " << id << " was neither watched nor refunded" << StepsOf(told.span);
      } else if (told.ok() && Only(of)) {
        EXPECT_TRUE(watched_.In(of, told.span).no) << "rental " << id << " was watched" << StepsOf(told.span);
      }
    });
    return DidOf(told);
  }

  // Opens a stream or takes an older pass, and asks for a segment.
  Did Watch(size_t user, size_t movie) {
    StreamTicket ticket;
    const Operation opened =
        history_.Do([&] { return OpenStream(user, movie, &ticket, kPatience); }, {Code::kFailedPrecondition});
    const Pair of(user, movie);
    if (opened.outcome != Outcome::kUnknown) ExpectRented(of, opened, "a stream is opened");
    {
      const std::lock_guard lock(mu_);
      StreamPass& pass = passes_[user][movie];
      if (opened.ok()) pass.set_pass(ticket.pass());
      if (pass.pass().empty()) return Did::kOther;
      ticket.set_pass(pass.pass());
    }
    StreamPass pass;
    pass.set_movie(films_[movie].id), pass.set_pass(ticket.pass()), pass.set_file("300k/seg001.ts");
    std::string bytes;
    const Operation sent = history_.Do([&] { return Get(pass, &bytes); }, {Code::kPermissionDenied});
    watched_.Set(of, true, sent);
    if (sent.ok()) {
      EXPECT_TRUE(bytes == SegmentOf(VideoOf(movie), 1));
      history_.Later([=, this] {
        EXPECT_GT(ActiveIn(of, sent.span).most, 0u) << "a segment without a rental" << StepsOf(sent.span);
      });
    }
    return Did::kOther;
  }

  absl::Status Get(const StreamPass& pass, std::string* bytes) const {
    Context ctx(kPatience);
    auto reader = MovieFiles::Stub(streaming_.get()).Get(ctx, pass);
    bytes->clear();
    for (google::api::HttpBody part; reader.Read(&part);) *bytes += part.data();
    return reader.Finish();
  }

  void ReadLists(size_t user, size_t movie) {
    const auto read = [&](const std::string& what, auto list, auto wanted) {
      std::vector<Review> reviews;
      const Operation told = history_.Do([&] {
        reviews.clear();
        return list(&reviews);
      });
      if (told.ok()) history_.Later([=, this] { ExpectReviews(reviews, wanted, what, told.span); });
    };
    read(
        Join("the list of movie ", movie), [&](auto* to) { return ListOfMovie(movie, to); },
        [movie](const ReviewEntry& entry) { return entry.movie == movie; });
    read(
        Join("the list of user ", user), [&](auto* to) { return ListOfUser(user, to); },
        [user](const ReviewEntry& entry) { return entry.user == user; });
  }

  template <class Wanted>
  void ExpectReviews(const std::vector<Review>& reviews, Wanted wanted, const std::string& what, Span span) {
    std::vector<uint64_t> ids;
    for (const Review& review : reviews) {
      ids.push_back(review.id());
      const auto entry = reviews_.Find(review.id());
      if (!entry) continue;  // ExpectList() tells
      EXPECT_EQ(review.SerializeAsString(), entry->review.SerializeAsString()) << what;
    }
    const auto formula = [&](uint64_t id, const ReviewEntry& entry) {
      return wanted(entry) ? reviews_.Exists(id, span) : Possible(false);
    };
    apps::ExpectList(ids, reviews_.all(), formula, what, span);
  }

  void ReadPage(size_t movie) {
    MoviePage page;
    const Operation told = history_.Do([&] { return Page(movie, &page); });
    if (!told.ok()) return;
    const auto is_missing = [&](const char* part) { return std::ranges::count(page.missing(), part) > 0; };
    EXPECT_EQ(page.movie().id(), films_[movie].id);
    const Film film = GenerateFilms(1, kFilms)[movie];
    EXPECT_EQ(page.plot(), is_missing("plot") ? "" : film.extract());
    EXPECT_EQ(page.cast_size(), is_missing("cast") ? 0 : film.cast_size());
    for (const Review& review : page.reviews()) EXPECT_EQ(review.movie(), films_[movie].id);
    if (faults_ || is_missing("rating")) return;  // a review that is taken back counts meanwhile
    history_.Later([=, this] {
      apps::PossibleCount count;
      for (const auto& [id, entry] : reviews_.all()) {
        if (entry.movie == movie) count.Add(reviews_.Exists(id, told.span));
      }
      ExpectCount(count, page.rating().reviews(), Join("the reviews of movie ", movie), told.span);
    });
  }

  void ReadWallet(size_t user) {
    int64_t cents = 0;
    const Operation told = history_.Do([&] {
      apps::TokenRequest request;
      request.set_token(users_[user].token);
      Wallet wallet;
      Context ctx(kPatience);
      absl::Status status = media().GetWallet(ctx, request, &wallet);
      cents = wallet.cents();
      return status;
    });
    EXPECT_GE(cents, 0);
    if (!told.ok() || faults_) return;  // a rental of unknown outcome may hold its price meanwhile
    history_.Later([=, this] {
      const auto [least, most] = CentsIn(user, told.span);
      EXPECT_TRUE(least <= cents && cents <= most)
          << "user " << user << " has " << cents << ", not " << least << " to " << most << StepsOf(told.span);
    });
  }

  // ----- judging

  // The least and the most that a wallet may have.
  std::pair<int64_t, int64_t> CentsIn(size_t user, Span span) const {
    std::pair<int64_t, int64_t> cents(kDeposit, kDeposit);
    for (const auto& [id, entry] : rentals_.all()) {
      if (entry.user != user) continue;
      const Possible active = rentals_.Exists(id, span);
      if (active.yes) cents.first -= entry.cents;
      if (!active.no) cents.second -= entry.cents;
    }
    return cents;
  }
  apps::PossibleCount ActiveIn(const Pair& of, Span span) const {
    apps::PossibleCount count;
    for (const auto& [id, entry] : rentals_.all()) {
      if (Pair(entry.user, entry.movie) == of) count.Add(rentals_.Exists(id, span));
    }
    return count;
  }
  bool Only(const Pair& of) const {
    return std::ranges::count_if(rentals_.all(), [&](const auto& one) {
             return Pair(one.second.user, one.second.movie) == of;
           }) == 1;
  }
  void ExpectRented(const Pair& of, const Operation& told, const std::string& what) {
    history_.Later([=, this] {
      const apps::PossibleCount active = ActiveIn(of, told.span);
      if (told.ok()) {
        EXPECT_GT(active.most, 0u) << what << " without a rental" << StepsOf(told.span);
      } else {
        EXPECT_EQ(active.least, 0u) << what << " not, with a rental" << StepsOf(told.span);
      }
    });
  }

  // Of all that was told. REQUIRES: no user acts, and no fault lasts.
  void JudgeAll() {
    for (const auto& finish : unanswered_) finish();
    const absl::Status quiet = app_->AwaitQuiet(Deadline::In(kMaxTestWait));
    EXPECT_TRUE(quiet.ok()) << quiet;
    ExpectAuditedWhenIdle();
    const uint64_t step = history_.Step();
    reviews_.Settle(step), reviewed_.Settle(step), rentals_.Settle(step), watched_.Settle(step);
    faults_ = false;
    for (size_t i = 0; i < std::max(kUsers, kMovies); ++i) ReadLists(i % kUsers, i % kMovies);
    for (size_t user = 0; user < kUsers; ++user) ReadWallet(user);
    history_.Judge();
  }

  bool faults_ = false;
  const uint64_t seed_ = TestSeed();
  apps::History history_{IsOfFault};
  apps::Items<ReviewEntry> reviews_;
  apps::Facts<Viewing> reviewed_;
  apps::Items<RentalEntry> rentals_;  // those that are there are active
  apps::Facts<Pair> watched_;
  std::unique_ptr<Channel> streaming_;
  std::atomic<uint64_t> next_{0};
  std::mutex mu_;  // guards the next two while users act
  std::vector<std::function<void()>> unanswered_;
  std::array<std::array<StreamPass, kMovies>, kUsers> passes_;
  apps::Actors actors_;  // ends first
};

TEST_F(MediaModel, UsersAreToldWhatIsTrueStress) {
  const int acts = Repeats(60, 600);
  apps::AllAtOnce(kActors, seed_, [&](Rng& rng, size_t) {
    for (int i = 0; i < acts && !HasFailure(); ++i) Act(rng);
  });
  JudgeAll();
}

TEST_F(MediaModel, UsersAreToldWhatIsTrueWhileServicesFailStress) {
  faults_ = true;
  apps::FaultSchedule schedule(seed_, &actors_);
  for (const char* service : {"rent", "streaming", "page", "payment-auth"})
    schedule.Add(apps::KillOf(app_.get(), service));
  schedule.AddOneOf({apps::KillOf(app_.get(), "videos"), apps::KillOf(app_.get(), "movie-info")});
  schedule.AddOneOf({apps::KillOf(app_.get(), "cast-info"), apps::KillOf(app_.get(), "movie-cache")});
  schedule.AddOneOf({apps::StallOf(app_.get(), "rent"), apps::StallOf(app_.get(), "payment-auth")});
  schedule.AddOneOf({apps::StallOf(app_.get(), "plot"), apps::StallOf(app_.get(), "streaming")});
  for (size_t i = 0; i < kActors; ++i) actors_.Begin(seed_ + i, [this](Rng& rng) { actors_.Note(Act(rng)); });
  schedule.Run();
  actors_.Rest();
  JudgeAll();
}

}  // namespace
}  // namespace curtail::media
