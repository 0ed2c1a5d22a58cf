// SPDX-License-Identifier: Apache-2.0
//
// Both tiers in one process, over real sockets.
#include "apps/recommend/predict_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <condition_variable>
#include <limits>
#include <mutex>

#include "apps/kit/testing/configs_to_test.h"
#include "apps/recommend/leaf_service.h"
#include "apps/recommend/model/brute_force.h"
#include "curtail/base/strings.h"
#include "curtail/rpc/host/host_testing.h"
#include "curtail/rpc/server_testing.h"
#include "recommend.curtail.h"

namespace curtail::recommend {
namespace {

using ::testing::HasSubstr;

constexpr char kData[] = "synthetic:users=80,items=60,ratings=1600,seed=6";
constexpr size_t kNeighbors = 10;
constexpr Nanos kPatience = std::chrono::seconds(20);

Model ModelOf(uint32_t index, uint32_t count) {
  TrainOptions train;
  train.rank = 4, train.iterations = 4;
  return *TrainModel(*DataSpec::Parse(kData), Shard{index, count}, train, {1, true});
}

// A leaf that answers nothing before it is let go, or something that is no prediction.
class OddLeaf final : public Leaf::Service {
 public:
  absl::Status Predict(Context&, const LeafRequest&, LeafReply* reply) override {
    std::unique_lock lock(mu_);
    opened_.wait_for(lock, kPatience, [&] { return open_; });
    *reply = answer_;
    return absl::OkStatus();
  }
  void Open(const LeafReply& answer) {
    std::lock_guard lock(mu_);
    open_ = true, answer_ = answer;
    opened_.notify_all();
  }

 private:
  std::mutex mu_;
  std::condition_variable opened_;
  bool open_ = false;
  LeafReply answer_;
};

// A mid-tier and its leaves under a threading model. With `odd`, the last leaf is an OddLeaf, on threads of
// its own.
class Deployment {
 public:
  Deployment(const std::string& config, uint32_t leaves, Nanos leaf_timeout = kPatience, bool odd = false) {
    std::vector<Channel*> channels;
    for (uint32_t i = 0; i < leaves; ++i) models_.push_back(ModelOf(i, leaves));
    for (uint32_t i = 0; i < leaves; ++i) {
      std::unique_ptr<Service> service;
      const bool is_odd = odd && i + 1 == leaves;
      if (is_odd) {
        service = std::make_unique<OddLeaf>();
        odd_ = static_cast<OddLeaf*>(service.get());
      } else {
        service = std::make_unique<LeafService>(std::make_unique<Predictor>(models_[i], kNeighbors));
      }
      leaves_.push_back(StartServer(is_odd ? "SDB1-4" : config, std::move(service)));
      channels_.push_back(std::make_unique<Channel>(&client_, leaves_.back()->addresses()[0]));
      channels.push_back(channels_.back().get());
    }
    planner_ = std::make_unique<PredictPlanner>(channels, leaf_timeout);
    mid_tier_ = StartServer(config, MakePredictService(*planner_));
    front_ = std::make_unique<Channel>(&front_client_, mid_tier_->addresses()[0]);
  }
  ~Deployment() {
    if (odd_ != nullptr) odd_->Open({});
  }

  absl::Status Predict(uint32_t user, uint32_t item, PredictReply* reply, bool partial = false,
                       Nanos timeout = kPatience) {
    PredictRequest request;
    request.set_user(user), request.set_item(item), request.set_allow_partial(partial);
    Context ctx(timeout);
    return Recommend::Stub(front_.get()).Predict(ctx, request, reply);
  }
  // The mean of brute force over the first `count` leaves.
  double Expected(uint32_t user, uint32_t item, size_t count) const {
    std::vector<BruteForce> plain;
    for (size_t i = 0; i < count; ++i) plain.emplace_back(models_[i], kNeighbors);
    return MeanPrediction(plain, user, item);
  }
  const std::string& target(size_t i) const { return channels_[i]->target(); }
  void StopLeaf(size_t i) { leaves_[i].reset(); }
  OddLeaf& odd() { return *odd_; }

 private:
  std::vector<Model> models_;
  Client client_, front_client_;
  std::vector<std::unique_ptr<Channel>> channels_;
  std::unique_ptr<Channel> front_;
  std::vector<std::unique_ptr<Server>> leaves_;
  OddLeaf* odd_ = nullptr;  // owned by the last leaf
  std::unique_ptr<PredictPlanner> planner_;
  std::unique_ptr<Server> mid_tier_;  // stops before what it calls
};

class PredictTest : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Models, PredictTest,
                         testing::ValuesIn(apps::ConfigsToTest({"SDB1-4", "FIB1", "ADB1-2-2"},
                                                               {"SIB1", "AIB1-1"})),
                         [](const auto& info) { return info.param.substr(0, 3); });

TEST_P(PredictTest, AnswersTheMeanOfAllLeavesAsBruteForceHasIt) {
  for (const uint32_t leaves : {1u, 2u, 4u}) {
    Deployment deployment(GetParam(), leaves);
    for (uint32_t i = 0; i < 60; ++i) {
      const uint32_t user = i * 7 % 80 + 1, item = i * 11 % 60 + 1;
      PredictReply reply;
      const absl::Status status = deployment.Predict(user, item, &reply);
      ASSERT_TRUE(status.ok()) << status;
      EXPECT_NEAR(reply.rating(), deployment.Expected(user, item, leaves), 1e-4) << user << " " << item;
      EXPECT_EQ(reply.leaves_answered(), leaves);
      EXPECT_EQ(reply.leaves(), leaves);
    }
  }
}

TEST_P(PredictTest, SaysWhatThePredictionOfStrangersRestsOn) {
  Deployment deployment(GetParam(), 2);
  const std::vector<std::tuple<uint32_t, uint32_t, Basis>> cases = {{1, 1, BASIS_NEIGHBORS},
                                                                    {1, 4000000000u, BASIS_USER},
                                                                    {4000000000u, 1, BASIS_ITEM},
                                                                    {0, 0, BASIS_MEAN}};
  for (const auto& [user, item, basis] : cases) {
    PredictReply reply;
    const absl::Status status = deployment.Predict(user, item, &reply);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(reply.basis(), basis);
    EXPECT_NEAR(reply.rating(), deployment.Expected(user, item, 2), 1e-4);
    EXPECT_TRUE(reply.rating() >= 1 && reply.rating() <= 5);
  }
}

TEST_P(PredictTest, ADeadLeafFailsTheRequestByNameUnlessPartialAnswersAreAllowed) {
  Deployment deployment(GetParam(), 4);
  deployment.StopLeaf(3);
  PredictReply reply;
  const absl::Status status = deployment.Predict(5, 6, &reply);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_THAT(std::string(Message(status)), HasSubstr("leaf " + deployment.target(3)));
  const absl::Status partial = deployment.Predict(5, 6, &reply, /*partial=*/true);
  ASSERT_TRUE(partial.ok()) << partial;
  EXPECT_EQ(reply.leaves_answered(), 3u);
  EXPECT_EQ(reply.leaves(), 4u);
  EXPECT_NEAR(reply.rating(), deployment.Expected(5, 6, 3), 1e-4);
  for (size_t i = 0; i < 3; ++i) deployment.StopLeaf(i);
  EXPECT_EQ(deployment.Predict(5, 6, &reply, /*partial=*/true).code(), absl::StatusCode::kUnavailable);
}

TEST_P(PredictTest, AStalledLeafCostsTheLeafTimeoutAndNotMore) {
  constexpr Nanos kLeafTimeout = std::chrono::seconds(1);
  Deployment deployment(GetParam(), 3, kLeafTimeout, /*odd=*/true);
  PredictReply reply;
  TimePoint start = Now();
  const absl::Status partial = deployment.Predict(5, 6, &reply, /*partial=*/true);
  ASSERT_TRUE(partial.ok()) << partial;
  EXPECT_EQ(reply.leaves_answered(), 2u);
  EXPECT_NEAR(reply.rating(), deployment.Expected(5, 6, 2), 1e-4);
  EXPECT_GE(Now() - start, kLeafTimeout);
  EXPECT_LT(Now() - start, kPatience / 2);
  const absl::Status whole = deployment.Predict(5, 6, &reply);
  EXPECT_EQ(whole.code(), absl::StatusCode::kDeadlineExceeded) << whole;
  EXPECT_THAT(std::string(Message(whole)), HasSubstr("leaf " + deployment.target(2)));
}

// The caller's deadline is far shorter than the leaf timeout, and yet the partial answer gets there in time.
TEST_P(PredictTest, APartialAnswerIsThereBeforeTheCallersDeadline) {
  Deployment deployment(GetParam(), 3, kPatience, /*odd=*/true);
  PredictReply reply;
  const absl::Status partial =
      deployment.Predict(5, 6, &reply, /*partial=*/true, /*timeout=*/std::chrono::seconds(2));
  ASSERT_TRUE(partial.ok()) << partial;
  EXPECT_EQ(reply.leaves_answered(), 2u);
}

// Replies of four leaves that fit, in an order of their own, then one thing after the other that does not.
TEST(Planner, LeavesThatDoNotBelongTogetherAreNoticed) {
  Client client;
  std::vector<std::unique_ptr<Channel>> channels;
  std::vector<Channel*> leaves;
  std::vector<absl::StatusOr<LeafReply>> right;
  for (uint32_t i = 0; i < 4; ++i) {
    channels.push_back(std::make_unique<Channel>(&client, Join("127.0.0.1:", i + 1)));
    leaves.push_back(channels.back().get());
    LeafReply reply;
    reply.set_rating(3), reply.set_basis(BASIS_MEAN);
    reply.set_shard((i + 2) % 4), reply.set_shards(4), reply.set_data(99);
    right.emplace_back(reply);
  }
  const PredictPlanner planner(leaves, kPatience);
  for (const bool partial : {false, true}) {
    PredictRequest request;
    request.set_allow_partial(partial);
    PredictReply reply;
    ASSERT_TRUE(planner.Merge(request, right, &reply).ok());
    const auto expect = [&](auto change, const std::string& says) {
      auto replies = right;
      change(*replies[2]);
      const absl::Status status = planner.Merge(request, replies, &reply);
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
      EXPECT_THAT(std::string(Message(status)), HasSubstr("leaf 127.0.0.1:3 " + says));
    };
    expect([](LeafReply& r) { r.set_shard(3); }, "serves shard 3/4, as another leaf does");
    expect([](LeafReply& r) { r.set_shards(5); }, "serves shard 0/5, but there are 4 leaves");
    expect([](LeafReply& r) { r.set_shard(4); }, "serves shard 4/4, but there are 4 leaves");
    expect([](LeafReply& r) { r.set_shard(4000000000u); }, "serves shard 4000000000/4, but");
    expect([](LeafReply& r) { r.set_data(98); }, "holds other ratings");
  }
}

TEST(Memory, IsNotEstimatedForATrainingThatCannotBe) {
  const HostProgram program{.name = "recommend", .title = "", .examples = "", .services = {HostedLeaf()}};
  EXPECT_EQ(RunHost(program, {"--service", "leaf", "--memory"}).code, 0);
  const HostRun refused = RunHost(program, {"--service", "leaf", "--memory", "--rank", "4000000000"});
  EXPECT_EQ(refused.code, 104);
  EXPECT_THAT(refused.err, testing::HasSubstr("rank"));
}

TEST(Predict, ALeafThatAnswersWithoutAPredictionIsAnError) {
  Deployment deployment("SIB1", 2, kPatience, /*odd=*/true);
  LeafReply answer;
  answer.set_rating(std::numeric_limits<double>::quiet_NaN());
  answer.set_basis(BASIS_NEIGHBORS);
  deployment.odd().Open(answer);
  PredictReply reply;
  EXPECT_EQ(deployment.Predict(5, 6, &reply).code(), absl::StatusCode::kInternal);
  answer.set_rating(3), answer.set_basis(BASIS_UNSPECIFIED);
  deployment.odd().Open(answer);
  EXPECT_EQ(deployment.Predict(5, 6, &reply).code(), absl::StatusCode::kInternal);
  ASSERT_TRUE(deployment.Predict(5, 6, &reply, /*partial=*/true).ok());
  EXPECT_EQ(reply.leaves_answered(), 1u);
}

}  // namespace
}  // namespace curtail::recommend
