// SPDX-License-Identifier: Apache-2.0
#include "demo_command.h"

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <numeric>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "apps/hdsearch/workload.h"
#include "cluster.h"
#include "curtail/exec/config.h"
#include "curtail/load/report.h"
#include "curtail/load/runner.h"
#include "demo_table.h"
#include "exit_code.h"
#include "flags.h"
#include "progress.h"

namespace curtail::tool {
namespace {

constexpr int kLeaves = 4;
// From 563 samples on, the p99 has a confidence interval.
constexpr double kSamples = 600;
constexpr size_t kMaxCells = 400;

// What is to be run.
struct Plan {
  std::vector<std::string> configs;
  std::vector<double> loads;
  Nanos warmup{0};
  bool quick = false;

  Nanos DurationAt(double rate) const {
    const double shortest = quick ? 1.5 : 2.5;
    const double wanted = quick ? shortest : std::max(shortest, kSamples / rate);
    return Nanos(static_cast<int64_t>(std::min(wanted, 60.0) * 1e9));
  }
  Nanos Total() const {
    Nanos total(0);
    for (double rate : loads) total += static_cast<int64_t>(configs.size()) * (warmup + DurationAt(rate));
    return total;
  }
};

absl::StatusOr<Plan> MakePlan(const DemoFlags& flags) {
  Plan plan;
  plan.quick = flags.quick;
  plan.warmup = std::chrono::milliseconds(flags.quick ? 300 : 500);
  for (absl::string_view text : absl::StrSplit(flags.configs, ',')) {
    const absl::StatusOr<Config> config = Config::Parse(std::string(text));
    if (!config.ok())
      return absl::InvalidArgumentError(absl::StrCat("--configs: ", config.status().message()));
    plan.configs.push_back(config->ToString());
  }
  absl::StatusOr<std::vector<double>> loads = ParseRates(flags.loads);
  if (!loads.ok()) return absl::InvalidArgumentError(absl::StrCat("--loads: ", loads.status().message()));
  plan.loads = *std::move(loads);
  if (plan.configs.size() * plan.loads.size() > kMaxCells) {
    return absl::InvalidArgumentError(absl::StrCat("more than ", kMaxCells, " pairs of config and load"));
  }
  return plan;
}

std::string PlanLine(const Plan& plan, const DemoFlags& flags) {
  const double seconds = static_cast<double>(plan.Total().count()) / 1e9;
  return absl::StrFormat(
      "HDSearch over %s, %d leaves: mid-tier %s at %s requests a second; open loop, poisson, seed %d; %.0f s "
      "of load\n",
      flags.data, kLeaves, absl::StrJoin(plan.configs, ", "), absl::StrJoin(plan.loads, ", "), flags.seed,
      seconds);
}

// A folder that is removed again, unless it is kept for its logs.
class LogFolder {
 public:
  LogFolder() {
    std::error_code error;
    std::string name = (std::filesystem::temp_directory_path(error) / "curtail-demo-XXXXXX").string();
    if (mkdtemp(name.data()) != nullptr) path_ = name;
  }
  ~LogFolder() {
    std::error_code error;
    if (!kept_ && !path_.empty()) std::filesystem::remove_all(path_, error);
  }
  LogFolder(const LogFolder&) = delete;
  LogFolder& operator=(const LogFolder&) = delete;

  const std::string& path() const { return path_; }
  void Keep() { kept_ = true; }

 private:
  std::string path_;
  bool kept_ = false;
};

// A demo in progress.
class Demo {
 public:
  Demo(const DemoFlags& flags, Plan plan, Console& console, const std::atomic<bool>& stop)
      : flags_(flags), plan_(std::move(plan)), console_(console), stop_(stop) {}

  // Errors: what could not be started or measured; CANCELLED when interrupted. cells() has what was measured.
  absl::Status Run(const std::string& hdsearch, const std::string& log_folder);
  const std::vector<DemoCell>& cells() const { return cells_; }

 private:
  absl::Status RunRow(Cluster& cluster, const Workload& workload, size_t row);
  absl::StatusOr<DemoCell> RunCell(Cluster& cluster, const Workload& workload, size_t config, double rate,
                                   uint64_t seed);

  const DemoFlags& flags_;
  const Plan plan_;
  Console& console_;
  const std::atomic<bool>& stop_;
  std::vector<DemoCell> cells_;
};

absl::Status Demo::Run(const std::string& hdsearch, const std::string& log_folder) {
  hdsearch::WorkloadOptions wanted;
  wanted.data = flags_.data;
  wanted.queries = flags_.queries;
  wanted.k = flags_.k;
  wanted.quiet = true;
  console_.Note("reading the queries, and their true neighbours by brute force (kept for the next time) ...");
  const absl::StatusOr<std::unique_ptr<Workload>> workload = hdsearch::MakeWorkload(wanted);
  if (!workload.ok()) return workload.status();
  if (stop_) return absl::CancelledError("interrupted");

  console_.Note(absl::StrCat("starting ", kLeaves, " leaves and ", plan_.configs.size(), " mid-tiers ..."));
  ClusterOptions options;
  options.hdsearch = hdsearch;
  options.data = flags_.data;
  options.configs = plan_.configs;
  options.leaves = kLeaves;
  options.log_folder = log_folder;
  const absl::StatusOr<std::unique_ptr<Cluster>> cluster = Cluster::Start(options, stop_);
  if (!cluster.ok()) return cluster.status();
  for (size_t row = 0; row < plan_.loads.size(); ++row) {
    if (absl::Status status = RunRow(**cluster, **workload, row); !status.ok()) return status;
  }
  return absl::OkStatus();
}

// All configs under one load, each row beginning with another one, so that none is always the first.
absl::Status Demo::RunRow(Cluster& cluster, const Workload& workload, size_t row) {
  for (size_t i = 0; i < plan_.configs.size(); ++i) {
    const size_t config = (row + i) % plan_.configs.size();
    // The same arrivals for every config of the row.
    absl::StatusOr<DemoCell> cell = RunCell(cluster, workload, config, plan_.loads[row], flags_.seed + row);
    if (!cell.ok()) return cell.status();
    if (cell->result.interrupted) return absl::CancelledError("interrupted");
    const Histogram& all = cell->result.all;
    console_.Note(
        absl::StrFormat("%3d/%d  %-9s %6g/s  p50 %.2f ms  p99 %.2f ms%s", cells_.size() + 1,
                        plan_.configs.size() * plan_.loads.size(), cell->config, cell->rate_per_s,
                        static_cast<double>(all.Percentile(50).count()) / 1e6,
                        static_cast<double>(all.Percentile(99).count()) / 1e6,
                        cell->result.valid() ? "" : absl::StrCat("  void: ", cell->result.invalid[0])));
    cells_.push_back(*std::move(cell));
    if (stop_) return absl::CancelledError("interrupted");
    if (absl::Status status = cluster.Check(); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<DemoCell> Demo::RunCell(Cluster& cluster, const Workload& workload, size_t config, double rate,
                                       uint64_t seed) {
  DemoCell cell;
  cell.config = plan_.configs[config];
  cell.rate_per_s = rate;
  const Nanos length = plan_.warmup + plan_.DurationAt(rate);
  const absl::StatusOr<Schedule> schedule = Schedule::Poisson(rate, length, seed);
  if (!schedule.ok()) return schedule.status();
  cluster.Activate(config);

  Live live;
  RunOptions options;
  options.targets = {cluster.address(config)};
  options.workload_name = "hdsearch";
  options.warmup = plan_.warmup;
  options.stop = &stop_;
  options.live = &live;
  const Nanos cpu = cluster.mid_tier(config).Cpu();
  const TimePoint start = Now();
  absl::StatusOr<LoadResult> result = [&] {
    const ProgressLine line(&console_, &live, absl::StrFormat("%s at %g/s", cell.config, rate), length);
    return RunOpenLoop(options, workload, *schedule);
  }();
  if (!result.ok()) {
    // A server that died says more than the call that failed.
    if (absl::Status died = cluster.Check(); !died.ok()) return died;
    return result.status();
  }
  const double elapsed = static_cast<double>((Now() - start).count());
  cell.server_cores = static_cast<double>((cluster.mid_tier(config).Cpu() - cpu).count()) / elapsed;
  cell.result = *std::move(result);
  return cell;
}

std::string HintFor(const absl::Status& status, const DemoFlags& flags) {
  if (status.code() == absl::StatusCode::kNotFound && flags.data == "fashion-mnist") {
    return "apt-get install dataset-fashion-mnist, or --data synthetic:N=60000,D=128";
  }
  if (status.code() == absl::StatusCode::kInvalidArgument) return "see curtail demo --help";
  return {};
}

int Finish(const absl::Status& status, const DemoFlags& flags, const Demo& demo, Console& console,
           LogFolder& logs) {
  const bool interrupted = status.code() == absl::StatusCode::kCancelled;
  if (!status.ok() && !interrupted) {
    const absl::StatusCode code = status.code();
    console.Error(std::string(status.message()), HintFor(status, flags));
    if (code == absl::StatusCode::kNotFound || code == absl::StatusCode::kInvalidArgument) return kBadConfig;
    logs.Keep();
    console.Note(absl::StrCat("the logs of the processes are in ", logs.path()));
    return kFailed;
  }
  if (interrupted) console.Print("\nINTERRUPTED: the table is partial\n");
  console.Print(DemoTable(demo.cells(), console));
  if (!flags.json.empty()) {
    const DemoPlan plan{flags.data, flags.k, flags.seed, flags.quick};
    if (absl::Status written = WriteFile(flags.json, DemoJson(plan, demo.cells(), interrupted));
        !written.ok()) {
      console.Error(std::string(written.message()), "free some space, or write elsewhere");
      return kFailed;
    }
    console.Note(absl::StrCat("written: ", flags.json));
  }
  return interrupted ? kInterrupted : kOk;
}

}  // namespace

int RunDemo(const DemoFlags& given, Console& console, const std::atomic<bool>& stop) {
  DemoFlags flags = given;
  if (flags.quick && flags.loads == DemoFlags().loads) flags.loads = kQuickLoads;
  absl::StatusOr<Plan> plan = MakePlan(flags);
  if (!plan.ok()) {
    console.Error(std::string(plan.status().message()), HintFor(plan.status(), flags));
    return kBadConfig;
  }
  const absl::StatusOr<std::string> hdsearch =
      flags.hdsearch.empty() ? FindHdSearch() : absl::StatusOr<std::string>(flags.hdsearch);
  if (!hdsearch.ok()) {
    console.Error(std::string(hdsearch.status().message()),
                  "build it (target hdsearch), or name it with --hdsearch");
    return kBadConfig;
  }
  LogFolder logs;
  if (logs.path().empty()) {
    console.Error("cannot make a folder for logs", "set TMPDIR to a folder that can be written");
    return kFailed;
  }
  console.Print(absl::StrCat(console.Bold("demo"), " ", PlanLine(*plan, flags)));
  Demo demo(flags, *std::move(plan), console, stop);
  return Finish(demo.Run(*hdsearch, logs.path()), flags, demo, console, logs);
}

}  // namespace curtail::tool
