// SPDX-License-Identifier: Apache-2.0
#include "apps/social/download_places.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>

namespace curtail::social {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class DownloadPlacesTest : public testing::Test {
 protected:
  ManualTime time_;
  DownloadPlaces places_{/*most=*/2, /*rate=*/1000, time_};
};

TEST_F(DownloadPlacesTest, HaveSoManyUntilTheyEnd) {
  std::optional<DownloadPlaces::Hold> one(places_);
  const DownloadPlaces::Hold two(places_);
  EXPECT_TRUE(*one && two);
  DownloadPlaces::Hold three(places_);
  EXPECT_FALSE(three || three.Ask(1));
  one.reset();
  EXPECT_TRUE(DownloadPlaces::Hold(places_));
  EXPECT_FALSE(three.Ask(1)) << "it does not come back";
}

TEST_F(DownloadPlacesTest, AReaderThatKeepsUpKeepsItsPlace) {
  DownloadPlaces::Hold one(places_), two(places_);
  ASSERT_TRUE(one.Ask(DownloadPlaces::kOnTheirWay) && two.Ask(DownloadPlaces::kOnTheirWay));
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(one.Ask(1000) && two.Ask(1000)) << i;
    EXPECT_FALSE(DownloadPlaces::Hold(places_)) << i;
    time_.Advance(seconds(1));
  }
  time_.Advance(seconds(2));  // so much it may be late
  EXPECT_FALSE(DownloadPlaces::Hold(places_));
  EXPECT_TRUE(one.Ask(0) && two.Ask(0));
}

TEST_F(DownloadPlacesTest, BytesOnTheirWayAreNotTaken) {
  DownloadPlaces::Hold one(places_), two(places_);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(one.Ask(DownloadPlaces::kOnTheirWay / 4)) << i;
  ASSERT_TRUE(two.Ask(DownloadPlaces::kOnTheirWay + 1000));
  time_.Advance(seconds(2) + milliseconds(1));
  const DownloadPlaces::Hold three(places_), four(places_);
  EXPECT_TRUE(three && !four);
  EXPECT_FALSE(one.Ask(1));
  EXPECT_TRUE(two.Ask(1));
}

TEST_F(DownloadPlacesTest, AsManyAsThereArePlacesLoseOne) {
  std::optional<DownloadPlaces::Hold> one(places_);
  const DownloadPlaces::Hold two(places_);
  time_.Advance(seconds(3));
  const DownloadPlaces::Hold three(places_), four(places_);
  EXPECT_TRUE(three && four);
  time_.Advance(seconds(3));
  EXPECT_FALSE(DownloadPlaces::Hold(places_));
  one.reset();
  EXPECT_TRUE(DownloadPlaces::Hold(places_));
}

TEST_F(DownloadPlacesTest, TheReaderThatIsMostBehindLosesItsPlaceToAnother) {
  std::optional<DownloadPlaces::Hold> one(places_), two(places_);
  ASSERT_TRUE(one->Ask(DownloadPlaces::kOnTheirWay + 500) && two->Ask(DownloadPlaces::kOnTheirWay + 400));
  time_.Advance(seconds(60));
  EXPECT_TRUE(one->Ask(0) && two->Ask(0)) << "nothing else needed one";
  DownloadPlaces::Hold three(places_);
  EXPECT_TRUE(three);
  EXPECT_TRUE(one->Ask(0));
  EXPECT_FALSE(two->Ask(100'000));
  two.reset();  // it has nothing to give back
  EXPECT_TRUE(three.Ask(0));

  DownloadPlaces::Hold four(places_);
  EXPECT_TRUE(four);
  EXPECT_FALSE(one->Ask(0));
  EXPECT_FALSE(DownloadPlaces::Hold(places_));
  time_.Advance(seconds(2) + milliseconds(1));
  EXPECT_TRUE(DownloadPlaces::Hold(places_));
}

}  // namespace
}  // namespace curtail::social
