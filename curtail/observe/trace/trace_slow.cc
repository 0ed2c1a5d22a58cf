// SPDX-License-Identifier: Apache-2.0
//
// DESIGN: the critical paths of slow requests are compared with those of the others. From the tier that clients call, the
// search goes to the tier below whose calls grew most, for as long as these grew more than the tier's own time. A queue is no
// reason to stop where requests hold their threads longer, as they wait for a tier below: that is how a slow tier fills the
// queues of those in front of it (backpressure: Gan et al., "An Open-Source Benchmark Suite for Microservices ...", ASPLOS
// 2019, section 7). Where all requests are slow there is nothing to compare with, and times stand for growths.
#include "curtail/observe/trace/trace_slow.h"

#include <algorithm>
#include <array>
#include <set>

namespace curtail::observe {
namespace {

constexpr double kMaterial = 1.2;  // a time that is so many times as long grew
constexpr size_t kWindows = 20;
constexpr int kFewestOfWindow = 3;

// The requests of one tier, on critical paths or not.
struct TierTally {
  std::array<double, 2> total{}, own{};  // in the others, in slow ones
  std::array<uint64_t, 2> count{};
  std::array<double, kWindows> window_total{};
  std::array<int, kWindows> window_count{};
  std::map<TraceName, std::pair<double, uint64_t>> instances;  // own time and requests, in slow ones

  double Mean(const std::array<double, 2>& of, int slow) const {
    return count[slow] == 0 ? 0 : of[slow] / static_cast<double>(count[slow]);
  }
};

class Search {
 public:
  Search(const TraceForest& forest, const std::vector<uint32_t>& roots, int64_t limit)
      : forest_(forest), limit_(limit) {
    first_us_ = last_us_ = forest.span(roots.front()).start_unix_us;
    for (const uint32_t root : roots) {
      const RecordedSpan& span = forest.span(root);
      first_us_ = std::min(first_us_, span.start_unix_us);
      last_us_ = std::max(last_us_, EndUs(span));
    }
    for (const uint32_t root : roots) {
      const int slow = forest.span(root).total > limit ? 1 : 0;
      sums_[slow].Add(forest, root);
      Visit(root, slow, 0);
    }
  }

  std::optional<SlowRequests> Find(TraceName entry) {
    if (sums_[1].requests == 0) return std::nullopt;
    SlowRequests found{.limit = limit_, .slow = sums_[1].requests, .others = sums_[0].requests};
    found.whole_growth = static_cast<int64_t>(MeanOf(1, Whole(1)) - MeanOf(0, Whole(0)));
    Descend(entry, &found);
    for (const TraceName tier : order_) found.tiers.push_back(GrowthOf(tier, found.culprit));
    AddInstances(&found);
    return found;
  }

 private:
  static int64_t EndUs(const RecordedSpan& span) {
    return span.start_unix_us > INT64_MAX - TraceRecords::kLongest ? span.start_unix_us
                                                                   : span.start_unix_us + span.total / 1000;
  }

  TierTally& TallyOf(TraceName tier) {
    const auto [tally, added] = tallies_.try_emplace(tier);
    if (added) order_.push_back(tier);
    return tally->second;
  }

  void Visit(uint32_t index, int slow, int depth) {
    const RecordedSpan& span = forest_.span(index);
    const PartTimes parts = forest_.PartsOf(index);
    const auto own = static_cast<double>(span.total - parts[static_cast<size_t>(TracePart::kWait)]);
    TierTally& tally = TallyOf(span.service);
    Count(static_cast<double>(span.total), own, slow, &tally);
    const auto range = static_cast<double>(last_us_) - static_cast<double>(first_us_) + 1;
    const double at = (static_cast<double>(EndUs(span)) - static_cast<double>(first_us_)) / range;
    const auto window = static_cast<size_t>(std::clamp(at, 0.0, 0.999999) * kWindows);
    tally.window_total[window] += static_cast<double>(span.total);
    ++tally.window_count[window];
    if (slow == 1) {
      auto& [instance_own, count] = tally.instances[span.instance];
      instance_own += own;
      ++count;
    }
    VisitCalls(forest_.CallsOf(index), slow, depth);
  }

  void VisitCalls(const std::vector<uint32_t>& calls, int slow, int depth) {
    if (depth >= TraceForest::kDeepest) return;
    for (const uint32_t call : calls) {
      if (forest_.CalleeOf(call) != TraceForest::kNone) {
        Visit(forest_.CalleeOf(call), slow, depth + 1);
        continue;
      }
      const RecordedCall& of = forest_.call(call);
      const auto inside = static_cast<double>(of.total - of.send);
      double own = inside;
      if (forest_.InProcess(call)) {
        own -= static_cast<double>(forest_.PartsOfCall(call)[static_cast<size_t>(TracePart::kWait)]);
      }
      Count(inside, own, slow, &TallyOf(forest_.TierOf(call)));
      if (forest_.InProcess(call)) VisitCalls(forest_.InnerCalls(call), slow, depth + 1);
    }
  }

  static void Count(double total, double own, int slow, TierTally* tally) {
    tally->total[slow] += total;
    tally->own[slow] += own;
    ++tally->count[slow];
  }

  int64_t Whole(int slow) const {
    int64_t sum = 0;
    for (const auto& [step, time] : sums_[slow].path) sum += time;
    return sum;
  }
  double MeanOf(int slow, int64_t sum) const {
    return sums_[slow].requests == 0 ? 0
                                     : static_cast<double>(sum) / static_cast<double>(sums_[slow].requests);
  }
  double Time(int slow, TraceName tier, TracePart part) const {
    const auto found = sums_[slow].path.find({tier, part});
    return found == sums_[slow].path.end() ? 0 : MeanOf(slow, found->second);
  }
  double Growth(TraceName tier, TracePart part) const { return Time(1, tier, part) - Time(0, tier, part); }
  // Of what a request holds its thread for, but for calls.
  double Busy(int slow, TraceName tier) const {
    double sum = 0;
    for (const TracePart part : kBusy) sum += Time(slow, tier, part);
    return sum;
  }
  PathSums::Edge EdgeOf(int slow, TraceName caller, TraceName callee) const {
    const auto found = sums_[slow].edges.find({caller, callee});
    return found == sums_[slow].edges.end() ? PathSums::Edge{} : found->second;
  }
  double InclusiveGrowth(TraceName caller, TraceName callee) const {
    return MeanOf(1, EdgeOf(1, caller, callee).inclusive) - MeanOf(0, EdgeOf(0, caller, callee).inclusive);
  }
  double Below(int slow, TraceName tier) const {
    double sum = 0;
    for (const auto& [edge, times] : sums_[slow].edges) {
      if (edge.first == tier) sum += MeanOf(slow, times.inclusive);
    }
    return sum;
  }

  // The tier below whose calls grew most; the tier itself if none grew.
  TraceName MostGrown(TraceName tier) const {
    TraceName most = tier;
    double growth = 0;
    for (const auto& [edge, times] : sums_[1].edges) {
      if (edge.first != tier || edge.second == tier) continue;
      if (const double here = InclusiveGrowth(tier, edge.second); here > growth)
        most = edge.second, growth = here;
    }
    return most;
  }

  bool GoesOn(TraceName tier, TraceName below) const {
    if (below == tier || seen_.contains(below)) return false;
    const double growth = InclusiveGrowth(tier, below);
    if (growth <= Busy(1, tier) - Busy(0, tier) + Growth(tier, TracePart::kNetwork)) return false;
    const double queue = Growth(tier, TracePart::kQueue);
    if (queue <= growth) return true;
    return sums_[0].requests > 0 &&
           Busy(1, tier) + Below(1, tier) >= kMaterial * (Busy(0, tier) + Below(0, tier));
  }

  void Descend(TraceName tier, SlowRequests* found) {
    seen_.insert(tier);
    for (TraceName below = MostGrown(tier); GoesOn(tier, below); below = MostGrown(tier)) {
      waiting_.insert(tier);
      seen_.insert(below);
      tier = below;
    }
    found->culprit = tier;
    double own = 0, most = 0;
    for (const TracePart part : kOwn) {
      const double growth = Growth(tier, part);
      own += growth;
      if (growth > most) found->part = part, most = growth;
    }
    found->growth = static_cast<int64_t>(own);
  }

  TierGrowth GrowthOf(TraceName tier, TraceName culprit) const {
    const TierTally& tally = tallies_.at(tier);
    TierGrowth growth{.tier = tier,
                      .total_before = tally.Mean(tally.total, 0),
                      .total_slow = tally.Mean(tally.total, 1),
                      .own_before = tally.Mean(tally.own, 0),
                      .own_slow = tally.Mean(tally.own, 1),
                      .grew_at = GrewAt(tally)};
    const double total = growth.total_slow - growth.total_before, own = growth.own_slow - growth.own_before;
    if (tier == culprit) {
      growth.verdict = TierGrowth::Verdict::kCulprit;
    } else if (sums_[0].requests == 0) {
      growth.verdict = waiting_.contains(tier) ? TierGrowth::Verdict::kWaits : TierGrowth::Verdict::kSteady;
    } else if (growth.total_slow >= kMaterial * growth.total_before) {
      growth.verdict = own < total / 2 ? TierGrowth::Verdict::kWaits : TierGrowth::Verdict::kGrew;
    }
    return growth;
  }

  std::optional<int64_t> GrewAt(const TierTally& tally) const {
    const double before = tally.Mean(tally.total, 0), slow = tally.Mean(tally.total, 1);
    if (tally.count[0] == 0 || slow < kMaterial * before) return std::nullopt;
    for (size_t window = 0; window < kWindows; ++window) {
      if (tally.window_count[window] < kFewestOfWindow) continue;
      if (tally.window_total[window] / tally.window_count[window] < (before + slow) / 2) continue;
      const double share = static_cast<double>(window) / kWindows;
      return static_cast<int64_t>((static_cast<double>(last_us_) - static_cast<double>(first_us_)) * share *
                                  1000);
    }
    return std::nullopt;
  }

  void AddInstances(SlowRequests* found) const {
    const auto tally = tallies_.find(found->culprit);
    if (tally == tallies_.end()) return;
    for (const auto& [instance, own] : tally->second.instances) {
      found->instances.emplace_back(instance, own.first / static_cast<double>(own.second));
    }
    std::sort(found->instances.begin(), found->instances.end(),
              [](const auto& a, const auto& b) { return a.second > b.second; });
  }

  static constexpr std::array kBusy = {TracePart::kEntry, TracePart::kHandler, TracePart::kSerialize,
                                       TracePart::kReply, TracePart::kRemote};
  static constexpr std::array kOwn = {TracePart::kQueue,     TracePart::kEntry,   TracePart::kHandler,
                                      TracePart::kSerialize, TracePart::kNetwork, TracePart::kReply,
                                      TracePart::kRemote};

  const TraceForest& forest_;
  const int64_t limit_;
  int64_t first_us_ = 0, last_us_ = 0;
  std::array<PathSums, 2> sums_;  // of the others, of slow requests
  std::map<TraceName, TierTally> tallies_;
  std::vector<TraceName> order_;        // as first visited
  std::set<TraceName> seen_, waiting_;  // by the search: come to, and left for a tier below
};

}  // namespace

std::optional<SlowRequests> FindCulprit(const TraceForest& forest, const std::vector<uint32_t>& roots,
                                        int64_t limit) {
  return Search(forest, roots, limit).Find(forest.span(roots.front()).service);
}

}  // namespace curtail::observe
