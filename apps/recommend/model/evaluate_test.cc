// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apps/recommend/offline.h"
#include "curtail/base/strings.h"
#include "curtail/base/temp_dir_testing.h"
#include "curtail/base/testing.h"

namespace curtail::recommend {
namespace {

// Training never sees the tenth that is held out: the generator's noise alone is 0.7, and rounding adds 0.29,
// so that an error below their 0.76 would be one of the test.
TEST(Evaluate, NeighborsBeatBiasesAndBiasesTheMean) {
  // Measured on 2026-11-26: 31 s under asan, for 100,000 ratings.
  if (kSanitized) GTEST_SKIP() << "2026-11-26: the data of the others is smaller, and takes the same code";
  EvaluateOptions options;
  const absl::StatusOr<Evaluation> e = Evaluate(options, true);
  ASSERT_TRUE(e.ok()) << e.status();
  EXPECT_EQ(e->trained + e->held_out, 100000u);
  EXPECT_NEAR(static_cast<double>(e->held_out), 10000, 500);
  EXPECT_LT(e->by_biases, 0.9 * e->by_mean);
  EXPECT_LT(e->by_one, 0.93 * e->by_biases);
  EXPECT_LT(e->by_shards, 0.97 * e->by_biases);
  EXPECT_GT(e->by_one, 0.70);
  EXPECT_GT(e->by_shards, e->by_one);
}

TEST(Evaluate, OneShardIsTheOneModel) {
  EvaluateOptions options;
  options.data = "synthetic:users=50,items=60,ratings=900";
  options.shards = 1;
  const absl::StatusOr<Evaluation> e = Evaluate(options, true);
  ASSERT_TRUE(e.ok()) << e.status();
  EXPECT_EQ(e->by_one, e->by_shards);
}

TEST(Evaluate, SaysWhatCannotBeEvaluated) {
  EvaluateOptions options;
  options.data = "synthetic:users=2,items=2,ratings=2";
  const std::string few(Message(Evaluate(options, true).status()));
  EXPECT_THAT(few, testing::AnyOf(testing::HasSubstr("too few"), testing::HasSubstr("use fewer shards")));
  options.train.rank = 0;
  EXPECT_EQ(Evaluate(options, true).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Train, NamesWhatIsWrong) {
  TempDir dir;
  TrainFileOptions options;
  options.out = dir.File("no/such/folder");
  options.data = "synthetic:users=20,items=20,ratings=100";
  EXPECT_EQ(TrainToFile(options).code(), absl::StatusCode::kNotFound);
  options.shard = "4/4";
  EXPECT_EQ(TrainToFile(options).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace curtail::recommend
