// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/provision/tier_load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace curtail::tool {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::vector<Lever> kBoth = {Lever::kCpu, Lever::kThreads};

std::vector<std::string> Names(const std::vector<Saturation>& saturated) {
  std::vector<std::string> names;
  for (const Saturation& of : saturated) names.push_back(absl::StrCat(of.tier, " ", NameOf(of.lever)));
  return names;
}

TierLoad Load(const char* name, double throttled, double wait_share) {
  return {.name = name, .throttled = throttled, .queue_wait_s = 0.002, .wait_share = wait_share};
}

TEST(SaturatedTiers, TheMostSaturatedIsFirst) {
  const std::vector<TierLoad> tiers = {Load("front", 0.02, 0.1), Load("text", 0.4, 0.8),
                                       Load("store", 0, 0.9), Load("user", 0.1, 0)};
  const std::vector<Saturation> saturated = SaturatedTiers(tiers, {}, kBoth);
  EXPECT_THAT(Names(saturated), ElementsAre("store threads", "text cpu", "user cpu"));
  EXPECT_THAT(saturated[0].evidence, HasSubstr("wait 2.00 ms for a thread, 90 %"));
  EXPECT_THAT(saturated[1].evidence, HasSubstr("40 % of periods"));
}

TEST(SaturatedTiers, OneThatWaitsForAnotherComesAfterIt) {
  const std::vector<TierLoad> tiers = {Load("front", 0, 0.95), Load("mid", 0, 0.9), Load("leaf", 0, 0.5),
                                       Load("other", 0, 0.6)};
  const TierCalls calls = {{"front", {"mid", "other"}}, {"mid", {"leaf"}}};
  EXPECT_THAT(Names(SaturatedTiers(tiers, calls, kBoth)),
              ElementsAre("other threads", "leaf threads", "front threads", "mid threads"));
}

TEST(SaturatedTiers, ACircleOfCallsHasAFirstOneToo) {
  const std::vector<TierLoad> tiers = {Load("user", 0, 0.5), Load("post", 0, 0.8)};
  const TierCalls calls = {{"user", {"post"}}, {"post", {"user", "post"}}};
  EXPECT_THAT(Names(SaturatedTiers(tiers, calls, kBoth)), ElementsAre("post threads", "user threads"));
}

TEST(SaturatedTiers, OnlyLeversThatThereAre) {
  const std::vector<TierLoad> tiers = {Load("front", 0.5, 0.9)};
  EXPECT_THAT(Names(SaturatedTiers(tiers, {}, {Lever::kThreads})), ElementsAre("front threads"));
  EXPECT_THAT(Names(SaturatedTiers(tiers, {}, {Lever::kCpu})), ElementsAre("front cpu"));
  EXPECT_THAT(SaturatedTiers(tiers, {}, {}), IsEmpty());
}

// The metrics of a service of one thread, whose handler takes 10 ms, at 95 requests a second.
std::string Metrics(int calls, double seconds, double wait_s) {
  return absl::StrCat(
      "rpc_server_calls_total{rpc_service=\"shop.Cart\",rpc_method=\"Add\",rpc_response_status_code=\"OK\"} ",
      calls, "\nrpc_server_duration_seconds_sum{rpc_service=\"shop.Cart\",rpc_method=\"Add\"} ", seconds,
      "\nrpc_server_duration_seconds_sum{rpc_service=\"grpc.health.v1.Health\",rpc_method=\"Check\"} 77",
      "\ncurtail_queue_begun_total ", calls, "\ncurtail_queue_wait_seconds_total ", wait_s, "\n");
}

ApplicationVitals Look(Nanos at, double cpu_s, const std::string& metrics) {
  ProcessVitals cart;
  cart.process.name = cart.process.service = "cart";
  cart.process.state = "ready";
  cart.process.pid = 7;
  cart.threads = 3;
  cart.cpu_s = cpu_s;
  cart.at = TimePoint(at);
  ReadCounts(metrics, &cart);
  ApplicationVitals vitals;
  vitals.processes.push_back(cart);
  return vitals;
}

TEST(TierLoads, AreBetweenTwoLooks) {
  using std::chrono::seconds;
  const std::vector<TierLoad> loads =
      TierLoads(Look(seconds(5), 1.0, Metrics(100, 2, 1)),
                Look(seconds(7), 1.1, Metrics(290, 2 + 11.4, 1 + 9.5)), {{"cart", 0.25}});
  ASSERT_EQ(loads.size(), 1u);
  EXPECT_EQ(loads[0].name, "cart");
  EXPECT_NEAR(loads[0].cpus, 0.05, 1e-9);
  EXPECT_NEAR(loads[0].queue_wait_s, 0.05, 1e-9);
  EXPECT_NEAR(loads[0].wait_share, 9.5 / 11.4, 1e-9);
  EXPECT_EQ(loads[0].throttled, 0.25);
}

}  // namespace
}  // namespace curtail::tool
