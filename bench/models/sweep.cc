// SPDX-License-Identifier: Apache-2.0
#include "sweep.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "bench/common/round.h"
#include "curtail/load/drive/runner.h"

namespace curtail::models {
namespace {

// More than a run has loads, so that no two cells of a config have the same arrivals.
constexpr uint64_t kSeedsPerRound = 1000;
constexpr uint64_t kWarmupSeeds = 500;

// A mid-tier that runs as long as this lives.
class Turn {
 public:
  explicit Turn(deploy::MidTier* mid_tier) : mid_tier_(mid_tier) { mid_tier_->Resume(); }
  ~Turn() { mid_tier_->Pause(); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  deploy::MidTier* const mid_tier_;
};

std::string OneLine(const absl::Status& status) {
  return absl::StrReplaceAll(status.message(), {{"\n    | ", ": "}, {"\n", " "}});
}

std::string LoadText(const Load& load) {
  return load.closed() ? absl::StrCat(load.outstanding, " under way")
                       : absl::StrFormat("%g/s", load.rate_per_s);
}

}  // namespace

absl::Status Sweep::GoOn() {
  if (stop_) return absl::CancelledError("interrupted");
  return tiers_.CheckLeaves();
}

absl::StatusOr<LoadResult> Sweep::Drive(const std::string& address, const Load& load, double seconds,
                                        uint64_t seed, Live* live) {
  if (requests_ == nullptr) {
    absl::StatusOr<std::shared_ptr<const Workload>> requests = service_.requests();
    if (!requests.ok()) return requests.status();
    requests_ = *std::move(requests);
  }
  RunOptions options;
  options.targets = {address};
  options.workload_name = service_.name;
  options.warmup = Nanos::zero();
  options.stop = &stop_;
  options.live = live;
  if (load.closed()) return RunClosedLoop(options, *requests_, load.outstanding, Seconds(seconds));
  const absl::StatusOr<Schedule> schedule = Schedule::Poisson(load.rate_per_s, Seconds(seconds), seed);
  if (!schedule.ok()) return schedule.status();
  return RunOpenLoop(options, *requests_, *schedule);
}

absl::StatusOr<Measurement> Sweep::Measure(deploy::MidTier& mid_tier, const Load& load, double seconds,
                                           uint64_t seed) {
  const Turn turn(&mid_tier);
  // A run of its own, so that what it consumes is not counted; nor are the switches of the threads that the
  // end of the pause woke only to sleep again, some for each of them.
  const absl::StatusOr<LoadResult> warm =
      Drive(mid_tier.address(), load, timing_.warmup_s, seed + kWarmupSeeds, nullptr);
  const absl::StatusOr<ThreadStats> before = mid_tier.Sample();
  Live live;
  absl::StatusOr<LoadResult> result = absl::CancelledError("interrupted");
  if (warm.ok() && !stop_) result = Drive(mid_tier.address(), load, seconds, seed, &live);
  const absl::StatusOr<ThreadStats> after = mid_tier.Sample();
  // That it has ended says more than the calls that failed.
  if (absl::Status died = mid_tier.Check(); !died.ok()) return died;
  if (!warm.ok()) return warm.status();
  if (!result.ok()) return result.status();
  if (!before.ok()) return before.status();
  if (!after.ok()) return after.status();
  if (result->interrupted) return absl::CancelledError("interrupted");
  if (result->ok == 0) return absl::UnavailableError("no request was answered");
  const uint64_t requests = live.ok + live.failed + 1;  // one is the runner's check of the target
  return Evaluate(*result, Nanos(live.elapsed_ns), requests, after->Since(*before));
}

void Sweep::MeasureCandidate(int outstanding, Candidate* candidate) {
  const std::string config = candidate->config.ToString();
  const auto note = [candidate](const absl::Status& status) {
    candidate->problem = OneLine(status);
    candidate->available = status.code() != absl::StatusCode::kUnimplemented;
  };
  absl::StatusOr<std::unique_ptr<deploy::MidTier>> mid_tier = tiers_.StartMidTier({.config = config});
  if (!mid_tier.ok()) return note(mid_tier.status());
  const absl::StatusOr<Measurement> full =
      Measure(**mid_tier, {.outstanding = outstanding}, timing_.pick_s, seed_);
  if (!full.ok()) return note(full.status());
  const absl::StatusOr<Measurement> low =
      Measure(**mid_tier, {.rate_per_s = kPickRate}, timing_.pick_s, seed_);
  if (!low.ok()) return note(low.status());
  candidate->saturation_per_s = full->achieved_per_s;
  candidate->low_p99_us = low->p99_us;
  candidate->measured = true;
}

absl::Status Sweep::MeasureCandidates(Results* results) {
  for (size_t i = 0; i < results->candidates.size(); ++i) {
    Candidate& candidate = results->candidates[i];
    progress_(absl::StrCat("pool sizes ", i + 1, "/", results->candidates.size(), "  ",
                           candidate.config.ToString()));
    MeasureCandidate(results->pick_outstanding, &candidate);
    if (absl::Status status = GoOn(); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Sweep::StartRows(Results* results) {
  for (size_t chosen : results->chosen) {
    const Config& config = results->candidates[chosen].config;
    Row row{config.ToString(), config.model, {}, {}};
    row.cells.resize(results->loads.size());
    absl::StatusOr<std::unique_ptr<deploy::MidTier>> mid_tier = tiers_.StartMidTier({.config = row.config});
    if (mid_tier.ok()) {
      (*mid_tier)->Pause();
    } else {
      row.problem = OneLine(mid_tier.status());
    }
    mid_tiers_.push_back(mid_tier.ok() ? *std::move(mid_tier) : nullptr);
    results->rows.push_back(std::move(row));
    if (absl::Status status = GoOn(); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Sweep::MeasureCell(Results* results, size_t row_index, size_t load_index, int round) {
  std::unique_ptr<deploy::MidTier>& mid_tier = mid_tiers_[row_index];
  if (mid_tier == nullptr) return absl::OkStatus();
  Row& row = results->rows[row_index];
  const Load& load = results->loads[load_index];
  progress_(absl::StrCat("round ", round + 1, "/", timing_.rounds, "  ", LoadText(load), "  ", row.config));
  const double seconds = load.closed() ? timing_.cell_s : timing_.CellSeconds(load.rate_per_s);
  const uint64_t seed = seed_ + static_cast<uint64_t>(round) * kSeedsPerRound + load_index;
  absl::StatusOr<Measurement> cell = Measure(*mid_tier, load, seconds, seed);
  if (absl::Status status = GoOn(); !status.ok()) return status;
  if (cell.ok()) {
    row.cells[load_index].push_back(*std::move(cell));
  } else if (row.problem.empty()) {
    row.problem = OneLine(cell.status());
  }
  if (!mid_tier->Check().ok()) mid_tier = nullptr;
  return absl::OkStatus();
}

absl::Status Sweep::MeasureRows(Results* results) {
  if (absl::Status started = StartRows(results); !started.ok()) return started;
  const bench::RoundPlan plan{.rounds = timing_.rounds,
                              .loads = results->loads.size(),
                              .subjects = results->rows.size(),
                              .order = bench::Order::kRotate,
                              .stop = &stop_};
  return bench::RunRounds(plan, [&](const bench::Turn& turn) {
    return MeasureCell(results, turn.subject, turn.load, turn.round);
  });
}

}  // namespace curtail::models
