// SPDX-License-Identifier: Apache-2.0
#include "curtail/observe/trace/trace_analysis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "curtail/base/rng.h"
#include "curtail/base/testing.h"
#include "curtail/observe/trace/trace_testing.h"

namespace curtail::observe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;
using Verdict = TierGrowth::Verdict;

constexpr int64_t kMs = 1'000'000;

TraceRecords Records(const std::vector<std::pair<std::string, std::vector<TestSpan>>>& documents) {
  TraceRecords records;
  for (const auto& [process, spans] : documents) {
    const std::string service = process.substr(0, process.find('-'));
    EXPECT_TRUE(records.Add(DocumentJson(service, spans), service, process).ok());
  }
  return records;
}

std::map<std::string, int64_t> Steps(const TraceRecords& records, const PathTimes& path) {
  std::map<std::string, int64_t> steps;
  for (const auto& [step, time] : path)
    steps[Join(records.name(step.first), " ", TracePartName(step.second))] = time;
  return steps;
}

int64_t PartOf(const TierTimes& tier, TracePart part) { return tier.parts[static_cast<size_t>(part)]; }

// Front asks a and b at once; b answers last.
const TestSpan kFront{.trace = 1,
                      .id = 1,
                      .parent = 0,
                      .method = "/s.Front/Get",
                      .queue = 100,
                      .entry = 10,
                      .handler = 850,
                      .reply = 40,
                      .calls = {{.id = 11, .method = "/s.A/Get", .start = 150, .total = 300, .send = 20},
                                {.id = 12, .method = "/s.B/Get", .start = 170, .total = 600, .send = 10}}};
const TestSpan kA{.trace = 1,
                  .id = 2,
                  .parent = 11,
                  .method = "/s.A/Get",
                  .queue = 0,
                  .entry = 0,
                  .handler = 200,
                  .reply = 0};
const TestSpan kB{.trace = 1,
                  .id = 3,
                  .parent = 12,
                  .method = "/s.B/Get",
                  .queue = 50,
                  .entry = 0,
                  .handler = 430,
                  .reply = 20};

TEST(TraceAnalysis, SplitsTiersAndEdgesIntoParts) {
  const TraceRecords records = Records({{"front", {kFront}}, {"a", {kA}}, {"b", {kB}}});
  const TraceAnalysis analysis = AnalyzeTraces(records, 0);
  ExpectPartsSumUp(analysis);
  ASSERT_EQ(analysis.tiers.size(), 3u);
  const TierTimes& front = analysis.tiers[2];
  EXPECT_EQ(records.name(front.tier), "front");
  EXPECT_EQ(PartOf(front, TracePart::kQueue), 100);
  EXPECT_EQ(PartOf(front, TracePart::kEntry), 10);
  EXPECT_EQ(PartOf(front, TracePart::kSerialize), 30);
  EXPECT_EQ(PartOf(front, TracePart::kWait), 590);
  EXPECT_EQ(PartOf(front, TracePart::kHandler), 230);
  EXPECT_EQ(PartOf(front, TracePart::kReply), 40);
  ASSERT_EQ(analysis.edges.size(), 2u);
  const EdgeTimes& b = analysis.edges[1];
  EXPECT_EQ(records.name(b.callee), "b");
  EXPECT_EQ(b.serialize, 10);
  EXPECT_EQ(b.network, 90);
  EXPECT_EQ(b.inside, 500);
  EXPECT_EQ(b.seen, 1u);
}

TEST(TraceAnalysis, TheCriticalPathLeadsThroughTheCallThatEndedLast) {
  const TraceRecords records = Records({{"front", {kFront}}, {"a", {kA}}, {"b", {kB}}});
  const TraceAnalysis analysis = AnalyzeTraces(records, 0);
  ASSERT_EQ(analysis.classes.size(), 1u);
  const RequestClass& of = analysis.classes[0];
  EXPECT_EQ(records.name(of.tier), "front");
  EXPECT_EQ(records.name(of.method), "/s.Front/Get");
  EXPECT_EQ(of.total, 1000);
  EXPECT_THAT(
      Steps(records, of.path),
      UnorderedElementsAre(Pair("front queue", 100), Pair("front entry", 10), Pair("front handler", 230),
                           Pair("front serialize", 30), Pair("front reply", 40), Pair("b network", 90),
                           Pair("b queue", 50), Pair("b handler", 430), Pair("b reply", 20)));
  EXPECT_EQ(of.network, 30 + 40 + 90 + 20);
  EXPECT_FALSE(of.slow.has_value()) << "one request has no slowest tenth";
}

TEST(TraceAnalysis, CallsOneAfterTheOtherAreAllOnThePath) {
  TestSpan front = kFront;
  front.calls[1].start = 460;
  front.calls[1].total = 300;
  const TraceRecords records = Records({{"front", {front}}, {"a", {kA}}});
  const TraceAnalysis analysis = AnalyzeTraces(records, 0);
  ExpectPartsSumUp(analysis);
  EXPECT_THAT(
      Steps(records, analysis.classes[0].path),
      UnorderedElementsAre(Pair("front queue", 100), Pair("front entry", 10), Pair("front handler", 250),
                           Pair("front serialize", 30), Pair("front reply", 40), Pair("a network", 80),
                           Pair("a handler", 200), Pair("s.B remote", 290)));
}

TEST(TraceAnalysis, ACallThatTheReplyDidNotWaitForIsNotOnThePath) {
  TestSpan front = kFront;
  front.calls = {{.id = 11, .method = "/s.A/Get", .start = 150, .total = 5000, .send = 20}};
  const TraceRecords records = Records({{"front", {front}}, {"a", {kA}}});
  const TraceAnalysis analysis = AnalyzeTraces(records, 0);
  ExpectPartsSumUp(analysis);
  EXPECT_EQ(analysis.classes[0].path.size(), 5u) << "front's own parts";
}

TEST(TraceAnalysis, CallsWithinTheProcessAreTiers) {
  TestSpan whole = kFront;
  whole.calls = {{.id = 11, .method = "/s.A/Get", .start = 150, .total = 300, .target = "s.A"},
                 {.id = 12, .method = "/s.B/Get", .start = 200, .total = 100, .parent = 11, .target = "s.B"}};
  const TraceRecords records = Records({{"whole", {whole}}});
  const TraceAnalysis analysis = AnalyzeTraces(records, 0);
  ExpectPartsSumUp(analysis);
  EXPECT_THAT(
      Steps(records, analysis.classes[0].path),
      UnorderedElementsAre(Pair("whole queue", 100), Pair("whole entry", 10), Pair("whole handler", 550),
                           Pair("whole reply", 40), Pair("s.A handler", 200), Pair("s.B handler", 100)));
  ASSERT_EQ(analysis.edges.size(), 2u);
  EXPECT_EQ(records.name(analysis.edges[0].caller), "s.A");
  EXPECT_EQ(records.name(analysis.edges[0].callee), "s.B");
}

TEST(TraceAnalysis, SpansWhoseCallersAreMissingAreNoRequestsOfClients) {
  TestSpan orphan = kB;
  orphan.trace = 9;
  const TraceRecords records = Records({{"front", {kFront}}, {"b", {orphan}}});
  const TraceAnalysis analysis = AnalyzeTraces(records, 0);
  EXPECT_EQ(analysis.alone, 1u);
  ASSERT_EQ(analysis.classes.size(), 1u);
  EXPECT_EQ(records.name(analysis.classes[0].tier), "front");
  EXPECT_EQ(AnalyzeTraces(Records({{"b", {orphan}}}), 0).classes.size(), 1u);
}

TEST(TraceAnalysis, CirclesAreNotEntered) {
  TestSpan self = kFront, one = kFront, two = kFront;
  self.trace = 2, self.parent = 11;
  one.trace = two.trace = 3;
  two.id = 4, two.calls[0].id = 21, two.calls[1].id = 22;
  one.parent = 21, two.parent = 11;
  TestSpan inner = kFront;
  inner.trace = 4;
  inner.calls[0].parent = 12, inner.calls[1].parent = 11;
  const TraceAnalysis analysis = AnalyzeTraces(Records({{"front", {self, one, two, inner}}}), 0);
  ExpectPartsSumUp(analysis);
  ASSERT_EQ(analysis.classes.size(), 1u);
  EXPECT_EQ(analysis.classes[0].requests, 1u) << "the other spans answer calls";
}

TEST(TraceAnalysis, AChainThatIsTooDeepEnds) {
  std::vector<TestSpan> chain;
  for (uint64_t i = 0; i < 10'000; ++i) {
    chain.push_back({.trace = 1,
                     .id = 2 * i + 2,
                     .parent = i == 0 ? 0 : 2 * i + 1,
                     .method = i == 0 ? "/s.R/m" : "/s.C/m",
                     .queue = 1,
                     .entry = 0,
                     .handler = 100'000 - static_cast<int64_t>(i) * 8,
                     .reply = 1});
    chain.back().calls = {{.id = 2 * i + 3,
                           .method = "/s.C/m",
                           .start = 2,
                           .total = 100'000 - static_cast<int64_t>(i) * 8 - 3}};
  }
  TraceRecords records;
  ASSERT_TRUE(records.Add(DocumentJson("c", chain)).ok());
  const TraceAnalysis analysis = AnalyzeTraces(records, 1);
  ASSERT_EQ(records.spans().size(), chain.size());
  ExpectPartsSumUp(analysis);
  EXPECT_EQ(analysis.classes.at(0).total, 100'002);
}

// A random tree of requests below `span`, whose times fit its calls as a real recorder's do, more or less.
class Generator {
 public:
  explicit Generator(uint64_t seed) : rng_(seed) {}

  std::map<std::string, std::vector<TestSpan>> Make(int roots) {
    spans_.clear();
    for (trace_ = 1; trace_ <= static_cast<uint64_t>(roots); ++trace_) AddSpan(0, 0, Below(5'000));
    return spans_;
  }

 private:
  int64_t Below(int64_t n) {
    return static_cast<int64_t>(rng_.Below(static_cast<uint64_t>(std::max<int64_t>(n, 1))));
  }

  void AddSpan(uint64_t parent, int depth, int64_t total) {
    const int tier = depth == 0 ? 0 : 1 + static_cast<int>(Below(3));
    TestSpan span{.trace = trace_,
                  .id = ++ids_,
                  .parent = parent,
                  .method = Join("/s.T", tier, "/m"),
                  .queue = Below(total / 4),
                  .entry = Below(total / 8),
                  .handler = 0,
                  .reply = Below(total / 8)};
    span.handler = total - span.queue - span.entry - span.reply;
    span.start_us = Below(1'000'000);
    for (int64_t calls = depth > 3 ? 0 : Below(5); calls > 0; --calls) {
      const int64_t start = span.queue + span.entry + Below(span.handler), length = Below(total - start + 50);
      TestCall call{.id = ++ids_,
                    .method = Join("/s.T", 1 + Below(3), "/m"),
                    .start = start,
                    .total = length,
                    .send = Below(length + 1)};
      if (Below(6) == 0) call.target = call.method.substr(1, 4);
      if (Below(5) == 0 && !span.calls.empty()) call.parent = span.calls.back().id;
      span.calls.push_back(call);
    }
    for (const TestCall& call : span.calls) {
      if (Below(4) > 0) AddSpan(call.id, depth + 1, Below(call.total + 20));
      if (Below(9) == 0) AddSpan(call.id, depth + 1, Below(call.total + 20));  // once more: a retry
    }
    spans_[Join("tier", tier)].push_back(std::move(span));
  }

  Rng rng_;
  uint64_t trace_ = 0, ids_ = 0;
  std::map<std::string, std::vector<TestSpan>> spans_;
};

TEST(TraceAnalysis, PartsOfAnySpansSumUp) {
  Generator generator(TestSeed());
  for (int round = 0; round < 40; ++round) {
    const auto documents = generator.Make(1 + round);
    const TraceRecords records = Records({documents.begin(), documents.end()});
    ASSERT_EQ(records.refused(), 0u);
    const TraceAnalysis analysis = AnalyzeTraces(records, round % 2 == 0 ? 0 : 2'000);
    ExpectPartsSumUp(analysis);
    ASSERT_FALSE(analysis.classes.empty());
    uint64_t requests = 0;
    for (const RequestClass& of : analysis.classes) requests += of.requests;
    ASSERT_EQ(requests, static_cast<uint64_t>(1 + round));
    if (testing::Test::HasFailure()) FAIL() << "round " << round;
  }
}

// ----- slow requests ---------------------------------------------------------------------------------------------------

// The times of one request of front, which calls mid, which calls leaf-0 and leaf-1.
struct Times {
  int64_t front_queue = kMs / 10, leaf = kMs, network = kMs / 5, mid = kMs / 2;
};

// 200 requests, 10 ms apart.
template <class TimesOf>
TraceRecords Requests(const TimesOf& times_of) {
  std::map<std::string, std::vector<TestSpan>> documents;
  for (uint64_t i = 0; i < 200; ++i) {
    const Times t = times_of(i);
    const auto us = static_cast<int64_t>(i) * 10'000 + 1'000'000;
    const uint64_t id = 100 * i;
    const int64_t leaf_call = t.leaf + t.network, mid_total = t.mid + leaf_call,
                  mid_call = mid_total + kMs / 5;
    documents["front"].push_back(
        {.trace = i + 1,
         .id = id + 1,
         .parent = 0,
         .method = "/s.Front/Get",
         .queue = t.front_queue,
         .entry = 0,
         .handler = mid_call + kMs / 10,
         .reply = 0,
         .calls = {{.id = id + 2, .method = "/s.Mid/Get", .start = t.front_queue, .total = mid_call}},
         .start_us = us});
    documents["mid"].push_back(
        {.trace = i + 1,
         .id = id + 3,
         .parent = id + 2,
         .method = "/s.Mid/Get",
         .queue = 0,
         .entry = 0,
         .handler = mid_total,
         .reply = 0,
         .calls = {{.id = id + 4, .method = "/s.Leaf/Get", .start = 0, .total = kMs},
                   {.id = id + 5, .method = "/s.Leaf/Get", .start = 0, .total = leaf_call}},
         .start_us = us});
    documents["leaf-0"].push_back({.trace = i + 1,
                                   .id = id + 6,
                                   .parent = id + 4,
                                   .method = "/s.Leaf/Get",
                                   .queue = 0,
                                   .entry = 0,
                                   .handler = kMs / 2,
                                   .reply = 0,
                                   .start_us = us});
    documents["leaf-1"].push_back({.trace = i + 1,
                                   .id = id + 7,
                                   .parent = id + 5,
                                   .method = "/s.Leaf/Get",
                                   .queue = 0,
                                   .entry = 0,
                                   .handler = t.leaf,
                                   .reply = 0,
                                   .start_us = us});
  }
  return Records({documents.begin(), documents.end()});
}

std::map<std::string, Verdict> Verdicts(const TraceRecords& records, const SlowRequests& slow) {
  std::map<std::string, Verdict> verdicts;
  for (const TierGrowth& tier : slow.tiers) verdicts[records.name(tier.tier)] = tier.verdict;
  return verdicts;
}

// As text, once it is known that there is one.
std::string Culprit(const TraceRecords& records, int64_t limit) {
  const TraceAnalysis analysis = AnalyzeTraces(records, limit);
  ExpectPartsSumUp(analysis);
  if (analysis.classes.size() != 1 || !analysis.classes[0].slow) return "none";
  const SlowRequests& slow = *analysis.classes[0].slow;
  return Join(records.name(slow.culprit), " ", TracePartName(slow.part));
}

TEST(TraceCulprit, ASlowLeafIsNamedAndItsCallersOnlyWait) {
  const TraceRecords records =
      Requests([](uint64_t i) { return Times{.leaf = i % 20 == 19 ? 20 * kMs : kMs}; });
  EXPECT_EQ(Culprit(records, 0), "leaf handler");
  const TraceAnalysis analysis = AnalyzeTraces(records, 5 * kMs);
  const SlowRequests& slow = *analysis.classes[0].slow;
  EXPECT_EQ(slow.slow, 10u);
  EXPECT_EQ(slow.others, 190u);
  EXPECT_EQ(slow.growth, 19 * kMs);
  EXPECT_EQ(slow.whole_growth, 19 * kMs);
  EXPECT_THAT(Verdicts(records, slow),
              UnorderedElementsAre(Pair("front", Verdict::kWaits), Pair("mid", Verdict::kWaits),
                                   Pair("leaf", Verdict::kCulprit)));
  ASSERT_EQ(slow.instances.size(), 2u);
  EXPECT_EQ(records.name(slow.instances[0].first), "leaf-1");
  EXPECT_EQ(slow.instances[0].second, 20.0 * kMs);
}

TEST(TraceCulprit, AQueueThatASlowTierFilledIsNotToBlame) {
  const TraceRecords records = Requests(
      [](uint64_t i) { return i % 10 == 9 ? Times{.front_queue = 100 * kMs, .leaf = 5 * kMs} : Times{}; });
  EXPECT_EQ(Culprit(records, 20 * kMs), "leaf handler") << "backpressure";
}

TEST(TraceCulprit, AQueueThatGrewByItselfIs) {
  const TraceRecords records =
      Requests([](uint64_t i) { return Times{.front_queue = i % 10 == 9 ? 100 * kMs : 0}; });
  EXPECT_EQ(Culprit(records, 20 * kMs), "front queue");
}

TEST(TraceCulprit, TheNetworkAndATierInBetweenAreNamed) {
  EXPECT_EQ(
      Culprit(Requests([](uint64_t i) { return Times{.network = i % 10 == 9 ? 30 * kMs : kMs / 5}; }), 0),
      "leaf network");
  EXPECT_EQ(Culprit(Requests([](uint64_t i) { return Times{.mid = i % 10 == 9 ? 30 * kMs : kMs / 2}; }), 0),
            "mid handler");
}

TEST(TraceCulprit, WhereAllAreSlowTheLongestPartIsNamed) {
  const TraceRecords records = Requests([](uint64_t) { return Times{.leaf = 20 * kMs}; });
  EXPECT_EQ(Culprit(records, kMs), "leaf handler");
  EXPECT_EQ(Culprit(records, 100 * kMs), "none");
  EXPECT_EQ(Culprit(Requests([](uint64_t) { return Times{.front_queue = 50 * kMs}; }), kMs), "front queue");
}

TEST(TraceCulprit, SaysWhenTheLatencyOfATierGrew) {
  const TraceRecords records = Requests([](uint64_t i) { return Times{.leaf = i >= 100 ? 20 * kMs : kMs}; });
  const TraceAnalysis analysis = AnalyzeTraces(records, 5 * kMs);
  for (const TierGrowth& tier : analysis.classes[0].slow->tiers) {
    ASSERT_TRUE(tier.grew_at.has_value()) << records.name(tier.tier);
    EXPECT_NEAR(static_cast<double>(*tier.grew_at), 1e9, 0.11e9);
  }
}

TEST(TraceCulprit, FewRequestsSayNothing) {
  EXPECT_EQ(Culprit(Records({{"front", {kFront}}, {"a", {kA}}}), 1), "none");
  EXPECT_THAT(AnalyzeTraces(TraceRecords(), 0).classes, IsEmpty());
}

}  // namespace
}  // namespace curtail::observe
