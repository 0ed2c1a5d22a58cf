// SPDX-License-Identifier: Apache-2.0
//
// DESIGN: one thread. Between sends it polls the client, which moves bytes and books replies; the next
// message is built while there is time. Everything that is due is started before the next poll, so that a
// late thread catches up in one write. Nothing here waits for a reply but Drain().
#include "curtail/load/drive/runner.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "curtail/load/drive/internal/driver.h"
#include "curtail/load/drive/internal/realtime.h"
#include "curtail/load/drive/methods.h"
#include "curtail/load/message/journey.h"

namespace curtail {
namespace {

// Sends between two polls when the thread is late: replies must not wait for ever to be timed.
constexpr int kMaxBurst = 32;
// How long after its deadline the client may take to end a call.
constexpr Nanos kDrainGrace = std::chrono::seconds(2);
constexpr int kMaxStreams = 100'000;

absl::Status Check(const RunOptions& options) {
  if (options.timeout <= Nanos::zero())
    return absl::InvalidArgumentError("the timeout must be more than 0 s");
  if (options.warmup < Nanos::zero()) return absl::InvalidArgumentError("the warm-up cannot be negative");
  if (options.spin && *options.spin < Nanos::zero())
    return absl::InvalidArgumentError("the spin time cannot be negative");
  if (options.targets.empty()) return absl::InvalidArgumentError("there is no target");
  if (options.stream && (options.stream->count < 1 || options.stream->count > kMaxStreams)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "streams, or messages of one, must be from 1 to %d, not %d", kMaxStreams, options.stream->count));
  }
  const int connections = options.channel.connections;
  if (connections < 1 || connections > kMaxConnections) {
    return absl::InvalidArgumentError(
        absl::StrFormat("connections must be from 1 to %d, not %d", kMaxConnections, connections));
  }
  return absl::OkStatus();
}

// The part that open and closed loop have in common.
LoadPlan PlanOf(const RunOptions& options, const Workload& workload) {
  LoadPlan plan;
  plan.target = absl::StrJoin(options.targets, ", ");
  plan.tls = options.channel.tls != nullptr;
  plan.method = workload.method();
  plan.workload = options.workload_name;
  if (options.stream) {
    absl::StrAppend(&plan.workload, plan.workload.empty() ? "" : "; ", Describe(*options.stream));
  }
  plan.connections = options.channel.connections;
  plan.warmup = options.warmup;
  plan.timeout = options.timeout;
  plan.retries = options.retries;
  plan.requests = options.requests;
  if (options.checks != nullptr) plan.checks = options.checks->texts();
  if (const Journey* journey = workload.journey(); journey != nullptr) {
    for (size_t i = 0; i < journey->steps(); ++i) plan.steps.emplace_back(journey->StepName(i));
    return plan;
  }
  std::vector<WorkloadMethod> methods = MethodsOf(workload);
  if (methods.size() < 2) return plan;
  for (WorkloadMethod& method : methods) plan.methods.push_back(std::move(method.name));
  return plan;
}

absl::StatusOr<LoadResult> Finished(internal::Driver& driver, Nanos end, bool interrupted) {
  LoadResult result = driver.Finish(end, interrupted);
  if (absl::Status status = driver.JudgeRun(result); !status.ok()) return status;
  return result;
}

// How long the requests in flight may take to end. An interrupted run has no time for the pauses of journeys.
Nanos Longest(const RunOptions& options, const Workload& workload, bool interrupted) {
  const Journey* journey = workload.journey();
  if (journey == nullptr || interrupted) return options.timeout + kDrainGrace;
  return options.timeout * static_cast<int64_t>(journey->steps()) + journey->longest_pauses() + kDrainGrace;
}

void SendOnSchedule(internal::Driver& driver, Arrivals arrivals, Nanos warmup) {
  uint64_t number = driver.first_index();
  std::optional<Nanos> due = arrivals.Next();
  while (due && !driver.Stopped() && !driver.AllSent()) {
    const Nanos now = driver.Elapsed();
    if (now >= warmup) driver.BeginWindow();
    int burst = 0;
    for (; due && *due <= now && burst < kMaxBurst && !driver.AllSent(); ++burst) {
      driver.Send(number++, *due);
      due = arrivals.Next();
    }
    if (burst > 0) {
      driver.Poll();
    } else {
      driver.Prepare(number);
      driver.PollUntil(*due);
    }
  }
}

}  // namespace

LoadPlan PlanOpenLoop(const RunOptions& options, const Workload& workload, const Schedule& schedule) {
  const RateCurve& curve = schedule.curve();
  LoadPlan plan = PlanOf(options, workload);
  plan.arrivals = schedule.gaps_name();
  plan.seed = schedule.seed();
  plan.duration = schedule.length() - options.warmup;
  plan.rate_per_s =
      (curve.total() - curve.Expected(options.warmup)) * 1e9 / static_cast<double>(plan.duration.count());
  plan.peak_per_s = curve.peak_per_s();
  plan.schedule =
      options.schedule_name.empty() ? absl::StrFormat("constant:%g", plan.rate_per_s) : options.schedule_name;
  return plan;
}

LoadPlan PlanClosedLoop(const RunOptions& options, const Workload& workload, int outstanding,
                        Nanos duration) {
  LoadPlan plan = PlanOf(options, workload);
  plan.arrivals = "closed";
  plan.outstanding = outstanding;
  plan.duration = duration;
  return plan;
}

absl::StatusOr<LoadResult> RunOpenLoop(const RunOptions& options, const Workload& workload,
                                       const Schedule& schedule) {
  if (absl::Status status = Check(options); !status.ok()) return status;
  if (schedule.length() <= options.warmup) {
    return absl::InvalidArgumentError("the run must be longer than its warm-up");
  }
  LoadPlan plan = PlanOpenLoop(options, workload, schedule);
  const internal::RealtimeScope realtime(options.realtime);
  plan.realtime = realtime.active();
  internal::Driver driver(options, workload, std::move(plan), &schedule.curve());
  if (absl::Status status = driver.Preflight(); !status.ok()) return status;
  if (absl::Status status = driver.Start(); !status.ok()) return status;

  SendOnSchedule(driver, schedule.arrivals(), options.warmup);
  // Idle until the end of the window, so that its rates are over the time that was planned.
  while (driver.Elapsed() < schedule.length() && !driver.Stopped() && !driver.AllSent())
    driver.PollUntil(schedule.length());
  driver.EndWindow();
  const Nanos end = driver.Elapsed();
  const bool interrupted = driver.Stopped() && end < schedule.length() && !driver.AllSent();
  driver.Drain(end + Longest(options, workload, interrupted));
  return Finished(driver, std::min(end, schedule.length()), interrupted);
}

absl::StatusOr<LoadResult> RunClosedLoop(const RunOptions& options, const Workload& workload, int outstanding,
                                         Nanos duration) {
  if (absl::Status status = Check(options); !status.ok()) return status;
  if (duration <= Nanos::zero()) return absl::InvalidArgumentError("the run must be longer than 0 s");
  if (outstanding < 1 || outstanding > kMaxOutstanding) {
    return absl::InvalidArgumentError(
        absl::StrFormat("outstanding requests must be from 1 to %d, not %d", kMaxOutstanding, outstanding));
  }
  internal::Driver driver(options, workload, PlanClosedLoop(options, workload, outstanding, duration),
                          nullptr);
  if (absl::Status status = driver.Preflight(); !status.ok()) return status;
  if (absl::Status status = driver.Start(); !status.ok()) return status;

  const Nanos length = options.warmup + duration;
  uint64_t next = driver.first_index();
  Nanos now = driver.Elapsed();
  const auto free = [&] {
    return driver.in_flight() < static_cast<size_t>(outstanding) && !driver.AllSent();
  };
  // The window ends when the last of its requests have, if their number is what ends it.
  const auto ended = [&] { return driver.AllSent() && driver.in_flight() == 0; };
  for (; now < length && !driver.Stopped() && !ended(); now = driver.Elapsed()) {
    if (now >= options.warmup) driver.BeginWindow();
    // Bounded: calls that fail inside Send() must not keep us here.
    for (int i = 0; i < outstanding && free(); ++i) driver.Send(next++, driver.Elapsed());
    driver.PollUntil(length);
  }
  driver.EndWindow();
  const bool interrupted = driver.Stopped() && now < length && !ended();
  driver.Drain(now + Longest(options, workload, interrupted));
  return Finished(driver, std::min(now, length), interrupted);
}

absl::Status TryEachMethod(RunOptions options, const Workload& workload) {
  options.first_must_succeed = true;
  if (absl::Status status = Check(options); !status.ok()) return status;
  return internal::Driver(options, workload, {}, nullptr).Preflight(/*strict=*/true);
}

}  // namespace curtail
