// SPDX-License-Identifier: Apache-2.0
#include "ratios.h"

#include <functional>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/common/spread.h"

namespace curtail::bench {
namespace {

using Belongs = std::function<bool(const StackInfo&)>;

bool IsRaw(const StackInfo& stack) { return absl::StartsWith(stack.name, "raw-"); }
bool IsCurtail(const StackInfo& stack) { return absl::StartsWith(stack.name, "curtail-"); }
bool IsPeer(const StackInfo& stack) { return !IsRaw(stack) && !IsCurtail(stack); }

struct Metric {
  const char* name;
  double Measurement::* field;
  bool less_is_better;
};
constexpr Metric kP50 = {"p50", &Measurement::p50_us, true};
constexpr Metric kP99 = {"p99", &Measurement::p99_us, true};
constexpr Metric kThroughput = {"answers/s", &Measurement::qps, false};

struct Best {
  std::string stack;
  Spread spread;
};

std::optional<Best> BestOf(const std::vector<StackResults>& results, const std::string& setup,
                           const std::string& cell, const Metric& metric, const Belongs& belongs) {
  std::optional<Best> best;
  for (const StackResults& one : results) {
    const std::vector<Measurement>* rounds =
        one.setup.label == setup && belongs(one.stack) ? Find(one, cell) : nullptr;
    if (rounds == nullptr) continue;
    const Spread spread = SpreadOf(Values(*rounds, metric.field));
    const bool better = !best || (metric.less_is_better ? spread.median < best->spread.median
                                                        : spread.median > best->spread.median);
    if (better) best = {one.stack.name, spread};
  }
  return best;
}

// Collects the ratios of one setup.
class Comparison {
 public:
  Comparison(const std::vector<StackResults>& results, std::string setup, std::vector<Ratio>* out)
      : results_(results), setup_(std::move(setup)), out_(out) {}

  void ToRaw(const std::string& cell) {
    Add(cell, kP50, "polling", "raw", [](const StackInfo& s) { return IsCurtail(s) && s.polls; }, IsRaw);
    Add(cell, kP50, "blocking", "raw", [](const StackInfo& s) { return IsCurtail(s) && !s.polls; }, IsRaw);
  }
  void ToPeers(const std::string& cell, const Metric& metric) {
    Add(cell, metric, "any", "peers", IsCurtail, IsPeer);
  }

 private:
  void Add(const std::string& cell, const Metric& metric, const char* kind, const char* against,
           const Belongs& ours, const Belongs& theirs) {
    const std::optional<Best> a = BestOf(results_, setup_, cell, metric, ours);
    const std::optional<Best> b = BestOf(results_, setup_, cell, metric, theirs);
    if (!a || !b || b->spread.median <= 0) return;
    out_->push_back({setup_, cell, metric.name, kind, against, a->stack, a->spread.median, b->stack,
                     b->spread.median, a->spread.min <= b->spread.max && b->spread.min <= a->spread.max});
  }

  const std::vector<StackResults>& results_;
  const std::string setup_;
  std::vector<Ratio>* const out_;
};

}  // namespace

std::vector<Ratio> RatiosOf(const Options& options, const std::vector<StackResults>& results) {
  std::vector<Ratio> ratios;
  for (const Setup& setup : options.setups) {
    Comparison comparison(results, setup.label, &ratios);
    for (const Load& cell : options.cells) {
      const bool single = !cell.open() && cell.number == 1;
      if (single) comparison.ToRaw(cell.Name());
      if (single || cell.open()) {
        comparison.ToPeers(cell.Name(), kP50);
        comparison.ToPeers(cell.Name(), kP99);
      } else {
        comparison.ToPeers(cell.Name(), kThroughput);
      }
    }
  }
  return ratios;
}

}  // namespace curtail::bench
