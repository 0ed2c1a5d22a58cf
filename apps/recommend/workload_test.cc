// SPDX-License-Identifier: Apache-2.0
#include "apps/recommend/workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "apps/common/temp_dir.h"
#include "apps/recommend/model.h"
#include "apps/recommend/predictor.h"
#include "apps/recommend/serve.h"
#include "curtail/base/strings.h"
#include "recommend.pb.h"

namespace curtail::recommend {
namespace {

WorkloadOptions Options() {
  WorkloadOptions options;
  options.data = "synthetic:users=80,items=60,ratings=1600,seed=6";
  options.count = 50, options.judged = 20, options.leaves = 2, options.quiet = true;
  return options;
}

PredictRequest RequestOf(const Workload& workload, uint64_t index) {
  PredictRequest request;
  EXPECT_TRUE(request.ParseFromString(workload.Request(index)));
  return request;
}

TEST(Workload, ScoresWhatTheLeavesWouldAnswer) {
  const WorkloadOptions options = Options();
  const auto workload = MakeWorkload(options);
  ASSERT_TRUE(workload.ok()) << workload.status();
  EXPECT_EQ((*workload)->method(), "/curtail.recommend.Recommend/Predict");
  EXPECT_EQ((*workload)->score_name(), "correct");
  EXPECT_EQ((*workload)->distinct(), 50u);
  std::vector<std::unique_ptr<Predictor>> leaves;
  for (uint32_t i = 0; i < 2; ++i) {
    leaves.push_back(std::make_unique<Predictor>(
        *TrainModel(*DataSpec::Parse(options.data), Shard{i, 2}, options.train, {1, true}),
        options.neighbors));
  }
  for (uint64_t i = 0; i < 20; ++i) {
    const PredictRequest request = RequestOf(**workload, i);
    PredictReply reply;
    reply.set_rating((leaves[0]->Predict(request.user(), request.item()).rating +
                      leaves[1]->Predict(request.user(), request.item()).rating) /
                     2);
    EXPECT_EQ((*workload)->Score(i, reply.SerializeAsString()), 1) << i;
    EXPECT_EQ((*workload)->Score(i + 50, reply.SerializeAsString()), 1) << i;
    reply.set_rating(reply.rating() + 0.001);
    EXPECT_EQ((*workload)->Score(i, reply.SerializeAsString()), 0) << i;
    reply.set_rating(std::nan(""));
    EXPECT_EQ((*workload)->Score(i, reply.SerializeAsString()), 0) << i;
  }
  EXPECT_EQ((*workload)->Score(0, "no message"), 0);
  EXPECT_TRUE(std::isnan((*workload)->Score(20, "")));
}

TEST(Workload, AsksForKnownUsersAndItemsByItsSeed) {
  WorkloadOptions options = Options();
  options.judged = 0, options.allow_partial = true;
  const auto workload = MakeWorkload(options), same = MakeWorkload(options);
  options.seed = 2;
  const auto other = MakeWorkload(options);
  ASSERT_TRUE(workload.ok() && same.ok() && other.ok());
  EXPECT_EQ((*workload)->score_name(), "");
  int different = 0;
  for (uint64_t i = 0; i < 50; ++i) {
    const PredictRequest request = RequestOf(**workload, i);
    EXPECT_TRUE(request.user() >= 1 && request.user() <= 80 && request.item() >= 1 && request.item() <= 60);
    EXPECT_TRUE(request.allow_partial());
    EXPECT_EQ((*workload)->Request(i), (*same)->Request(i));
    different += (*workload)->Request(i) != (*other)->Request(i);
  }
  EXPECT_GT(different, 40);
}

TEST(Workload, RefusesWhatDoesNotFit) {
  const auto code = [](auto change) {
    WorkloadOptions options = Options();
    change(options);
    return MakeWorkload(options).status().code();
  };
  EXPECT_EQ(code([](WorkloadOptions& o) { o.count = 0; }), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](WorkloadOptions& o) { o.leaves = 0; }), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](WorkloadOptions& o) { o.neighbors = 0; }), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](WorkloadOptions& o) { o.train.rank = 0; }), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](WorkloadOptions& o) { o.data = "synthetic:x"; }), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](WorkloadOptions& o) { o.data = "/no/such/file"; }), absl::StatusCode::kNotFound);
  EXPECT_EQ(code([](WorkloadOptions& o) { o.data = "synthetic:users=1,items=2,ratings=1"; }),
            absl::StatusCode::kInvalidArgument);  // two leaves, one rating
}

TEST(Serve, SaysWhatIsWrongBeforeItLoads) {
  ServeOptions options;
  options.quiet = true;
  EXPECT_THAT(std::string(Message(ServeMidTier(options).status())), testing::HasSubstr("--leaf ADDR"));
  options.config = "nonsense";
  EXPECT_EQ(ServeLeaf(options).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ServeMidTier(options).status().code(), absl::StatusCode::kInvalidArgument);
  options.config = "SIB1";
  options.shard = "4/4";
  EXPECT_EQ(ServeLeaf(options).status().code(), absl::StatusCode::kInvalidArgument);

  const apps::TempDir dir;
  const Model model = *TrainModel(*DataSpec::Parse(Options().data), Shard{1, 2}, TrainOptions{}, {1, true});
  ASSERT_TRUE(WriteModel(model, dir.File("m")).ok());
  options.model = dir.File("m"), options.shard = "0/2";
  EXPECT_THAT(std::string(Message(ServeLeaf(options).status())),
              testing::HasSubstr("at byte 16: is of shard 1/2, this leaf is --shard 0/2"));
}

TEST(Serve, EstimatesItsMemory) {
  ServeOptions options;
  const size_t one = *LeafMemory(options);
  options.shard = "0/4";
  const size_t quarter = *LeafMemory(options);
  EXPECT_LT(quarter, one);
  EXPECT_GT(quarter, size_t{1} << 20);
  EXPECT_LT(one, size_t{64} << 20);
  options.data = "/no/such/file";
  EXPECT_EQ(LeafMemory(options).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace curtail::recommend
