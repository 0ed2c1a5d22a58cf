// SPDX-License-Identifier: Apache-2.0
//
// Both tiers in one process, over real sockets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/fanout/services.h"
#include "apps/fanout/workload.h"
#include "curtail/rpc/host/host_testing.h"
#include "curtail/rpc/server_testing.h"
#include "fanout.curtail.h"

namespace curtail::fanout {
namespace {

using ::testing::HasSubstr;

class FanoutTest : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Models, FanoutTest, testing::Values("SIB1", "SDB1-4", "FIB1", "AIB1-1"),
                         [](const auto& info) { return info.param.substr(0, 3); });

TEST_P(FanoutTest, AnswersTheWorkloadOnceAllLeavesHave) {
  std::vector<std::unique_ptr<Server>> leaves;
  Client leaf_client, client;
  std::vector<std::unique_ptr<Channel>> owned;
  std::vector<Channel*> channels;
  for (int i = 0; i < 3; ++i) {
    leaves.push_back(StartServer("SIB1", MakeLeaf()));
    owned.push_back(std::make_unique<Channel>(&leaf_client, leaves.back()->addresses()[0]));
    channels.push_back(owned.back().get());
  }
  const auto mid_tier = StartServer(GetParam(), MakeMidTier(channels));
  Channel channel(&client, mid_tier->addresses()[0]);
  const auto workload = Requests().make({});
  ASSERT_TRUE(workload.ok()) << workload.status();
  EXPECT_EQ((*workload)->method(), Fanout::kQuery.path);
  Blob request, reply;
  ASSERT_TRUE(request.ParseFromString((*workload)->Request(0)));
  EXPECT_EQ(request.payload().size(), 64u);
  Context ctx(std::chrono::seconds(20));
  ASSERT_EQ(Fanout::Stub(&channel).Query(ctx, request, &reply), absl::OkStatus());
  EXPECT_EQ(reply.payload(), request.payload());

  leaves.pop_back();  // the request needs all of them
  Context later(std::chrono::seconds(20));
  EXPECT_EQ(Fanout::Stub(&channel).Query(later, request, &reply).code(), absl::StatusCode::kUnavailable);
}

TEST(Fanout, AMidTierWithoutALeafSaysWhatIsMissing) {
  const HostRun run = RunHost({.name = "fanout", .services = {HostedLeaf(), HostedMidTier()}},
                              {"--service", "mid-tier", "--listen", "127.0.0.1:0"});
  EXPECT_EQ(run.code, 104);
  EXPECT_THAT(run.err, HasSubstr("leaf"));
}

}  // namespace
}  // namespace curtail::fanout
