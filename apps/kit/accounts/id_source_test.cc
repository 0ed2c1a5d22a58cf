// SPDX-License-Identifier: Apache-2.0
//
// IdSource::Field under a clock that a test moves, and from processes that are started again.
#include "apps/kit/accounts/id_source.h"

#include <gmock/gmock.h>

#include <memory>
#include <set>
#include <vector>

#include "apps/kit/data/data.h"
#include "apps/kit/run_here.h"
#include "apps/social/common/page.h"
#include "curtail/base/temp_dir_testing.h"
#include "curtail/base/testing.h"

namespace curtail::apps {
namespace {

class IdSourceTest : public testing::Test {
 protected:
  // As in a process that was just started.
  IdSource Source(uint64_t machine = 0) {
    return {db_.get(), machine, [this] { return now_ms_; }};
  }
  void Take(IdSource& source, uint32_t count) {
    Context ctx(kMaxTestWait);
    IdSource::Field ids;
    const absl::Status status = RunHere(source.Next(ctx, count, &ids));
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ(ids.size(), static_cast<int>(count));
    for (const uint64_t id : ids) {
      EXPECT_TRUE(given_.insert(id).second) << id << " twice";
      last_ = id;
    }
  }

  TempDir dir_;
  const std::unique_ptr<SqlDatabase> db_ =
      *OpenData({.folder = dir_.File("data"), .no_sync = true}, "test", {kIdSchema});
  int64_t now_ms_ = 1'750'000'000'000;
  std::set<uint64_t> given_;
  uint64_t last_ = 0;
};

TEST_F(IdSourceTest, AnIdHasItsTime) {
  IdSource source = Source(/*machine=*/1023);
  for (int i = 0; i < 5; ++i) {
    now_ms_ += 7'000;
    Take(source, 1);
    EXPECT_EQ(TimeOf(last_), now_ms_);
  }
}

TEST_F(IdSourceTest, AClockThatIsPutBackRepeatsNone) {
  for (int start = 0; start < 20; ++start) {
    IdSource source = Source();
    for (int i = 0; i < 10; ++i, ++now_ms_) {
      const uint64_t before = last_;
      Take(source, 100);
      EXPECT_GT(last_, before);
    }
    now_ms_ -= 5'000;  // while the process runs, and then while it does not
    Take(source, 100);
    if (start % 2 == 0) now_ms_ -= 5'000;
  }
}

TEST_F(IdSourceTest, IdsFollowTheClockWhileItGoesOn) {
  IdSource source = Source();
  Take(source, 1);
  const uint64_t first = last_;
  now_ms_ += 3'600'000;
  Take(source, 1);
  EXPECT_EQ(IdBefore(last_, std::chrono::milliseconds(3'600'000)), first);
}

// Replicas that were not numbered.
TEST_F(IdSourceTest, TwoOfOneNumberOnOneDatabaseRepeatNone) {
  IdSource one = Source(), other = Source(), third = Source(/*machine=*/1);
  for (int i = 0; i < 200; ++i, now_ms_ += 500) Take(one, 100), Take(other, 100), Take(third, 100);
}

// Property: accounts that are opened at regular times are spread over the parts.
TEST(PartOf, SpreadsIdsOfRegularTimes) {
  constexpr int kIds = 12, kStarts = 200, kSteps = 60;
  int in_one_part = 0;
  for (uint64_t step = 1; step <= kSteps; ++step) {
    for (uint64_t start = 1; start <= kStarts; ++start) {
      std::set<size_t> parts;
      for (uint64_t i = 0; i < kIds; ++i)
        parts.insert(PartOf((start * 1'234'567 + i * step) << (kMachineBits + kCounterBits), 2));
      in_one_part += parts.size() == 1 ? 1 : 0;
    }
  }
  // 2 ** -11 of them is 6; 5 % was seen.
  EXPECT_LT(in_one_part, kStarts * kSteps / 200);
}

TEST_F(IdSourceTest, OneReservationServesManyIds) {
  IdSource source = Source();
  for (int i = 0; i < 1000; ++i) Take(source, 1000);
  EXPECT_EQ(db_->Sample().writes, 1u);
}

}  // namespace
}  // namespace curtail::apps
