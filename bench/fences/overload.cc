// SPDX-License-Identifier: Apache-2.0
#include "bench/fences/overload.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "fences.curtail.h"

namespace curtail::fences {
namespace {

constexpr char kOverloadLeaf[] = "SDB1-16";
// Of each request, whatever the variant; all priorities are as frequent.
constexpr char kPriorities[] = "curtail-priority: {{uniform 0 127}}.{{uniform 0 127}}";

}  // namespace

std::vector<double> OverloadShares() { return {0.2, 0.7, 1.2, 2.5, 5}; }

absl::Status OverloadStudy::Start(const Part& part) {
  auto leaf = study_.Start(
      {.part = kLeafA, .variant = kOverloadLeaf, .addresses = {}, .service_time_ms = kOverloadServiceMs});
  if (!leaf.ok()) return leaf.status();
  leaf_ = *std::move(leaf);
  for (const Row& row : part.rows) {
    auto shared = study_.Start(
        {.part = kShared, .variant = row.variant.name(), .addresses = {leaf_->address(), leaf_->address()}});
    if (!shared.ok()) return shared.status();
    shared_.push_back(*std::move(shared));
  }
  return absl::OkStatus();
}

absl::StatusOr<Cell> OverloadStudy::MeasureLoad(size_t variant, const Variant& guards, double rate_per_s,
                                                uint64_t seed) {
  // In the warm-up a control settles that learns what to admit.
  const Nanos phase = FromSeconds(study_.results.phase_s) * 2 / 3, warmup = 2 * phase;
  absl::StatusOr<RateCurve> curve = RateCurve::Constant(rate_per_s, warmup + phase);
  if (!curve.ok()) return curve.status();
  std::vector<ClassPlan> plans;
  plans.push_back(
      {"A", std::make_shared<FixedWorkload>(std::string(Shared::kA.path), ""), *std::move(curve)});
  const auto mix = Mix::Make(std::move(plans), seed);
  if (!mix.ok()) return mix.status();
  const auto priorities = MetadataTemplate::Parse({kPriorities}, seed);
  if (!priorities.ok()) return priorities.status();
  return Drive({.target = shared_[variant]->address(),
                .phases = {.warmup = warmup, .phase = phase, .slo = kSlo},
                .timeout = guards.deadline ? kSlo : kTimeout,
                .credits = guards.admission.credits(),
                .metadata = std::make_shared<const MetadataTemplate>(*priorities),
                .tiers = {leaf_.get(), shared_[variant].get()},
                .stop = &study_.stop},
               **mix);
}

absl::Status OverloadStudy::Measure(Part* part) {
  if (absl::Status started = Start(*part); !started.ok()) return started;
  return study_.TakeTurns(part, [&](size_t variant, uint64_t seed) -> absl::StatusOr<Cell> {
    const Variant& guards = part->rows[variant].variant;
    Cell all;
    all.classes.resize(1);
    for (const double share : OverloadShares()) {
      study_.progress(absl::StrCat(part->name, "  ", guards.name(), " at ", share, " x"));
      const auto cell = MeasureLoad(variant, guards, share * kCapacityPerS, seed);
      if (!cell.ok()) return cell.status();
      AddPhase(*cell, &all);
    }
    return all;
  });
}

}  // namespace curtail::fences
