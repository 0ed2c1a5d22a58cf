// SPDX-License-Identifier: Apache-2.0
#include "bench/fences/drive.h"

#include <sys/resource.h>

#include <future>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/common/round.h"
#include "curtail/load/drive/runner.h"

namespace curtail::fences {
namespace {

constexpr int kConnections = 4;
// RunOptions::spin: little, as the generator shares two CPUs with all else.
constexpr Nanos kSpin = std::chrono::microseconds(60);

// Passes on what it hears, and tells of the start.
class Starter final : public RunObserver {
 public:
  explicit Starter(PhaseRecorder* recorder) : recorder_(*recorder) {}
  void Started(TimePoint start) override { Tell(start); }
  void Ended(Nanos due, Nanos latency, bool ok) override { recorder_.Ended(due, latency, ok); }

  // The sending thread calls it last: a run that did not begin has no start.
  void Done() { Tell(std::nullopt); }
  std::optional<TimePoint> AwaitStart() { return start_.get_future().get(); }

 private:
  void Tell(std::optional<TimePoint> start) {
    if (!std::exchange(told_, true)) start_.set_value(start);
  }

  PhaseRecorder& recorder_;
  std::promise<std::optional<TimePoint>> start_;
  bool told_ = false;  // owned by the sending thread
};

Nanos OwnCpu() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto nanos = [](const timeval& t) {
    return std::chrono::seconds(t.tv_sec) + std::chrono::microseconds(t.tv_usec);
  };
  return nanos(usage.ru_utime) + nanos(usage.ru_stime);
}

Nanos CpuOf(const DrivePlan& plan) {
  Nanos sum = OwnCpu();
  for (const Tier* tier : plan.tiers) sum += tier->Cpu();
  return sum;
}

RunOptions OptionsOf(const DrivePlan& plan, RunObserver* observer) {
  RunOptions options;
  options.targets = {plan.target};
  options.workload_name = "mix";
  options.channel.connections = kConnections;
  options.channel.credits = plan.credits;
  options.timeout = plan.timeout;
  options.drawn_metadata = plan.metadata;
  options.warmup = plan.phases.warmup;
  options.spin = kSpin;
  options.stop = plan.stop;
  options.observer = observer;
  return options;
}

}  // namespace

absl::Status Study::TakeTurns(
    Part* part, const std::function<absl::StatusOr<Cell>(size_t variant, uint64_t seed)>& measure) const {
  const bench::RoundPlan plan{.rounds = results.rounds,
                              .subjects = part->rows.size(),
                              .order = bench::Order::kRotateByRound,
                              .stop = &stop};
  return bench::RunRounds(plan, [&](const bench::Turn& turn) {
    Row& row = part->rows[turn.subject];
    progress(absl::StrCat(part->name, "  ", bench::RoundText(plan, turn), row.variant.name()));
    absl::StatusOr<Cell> cell = measure(turn.subject, results.seed + static_cast<uint64_t>(turn.round));
    if (cell.ok()) row.rounds.push_back(*std::move(cell));
    return cell.status();
  });
}

absl::StatusOr<Cell> Drive(const DrivePlan& plan, const Mix& mix) {
  PhaseRecorder recorder(mix, plan.phases);
  Starter starter(&recorder);
  const RunOptions options = OptionsOf(plan, &starter);
  const Nanos cpu_before = CpuOf(plan);
  const TimePoint began = Now();
  absl::StatusOr<LoadResult> result = absl::InternalError("the run has not ended");
  std::thread sender([&] {
    result = RunOpenLoop(options, mix, mix.schedule());
    starter.Done();
  });
  absl::Status told;
  if (const std::optional<TimePoint> start = starter.AwaitStart(); start && plan.on_start) {
    told = plan.on_start(*start);
  }
  sender.join();
  if (!told.ok()) return told;
  if (!result.ok()) return result.status();
  if (plan.stop != nullptr && plan.stop->load(std::memory_order_relaxed)) {
    return absl::CancelledError("interrupted");
  }
  Cell cell;
  cell.classes = recorder.Results();
  cell.cpus = InSeconds(CpuOf(plan) - cpu_before) / InSeconds(Now() - began);
  Judge(*result, &cell);
  return cell;
}

}  // namespace curtail::fences
