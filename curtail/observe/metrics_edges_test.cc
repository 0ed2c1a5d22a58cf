// SPDX-License-Identifier: Apache-2.0
#include "curtail/observe/metrics_edges.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <thread>
#include <vector>

#include "curtail/base/strings.h"

namespace curtail::observe {
namespace {

constexpr Nanos kEdgeTime = std::chrono::milliseconds(1);

uint64_t CallsOf(const MetricsEdges::Edge& edge) {
  uint64_t calls = 0;
  for (const uint64_t count : edge.counts.buckets) calls += count;
  return calls;
}

TEST(MetricsEdges, CountsByTargetAndMethod) {
  MetricsEdges edges;
  EXPECT_EQ(edges.size(), 1u);
  edges.Count("127.0.0.1:7000", "/s.A/Get", kEdgeTime, 0, 0, 0);
  edges.Count("127.0.0.1:7001", "/s.A/Get", kEdgeTime, 14, 2, 0);
  edges.Count("127.0.0.1:7000", "/s.A/Set", kEdgeTime, 0, 0, 3);
  edges.Count(std::string("127.0.0.1:7000"), std::string("/s.A/Get"), 3 * kEdgeTime, 0, 0, 0);
  edges.Count("", "", kEdgeTime, 0, 0, 0);
  ASSERT_EQ(edges.size(), 5u);
  const MetricsEdges::Edge first = edges.Read(1), second = edges.Read(2), third = edges.Read(3);
  EXPECT_EQ(first.target, "127.0.0.1:7000");
  EXPECT_EQ(first.path, "/s.A/Get");
  EXPECT_EQ(CallsOf(first), 2u);
  EXPECT_EQ(first.counts.sum, 4 * kEdgeTime);
  EXPECT_EQ(second.target, "127.0.0.1:7001");
  EXPECT_EQ(second.counts.codes[14], 1u);
  EXPECT_EQ(second.retries, 2u);
  EXPECT_EQ(third.path, "/s.A/Set");
  EXPECT_EQ(third.hedges, 3u);
  EXPECT_EQ(CallsOf(edges.Read(MetricsEdges::kOther)), 0u);
}

TEST(MetricsEdges, CountsTheRestTogether) {
  MetricsEdges edges;
  constexpr size_t kEdges = 1000;
  for (int round = 0; round < 2; ++round) {
    for (size_t i = 0; i < kEdges; ++i) edges.Count(Join("host-", i, ":80"), "/s.A/Get", kEdgeTime, 0, 1, 0);
  }
  ASSERT_EQ(edges.size(), MetricsEdges::kMost);
  for (size_t i = 1; i < edges.size(); ++i) EXPECT_EQ(CallsOf(edges.Read(i)), 2u) << i;
  const MetricsEdges::Edge other = edges.Read(MetricsEdges::kOther);
  EXPECT_EQ(CallsOf(other), 2 * (kEdges - MetricsEdges::kMost + 1));
  EXPECT_EQ(other.retries, CallsOf(other));
}

TEST(MetricsEdges, CutsLongNamesOff) {
  MetricsEdges edges;
  const std::string target(500, 't'), path(500, 'p');
  edges.Count(target, path, kEdgeTime, 0, 0, 0);
  edges.Count(target + "more", path, kEdgeTime, 0, 0, 0);
  ASSERT_EQ(edges.size(), 2u);
  EXPECT_EQ(CallsOf(edges.Read(1)), 2u);
  EXPECT_EQ(edges.Read(1).target.size(), EdgeAddress::kMost);
}

// Property: no call is lost, and no edge is there twice.
TEST(MetricsEdges, ThreadsAddEdgesStress) {
  constexpr int kThreads = 4, kCalls = 20'000, kEdges = 40;
  MetricsEdges edges;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&edges, t] {
      for (int i = 0; i < kCalls; ++i)
        edges.Count(Join("host-", (i * (t + 1)) % kEdges), "/s.A/Get", kEdgeTime, 0, 0, 0);
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::map<std::string, uint64_t> calls;
  uint64_t sum = 0;
  for (size_t i = 0; i < edges.size(); ++i) {
    const MetricsEdges::Edge edge = edges.Read(i);
    EXPECT_TRUE(calls.emplace(edge.target, CallsOf(edge)).second) << edge.target;
    sum += CallsOf(edge);
  }
  EXPECT_EQ(edges.size(), kEdges + 1u);
  EXPECT_EQ(sum, uint64_t{kThreads} * kCalls);
}

}  // namespace
}  // namespace curtail::observe
