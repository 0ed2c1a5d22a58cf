// SPDX-License-Identifier: Apache-2.0
#include "curtail/observe/metrics/metrics_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

namespace curtail::observe {
namespace {

TEST(ProcessUsage, IsThatOfThisProcess) {
  const ProcessUsage usage = ReadProcessUsage();
  EXPECT_GE(usage.threads, 1);
  EXPECT_GT(usage.resident_bytes, 1u << 20);
  EXPECT_GE(usage.virtual_bytes, usage.resident_bytes);
  EXPECT_GT(usage.start_time_s, 1e9);
  EXPECT_GE(ReadProcessUsage().user_cpu, usage.user_cpu);
}

TEST(ThreadUsages, HaveThisThread) {
  const std::vector<ThreadUsage> threads = ReadThreadUsages();
  const auto self =
      std::find_if(threads.begin(), threads.end(), [](const ThreadUsage& t) { return t.id == getpid(); });
  ASSERT_NE(self, threads.end());
  EXPECT_EQ(self->state, 'R');
  EXPECT_FALSE(self->name.empty());
  EXPECT_EQ(self->name.find('\n'), std::string::npos);
}

TEST(FieldsAfterName, NameMayHoldAnything) {
  EXPECT_THAT(FieldsAfterName("12 (a) b (c\nd)) S 1  2\n"), testing::ElementsAre("S", "1", "2"));
  EXPECT_THAT(FieldsAfterName("12 a S 1"), testing::IsEmpty());
  EXPECT_THAT(FieldsAfterName("12 (a)"), testing::IsEmpty());
}

}  // namespace
}  // namespace curtail::observe
