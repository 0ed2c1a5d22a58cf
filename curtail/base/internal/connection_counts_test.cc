// SPDX-License-Identifier: Apache-2.0
#include "curtail/base/internal/connection_counts.h"

#include <gtest/gtest.h>

#include "curtail/base/strings.h"

namespace curtail::internal {
namespace {

TEST(ConnectionCounts, CountEachTargetByItself) {
  ConnectionCounts counts;
  EXPECT_TRUE(counts.Read().empty());
  TargetConnections* const a = counts.For("a:1");
  TargetConnections* const b = counts.For("b:1");
  EXPECT_NE(a, b);
  EXPECT_EQ(counts.For("a:1"), a);
  a->attempts = 5, a->failures = 1, a->stood = 3, a->closed = 2;
  const auto rows = counts.Read();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].target, "a:1");
  EXPECT_EQ(rows[0].open, 1u);
  EXPECT_EQ(rows[0].attempts, 5u);
  EXPECT_EQ(rows[0].failures, 1u);
  EXPECT_EQ(rows[1].open, 0u);
}

TEST(ConnectionCounts, AreBounded) {
  ConnectionCounts counts;
  for (size_t i = 1; i < ConnectionCounts::kMost; ++i) counts.For(Join("target ", i));
  EXPECT_EQ(counts.Read().size(), ConnectionCounts::kMost - 1);
  EXPECT_EQ(counts.For("one more"), counts.For("another"));
  EXPECT_NE(counts.For("one more"), counts.For("target 1"));
  const auto rows = counts.Read();
  ASSERT_EQ(rows.size(), ConnectionCounts::kMost);
  EXPECT_EQ(rows.back().target, "other");
}

TEST(ConnectionCounts, CutLongNames) {
  ConnectionCounts counts;
  const std::string name(ConnectionCounts::kMostName, 'n');
  EXPECT_EQ(counts.For(name + "1"), counts.For(name + "2"));
  EXPECT_EQ(counts.Read()[0].target, name);
}

}  // namespace
}  // namespace curtail::internal
