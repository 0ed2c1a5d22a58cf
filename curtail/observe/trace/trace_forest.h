// SPDX-License-Identifier: Apache-2.0
//
// trace_forest.h - spans joined by the calls that they answer, and the critical paths of their requests.
//
// Spans may be anyone's: a request is reached from a root only along calls, each of which has one caller, so circles are
// never entered; beyond kDeepest a callee counts as one without a span.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "curtail/observe/trace/trace_analysis.h"
#include "curtail/observe/trace/trace_records.h"

namespace curtail::observe {

// A TraceForest refers to records, which outlive it and do not change. Const methods may be called from any thread.
class TraceForest {
 public:
  static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
  static constexpr int kDeepest = 64;

  explicit TraceForest(const TraceRecords& records);

  const RecordedSpan& span(uint32_t index) const { return records_.spans()[index]; }
  const RecordedCall& call(uint32_t index) const { return records_.calls()[index]; }
  // True if the span answers a call that is recorded.
  bool joined(uint32_t span) const { return joined_[span]; }
  // The span that answers the call, the longest of several; kNone without one.
  uint32_t CalleeOf(uint32_t call) const { return callee_[call]; }
  TraceName TierOf(uint32_t call) const { return tier_[call]; }
  // The tier that makes the call.
  TraceName CallerOf(uint32_t call) const;
  // The calls that a request makes by itself; those that a call within its process makes.
  std::vector<uint32_t> CallsOf(uint32_t span) const { return Inner(span, kNone); }
  std::vector<uint32_t> InnerCalls(uint32_t call) const { return Inner(owner_[call], call); }
  bool InProcess(uint32_t call) const { return callee_[call] == kNone && in_process_[call]; }
  // Of a span, and of the callee of a call within the process.
  PartTimes PartsOf(uint32_t span) const;
  PartTimes PartsOfCall(uint32_t call) const;

 private:
  void Join();
  void NameTiers();
  std::vector<uint32_t> Inner(uint32_t span, uint32_t within) const;

  const TraceRecords& records_;
  std::vector<bool> joined_;      // by span
  std::vector<uint32_t> callee_;  // by call
  std::vector<uint32_t> owner_;   // by call: its span
  std::vector<uint32_t> within_;  // by call: the call within the process that makes it, or kNone
  std::vector<bool> in_process_;  // by call
  std::vector<TraceName> tier_;   // by call
};

// Critical paths of several requests, summed up.
struct PathSums {
  struct Edge {
    int64_t inclusive = 0;  // along the calls of the edge, all within them included
    int64_t network = 0;    // of that: serialization and network
  };

  // Adds that of a request. It leads back from the end of each request, by the calls that ended last before the point
  // reached; time between them is the request's own.
  void Add(const TraceForest& forest, uint32_t span);

  uint64_t requests = 0;
  PathTimes path;
  std::map<std::pair<TraceName, TraceName>, Edge> edges;  // by caller and callee
};

}  // namespace curtail::observe
