// SPDX-License-Identifier: Apache-2.0
#include "study.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/common/round.h"
#include "compose.curtail.h"
#include "parts.h"

namespace curtail::study {
namespace {

constexpr Nanos kCallTimeout = std::chrono::seconds(10);
constexpr Nanos kRequestTimeout = std::chrono::seconds(2);
constexpr int kPeakRounds = 3;
// Low loads are measured longer, so that their p99 rests on enough requests, up to kMaxStretch times as long.
constexpr double kEnoughRequests = 2000;
constexpr double kMaxStretch = 4;
// More than there are loads: every load of every round has arrivals of its own.
constexpr uint64_t kSeedsPerRound = 100;

Nanos Seconds(double s) { return std::chrono::duration_cast<Nanos>(std::chrono::duration<double>(s)); }

}  // namespace

struct Study::Composer {
  Composer(Variant v, std::unique_ptr<Tier> t, Client* client)
      : variant(std::move(v)), tier(std::move(t)), channel(client, tier->address()) {}

  const Variant variant;
  const std::unique_ptr<Tier> tier;
  Channel channel;
};

Study::Study(Results* results, const std::string& log_folder, const std::atomic<bool>& stop,
             std::function<void(const std::string&)> progress)
    : results_(*results),
      log_folder_(log_folder),
      stop_(stop),
      progress_(std::move(progress)),
      workload_(results->seed) {
  run_.workload_name = "compose";
  run_.timeout = kRequestTimeout;
  run_.channel.connections = results->connections;
  run_.warmup = Seconds(results->cell_s / 4);
  run_.spin = Seconds(results->spin_us / 1e6);
  run_.stop = &stop;
}

Study::~Study() = default;

absl::Status Study::Start() {
  std::vector<std::string> addresses;
  for (const std::string_view part : kParts) {
    auto tier = Tier::Start({std::string(part), results_.part_config, {}}, log_folder_, stop_);
    if (!tier.ok()) return tier.status();
    addresses.push_back((*tier)->address());
    parts_.push_back(*std::move(tier));
  }
  timeline_ = std::make_unique<Channel>(&client_, addresses.back());
  for (const Row& row : results_.rows) {
    if (absl::Status started = StartComposer(row.variant, addresses); !started.ok()) return started;
  }
  return absl::OkStatus();
}

absl::Status Study::StartComposer(const Variant& variant, const std::vector<std::string>& parts) {
  auto tier = Tier::Start({kComposer, variant.name(), parts}, log_folder_, stop_);
  if (!tier.ok()) return tier.status();
  composers_.push_back(std::make_unique<Composer>(variant, *std::move(tier), &client_));
  return Check(*composers_.back());
}

absl::Status Study::Check(Composer& composer) {
  Context ctx(kCallTimeout);
  compose::StoreReply stored;
  compose::ReadRequest read;
  compose::Post post;
  absl::Status status = compose::Composer::Stub(&composer.channel).Compose(ctx, workload_.sample(), &stored);
  read.set_id(stored.id());
  if (status.ok()) status = compose::Timeline::Stub(timeline_.get()).Read(ctx, read, &post);
  if (status.ok()) status = workload_.CheckSample(post);
  return status.ok()
             ? status
             : absl::Status(status.code(), absl::StrCat(composer.variant.name(), ": ", status.message()));
}

absl::StatusOr<Consumed> Study::Usage(Composer& composer) {
  Context ctx(kCallTimeout);
  compose::UsageReply reply;
  absl::Status status = compose::Composer::Stub(&composer.channel).Usage(ctx, {}, &reply);
  if (!status.ok()) return status;
  return Consumed{reply.requests(), reply.cpu_us(),
                  reply.voluntary_switches() + reply.involuntary_switches()};
}

double Study::CellSeconds(const Load& load) const {
  if (load.closed()) return results_.cell_s;
  return std::clamp(kEnoughRequests / load.rate_per_s, results_.cell_s, kMaxStretch * results_.cell_s);
}

absl::StatusOr<LoadResult> Study::Drive(const std::string& address, const Load& load, uint64_t seed) {
  RunOptions options = run_;
  options.targets = {address};
  const Nanos length = Seconds(CellSeconds(load));
  if (load.closed()) return RunClosedLoop(options, workload_, load.outstanding, length);
  absl::StatusOr<Schedule> schedule = Schedule::Poisson(load.rate_per_s, options.warmup + length, seed);
  if (!schedule.ok()) return schedule.status();
  return RunOpenLoop(options, workload_, *schedule);
}

absl::StatusOr<Measurement> Study::MeasureCell(Composer& composer, const Load& load, uint64_t seed) {
  const absl::StatusOr<Consumed> before = Usage(composer);
  if (!before.ok()) return before.status();
  absl::StatusOr<LoadResult> result = Drive(composer.tier->address(), load, seed);
  if (!result.ok()) return result.status();
  const absl::StatusOr<Consumed> after = Usage(composer);
  if (!after.ok()) return after.status();
  if (stop_.load(std::memory_order_relaxed)) return absl::CancelledError("interrupted");
  return Evaluate(*result, *before, *after);
}

absl::Status Study::FindBaselinePeak(const std::vector<int>& outstanding) {
  for (const int n : outstanding) {
    std::vector<double> rates;
    for (int i = 0; i < kPeakRounds; ++i) {
      progress_(absl::StrCat("peak of the baseline, ", n, " under way"));
      const auto measured = MeasureCell(*composers_.front(), {.outstanding = n}, 0);
      if (!measured.ok()) return measured.status();
      rates.push_back(measured->achieved_per_s);
    }
    results_.baseline_peak_per_s = std::max(results_.baseline_peak_per_s, bench::SpreadOf(rates).median);
  }
  return results_.baseline_peak_per_s > 0 ? absl::OkStatus()
                                          : absl::InternalError("the baseline answers nothing");
}

absl::Status Study::Measure() {
  for (Row& row : results_.rows) row.cells.resize(results_.loads.size());
  const bench::RoundPlan plan{.rounds = results_.rounds,
                              .loads = results_.loads.size(),
                              .subjects = results_.rows.size(),
                              .order = bench::Order::kRotate,
                              .stop = &stop_};
  return bench::RunRounds(plan, [&](const bench::Turn& turn) -> absl::Status {
    Row& row = results_.rows[turn.subject];
    const Load& load = results_.loads[turn.load];
    if (load.beyond_baseline() && !row.variant.fibers()) return absl::OkStatus();
    progress_(absl::StrCat(bench::RoundText(plan, turn), load.name(), "  ", row.variant.name()));
    const uint64_t seed = results_.seed + static_cast<uint64_t>(turn.round) * kSeedsPerRound + turn.load;
    auto measured = MeasureCell(*composers_[turn.subject], load, seed);
    if (measured.ok()) row.cells[turn.load].push_back(*std::move(measured));
    return measured.status();
  });
}

}  // namespace curtail::study
