// SPDX-License-Identifier: Apache-2.0
//
// Both tiers in one process, over real sockets.
#include "apps/hdsearch/search_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "apps/hdsearch/index/ground_truth.h"
#include "apps/hdsearch/leaf_service.h"
#include "apps/hdsearch/messages.h"
#include "apps/kit/testing/configs_to_test.h"
#include "curtail/rpc/server_testing.h"
#include "hdsearch.curtail.h"

namespace curtail::hdsearch {
namespace {

using ::testing::HasSubstr;

constexpr char kCorpus[] = "synthetic:N=2000,D=24,seed=6,clusters=20";
constexpr uint32_t kLeaves = 4;
constexpr Nanos kPatience = std::chrono::seconds(20);

// A mid-tier and four leaves under a threading model.
class Deployment {
 public:
  explicit Deployment(const std::string& config) {
    std::vector<Channel*> leaves;
    for (uint32_t i = 0; i < kLeaves; ++i) {
      auto store = VectorStore::Load(*DataSpec::Parse(kCorpus), Shard{i, kLeaves}, LoadOptions{1, true});
      leaves_.push_back(StartServer(config, std::make_unique<LeafService>(*std::move(store))));
      channels_.push_back(std::make_unique<Channel>(&client_, leaves_.back()->addresses()[0]));
      leaves.push_back(channels_.back().get());
    }
    auto index = HashIndex::Build(*DataSpec::Parse(kCorpus), IndexOptions{}, 1, true);
    planner_ = std::make_unique<QueryPlanner>(*std::move(index), leaves);
    mid_tier_ = StartServer(config, MakeSearchService(*planner_));
    front_ = std::make_unique<Channel>(&front_client_, mid_tier_->addresses()[0]);
  }

  absl::Status Query(const QueryRequest& request, QueryReply* reply) {
    Context ctx(kPatience);
    return Search::Stub(front_.get()).Query(ctx, request, reply);
  }
  Channel* leaf(size_t i) { return channels_[i].get(); }
  void StopLeaf(size_t i) { leaves_[i].reset(); }

 private:
  Client client_, front_client_;
  std::vector<std::unique_ptr<Channel>> channels_;
  std::unique_ptr<Channel> front_;
  std::vector<std::unique_ptr<Server>> leaves_;
  std::unique_ptr<QueryPlanner> planner_;
  std::unique_ptr<Server> mid_tier_;  // stops before what it calls
};

QueryRequest VectorRequest(const QueryVector& vector, uint32_t k) {
  QueryRequest request;
  ToProto(vector, request.mutable_vector());
  request.set_k(k);
  return request;
}

class SearchTest : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Models, SearchTest,
                         testing::ValuesIn(apps::ConfigsToTest({"SDB1-4", "FIB1", "ADB1-2-2"},
                                                               {"SIB1", "FDB1-2", "AIB1-1"})),
                         [](const auto& info) { return info.param.substr(0, 3); });

TEST_P(SearchTest, FindsTheTrueNeighboursInOrder) {
  Deployment deployment(GetParam());
  const DataSpec corpus = *DataSpec::Parse(kCorpus);
  const auto queries = LoadQueries(*DefaultQueries(corpus), 30);
  const auto truth = BruteForce(corpus, *queries, 10, 1, true);
  double recall = 0;
  for (size_t q = 0; q < queries->size(); ++q) {
    QueryReply reply;
    const absl::Status status = deployment.Query(VectorRequest((*queries)[q], 10), &reply);
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ(reply.nearest().ids_size(), 10);
    ASSERT_EQ(reply.nearest().distances_size(), 10);
    EXPECT_TRUE(std::is_sorted(reply.nearest().distances().begin(), reply.nearest().distances().end()));
    EXPECT_GE(reply.candidates(), 10u);
    recall += Recall(truth->Of(q), std::span(reply.nearest().ids().data(), 10)) / 30;
  }
  EXPECT_GE(recall, 0.95);
}

TEST_P(SearchTest, AnImageIdStandsForItsVector) {
  Deployment deployment(GetParam());
  for (const uint32_t id : {0u, 499u, 500u, 1234u, 1999u}) {  // all leaves, and both sides of a border
    QueryRequest request;
    request.set_image_id(id);
    request.set_k(3);
    QueryReply reply;
    const absl::Status status = deployment.Query(request, &reply);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(reply.nearest().ids(0), id);
    EXPECT_EQ(reply.nearest().distances(0), 0);
  }
}

TEST_P(SearchTest, KMayBeTheWholeCorpus) {
  Deployment deployment(GetParam());
  QueryReply reply;
  const QueryVector zero = QueryVector::FromBytes(std::vector<uint8_t>(24));
  ASSERT_TRUE(deployment.Query(VectorRequest(zero, 2000), &reply).ok());
  EXPECT_EQ(reply.nearest().ids_size(), 2000);
}

TEST_P(SearchTest, BadRequestsAreInvalidArgument) {
  Deployment deployment(GetParam());
  const std::vector<float> good(24, 0.5f);
  std::vector<float> nan = good, inf = good;
  nan[3] = std::numeric_limits<float>::quiet_NaN();
  inf[0] = std::numeric_limits<float>::infinity();
  QueryRequest nothing, far;
  nothing.set_k(1);
  far.set_k(1), far.set_image_id(2000);
  QueryRequest empty_vector;
  empty_vector.set_k(1), empty_vector.mutable_vector();
  const std::vector<std::pair<QueryRequest, std::string>> cases = {
      {VectorRequest(QueryVector::FromFloats(good), 0), "k is 0; want 1 to 2000"},
      {VectorRequest(QueryVector::FromFloats(good), 2001), "k is 2001"},
      {VectorRequest(QueryVector::FromFloats(std::vector<float>(23, 0.5f)), 1), "23 dimensions"},
      {VectorRequest(QueryVector::FromBytes(std::vector<uint8_t>(25)), 1), "25 dimensions"},
      {VectorRequest(QueryVector::FromFloats(nan), 1), "value 3"},
      {VectorRequest(QueryVector::FromFloats(inf), 1), "value 0"},
      {nothing, "neither vector nor image_id"},
      {empty_vector, "no vector"},
      {far, "images 0 to 1999"},
  };
  for (const auto& [request, says] : cases) {
    QueryReply reply;
    const absl::Status status = deployment.Query(request, &reply);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << says << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(says));
  }
}

TEST_P(SearchTest, ALeafThatFailsFailsTheQueryByName) {
  Deployment deployment(GetParam());
  const QueryRequest request = VectorRequest(QueryVector::FromFloats(std::vector<float>(24, 0.5f)), 2000);
  QueryReply reply;
  ASSERT_TRUE(deployment.Query(request, &reply).ok());
  deployment.StopLeaf(2);
  const absl::Status status = deployment.Query(request, &reply);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("leaf " + deployment.leaf(2)->target()));
}

TEST(Leaf, RefusesImagesOfOtherShards) {
  Deployment deployment("SIB1");
  NearestRequest request;
  ToProto(QueryVector::FromFloats(std::vector<float>(24, 0.5f)), request.mutable_query());
  request.set_k(1);
  request.add_candidates(500);
  Neighbors neighbors;
  GetRequest get;
  get.set_image_id(499);
  GetReply vector;
  Context ctx(kPatience);
  const Leaf::Stub leaf(deployment.leaf(1));  // holds 500 to 999
  EXPECT_TRUE(leaf.Nearest(ctx, request, &neighbors).ok());
  EXPECT_EQ(leaf.Get(ctx, get, &vector).code(), absl::StatusCode::kFailedPrecondition);
  request.add_candidates(1000);
  const absl::Status status = leaf.Nearest(ctx, request, &neighbors);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("same --data"));
}

TEST(Messages, MergingKeepsTheNearestOfAllLeaves) {
  Neighbors a, b, broken;
  ToProto({{1, 10}, {4, 12}}, &a);
  ToProto({{1, 3}, {2, 900}}, &b);
  broken.add_ids(1);
  TopK best(3);
  ASSERT_TRUE(AddTo(a, &best).ok());
  ASSERT_TRUE(AddTo(b, &best).ok());
  EXPECT_EQ(AddTo(broken, &best).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(best.TakeSorted(), (std::vector<Neighbor>{{1, 3}, {1, 10}, {2, 900}}));
}

}  // namespace
}  // namespace curtail::hdsearch
