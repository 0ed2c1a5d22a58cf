// SPDX-License-Identifier: Apache-2.0
//
// DESIGN: the walk along a critical path is that of CRISP (Zhang, Ramanathan, Raj, Parwal, Sherwood and Chabbi, "CRISP:
// critical path analysis of large-scale microservice architectures", USENIX ATC 2022), on the caller's clock alone: a
// callee's span is laid into its call after the time to serialize, its own parts first, and what is left of the call is
// network. So clocks of several machines need not agree, and parts add up by construction.
#include "curtail/observe/trace/trace_forest.h"

#include <algorithm>
#include <array>
#include <tuple>

namespace curtail::observe {
namespace {

struct Interval {
  int64_t from = 0, to = 0;
};

// Those that overlap become one; ascending.
std::vector<Interval> Union(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end(),
            [](const Interval& a, const Interval& b) { return a.from < b.from; });
  std::vector<Interval> merged;
  for (const Interval& next : intervals) {
    if (!merged.empty() && next.from <= merged.back().to) {
      merged.back().to = std::max(merged.back().to, next.to);
    } else {
      merged.push_back(next);
    }
  }
  return merged;
}

int64_t Overlap(const std::vector<Interval>& merged, int64_t from, int64_t to) {
  int64_t sum = 0;
  for (const Interval& each : merged)
    sum += std::max<int64_t>(0, std::min(to, each.to) - std::max(from, each.from));
  return sum;
}

int64_t& Part(PartTimes& parts, TracePart part) { return parts[static_cast<size_t>(part)]; }

std::vector<Interval> Serialized(const TraceForest& forest, const std::vector<uint32_t>& calls) {
  std::vector<Interval> intervals;
  for (const uint32_t call : calls) {
    const RecordedCall& of = forest.call(call);
    intervals.push_back({of.start, of.start + of.send});
  }
  return Union(std::move(intervals));
}

// Splits the time of a handler.
void AddHandler(const TraceForest& forest, const std::vector<uint32_t>& calls, Interval handler,
                PartTimes* parts) {
  std::vector<Interval> under_way;
  for (const uint32_t call : calls) {
    const RecordedCall& of = forest.call(call);
    under_way.push_back({of.start, of.start + of.total});
  }
  const int64_t serialize = Overlap(Serialized(forest, calls), handler.from, handler.to);
  const int64_t calling = Overlap(Union(std::move(under_way)), handler.from, handler.to);
  Part(*parts, TracePart::kSerialize) += serialize;
  Part(*parts, TracePart::kWait) += calling - serialize;
  Part(*parts, TracePart::kHandler) += handler.to - handler.from - calling;
}

// The walk of one request.
class Walk {
 public:
  Walk(const TraceForest& forest, PathSums* sums) : forest_(forest), sums_(*sums) {}

  // `length` of the span's time from its beginning on; the rest was not waited for.
  void Span(uint32_t index, int64_t length, int depth) {
    const RecordedSpan& span = forest_.span(index);
    const std::vector<uint32_t> calls = forest_.CallsOf(index);
    const std::vector<Interval> serialized = Serialized(forest_, calls);
    Back(calls, {0, length}, depth, [&](int64_t from, int64_t to) { Own(span, serialized, from, to); });
  }

 private:
  void Add(TraceName tier, TracePart part, int64_t time) {
    if (time > 0) sums_.path[{tier, part}] += time;
  }

  // Leads back through `range`; own(from, to) gets the times between calls.
  template <class OwnTime>
  void Back(std::vector<uint32_t> calls, Interval range, int depth, const OwnTime& own) {
    const auto end_of = [this](uint32_t call) { return forest_.call(call).start + forest_.call(call).total; };
    std::sort(calls.begin(), calls.end(), [&](uint32_t a, uint32_t b) { return end_of(a) > end_of(b); });
    int64_t at = range.to;
    for (const uint32_t call : calls) {
      if (end_of(call) > at || forest_.call(call).start < range.from) continue;  // nobody waited for its end
      own(end_of(call), at);
      Call(call, depth + 1);
      at = forest_.call(call).start;
    }
    own(range.from, at);
  }

  void Own(const RecordedSpan& span, const std::vector<Interval>& serialized, int64_t from, int64_t to) {
    const auto within = [from, to](int64_t low, int64_t high) {
      return std::max<int64_t>(0, std::min(to, high) - std::max(from, low));
    };
    const int64_t dequeued = span.queue, began = dequeued + span.entry, ended = began + span.handler;
    Add(span.service, TracePart::kQueue, within(0, dequeued));
    Add(span.service, TracePart::kEntry, within(dequeued, began));
    Add(span.service, TracePart::kReply, within(ended, span.total));
    const int64_t serialize = Overlap(serialized, std::max(from, began), std::min(to, ended));
    Add(span.service, TracePart::kSerialize, serialize);
    Add(span.service, TracePart::kHandler, within(began, ended) - serialize);
  }

  void Call(uint32_t index, int depth) {
    const RecordedCall& call = forest_.call(index);
    const TraceName caller = forest_.CallerOf(index), tier = forest_.TierOf(index);
    const uint32_t callee = forest_.CalleeOf(index);
    const int64_t inside = call.total - call.send;
    PathSums::Edge& edge = sums_.edges[{caller, tier}];
    edge.inclusive += call.total;
    edge.network += call.send;
    Add(caller, TracePart::kSerialize, call.send);
    if (callee != TraceForest::kNone && depth < TraceForest::kDeepest) {
      const int64_t length = std::min(forest_.span(callee).total, inside);
      Add(tier, TracePart::kNetwork, inside - length);
      edge.network += inside - length;
      Span(callee, length, depth);
    } else if (forest_.InProcess(index) && depth < TraceForest::kDeepest) {
      Back(forest_.InnerCalls(index), {call.start + call.send, call.start + call.total}, depth,
           [&](int64_t from, int64_t to) { Add(tier, TracePart::kHandler, to - from); });
    } else {
      Add(tier, TracePart::kRemote, inside);
    }
  }

  const TraceForest& forest_;
  PathSums& sums_;
};

}  // namespace

TraceForest::TraceForest(const TraceRecords& records)
    : records_(records),
      joined_(records.spans().size()),
      callee_(records.calls().size(), kNone),
      owner_(records.calls().size(), kNone),
      within_(records.calls().size(), kNone),
      in_process_(records.calls().size()),
      tier_(records.calls().size()) {
  for (uint32_t s = 0; s < records.spans().size(); ++s) {
    const uint32_t first = span(s).first_call, end = first + span(s).calls;
    for (uint32_t c = first; c < end; ++c) {
      owner_[c] = s;
      if (call(c).in_process) in_process_[c] = true;
      for (uint32_t by = first; by < end && within_[c] == kNone; ++by) {
        if (by != c && call(c).parent == call(by).id && call(c).parent != span(s).id) within_[c] = by;
      }
      if (within_[c] != kNone) in_process_[within_[c]] = true;
    }
  }
  Join();
  NameTiers();
}

void TraceForest::Join() {
  using Key = std::tuple<uint64_t, uint64_t, uint64_t, uint32_t>;  // the trace, the call's id, its index
  std::vector<Key> by_id;
  for (uint32_t c = 0; c < callee_.size(); ++c) {
    const TraceId& trace = span(owner_[c]).trace;
    by_id.emplace_back(trace.high, trace.low, call(c).id, c);
  }
  std::sort(by_id.begin(), by_id.end());
  for (uint32_t s = 0; s < joined_.size(); ++s) {
    const RecordedSpan& of = span(s);
    if (of.parent == 0) continue;
    const auto found =
        std::lower_bound(by_id.begin(), by_id.end(), Key{of.trace.high, of.trace.low, of.parent, 0});
    if (found == by_id.end() || std::get<0>(*found) != of.trace.high || std::get<1>(*found) != of.trace.low ||
        std::get<2>(*found) != of.parent) {
      continue;
    }
    joined_[s] = true;
    uint32_t& callee = callee_[std::get<3>(*found)];
    if (callee == kNone || of.total > span(callee).total) callee = s;
  }
}

void TraceForest::NameTiers() {
  std::map<TraceName, TraceName> by_method;  // the service whose spans have it
  for (const RecordedSpan& of : records_.spans()) by_method.emplace(of.method, of.service);
  for (uint32_t c = 0; c < tier_.size(); ++c) {
    const TraceName method = call(c).method;
    const auto known = by_method.find(method);
    if (callee_[c] != kNone) {
      tier_[c] = span(callee_[c]).service;
    } else if (!in_process_[c] && known != by_method.end()) {
      tier_[c] = known->second;
    } else {
      tier_[c] = call(c).service;
    }
  }
}

TraceName TraceForest::CallerOf(uint32_t call) const {
  return within_[call] == kNone ? span(owner_[call]).service : tier_[within_[call]];
}

std::vector<uint32_t> TraceForest::Inner(uint32_t of, uint32_t within) const {
  std::vector<uint32_t> calls;
  const RecordedSpan& owner = span(of);
  for (uint32_t c = owner.first_call; c < owner.first_call + owner.calls; ++c) {
    if (within_[c] == within) calls.push_back(c);
  }
  return calls;
}

PartTimes TraceForest::PartsOf(uint32_t index) const {
  const RecordedSpan& of = span(index);
  PartTimes parts{};
  Part(parts, TracePart::kQueue) = of.queue;
  Part(parts, TracePart::kEntry) = of.entry;
  Part(parts, TracePart::kReply) = of.reply;
  const int64_t began = of.queue + of.entry;
  AddHandler(*this, CallsOf(index), {began, began + of.handler}, &parts);
  return parts;
}

PartTimes TraceForest::PartsOfCall(uint32_t index) const {
  const RecordedCall& of = call(index);
  PartTimes parts{};
  AddHandler(*this, InnerCalls(index), {of.start + of.send, of.start + of.total}, &parts);
  return parts;
}

void PathSums::Add(const TraceForest& forest, uint32_t span) {
  ++requests;
  Walk(forest, this).Span(span, forest.span(span).total, 0);
}

}  // namespace curtail::observe
