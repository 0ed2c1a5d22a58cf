// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/admin/admin_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "curtail/rpc/admin/admin_testing.h"

namespace curtail {
namespace {

using internal::DecisionsMessage;
using internal::StatusMessage;

const TimePoint kNow(std::chrono::hours(3));

PolicyDecision ADecision() {
  return {.when = kNow - std::chrono::milliseconds(1500),
          .rate_per_s = 99.96,
          .from = *Config::Parse("SIB1"),
          .to = *Config::Parse("SDB1-4"),
          .reason = "lower predicted latency",
          .status = absl::InvalidArgumentError("too many threads")};
}

PolicyStats APolicy() {
  return {.policy = "mutune",
          .note = "trained on \"another\" machine\n",
          .switches_by_itself = true,
          .rate_per_s = 1234.56,
          .fast_rate_per_s = 0.04,
          .paper_rate_per_s = 7,
          .arrivals = 8,
          .evaluations = 9,
          .switches = 10,
          .failures = 11,
          .last_failure = "too many threads",
          .decisions = {ADecision()}};
}

TEST(AdminMessages, StatusHasAllThatTheServerCounts) {
  const FenceClassStats fenced{"a.B", 21, 22, 23, 24, 25, 26, 27, 29, 31, 32, {"/a.S/M"}};
  ServerStats stats{.pools = {.config = *Config::Parse("SDB1-4"),
                              .pools = {{"network", 1, 0, 1, 0}, {"workers", 4, 3, 2, 1}},
                              .spinning = 5,
                              .asleep = 6,
                              .fibers = 7,
                              .queued = 8,
                              .begun = uint64_t{1} << 40,
                              .queue_wait = std::chrono::microseconds(10),
                              .max_queue_wait = Nanos(11'999)},
                    .connections = 12,
                    .open_calls = 13,
                    .process = {.threads = 14,
                                .voluntary_switches = 15,
                                .involuntary_switches = 16,
                                .cpu = std::chrono::seconds(17),
                                .run_delay = std::chrono::microseconds(18)},
                    .held_up = {{"/a.B/C", 19, true}},
                    .limits = {{"resets", 20}},
                    .fences = FenceStats{.mode = FenceMode::kStrict,
                                         .limiter = "sct",
                                         .classes = {fenced},
                                         .undeclared = {{"/a.B/C", "a.D", 28}}},
                    .refusals = {{"waited too long", 30}}};
  const admin::v1::GetStatusReply status = StatusMessage(stats, kNow);
  EXPECT_EQ(status.now_ns(), 3 * 3600 * int64_t{1'000'000'000});
  EXPECT_EQ(status.config(), "SDB1-4");
  ASSERT_EQ(status.pools_size(), 2);
  EXPECT_EQ(status.pools(0).name(), "network");
  EXPECT_EQ(status.pools(1).ShortDebugString(),
            "name: \"workers\" threads: 4 active: 3 waiting: 2 parked: 1");
  EXPECT_EQ(status.spinning_threads(), 5);
  EXPECT_EQ(status.sleeping_threads(), 6);
  EXPECT_EQ(status.fibers(), 7u);
  EXPECT_EQ(status.queued(), 8u);
  EXPECT_EQ(status.begun(), uint64_t{1} << 40);
  EXPECT_EQ(status.queue_wait_us(), 10);
  EXPECT_EQ(status.max_queue_wait_us(), 11);
  EXPECT_EQ(status.connections(), 12u);
  EXPECT_EQ(status.open_calls(), 13u);
  EXPECT_FALSE(status.has_policy());
  EXPECT_EQ(status.process().ShortDebugString(),
            "threads: 14 voluntary_switches: 15 involuntary_switches: 16 cpu_us: 17000000 run_delay_us: 18");
  ASSERT_EQ(status.held_up_size(), 1);
  EXPECT_EQ(status.held_up(0).ShortDebugString(), "path: \"/a.B/C\" times: 19 blocks: true");
  ASSERT_EQ(status.limits_size(), 1);
  EXPECT_EQ(status.limits(0).ShortDebugString(), "name: \"resets\" times: 20");
  EXPECT_EQ(status.fences().ShortDebugString(),
            "mode: \"strict\" classes { name: \"a.B\" limit: 21 in_use: 22 waiting: 23 begun: 24 queued: 25 "
            "refused: 26 borrowed: 27 shed: 29 methods: \"/a.S/M\" late: 31 no_credit: 32 } "
            "undeclared { method: \"/a.B/C\" service: \"a.D\" times: 28 } "
            "limiter: \"sct\"");
  ASSERT_EQ(status.refusals_size(), 1);
  EXPECT_EQ(status.refusals(0).ShortDebugString(), "reason: \"waited too long\" times: 30");
}

TEST(AdminMessages, PolicyHasItsRatesToATenthAndItsDecisions) {
  const admin::v1::GetStatusReply status = StatusMessage({.policy = APolicy()}, kNow);
  ASSERT_TRUE(status.has_policy());
  const admin::v1::Policy& policy = status.policy();
  EXPECT_EQ(policy.name(), "mutune");
  EXPECT_TRUE(policy.switches_by_itself());
  EXPECT_EQ(policy.rate_per_s(), 1234.6);
  EXPECT_EQ(policy.fast_rate_per_s(), 0);
  EXPECT_EQ(policy.paper_rate_per_s(), 7);
  EXPECT_EQ(policy.arrivals(), 8u);
  EXPECT_EQ(policy.evaluations(), 9u);
  EXPECT_EQ(policy.switches(), 10u);
  EXPECT_EQ(policy.failures(), 11u);
  EXPECT_EQ(policy.last_failure(), "too many threads");
  ASSERT_EQ(policy.decisions_size(), 1);
  const admin::v1::Decision& decision = policy.decisions(0);
  EXPECT_EQ(status.now_ns() - decision.at_ns(), 1'500'000'000);
  EXPECT_EQ(decision.rate_per_s(), 100);
  EXPECT_EQ(decision.from(), "SIB1");
  EXPECT_EQ(decision.to(), "SDB1-4");
  EXPECT_EQ(decision.reason(), "lower predicted latency");
  EXPECT_EQ(decision.failure(), "too many threads");
}

TEST(AdminMessages, DecisionsAreThoseOfThePolicy) {
  const admin::v1::GetDecisionsReply reply = DecisionsMessage(APolicy(), kNow);
  EXPECT_EQ(reply.now_ns(), kNow.time_since_epoch().count());
  EXPECT_EQ(reply.switches(), 10u);
  ASSERT_EQ(reply.decisions_size(), 1);
  EXPECT_EQ(reply.decisions(0).to(), "SDB1-4");
  EXPECT_EQ(DecisionsMessage({}, kNow).decisions_size(), 0);
}

// A string that is no UTF-8 would keep the peer from reading the message at all.
TEST(AdminMessages, AnyTextCanBeReadByThePeer) {
  PolicyStats policy = APolicy();
  policy.policy = "m\xfftune";
  policy.last_failure = "/tmp/\xc3.json";
  policy.decisions[0].reason = "\x80";
  policy.decisions[0].status = absl::InternalError("\xfe");
  const admin::v1::GetStatusReply status = StatusMessage({.policy = policy}, kNow);
  admin::v1::GetStatusReply read;
  ASSERT_TRUE(read.ParseFromString(status.SerializeAsString()));
  EXPECT_EQ(read.policy().name(), "m?tune");
  EXPECT_EQ(read.policy().note(), "trained on \"another\" machine?");
  EXPECT_EQ(read.policy().last_failure(), "/tmp/?.json");
  EXPECT_EQ(read.policy().decisions(0).reason(), "?");
  EXPECT_EQ(read.policy().decisions(0).failure(), "?");
}

TEST(AdminMessages, MethodPathsAreThoseOfTheInterface) {
  EXPECT_EQ(Admin::kSwitch.path, "/curtail.admin.v1.Admin/Switch");
  EXPECT_EQ(Admin::kGetConfig.path, "/curtail.admin.v1.Admin/GetConfig");
  EXPECT_EQ(Admin::kGetStatus.path, "/curtail.admin.v1.Admin/GetStatus");
  EXPECT_EQ(Admin::kGetDecisions.path, "/curtail.admin.v1.Admin/GetDecisions");
}

}  // namespace
}  // namespace curtail
