// SPDX-License-Identifier: Apache-2.0
#include "curtail/observe/trace/trace_analysis.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "curtail/observe/trace/trace_forest.h"
#include "curtail/observe/trace/trace_slow.h"

namespace curtail::observe {
namespace {

int64_t SortedQuantile(const std::vector<int64_t>& sorted, double q) {
  if (sorted.empty()) return 0;
  const double rank = std::ceil(q * static_cast<double>(sorted.size()));
  return sorted[static_cast<size_t>(std::max(rank, 1.0)) - 1];
}

// Requests of a tier, until their quantiles are asked for.
struct TierSum {
  TierTimes times;
  std::vector<int64_t> totals;

  void Add(const PartTimes& parts, bool failed) {
    ++times.requests;
    times.failed += failed ? 1 : 0;
    int64_t total = 0;
    for (size_t i = 0; i < kTraceParts; ++i) {
      times.parts[i] += parts[i];
      total += parts[i];
    }
    times.total += total;
    totals.push_back(total);
  }
};

std::vector<TierTimes> Tiers(const TraceRecords& records, const TraceForest& forest) {
  std::map<std::string, TierSum> tiers;
  const auto tier = [&](TraceName name) -> TierSum& {
    TierSum& sum = tiers[records.name(name)];
    sum.times.tier = name;
    return sum;
  };
  for (uint32_t s = 0; s < records.spans().size(); ++s) {
    tier(forest.span(s).service).Add(forest.PartsOf(s), forest.span(s).failed);
  }
  for (uint32_t c = 0; c < records.calls().size(); ++c) {
    if (forest.InProcess(c)) tier(forest.TierOf(c)).Add(forest.PartsOfCall(c), forest.call(c).failed);
  }
  std::vector<TierTimes> times;
  for (auto& [name, sum] : tiers) {
    std::sort(sum.totals.begin(), sum.totals.end());
    sum.times.p50 = SortedQuantile(sum.totals, 0.5);
    sum.times.p99 = SortedQuantile(sum.totals, 0.99);
    times.push_back(sum.times);
  }
  return times;
}

void Add(const TraceForest& forest, uint32_t index, EdgeTimes* edge) {
  const RecordedCall& call = forest.call(index);
  const uint32_t callee = forest.CalleeOf(index);
  ++edge->calls;
  edge->failed += call.failed ? 1 : 0;
  edge->total += call.total;
  edge->serialize += call.send;
  const int64_t rest = call.total - call.send;
  if (callee != TraceForest::kNone) {
    const int64_t inside = std::min(forest.span(callee).total, rest);
    ++edge->seen;
    edge->inside += inside;
    edge->network += rest - inside;
  } else if (forest.InProcess(index)) {
    ++edge->seen;
    edge->inside += rest;
  } else {
    edge->remote += rest;
  }
}

std::vector<EdgeTimes> Edges(const TraceRecords& records, const TraceForest& forest) {
  std::map<std::pair<std::string, std::string>, EdgeTimes> edges;
  for (uint32_t c = 0; c < records.calls().size(); ++c) {
    const TraceName caller = forest.CallerOf(c), callee = forest.TierOf(c);
    EdgeTimes& edge = edges[{records.name(caller), records.name(callee)}];
    edge.caller = caller, edge.callee = callee;
    Add(forest, c, &edge);
  }
  std::vector<EdgeTimes> times;
  for (const auto& [names, edge] : edges) times.push_back(edge);
  return times;
}

// The requests that are called from outside, by class: those without a caller, of methods that no span calls. Without
// any, all without a caller.
std::map<std::pair<TraceName, TraceName>, std::vector<uint32_t>> Roots(const TraceRecords& records,
                                                                       const TraceForest& forest,
                                                                       uint64_t* alone) {
  std::set<TraceName> called;
  for (const RecordedCall& call : records.calls()) called.insert(call.method);
  std::map<std::pair<TraceName, TraceName>, std::vector<uint32_t>> roots, others;
  for (uint32_t s = 0; s < records.spans().size(); ++s) {
    if (forest.joined(s)) continue;
    const RecordedSpan& of = forest.span(s);
    const bool inner = called.contains(of.method);
    *alone += inner ? 1 : 0;
    (inner ? others : roots)[{of.service, of.method}].push_back(s);
  }
  return roots.empty() ? others : roots;
}

RequestClass ClassOf(const TraceForest& forest, const std::vector<uint32_t>& roots, int64_t limit) {
  const RecordedSpan& first = forest.span(roots.front());
  RequestClass of{.tier = first.service, .method = first.method, .requests = roots.size()};
  std::vector<int64_t> totals;
  PathSums sums;
  for (const uint32_t root : roots) {
    of.failed += forest.span(root).failed ? 1 : 0;
    of.total += forest.span(root).total;
    totals.push_back(forest.span(root).total);
    sums.Add(forest, root);
  }
  std::sort(totals.begin(), totals.end());
  of.p50 = SortedQuantile(totals, 0.5);
  of.p99 = SortedQuantile(totals, 0.99);
  for (const auto& [step, time] : sums.path) {
    const TracePart part = step.second;
    if (part == TracePart::kSerialize || part == TracePart::kNetwork || part == TracePart::kReply)
      of.network += time;
  }
  of.path = std::move(sums.path);
  if (roots.size() >= kFewestRequests) {
    of.slow = FindCulprit(forest, roots, limit > 0 ? limit : SortedQuantile(totals, 0.9));
  }
  return of;
}

}  // namespace

std::string_view TracePartName(TracePart part) {
  static constexpr std::array<std::string_view, kTraceParts> kNames = {
      "queue", "entry", "handler", "serialize", "network", "remote", "reply", "wait"};
  return kNames[static_cast<size_t>(part)];
}

TraceAnalysis AnalyzeTraces(const TraceRecords& records, int64_t limit) {
  const TraceForest forest(records);
  TraceAnalysis analysis{.tiers = Tiers(records, forest), .edges = Edges(records, forest)};
  for (const RecordedSpan& span : records.spans()) analysis.calls_left_out += span.calls_left_out;
  for (const auto& [name, roots] : Roots(records, forest, &analysis.alone)) {
    analysis.classes.push_back(ClassOf(forest, roots, limit));
  }
  std::sort(analysis.classes.begin(), analysis.classes.end(),
            [](const RequestClass& a, const RequestClass& b) { return a.requests > b.requests; });
  return analysis;
}

}  // namespace curtail::observe
