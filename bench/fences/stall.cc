// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. A slow leaf B answers 16 requests in 40 ms, 400 a second. More of them come, so that its callers wait longer
// and longer: Little's law asks for more threads than the shared service has. All classes together keep the CPUs half
// idle at any time; what a class waits for is threads.
#include "bench/fences/stall.h"

#include <utility>

#include "curtail/rpc/channel.h"
#include "fences.curtail.h"

namespace curtail::fences {
namespace {

constexpr char kLeafConfig[] = "SDB1-16";
constexpr Nanos kCallTimeout = std::chrono::seconds(5);

absl::StatusOr<RateCurve> CurveOf(double rate_per_s, Nanos begin, Nanos length) {
  if (begin == Nanos(0)) return RateCurve::Constant(rate_per_s, length);
  return RateCurve::Make({{Nanos(0), 0}, {begin, 0}, {begin, rate_per_s}}, length);
}

}  // namespace

std::vector<StallScenario> StallScenarios() {
  return {
      {.name = "stall",
       .title = "Paths A and B share a service; B's leaf becomes 20 times as slow.",
       .classes = {{"A", Shared::kA.path, 500}, {"B", Shared::kB.path, 600}},
       .variants = "SDB1-16,AIB1-1,ADB1-4-4,FIB1,SDB1-16+on,SDB1-16+strict,FIB1+on,ADB1-4-4+on"},
      {.name = "bottleneck",
       .title = "Paths B and C share the slow leaf; the local path makes no call.",
       .classes = {{"local", Shared::kLocal.path, 400},
                   {"B", Shared::kB.path, 300},
                   {"C", Shared::kC.path, 300}},
       .slack_ms = 0.5},
      {.name = "levels",
       .title = "As stall, with three shared services one behind the other.",
       .classes = {{"A", Shared::kA.path, 300}, {"B", Shared::kB.path, 500}},
       .levels = 3},
  };
}

absl::StatusOr<std::vector<ClassPlan>> PlansOf(const StallScenario& scenario, Nanos warmup, Nanos phase) {
  std::vector<ClassPlan> plans;
  for (const StallClass& one : scenario.classes) {
    const Nanos begin = plans.empty() ? Nanos(0) : warmup + phase;
    absl::StatusOr<RateCurve> curve = CurveOf(one.rate_per_s, begin, warmup + kStallPhases * phase);
    if (!curve.ok()) return curve.status();
    plans.push_back({std::string(one.name), std::make_shared<FixedWorkload>(std::string(one.method), ""),
                     *std::move(curve)});
  }
  return plans;
}

StallStudy::StallStudy(const Study& study)
    : study_(study), phase_(FromSeconds(study.results.phase_s)), warmup_(phase_ / 4) {}

absl::Status StallStudy::StartLeaves() {
  for (auto [leaf, part] : {std::pair(&leaf_a_, kLeafA), {&leaf_b_, kLeafB}}) {
    if (*leaf != nullptr) continue;
    auto tier = study_.Start({.part = part, .variant = kLeafConfig});
    if (!tier.ok()) return tier.status();
    *leaf = *std::move(tier);
  }
  return absl::OkStatus();
}

absl::Status StallStudy::Extend(const Variant& variant, int levels, Chain* chain) {
  while (chain->size() < static_cast<size_t>(levels)) {
    Role role{
        .part = kShared, .variant = variant.name(), .addresses = {leaf_a_->address(), leaf_b_->address()}};
    if (!chain->empty()) role.part = kUpper, role.addresses = {chain->back()->address()};
    auto tier = study_.Start(role);
    if (!tier.ok()) return tier.status();
    chain->push_back(*std::move(tier));
  }
  return absl::OkStatus();
}

absl::Status StallStudy::SlowDown(TimePoint from, TimePoint until) {
  Client client;
  Channel channel(&client, leaf_b_->address());
  Context ctx(kCallTimeout);
  Stall stall;
  stall.set_from_ns(from.time_since_epoch().count());
  stall.set_until_ns(until.time_since_epoch().count());
  Reply reply;
  return LeafB::Stub(&channel).SlowDown(ctx, stall, &reply);
}

absl::StatusOr<Cell> StallStudy::MeasureCell(const StallScenario& scenario, const Chain& chain,
                                             uint64_t seed) {
  absl::StatusOr<std::vector<ClassPlan>> plans = PlansOf(scenario, warmup_, phase_);
  if (!plans.ok()) return plans.status();
  const absl::StatusOr<std::unique_ptr<Mix>> mix = Mix::Make(*std::move(plans), seed);
  if (!mix.ok()) return mix.status();
  DrivePlan plan{.target = chain[static_cast<size_t>(scenario.levels) - 1]->address(),
                 .phases = {.warmup = warmup_, .phase = phase_, .phases = kStallPhases},
                 .tiers = {leaf_a_.get(), leaf_b_.get()},
                 .stop = &study_.stop};
  for (const auto& tier : chain) plan.tiers.push_back(tier.get());
  plan.on_start = [this](TimePoint start) {
    const TimePoint from = start + warmup_ + kDuring * phase_;
    return SlowDown(from, from + phase_);
  };
  return Drive(plan, **mix);
}

absl::Status StallStudy::Measure(const StallScenario& scenario, Part* part) {
  absl::Status status = StartLeaves();
  chains_.resize(part->rows.size());
  for (size_t i = 0; status.ok() && i < chains_.size(); ++i) {
    status = Extend(part->rows[i].variant, scenario.levels, &chains_[i]);
  }
  if (!status.ok()) return status;
  return study_.TakeTurns(
      part, [&](size_t variant, uint64_t seed) { return MeasureCell(scenario, chains_[variant], seed); });
}

}  // namespace curtail::fences
