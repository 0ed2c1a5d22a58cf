// SPDX-License-Identifier: Apache-2.0
#include "apps/hdsearch/workload.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "apps/hdsearch/index/ground_truth.h"
#include "curtail/base/temp_dir_testing.h"
#include "hdsearch.pb.h"

namespace curtail::hdsearch {
namespace {

constexpr char kSmallCorpus[] = "synthetic:N=500,D=8,seed=1";

QueryReply TrueReply(size_t query) {
  const DataSpec corpus = *DataSpec::Parse(kSmallCorpus);
  const auto queries = LoadQueries(*DefaultQueries(corpus), 20);
  const auto truth = BruteForce(corpus, *queries, 4, 1, true);
  QueryReply reply;
  for (const uint32_t id : truth->Of(query)) {
    reply.mutable_nearest()->add_ids(id);
    reply.mutable_nearest()->add_distances(0);
  }
  return reply;
}

WorkloadOptions Options() {
  WorkloadOptions options;
  options.data = kSmallCorpus;
  options.count = 20, options.k = 4, options.judged = 10, options.quiet = true;
  return options;
}

TEST(Workload, SendsTheQueriesInTurnAndScoresReplies) {
  TempDir dir;
  setenv("XDG_CACHE_HOME", dir.File("cache").c_str(), 1);
  for (const bool cached : {false, true}) {  // the second time the ground truth comes from the cache
    EXPECT_EQ(std::filesystem::exists(dir.File("cache/curtail")), cached);
    const auto workload = MakeWorkload(Options());
    ASSERT_TRUE(workload.ok()) << workload.status();
    EXPECT_EQ((*workload)->method(), "/curtail.hdsearch.Search/Query");
    EXPECT_EQ((*workload)->score_name(), "recall@4");
    QueryRequest request;
    ASSERT_TRUE(request.ParseFromString((*workload)->Request(3)));
    EXPECT_EQ(request.k(), 4u);
    EXPECT_EQ(request.vector().floats().values_size(), 8);
    EXPECT_EQ((*workload)->Request(3), (*workload)->Request(23));
    EXPECT_NE((*workload)->Request(3), (*workload)->Request(4));
    QueryReply reply = TrueReply(3);
    EXPECT_EQ((*workload)->Score(3, reply.SerializeAsString()), 1);
    EXPECT_EQ((*workload)->Score(23, reply.SerializeAsString()), 1);
    reply.mutable_nearest()->mutable_ids()->Truncate(1);
    EXPECT_EQ((*workload)->Score(3, reply.SerializeAsString()), 0.25);
    EXPECT_EQ((*workload)->Score(3, "no message"), 0);
    EXPECT_TRUE(std::isnan((*workload)->Score(15, reply.SerializeAsString())));
  }
}

TEST(Workload, WorksWithoutACacheAndWithoutJudging) {
  TempDir dir;
  setenv("XDG_CACHE_HOME", dir.Write("a-file", "").c_str(), 1);  // nothing can be created below a file
  EXPECT_TRUE(MakeWorkload(Options()).ok());
  WorkloadOptions options = Options();
  options.judged = 0;
  const auto workload = MakeWorkload(options);
  ASSERT_TRUE(workload.ok());
  EXPECT_EQ((*workload)->score_name(), "");
}

TEST(Workload, RefusesWhatDoesNotFit) {
  WorkloadOptions options = Options();
  options.cache = false;
  options.queries = "synthetic:N=5,D=9";
  EXPECT_EQ(MakeWorkload(options).status().code(), absl::StatusCode::kInvalidArgument);
  options = Options();
  options.k = 501;
  EXPECT_EQ(MakeWorkload(options).status().code(), absl::StatusCode::kInvalidArgument);
  options.data = "no-such-file.npy", options.queries = kSmallCorpus;
  EXPECT_EQ(MakeWorkload(options).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace curtail::hdsearch
