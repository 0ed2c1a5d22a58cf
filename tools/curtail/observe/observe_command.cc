// SPDX-License-Identifier: Apache-2.0
//
// `curtail observe`: the operating system's share of each service, for some seconds.
#include <poll.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "curtail/base/clock.h"
#include "curtail/base/histogram.h"
#include "curtail/base/internal/output_path.h"
#include "curtail/base/strings.h"
#include "curtail/deploy/admin_client.h"
#include "curtail/rpc/admin/admin.pb.h"
#include "curtail/term/console.h"
#include "curtail/term/exit_code.h"
#include "tools/curtail/deploy/admin_failure.h"
#include "tools/curtail/deploy/target.h"
#include "tools/curtail/observe/os_source.h"
#include "tools/curtail/observe/service_share.h"
#include "tools/curtail/observe/wakeup_trace.h"
#include "tools/curtail/term/command.h"
#include "tools/curtail/term/flags.h"
#include "tools/curtail/term/validators.h"

namespace curtail::tool {
namespace {

struct ObserveFlags {
  std::string target;  // APP, APP/SERVICE or APP/SERVICE.INSTANCE
  double seconds = 10;
  std::string json;  // "-": the standard output; else a path; empty: none
};

constexpr int kObserveSchemaVersion = 1;
constexpr int kLookMs = 100;
constexpr int kBarColumns = 40;

// A process, its sources, and what they had counted at the beginning.
struct Observed {
  ProcessState process;
  std::vector<std::unique_ptr<OsSource>> sources;
  std::unique_ptr<WakeupTrace> wakeups;  // null: `no_wakeups` says why
  std::string no_wakeups;
  OsCounts before;
  std::optional<double> requests_before;
  TimePoint since;
};

std::optional<double> RequestsOf(const ProcessState& process) {
  if (process.admin.empty()) return std::nullopt;
  const auto status = deploy::AdminClient(process.admin).GetStatus();
  if (!status.ok()) return std::nullopt;
  return static_cast<double>(status->begun());
}

OsCounts ReadAll(const Observed& observed) {
  OsCounts counts;
  for (const auto& source : observed.sources) source->Read(&counts);
  return counts;
}

absl::StatusOr<std::vector<ProcessState>> ProcessesOf(const std::string& target) {
  if (IsAddress(target))
    return absl::InvalidArgumentError("observe takes an application that is up, not an address");
  if (target.find('/') != std::string::npos) return FindProcesses(target);
  absl::StatusOr<UpState> state = ReadUpState(target);
  if (!state.ok()) return state.status();
  return state->processes;
}

std::vector<Observed> BeginAll(std::vector<ProcessState> processes) {
  std::vector<Observed> all;
  for (ProcessState& process : processes) {
    if (process.pid <= 0) continue;  // it runs elsewhere, or waits to be started again
    Observed& observed = all.emplace_back();
    observed.process = std::move(process);
    observed.sources.push_back(NewProcSource(observed.process.pid));
    observed.sources.push_back(NewPerfSource(observed.process.pid));
    observed.requests_before = RequestsOf(observed.process);
    observed.wakeups = WakeupTrace::Start(observed.process.pid, &observed.no_wakeups);
    observed.before = ReadAll(observed);
    observed.since = Now();
  }
  return all;
}

void AddTo(const Observed& observed, ServiceShare* share) {
  const OsCounts now = ReadAll(observed);
  share->AddCounts(observed.before, now, std::chrono::duration<double>(Now() - observed.since).count());
  const std::optional<double> before = observed.requests_before, after = RequestsOf(observed.process);
  share->AddRequests(before && after && *after >= *before ? std::optional(*after - *before) : std::nullopt);
  if (observed.wakeups == nullptr) {
    share->DenyWakeups(observed.no_wakeups);
  } else {
    share->AddWakeups(observed.wakeups->latencies(), observed.wakeups->lost());
  }
}

// Counts of latencies by powers of two.
struct LatencyBand {
  double below_us;
  uint64_t count;
};
std::vector<LatencyBand> Bands(const Histogram& latencies) {
  std::vector<LatencyBand> bands;
  for (const Histogram::Bucket& bucket : latencies.Buckets()) {
    const double us = std::max(1.0, static_cast<double>(bucket.low.count()) / 1e3);
    const double below = std::exp2(std::floor(std::log2(us)) + 1);
    if (bands.empty() || bands.back().below_us < below) bands.push_back({below, 0});
    bands.back().count += bucket.count;
  }
  return bands;
}

double PercentileUs(const Histogram& latencies, double percent) {
  return static_cast<double>(latencies.Percentile(percent).count()) / 1e3;
}

std::string LatencyText(const ServiceShare& share) {
  const Histogram& latencies = share.wakeup_latency();
  if (latencies.empty()) return "";
  std::string text = absl::StrFormat(
      "  %-22s p50 %.1f us, p90 %.1f, p99 %.1f, p99.9 %.1f, max %.1f, of %d wake-ups\n", kWakeupLatency,
      PercentileUs(latencies, 50), PercentileUs(latencies, 90), PercentileUs(latencies, 99),
      PercentileUs(latencies, 99.9), static_cast<double>(latencies.max().count()) / 1e3, latencies.count());
  for (const LatencyBand& band : Bands(latencies)) {
    const double part = static_cast<double>(band.count) / static_cast<double>(latencies.count());
    absl::StrAppendFormat(&text, "  %20s us %7.2f %%  %s\n", absl::StrFormat("< %.0f", band.below_us),
                          100 * part, std::string(static_cast<size_t>(std::lround(kBarColumns * part)), '#'));
  }
  if (share.events_lost() > 0) {
    absl::StrAppendFormat(&text, "  %d events of the scheduler found no room and were lost\n",
                          share.events_lost());
  }
  return text;
}

nlohmann::json LatencyJson(const ServiceShare& share) {
  const Histogram& latencies = share.wakeup_latency();
  if (latencies.empty()) return nullptr;
  nlohmann::json bands = nlohmann::json::array();
  for (const LatencyBand& band : Bands(latencies))
    bands.push_back({{"below_us", band.below_us}, {"count", band.count}});
  return {{"count", latencies.count()},
          {"p50_us", PercentileUs(latencies, 50)},
          {"p90_us", PercentileUs(latencies, 90)},
          {"p99_us", PercentileUs(latencies, 99)},
          {"p999_us", PercentileUs(latencies, 99.9)},
          {"max_us", static_cast<double>(latencies.max().count()) / 1e3},
          {"events_lost", share.events_lost()},
          {"bands", std::move(bands)}};
}

// Until the time is over, or a signal comes.
void Watch(std::vector<Observed>& observed, Nanos time, const std::atomic<bool>& stop) {
  std::vector<pollfd> polled;
  for (const Observed& each : observed) {
    if (each.wakeups != nullptr) each.wakeups->AppendTo(&polled);
  }
  const Deadline end = Deadline::In(time);
  while (!end.Expired() && !stop.load(std::memory_order_relaxed)) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end.Remaining());
    poll(polled.data(), polled.size(), std::clamp(static_cast<int>(left.count()), 0, kLookMs));
    for (Observed& each : observed) {
      if (each.wakeups != nullptr) each.wakeups->Read();
    }
  }
}

std::string Text(const std::map<std::string, ServiceShare>& services) {
  std::string text;
  for (const auto& [name, share] : services) {
    absl::StrAppendFormat(&text, "%s%s: %d process%s", text.empty() ? "" : "\n", name, share.processes(),
                          share.processes() == 1 ? "" : "es");
    absl::StrAppend(&text, share.requests()
                               ? absl::StrFormat(", %.1f requests/s\n", *share.requests() / share.seconds())
                               : ", which do not count requests\n");
    absl::StrAppendFormat(&text, "  %-22s %14s %14s\n", "", "a second", "a request");
    for (const auto& [what, count] : share.counts().counts) {
      const bool each = share.requests() && *share.requests() > 0;
      absl::StrAppendFormat(&text, "  %-22s %14.1f %14s\n", what, count / share.seconds(),
                            each ? absl::StrFormat("%.2f", count / *share.requests()) : "-");
    }
    absl::StrAppend(&text, LatencyText(share));
    for (const auto& [what, why] : share.counts().denied)
      absl::StrAppendFormat(&text, "  %-22s absent: %s\n", what, why);
  }
  return text;
}

std::string ToJson(const std::string& target, const std::map<std::string, ServiceShare>& services) {
  nlohmann::json all = nlohmann::json::array();
  for (const auto& [name, share] : services) {
    nlohmann::json counts = nlohmann::json::object();
    for (const auto& [what, count] : share.counts().counts) {
      counts[what] = {{"count", count}, {"per_s", count / share.seconds()}, {"per_request", nullptr}};
      if (share.requests() && *share.requests() > 0) counts[what]["per_request"] = count / *share.requests();
    }
    all.push_back({{"service", name},
                   {"processes", share.processes()},
                   {"seconds", share.seconds()},
                   {"requests", share.requests() ? nlohmann::json(*share.requests()) : nlohmann::json()},
                   {"counts", std::move(counts)},
                   {kWakeupLatency, LatencyJson(share)},
                   {"absent", share.counts().denied}});
  }
  const nlohmann::json json = {
      {"schema_version", kObserveSchemaVersion}, {"target", target}, {"services", std::move(all)}};
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

// Counts switches, wake-ups, system calls and the rest of os_source.h while the application serves, and prints them a
// second and a request. Ends early when `stop` is set. Returns the exit code.
int RunObserve(const ObserveFlags& flags, Console& console, const std::atomic<bool>& stop) {
  if (internal::IsStdout(flags.json)) console.print_to_stderr();
  if (const absl::Status writable = CheckWritable(flags.json); !writable.ok()) {
    console.Error(std::string(Message(writable)), "");
    return kBadConfig;
  }
  absl::StatusOr<std::vector<ProcessState>> processes = ProcessesOf(flags.target);
  if (!processes.ok()) return LookFailure(processes.status(), console);
  std::vector<Observed> observed = BeginAll(*std::move(processes));
  if (observed.empty()) {
    console.Error(absl::StrCat(flags.target, " has no process on this machine"),
                  "curtail ps lists what is up");
    return kFailed;
  }
  Watch(observed, FromSeconds(flags.seconds), stop);
  std::map<std::string, ServiceShare> services;
  for (const Observed& each : observed) AddTo(each, &services[each.process.service]);
  console.Print(Text(services));
  if (!flags.json.empty()) {
    const absl::Status written = console.DeliverTo(flags.json, ToJson(flags.target, services));
    if (!written.ok()) {
      console.Error(std::string(Message(written)), "");
      return kFailed;
    }
  }
  return stop.load(std::memory_order_relaxed) ? kInterrupted : kOk;
}

}  // namespace

Command AddObserve(CLI::App& app) {
  const auto f = std::make_shared<ObserveFlags>();
  CLI::App* command = app.add_subcommand(
      "observe", "The operating system's share: switches, wake-ups, system calls, a second and a request");
  command->add_option("TARGET", f->target, "APP, APP/SERVICE or APP/SERVICE.INSTANCE of what is up")
      ->required();
  command->add_option("--seconds", f->seconds, "For so long")
      ->check(Between(0.1, 86400))
      ->capture_default_str();
  command->add_option("--json", f->json, "Write the result here as JSON; - is the standard output");
  command->footer(
      "Examples:\n  curtail observe hdsearch\n  curtail observe hdsearch/leaf --seconds 5 --json -");
  return {command, [f](const Invocation& given) { return RunObserve(*f, given.console, given.stop); }};
}

}  // namespace curtail::tool
