// SPDX-License-Identifier: Apache-2.0
#include "curtail/exec/internal/thread_stats.h"

#include <gtest/gtest.h>

#include <thread>

namespace curtail {
namespace {

TEST(ThreadStats, AddsUpWhatTheFilesSay) {
  ThreadStats stats;
  const char status[] =
      "Name:\tpool-0\nThreads:\t3\nvoluntary_ctxt_switches:\t120\nnonvoluntary_ctxt_switches:\t7\n";
  internal::AddThreadStats(status, "5000 300 12\n", &stats);
  internal::AddThreadStats(status, "", &stats);
  internal::AddThreadStats("", "1 2 3", &stats);
  EXPECT_EQ(stats.threads, 3);
  EXPECT_EQ(stats.voluntary_switches, 240u);
  EXPECT_EQ(stats.involuntary_switches, 14u);
  EXPECT_EQ(stats.cpu, Nanos(5001));
  EXPECT_EQ(stats.run_delay, Nanos(302));
}

TEST(ThreadStats, SeesTheThreadsOfThisProcess) {
  // In a thread, as ThreadSanitizer starts one of its own together with a process's first.
  std::thread first([] {
    const absl::StatusOr<ThreadStats> before = ReadThreadStats();
    ASSERT_TRUE(before.ok()) << before.status();
    std::thread other([&] {
      const absl::StatusOr<ThreadStats> during = ReadThreadStats();
      ASSERT_TRUE(during.ok());
      EXPECT_EQ(during->threads, before->threads + 1);
      EXPECT_GE(during->voluntary_switches, before->voluntary_switches);
    });
    other.join();
  });
  first.join();
}

TEST(ThreadStats, TellsWhatHasComeSince) {
  const ThreadStats before{
      .threads = 2, .voluntary_switches = 10, .involuntary_switches = 5, .cpu = Nanos(100)};
  const ThreadStats after{
      .threads = 1, .voluntary_switches = 17, .involuntary_switches = 3, .cpu = Nanos(150)};
  const ThreadStats since = after.Since(before);
  EXPECT_EQ(since.threads, 1);
  EXPECT_EQ(since.switches(), 7u);  // a thread that ended took its count with it; never below zero
  EXPECT_EQ(since.cpu, Nanos(50));
}

TEST(ThreadStats, SaysWhenThereIsNoSuchProcess) {
  EXPECT_EQ(ReadThreadStats("no-such-pid").status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace curtail
