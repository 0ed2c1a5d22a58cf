// SPDX-License-Identifier: Apache-2.0
#include "measure.h"

#include <algorithm>
#include <atomic>
#include <memory>

#include "absl/strings/str_cat.h"
#include "bench/common/round.h"
#include "check.h"
#include "generator.h"
#include "idle.h"
#include "servers.h"

namespace curtail::bench {
namespace {

constexpr double kStartSeconds = 0.4;  // until all processes serve
constexpr uint32_t kWarmUpOutstanding = 8;

double Percentile(const std::vector<float>& sorted, double q) {
  if (sorted.empty()) return 0;
  return sorted[std::min(sorted.size() - 1, static_cast<size_t>(q * static_cast<double>(sorted.size())))];
}

std::optional<double> PerRequest(std::optional<double> before, std::optional<double> after, double requests) {
  if (!before || !after) return std::nullopt;
  return (*after - *before) / requests;
}

Measurement Evaluate(const Sample& sample, const deploy::ProcessUsage& before,
                     const deploy::ProcessUsage& after) {
  const double answered = std::max<double>(1, static_cast<double>(sample.latencies_us.size()));
  Measurement m;
  m.p50_us = Percentile(sample.latencies_us, 0.50);
  m.p99_us = Percentile(sample.latencies_us, 0.99);
  m.qps = sample.seconds > 0 ? static_cast<double>(sample.latencies_us.size()) / sample.seconds : 0;
  m.failed = static_cast<double>(sample.failed);
  m.mid_cpu_us = (after.cpu_us - before.cpu_us) / answered;
  m.mid_resident_mib = after.resident_mib;
  m.mid_switches = (after.context_switches - before.context_switches) / answered;
  m.mid_user_instructions = PerRequest(before.user_instructions, after.user_instructions, answered);
  m.mid_kernel_instructions = PerRequest(before.kernel_instructions, after.kernel_instructions, answered);
  return m;
}

absl::StatusOr<Sample> RunLoad(Generator& generator, const Load& cell, Nanos duration, uint64_t seed,
                               const std::atomic<bool>& stop) {
  return cell.open() ? RunOpenLoop(generator, cell.number, duration, seed, stop)
                     : RunClosedLoop(generator, cell.number, duration, stop);
}

// Until every connection has been used, and some time more.
absl::Status WarmUp(Generator& generator, const Setup& setup, Nanos duration, const std::atomic<bool>& stop) {
  absl::StatusOr<Sample> all =
      RunRequests(generator, kWarmUpOutstanding, static_cast<uint64_t>(std::max(setup.connections, 1)), stop);
  if (!all.ok()) return all.status();
  absl::StatusOr<Sample> warm = RunClosedLoop(generator, kWarmUpOutstanding, duration, stop);
  if (!warm.ok()) return warm.status();
  return warm->latencies_us.empty() ? warm->first_error : absl::OkStatus();
}

absl::Status RunCells(const Options& options, const Session& session, uint64_t seed, Servers& servers,
                      Generator& generator, StackResults* results) {
  for (const Load& cell : options.cells) {
    if (session.stop()) return absl::OkStatus();
    const auto duration =
        std::chrono::duration_cast<Nanos>(std::chrono::duration<double>(CellSeconds(options, cell)));
    const deploy::ProcessUsage before = servers.mid.process->Usage();
    absl::StatusOr<Sample> sample = RunLoad(generator, cell, duration, seed, session.stop());
    if (!sample.ok())
      return absl::Status(sample.status().code(), absl::StrCat(cell.Name(), ": ", sample.status().message()));
    results->first_error.Update(sample->first_error);
    results->by_cell[cell.Name()].push_back(Evaluate(*sample, before, servers.mid.process->Usage()));
  }
  return absl::OkStatus();
}

// One stack's turn: fresh processes, all cells.
absl::Status RunTurn(const Options& options, const Session& session, int round, StackResults* results) {
  const Setup& setup = results->setup;
  absl::StatusOr<Servers> servers = StartServers(results->stack, setup, options.leaf_config);
  if (!servers.ok()) return servers.status();
  const std::string& address = servers->mid.address;
  absl::StatusOr<std::vector<Fd>> idle = OpenIdle(address, results->stack.protocol, setup.idle);
  if (!idle.ok()) return idle.status();
  absl::StatusOr<std::unique_ptr<Generator>> generator =
      MakeGenerator(results->stack.protocol, address, setup);
  if (!generator.ok()) return generator.status();
  const absl::Status warm = WarmUp(**generator, setup, results->stack.warm_up, session.stop());
  if (!warm.ok()) return warm;
  if (options.check && round == 0) {
    if (absl::Status checked = CheckFanOut(*servers, **generator); !checked.ok()) return checked;
  }
  const uint64_t seed = options.seed + static_cast<uint64_t>(round);
  return RunCells(options, session, seed, *servers, **generator, results);
}

std::vector<StackResults> Prepare(const Options& options) {
  std::vector<StackResults> results;
  for (const Setup& setup : options.setups) {
    for (const std::string& name : options.stacks) {
      StackResults& one = results.emplace_back();
      one.setup = setup;
      absl::StatusOr<StackInfo> info = DescribeStack(name);
      one.first_error = info.status();
      if (info.ok()) one.stack = *std::move(info);
    }
  }
  return results;
}

}  // namespace

bool AllWell(const std::vector<StackResults>& results) {
  bool any = false;
  for (const StackResults& one : results) {
    if (!one.stack.missing.empty()) continue;
    if (!one.first_error.ok() || one.by_cell.empty()) return false;
    any = true;
  }
  return any;
}

double ExpectedSeconds(const Options& options) {
  double cells = kStartSeconds;
  for (const Load& cell : options.cells) cells += CellSeconds(options, cell);
  double round = 0;
  for (const StackResults& one : Prepare(options)) {
    if (one.stack.missing.empty()) round += cells + std::chrono::duration<double>(one.stack.warm_up).count();
  }
  return round * options.rounds;
}

const std::vector<Measurement>* Find(const StackResults& results, const std::string& cell) {
  const auto found = results.by_cell.find(cell);
  return found == results.by_cell.end() || found->second.empty() ? nullptr : &found->second;
}

std::vector<StackResults> Measure(const Options& options, Session& session) {
  std::vector<StackResults> results = Prepare(options);
  const RoundPlan plan{.rounds = options.rounds, .subjects = results.size(), .stop = &session.stop()};
  const absl::Status ended = RunRounds(plan, [&](const Turn& turn) {
    StackResults& one = results[turn.subject];
    if (!one.stack.missing.empty()) return absl::OkStatus();
    session.Progress(absl::StrCat(RoundText(plan, turn), one.stack.name, " ", one.setup.label));
    absl::Status status = RunTurn(options, session, turn.round, &one);
    if (!session.stop()) one.first_error.Update(status);
    return absl::OkStatus();
  });
  if (!ended.ok()) session.Note("interrupted: the report is partial");
  return results;
}

}  // namespace curtail::bench
