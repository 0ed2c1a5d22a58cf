// SPDX-License-Identifier: Apache-2.0
#include "proc_sample.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "curtail/base/clock.h"

namespace curtail::models {
namespace {

constexpr char kStatus[] =
    "Name:\tworker\nState:\tS (sleeping)\nThreads:\t3\nvoluntary_ctxt_switches:\t120\n"
    "nonvoluntary_ctxt_switches:\t7\n";

TEST(ProcSample, AddsUpThreads) {
  ProcSample sample;
  ASSERT_TRUE(AddThread(kStatus, "5000 40 12\n", &sample).ok());
  ASSERT_TRUE(AddThread(kStatus, "100 2 3\n", &sample).ok());
  EXPECT_EQ(sample.threads, 2);
  EXPECT_EQ(sample.voluntary_switches, 240u);
  EXPECT_EQ(sample.involuntary_switches, 14u);
  EXPECT_EQ(sample.switches(), 254u);
  EXPECT_EQ(sample.cpu_ns, 5100u);
  EXPECT_EQ(sample.runqueue_ns, 42u);
}

TEST(ProcSample, RefusesWhatIsIncompleteAndAddsNothing) {
  ProcSample sample;
  EXPECT_EQ(AddThread("Name:\tx\nvoluntary_ctxt_switches:\t1\n", "1 2 3\n", &sample).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(AddThread(kStatus, "1 2\n", &sample).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(AddThread(kStatus, "1 x 3\n", &sample).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(sample.threads, 0);
  EXPECT_EQ(sample.switches(), 0u);
}

TEST(ProcSample, DifferenceStopsAtZero) {
  ProcSample before, after;
  before.cpu_ns = 100, after.cpu_ns = 250;
  before.voluntary_switches = 10, after.voluntary_switches = 4;  // a thread has ended between
  const ProcSample d = Difference(before, after);
  EXPECT_EQ(d.cpu_ns, 150u);
  EXPECT_EQ(d.voluntary_switches, 0u);
}

// What this process does shows: its CPU time grows by what it burns, its switches by the times it waits.
TEST(ProcSample, SeesThisProcessWorkAndWait) {
  constexpr int kWaits = 20;
  const auto before = SampleProcess(getpid());
  ASSERT_TRUE(before.ok()) << before.status();
  for (int i = 0; i < kWaits; ++i) usleep(1000);
  const TimePoint end = Now() + std::chrono::milliseconds(50);
  while (Now() < end) continue;
  const auto after = SampleProcess(getpid());
  ASSERT_TRUE(after.ok()) << after.status();
  const ProcSample d = Difference(*before, *after);
  EXPECT_GE(d.voluntary_switches, static_cast<uint64_t>(kWaits));
  EXPECT_GT(d.cpu_ns, 1'000'000u);
}

TEST(ProcSample, SaysThatAProcessIsGone) {
  EXPECT_EQ(SampleProcess(1 << 30).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace curtail::models
