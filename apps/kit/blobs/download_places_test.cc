// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/blobs/download_places.h"

#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <optional>
#include <utility>

#include "curtail/base/testing.h"

namespace curtail::apps {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class DownloadPlacesTest : public testing::Test {
 protected:
  Context download_{kMaxTestWait};
  ManualTime time_;
  DownloadPlaces places_{/*most=*/2, /*rate=*/1000, time_};
};

TEST_F(DownloadPlacesTest, HaveSoManyUntilTheyEnd) {
  std::optional<DownloadPlaces::Hold> one(std::in_place, places_, "a", download_);
  const DownloadPlaces::Hold two(places_, "a", download_);
  EXPECT_TRUE(*one && two);
  DownloadPlaces::Hold three(places_, "a", download_);
  EXPECT_FALSE(three || three.Ask(1));
  one.reset();
  EXPECT_TRUE(DownloadPlaces::Hold(places_, "a", download_));
  EXPECT_FALSE(three.Ask(1)) << "it does not come back";
}

TEST_F(DownloadPlacesTest, AReaderThatKeepsUpKeepsItsPlace) {
  DownloadPlaces::Hold one(places_, "a", download_), two(places_, "a", download_);
  ASSERT_TRUE(one.Ask(DownloadPlaces::kOnTheirWay) && two.Ask(DownloadPlaces::kOnTheirWay));
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(one.Ask(1000) && two.Ask(1000)) << i;
    EXPECT_FALSE(DownloadPlaces::Hold(places_, "a", download_)) << i;
    time_.Advance(seconds(1));
  }
  time_.Advance(seconds(2));  // so much it may be late
  EXPECT_FALSE(DownloadPlaces::Hold(places_, "a", download_));
  EXPECT_TRUE(one.Ask(0) && two.Ask(0));
}

TEST_F(DownloadPlacesTest, BytesOnTheirWayAreNotTaken) {
  DownloadPlaces::Hold one(places_, "a", download_), two(places_, "a", download_);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(one.Ask(DownloadPlaces::kOnTheirWay / 4)) << i;
  ASSERT_TRUE(two.Ask(DownloadPlaces::kOnTheirWay + 1000));
  time_.Advance(seconds(2) + milliseconds(1));
  const DownloadPlaces::Hold three(places_, "a", download_), four(places_, "a", download_);
  EXPECT_TRUE(three && !four);
  EXPECT_FALSE(one.Ask(1));
  EXPECT_TRUE(two.Ask(1));
}

TEST_F(DownloadPlacesTest, ADownloadThatLosesItsPlaceIsCancelled) {
  Context ended(kMaxTestWait), lost(kMaxTestWait), other(kMaxTestWait);
  DownloadPlaces::Hold one(places_, "a", ended), two(places_, "a", lost), three(places_, "a", other);
  EXPECT_TRUE(one.End());
  EXPECT_FALSE(one.End() || one.Ask(0)) << "it gave the place back";
  time_.Advance(seconds(3));
  const DownloadPlaces::Hold four(places_, "a", other), five(places_, "a", other);
  EXPECT_TRUE(four && five);
  EXPECT_TRUE(lost.cancelled());
  EXPECT_FALSE(ended.cancelled() || other.cancelled());
  EXPECT_FALSE(two.End() || three.End());
}

// Readers that stand still are in the way of no others, however many come.
TEST_F(DownloadPlacesTest, PlacesAreTakenAgainAndAgain) {
  std::deque<DownloadPlaces::Hold> holds;
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(holds.emplace_back(places_, "a", download_)) << i;
    EXPECT_TRUE(holds.emplace_back(places_, "a", download_)) << i;
    EXPECT_FALSE(holds.emplace_back(places_, "a", download_)) << i;
    time_.Advance(seconds(3));
  }
}

TEST_F(DownloadPlacesTest, TheReaderThatIsMostBehindLosesItsPlaceToAnother) {
  std::optional<DownloadPlaces::Hold> one(std::in_place, places_, "a", download_),
      two(std::in_place, places_, "a", download_);
  ASSERT_TRUE(one->Ask(DownloadPlaces::kOnTheirWay + 500) && two->Ask(DownloadPlaces::kOnTheirWay + 400));
  time_.Advance(seconds(60));
  EXPECT_TRUE(one->Ask(0) && two->Ask(0)) << "nothing else needed one";
  DownloadPlaces::Hold three(places_, "a", download_);
  EXPECT_TRUE(three);
  EXPECT_TRUE(one->Ask(0));
  EXPECT_FALSE(two->Ask(100'000));
  two.reset();  // it has nothing to give back
  EXPECT_TRUE(three.Ask(0));

  DownloadPlaces::Hold four(places_, "a", download_);
  EXPECT_TRUE(four);
  EXPECT_FALSE(one->Ask(0));
  EXPECT_FALSE(DownloadPlaces::Hold(places_, "a", download_));
  time_.Advance(seconds(2) + milliseconds(1));
  EXPECT_TRUE(DownloadPlaces::Hold(places_, "a", download_));
}

TEST_F(DownloadPlacesTest, AReaderWithManyLosesOneToAReaderWithFew) {
  DownloadPlaces places(/*most=*/4, /*rate=*/1000, time_);
  Context behind(kMaxTestWait);
  DownloadPlaces::Hold many[] = {
      {places, "a", download_}, {places, "a", behind}, {places, "a", download_}, {places, "a", download_}};
  for (const int i : {0, 2, 3}) ASSERT_TRUE(many[i].Ask(DownloadPlaces::kOnTheirWay + 1000));
  EXPECT_FALSE(DownloadPlaces::Hold(places, "a", download_)) << "none is behind yet";
  const DownloadPlaces::Hold first(places, "b", download_), second(places, "b", download_),
      third(places, "b", download_);
  EXPECT_TRUE(first && second);
  EXPECT_FALSE(third) << "each has two";
  EXPECT_TRUE(behind.cancelled());
  EXPECT_FALSE(many[1].Ask(1));
  many[0].End(), many[2].End(), many[3].End();
  EXPECT_TRUE(DownloadPlaces::Hold(places, "b", download_)) << "one is free";
}

}  // namespace
}  // namespace curtail::apps
