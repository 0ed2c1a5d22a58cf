// SPDX-License-Identifier: Apache-2.0
#include "measure.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "child.h"
#include "generator.h"
#include "stack.h"

namespace curtail::bench {
namespace {

constexpr int kLeaves = 4;
constexpr Nanos kWarmUp = std::chrono::milliseconds(300);
constexpr double kStartSeconds = 0.7;  // processes and warm-up
constexpr uint32_t kWarmUpOutstanding = 8;

// The five servers of one stack. The mid-tier goes first at the end, before what it calls.
struct Servers {
  std::vector<std::unique_ptr<Child>> leaves;
  std::unique_ptr<Child> mid;
};

absl::StatusOr<Servers> StartServers(const std::string& stack, const Options& options) {
  const std::vector<std::string> common = {"--stack", stack, "--leaf-config", options.leaf_config};
  Servers servers;
  std::vector<std::string> mid_args = common;
  mid_args.insert(mid_args.end(), {"--role", "mid"});
  for (int i = 0; i < kLeaves; ++i) {
    std::vector<std::string> leaf_args = common;
    leaf_args.insert(leaf_args.end(), {"--role", "leaf"});
    absl::StatusOr<std::unique_ptr<Child>> leaf = Child::Start(leaf_args);
    if (!leaf.ok()) return leaf.status();
    mid_args.insert(mid_args.end(), {"--leaf", (*leaf)->address()});
    servers.leaves.push_back(std::move(*leaf));
  }
  absl::StatusOr<std::unique_ptr<Child>> mid = Child::Start(mid_args);
  if (!mid.ok()) return mid.status();
  servers.mid = std::move(*mid);
  return servers;
}

absl::StatusOr<std::unique_ptr<Generator>> MakeGenerator(Protocol protocol, const std::string& address) {
  if (protocol == Protocol::kGrpc) return MakeRpcGenerator(address);
  return MakeRawGenerator(protocol, address);
}

double Percentile(const std::vector<float>& sorted, double q) {
  if (sorted.empty()) return 0;
  return sorted[std::min(sorted.size() - 1, static_cast<size_t>(q * static_cast<double>(sorted.size())))];
}

std::optional<double> PerRequest(std::optional<uint64_t> before, std::optional<uint64_t> after,
                                 double requests) {
  if (!before || !after) return std::nullopt;
  return static_cast<double>(*after - *before) / requests;
}

Measurement Evaluate(const Sample& sample, const Usage& before, const Usage& after) {
  const double answered = std::max<double>(1, static_cast<double>(sample.latencies_us.size()));
  Measurement m;
  m.p50_us = Percentile(sample.latencies_us, 0.50);
  m.p99_us = Percentile(sample.latencies_us, 0.99);
  m.qps = sample.seconds > 0 ? static_cast<double>(sample.latencies_us.size()) / sample.seconds : 0;
  m.failed = static_cast<double>(sample.failed);
  m.mid_cpu_us = (after.cpu_us - before.cpu_us) / answered;
  m.mid_switches =
      (static_cast<double>(after.context_switches) - static_cast<double>(before.context_switches)) / answered;
  m.mid_user_instructions = PerRequest(before.user_instructions, after.user_instructions, answered);
  m.mid_kernel_instructions = PerRequest(before.kernel_instructions, after.kernel_instructions, answered);
  return m;
}

absl::StatusOr<Sample> RunLoad(Generator& generator, const Cell& cell, Nanos duration, uint64_t seed) {
  return cell.open ? RunOpenLoop(generator, cell.load, duration, seed)
                   : RunClosedLoop(generator, cell.load, duration);
}

// One stack's turn: fresh processes, all cells.
absl::Status RunTurn(const Options& options, uint64_t seed, StackResults* results) {
  absl::StatusOr<StackInfo> info = DescribeStack(results->stack);
  if (!info.ok()) return info.status();
  absl::StatusOr<Servers> servers = StartServers(results->stack, options);
  if (!servers.ok()) return servers.status();
  absl::StatusOr<std::unique_ptr<Generator>> generator =
      MakeGenerator(info->protocol, servers->mid->address());
  if (!generator.ok()) return generator.status();
  absl::StatusOr<Sample> warm = RunClosedLoop(**generator, kWarmUpOutstanding, kWarmUp);
  if (!warm.ok()) return warm.status();
  if (warm->latencies_us.empty()) return warm->first_error;
  const auto duration = std::chrono::duration_cast<Nanos>(std::chrono::duration<double>(options.seconds));
  for (const Cell& cell : options.cells) {
    const Usage before = servers->mid->ReadUsage();
    absl::StatusOr<Sample> sample = RunLoad(**generator, cell, duration, seed);
    if (!sample.ok())
      return absl::Status(sample.status().code(), absl::StrCat(cell.Name(), ": ", sample.status().message()));
    results->first_error.Update(sample->first_error);
    results->by_cell[cell.Name()].push_back(Evaluate(*sample, before, servers->mid->ReadUsage()));
  }
  return absl::OkStatus();
}

}  // namespace

double ExpectedSeconds(const Options& options) {
  const double turn = static_cast<double>(options.cells.size()) * options.seconds + kStartSeconds;
  return turn * static_cast<double>(options.stacks.size()) * options.rounds;
}

std::vector<StackResults> Measure(const Options& options,
                                  const std::function<void(const std::string&)>& progress) {
  std::vector<StackResults> results;
  for (const std::string& stack : options.stacks) results.push_back({.stack = stack});
  for (int round = 0; round < options.rounds; ++round) {
    for (StackResults& stack : results) {
      progress(absl::StrCat("round ", round + 1, " of ", options.rounds, ": ", stack.stack));
      stack.first_error.Update(RunTurn(options, options.seed + static_cast<uint64_t>(round), &stack));
    }
  }
  return results;
}

}  // namespace curtail::bench
