// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/observe/service_share.h"

#include <chrono>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace curtail::tool {
namespace {

using testing::ElementsAre;
using testing::Pair;

TEST(ServiceShare, SumsItsProcesses) {
  ServiceShare share;
  Histogram latencies;
  latencies.Record(std::chrono::microseconds(20));
  for (int process = 0; process < 2; ++process) {
    share.AddCounts({.counts = {{"wakeups", 5}}, .denied = {}}, {.counts = {{"wakeups", 12}}, .denied = {}},
                    2);
    share.AddRequests(3);
    share.AddWakeups(latencies, 1);
  }
  EXPECT_EQ(share.processes(), 2);
  EXPECT_EQ(share.seconds(), 2);
  EXPECT_THAT(share.counts().counts, ElementsAre(Pair("wakeups", 14)));
  EXPECT_EQ(share.requests(), 6);
  EXPECT_EQ(share.wakeup_latency().count(), 2u);
  EXPECT_EQ(share.events_lost(), 2u);
}

// In either order.
TEST(ServiceShare, HasNoNumberThatAProcessLacks) {
  const OsCounts before{.counts = {{"syscalls", 1}, {"wakeups", 5}}, .denied = {}};
  const OsCounts after{.counts = {{"syscalls", 2}, {"wakeups", 12}}, .denied = {}};
  const OsCounts denied{.counts = {{"syscalls", 2}}, .denied = {{"wakeups", "the CPU has none"}}};
  Histogram latencies;
  latencies.Record(std::chrono::microseconds(20));
  for (const bool first : {true, false}) {
    ServiceShare share;
    for (const bool lacks : {first, !first}) {
      share.AddCounts(before, lacks ? denied : after, 2);
      share.AddRequests(lacks ? std::nullopt : std::optional<double>(3));
      if (lacks) {
        share.DenyWakeups("not permitted");
      } else {
        share.AddWakeups(latencies, 1);
      }
    }
    EXPECT_EQ(share.processes(), 2);
    EXPECT_THAT(share.counts().counts, ElementsAre(Pair("syscalls", 2)));
    EXPECT_THAT(share.counts().denied,
                ElementsAre(Pair("wakeup_latency", "not permitted"), Pair("wakeups", "the CPU has none")));
    EXPECT_FALSE(share.requests().has_value());
    EXPECT_TRUE(share.wakeup_latency().empty());
    EXPECT_EQ(share.events_lost(), 0u);
  }
}

}  // namespace
}  // namespace curtail::tool
