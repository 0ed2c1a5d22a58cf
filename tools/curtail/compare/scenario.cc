// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/compare/scenario.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "curtail/base/clock.h"
#include "curtail/base/strings.h"
#include "curtail/load/drive/shape.h"

namespace curtail::tool {
namespace {

constexpr size_t kMaxLoads = 50;
static_assert(RateCurve::kMaxPerS == 1e7, "an error says 10 million");
constexpr double kWantedRequests = 300;  // in a steady phase
constexpr int kMaxStretch = 4;
constexpr Nanos kAftermath = std::chrono::seconds(1);
constexpr Nanos kShortest = std::chrono::milliseconds(100);  // of a ramp or a day

std::string RateText(double per_s) { return absl::StrFormat("%.6g/s", per_s); }

absl::Status Invalid(const std::string& message) { return absl::InvalidArgumentError(message); }

absl::Status CheckTime(const char* scenario, const char* what, Nanos time, Nanos above) {
  if (time > above && time <= RateCurve::kMaxLength) return absl::OkStatus();
  return Invalid(absl::StrFormat("%s: %s is %g s; it must be over %g s and at most %.0f days", scenario, what,
                                 InSeconds(time), InSeconds(above),
                                 InSeconds(RateCurve::kMaxLength) / 86400));
}

absl::Status CheckRange(const char* scenario, double low, double high) {
  // Written so that what is no number fails too.
  if (low > 0 && low < high && high <= RateCurve::kMaxPerS) return absl::OkStatus();
  return Invalid(
      absl::StrFormat("%s: from %g to %g requests a second; both must be positive, the second "
                      "one higher and at most 10 million",
                      scenario, low, high));
}

// A curve and its phases, before the warm-up is put in front.
struct Draft {
  const char* name;
  std::string text;
  std::vector<RatePoint> points;
  std::vector<Phase> phases;

  // A phase at this rate after all others.
  void AddLevel(std::string phase, double per_s, Nanos length) {
    const Nanos from = end(), to = from + length;
    points.insert(points.end(), {{from, per_s}, {to, per_s}});
    AddPhase(std::move(phase), length, true);
  }
  void AddPhase(std::string phase, Nanos length, bool steady) {
    phases.push_back({std::move(phase), 0, end(), end() + length, steady});
  }
  Nanos end() const { return phases.empty() ? Nanos::zero() : phases.back().to; }
};

// Puts the warm-up in front of the curve.
absl::StatusOr<Scenario> Finish(Draft draft, absl::StatusOr<RateCurve> curve, Nanos warmup) {
  if (curve.ok()) curve = curve->WithLeadIn(warmup);
  if (!curve.ok()) return Invalid(Join(draft.name, ": ", Message(curve.status())));
  for (Phase& phase : draft.phases) {
    phase.from += warmup;
    phase.to += warmup;
    phase.rate_per_s =
        (curve->Expected(phase.to) - curve->Expected(phase.from)) / InSeconds(phase.to - phase.from);
  }
  return Scenario{draft.name, std::move(draft.text), *std::move(curve), warmup, std::move(draft.phases)};
}

absl::StatusOr<Scenario> Finish(Draft draft, Nanos warmup) {
  absl::StatusOr<RateCurve> curve = RateCurve::Make(draft.points, draft.end());
  return Finish(std::move(draft), std::move(curve), warmup);
}

absl::Status CheckLoads(const std::vector<double>& loads) {
  if (loads.empty() || loads.size() > kMaxLoads) {
    return Invalid(absl::StrFormat("steady: %d loads; there must be from 1 to %d", loads.size(), kMaxLoads));
  }
  double last = 0;
  for (double load : loads) {
    if (!(load > last && load <= RateCurve::kMaxPerS)) {
      return Invalid(
          absl::StrFormat("steady: a load of %g after %g requests a second; loads must be "
                          "positive, rise, and be at most 10 million",
                          load, last));
    }
    last = load;
  }
  return absl::OkStatus();
}

// How long a steady phase lasts.
Nanos StretchedLength(double per_s, Nanos each) {
  const double wanted_ns = std::ceil(kWantedRequests / per_s * 1e9);
  if (wanted_ns >= static_cast<double>(kMaxStretch * each.count())) return kMaxStretch * each;
  return std::max(each, Nanos(static_cast<int64_t>(wanted_ns)));
}

}  // namespace

const Phase* FindPhase(const Scenario& scenario, std::string_view name) {
  const auto found = std::find_if(scenario.phases.begin(), scenario.phases.end(),
                                  [&](const Phase& phase) { return phase.name == name; });
  return found == scenario.phases.end() ? nullptr : &*found;
}

absl::StatusOr<Scenario> SteadyScenario(const std::vector<double>& loads_per_s, Nanos each, Nanos warmup) {
  if (absl::Status status = CheckLoads(loads_per_s); !status.ok()) return status;
  if (absl::Status status = CheckTime("steady", "the time at each load", each, Nanos::zero()); !status.ok()) {
    return status;
  }
  Draft draft{"steady"};
  const size_t peak = loads_per_s.size() - 1;
  for (size_t i = 0; i <= 2 * peak; ++i) {
    const double load = loads_per_s[i <= peak ? i : 2 * peak - i];
    const char* direction = i < peak ? " up" : i > peak ? " down" : "";
    draft.AddLevel(RateText(load) + direction, load, StretchedLength(load, each));
  }
  const std::string lowest = RateText(loads_per_s.front());
  const std::string loads = peak == 0 ? absl::StrCat("a steady load of ", lowest)
                                      : absl::StrCat("steady loads from ", lowest, " to ",
                                                     RateText(loads_per_s.back()), " and down again");
  draft.text =
      absl::StrFormat("%s, %g s each (low ones up to %d times as long)", loads, InSeconds(each), kMaxStretch);
  return Finish(std::move(draft), warmup);
}

absl::StatusOr<Scenario> FlashCrowdScenario(double low_per_s, double high_per_s, Nanos before, Nanos spike,
                                            Nanos after, Nanos warmup) {
  constexpr char kName[] = "flash-crowd";
  for (const absl::Status& status :
       {CheckRange(kName, low_per_s, high_per_s), CheckTime(kName, "the time before the spike", before, {}),
        CheckTime(kName, "the spike", spike, {}),
        CheckTime(kName, "the time after the spike", after, kAftermath)}) {
    if (!status.ok()) return status;
  }
  Draft draft{kName};
  draft.AddLevel("before", low_per_s, before);
  draft.AddLevel("spike", high_per_s, spike);
  draft.points.push_back({draft.end(), low_per_s});
  draft.AddPhase("first second after", kAftermath, false);
  draft.AddPhase("after", after - kAftermath, true);
  draft.phases[1].steady = false;
  draft.text =
      absl::StrFormat("%s for %g s, %s for %g s, %s for %g s", RateText(low_per_s), InSeconds(before),
                      RateText(high_per_s), InSeconds(spike), RateText(low_per_s), InSeconds(after));
  return Finish(std::move(draft), warmup);
}

absl::StatusOr<Scenario> RampScenario(double low_per_s, double high_per_s, Nanos length, Nanos warmup) {
  if (absl::Status status = CheckRange("ramp", low_per_s, high_per_s); !status.ok()) return status;
  if (absl::Status status = CheckTime("ramp", "its length", length, kShortest); !status.ok()) return status;
  Draft draft{"ramp"};
  draft.points = {{Nanos::zero(), low_per_s}, {length / 2, high_per_s}, {length, low_per_s}};
  const char* const names[] = {"rising low", "rising high", "falling high", "falling low"};
  for (int i = 0; i < 4; ++i) draft.AddPhase(names[i], length * (i + 1) / 4 - length * i / 4, false);
  draft.text = absl::StrFormat("from %s up to %s and down again in straight lines, in %g s",
                               RateText(low_per_s), RateText(high_per_s), InSeconds(length));
  return Finish(std::move(draft), warmup);
}

absl::StatusOr<Scenario> DiurnalScenario(double low_per_s, double high_per_s, Nanos length, Nanos warmup) {
  if (absl::Status status = CheckRange("diurnal", low_per_s, high_per_s); !status.ok()) return status;
  if (absl::Status status = CheckTime("diurnal", "its length", length, kShortest); !status.ok())
    return status;
  Draft draft{"diurnal"};
  const char* const names[] = {"quiet 1", "busy", "quiet 2"};
  for (int i = 0; i < 3; ++i) draft.AddPhase(names[i], length * (i + 1) / 3 - length * i / 3, false);
  draft.text = absl::StrFormat("a day in %g s: from %s up to %s and down again as a raised cosine",
                               InSeconds(length), RateText(low_per_s), RateText(high_per_s));
  const std::string spec = absl::StrFormat("diurnal:%.17g..%.17g", low_per_s, high_per_s);
  return Finish(std::move(draft), ParseShape(spec, {.length = length}), warmup);
}

}  // namespace curtail::tool
