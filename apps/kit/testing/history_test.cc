// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/testing/history.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <atomic>

#include "apps/kit/testing/actors.h"
#include "apps/kit/testing/facts.h"

namespace curtail::apps {
namespace {

constexpr Possible kEither(true, true);

bool operator==(Possible a, Possible b) { return a.no == b.no && a.yes == b.yes; }

absl::Status Lost() { return absl::UnavailableError("the service is away"); }

TEST(Facts, AreAsTheLastOperationBeforeMadeThem) {
  Facts<int> facts;
  facts.Set(1, true, Span{1, 2});
  facts.Set(1, false, Span{5, 6});
  EXPECT_TRUE(facts.In(1, {3, 4}) == true);
  EXPECT_TRUE(facts.In(1, {7, 8}) == false);
  EXPECT_TRUE(facts.In(2, {7, 8}) == false);
}

TEST(Facts, AreEitherWayDuringAnOperation) {
  Facts<int> facts;
  facts.Set(1, true, Span{3, 6});
  EXPECT_TRUE(facts.In(1, {2, 4}) == kEither);
  EXPECT_TRUE(facts.In(1, {4, 5}) == kEither);
  EXPECT_TRUE(facts.In(1, {3, 6}) == false) << "its own change";
  EXPECT_TRUE(facts.In(1, {1, 2}) == false) << "it came later";
}

TEST(Facts, AreInDoubtAfterAnUnknownOutcomeUntilAnotherSettlesThem) {
  History history([](const absl::Status& status) { return absl::IsUnavailable(status); });
  Facts<int> facts;
  facts.Set(1, true, history.Do(Lost));
  EXPECT_TRUE(facts.In(1, history.Now()) == kEither);
  facts.Settle(history.Step());
  EXPECT_TRUE(facts.In(1, history.Now()) == kEither) << "it may never have come";
  facts.Set(1, true, history.Do([] { return absl::OkStatus(); }));
  EXPECT_TRUE(facts.In(1, history.Now()) == true);
  facts.Set(1, false, history.Do(Lost));
  facts.Settle(history.Step());
  EXPECT_TRUE(facts.In(1, history.Now()) == kEither);
  facts.Set(1, true, history.Do([] { return absl::OkStatus(); }));
  EXPECT_TRUE(facts.In(1, history.Now()) == true) << "what is settled comes no more";
}

// Without Settle() the late operation may come after any other.
TEST(Facts, MayChangeLongAfterAnUnknownOutcome) {
  History history([](const absl::Status& status) { return absl::IsUnavailable(status); });
  Facts<int> facts;
  facts.Set(1, false, history.Do(Lost));
  facts.Set(1, true, history.Do([] { return absl::OkStatus(); }));
  EXPECT_TRUE(facts.In(1, history.Now()) == kEither);
}

TEST(History, ARefusedOperationChangesNothing) {
  History history;
  Items<int> items;
  const auto refuse = [] { return absl::NotFoundError("no"); };
  items.Add(7, 0, history.Do([] { return absl::OkStatus(); }));
  items.Remove(7, history.Do(refuse, {absl::StatusCode::kNotFound}));
  EXPECT_TRUE(items.Exists(7, history.Now()) == true);
  EXPECT_NONFATAL_FAILURE(history.Do(refuse), "no");
}

TEST(History, InsistsUntilTheOutcomeIsKnown) {
  History history([](const absl::Status& status) { return absl::IsUnavailable(status); });
  int calls = 0;
  const Operation told = history.Insist([&] { return ++calls < 3 ? Lost() : absl::OkStatus(); });
  EXPECT_TRUE(told.ok());
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(told.span.began, 1u);
}

TEST(History, JudgesOnceWhatWasSaid) {
  History history;
  history.Later([] { Expect(true, Possible(false), "it snows", {1, 2}); });
  EXPECT_NONFATAL_FAILURE(history.Judge(), "it snows: yes in the steps 1 to 2");
  history.Judge();
}

TEST(Items, OfOneIdTwiceAreAFailure) {
  Items<int> items;
  const Operation ok{absl::OkStatus(), Outcome::kAcknowledged, {1, 2}};
  items.Add(7, 0, ok);
  EXPECT_NONFATAL_FAILURE(items.Add(7, 0, ok), "7 twice");
}

TEST(Actors, ActUntilTheyRestAndAreCounted) {
  Actors actors;
  std::atomic<int> acts{0};
  actors.Begin(1, [&](Rng& rng) {
    ++acts;
    actors.Note(rng.Below(2) == 0 ? Actors::Did::kWrote : Actors::Did::kFailedToWrite);
  });
  EXPECT_TRUE(actors.AwaitWrites(3));
  EXPECT_TRUE(actors.AwaitFailedAfter(3));
  actors.Rest();
  EXPECT_GE(acts, 7);
}

}  // namespace
}  // namespace curtail::apps
