// SPDX-License-Identifier: Apache-2.0
#include "apps/recommend/workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "apps/recommend/leaf_service.h"
#include "apps/recommend/model/model.h"
#include "apps/recommend/model/predictor.h"
#include "apps/recommend/predict_service.h"
#include "curtail/base/strings.h"
#include "curtail/base/temp_dir_testing.h"
#include "curtail/rpc/host/host_testing.h"
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

HostRun Serve(std::vector<std::string> args) {
  const HostProgram program{
      .name = "recommend", .title = "", .examples = "", .services = {HostedLeaf(), HostedMidTier()}};
  args.insert(args.begin(), {"--quiet", "--service"});
  return RunHost(program, std::move(args));
}

TEST(Serve, SaysWhatIsWrongBeforeItLoads) {
  EXPECT_THAT(Serve({"mid-tier"}).err, testing::HasSubstr("--leaf ADDR"));
  EXPECT_EQ(Serve({"mid-tier"}).code, 104);
  for (const char* service : {"leaf", "mid-tier"}) {
    const HostRun run = Serve({service, "--config", "nonsense"});
    EXPECT_EQ(run.code, 104);
    EXPECT_THAT(run.err, testing::HasSubstr("nonsense"));
  }
  EXPECT_EQ(Serve({"leaf", "--shard", "4/4"}).code, 104);

  const TempDir dir;
  const Model model = *TrainModel(*DataSpec::Parse(Options().data), Shard{1, 2}, TrainOptions{}, {1, true});
  ASSERT_TRUE(WriteModel(model, dir.File("m")).ok());
  EXPECT_THAT(Serve({"leaf", "--model", dir.File("m"), "--shard", "0/2"}).err,
              testing::HasSubstr("at byte 16: is of shard 1/2, this leaf is --shard 0/2"));
}

// The bytes that --memory says.
uint64_t MemoryOf(const std::string& shard) {
  const HostRun run = Serve({"leaf", "--memory", "--shard", shard});
  EXPECT_TRUE(run.out.starts_with("memory ")) << run.out << run.err;
  return std::strtoull(run.out.c_str() + 7, nullptr, 10);
}

TEST(Serve, EstimatesItsMemory) {
  const uint64_t one = MemoryOf("0/1"), quarter = MemoryOf("0/4");
  EXPECT_LT(quarter, one);
  EXPECT_GT(quarter, uint64_t{1} << 20);
  EXPECT_LT(one, uint64_t{64} << 20);
  const HostRun run = Serve({"leaf", "--memory", "--data", "/no/such/file"});
  EXPECT_EQ(run.code, 104);
  EXPECT_THAT(run.err, testing::HasSubstr("/no/such/file"));
}

}  // namespace
}  // namespace curtail::recommend
