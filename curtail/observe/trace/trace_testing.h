// SPDX-License-Identifier: Apache-2.0
//
// trace_testing.h - for tests: spans as text, and the properties of every analysis.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "curtail/base/strings.h"
#include "curtail/observe/trace/trace_analysis.h"
#include "curtail/observe/trace/trace_context.h"

namespace curtail::observe {

struct TestCall {
  uint64_t id;
  std::string method;
  int64_t start, total, send = 0;
  uint64_t parent = 0;  // 0: the span
  std::string target = "127.0.0.1:7000";
};

struct TestSpan {
  uint64_t trace, id, parent;
  std::string method;
  int64_t queue, entry, handler, reply;
  std::vector<TestCall> calls = {};
  int64_t start_us = 1'000'000;
  std::string status = "OK";
};

inline std::string TestId(uint64_t id) {
  std::string digits(16, '0');
  WriteHex(id, digits.data());
  return digits;
}

inline std::string SpanJson(const TestSpan& span) {
  std::string calls;
  for (const TestCall& call : span.calls) {
    calls += Join(calls.empty() ? "" : ",", R"({"id":")", TestId(call.id), R"(","parent":")",
                  TestId(call.parent == 0 ? span.id : call.parent), R"(","method":")", call.method,
                  R"(","target":")", call.target, R"(","status":"OK","start_ns":)", call.start,
                  R"(,"total_ns":)", call.total, R"(,"send_ns":)", call.send, "}");
  }
  const std::string parent = span.parent == 0 ? "null" : Join("\"", TestId(span.parent), "\"");
  return Join(R"({"trace":"0000000000000000)", TestId(span.trace), R"(","id":")", TestId(span.id),
              R"(","parent":)", parent, R"(,"method":")", span.method, R"(","peer":"","status":")",
              span.status, R"(","captured":"sampled","start_unix_us":)", span.start_us, R"(,"total_ns":)",
              span.queue + span.entry + span.handler + span.reply, R"(,"queue_ns":)", span.queue,
              R"(,"entry_ns":)", span.entry, R"(,"handler_ns":)", span.handler, R"(,"reply_ns":)", span.reply,
              R"(,"calls_left_out":0,"calls":[)", calls, "]}");
}

inline std::string DocumentJson(const std::string& service, const std::vector<TestSpan>& spans) {
  std::string all;
  for (const TestSpan& span : spans) all += Join(all.empty() ? "" : ",\n", SpanJson(span));
  return Join(R"({"schema_version":1,"service":")", service, R"(","spans":[)", all, "]}");
}

inline int64_t SumOf(const PathTimes& path) {
  int64_t sum = 0;
  for (const auto& [step, time] : path) sum += time;
  return sum;
}

// The parts of tiers and of edges are their whole, and critical paths as long as their requests.
inline void ExpectPartsSumUp(const TraceAnalysis& analysis) {
  for (const TierTimes& tier : analysis.tiers) {
    int64_t sum = 0;
    for (const int64_t part : tier.parts) {
      EXPECT_GE(part, 0);
      sum += part;
    }
    EXPECT_EQ(sum, tier.total);
  }
  for (const EdgeTimes& edge : analysis.edges) {
    for (const int64_t part : {edge.serialize, edge.network, edge.inside, edge.remote}) EXPECT_GE(part, 0);
    EXPECT_EQ(edge.serialize + edge.network + edge.inside + edge.remote, edge.total);
  }
  for (const RequestClass& of : analysis.classes) {
    for (const auto& [step, time] : of.path) EXPECT_GE(time, 0);
    EXPECT_EQ(SumOf(of.path), of.total);
    EXPECT_LE(of.network, of.total);
  }
}

}  // namespace curtail::observe
