// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/observe/observe_command.h"

#include <poll.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "curtail/base/clock.h"
#include "curtail/base/strings.h"
#include "curtail/rpc/admin/admin.pb.h"
#include "tools/curtail/cli/exit_code.h"
#include "tools/curtail/cli/flags.h"
#include "tools/curtail/deploy/admin_client.h"
#include "tools/curtail/deploy/target.h"
#include "tools/curtail/observe/os_source.h"

namespace curtail::tool {
namespace {

constexpr int kSchemaVersion = 1;
constexpr int kLookMs = 100;

// A process, its sources, and what they had counted at the beginning.
struct Observed {
  ProcessState process;
  std::vector<std::unique_ptr<OsSource>> sources;
  OsCounts before;
  std::optional<double> requests_before;
  TimePoint since;
};

// The processes of one service together.
struct ServiceShare {
  int processes = 0;
  double seconds = 0;
  std::optional<double> requests;  // absent: some process does not count them
  OsCounts counts;
};

std::optional<double> RequestsOf(const ProcessState& process) {
  if (process.admin.empty()) return std::nullopt;
  const auto status = AdminClient(process.admin).GetStatus();
  if (!status.ok()) return std::nullopt;
  return static_cast<double>(status->begun());
}

OsCounts ReadAll(const Observed& observed) {
  OsCounts counts;
  for (const auto& source : observed.sources) source->Read(&counts);
  return counts;
}

absl::StatusOr<std::vector<ProcessState>> ProcessesOf(const std::string& target) {
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
    observed.before = ReadAll(observed);
    observed.since = Now();
  }
  return all;
}

void AddTo(const Observed& observed, ServiceShare* share) {
  const OsCounts after = ReadAll(observed);
  share->seconds = std::chrono::duration<double>(Now() - observed.since).count();
  const std::optional<double> requests = RequestsOf(observed.process);
  if (share->processes++ == 0) share->requests = 0;
  if (share->requests && requests && observed.requests_before && *requests >= *observed.requests_before) {
    *share->requests += *requests - *observed.requests_before;
  } else {
    share->requests.reset();
  }
  for (const auto& [name, count] : after.counts) {
    const auto before = observed.before.counts.find(name);
    if (before == observed.before.counts.end()) continue;
    share->counts.counts[name] += std::max(0.0, count - before->second);
  }
  share->counts.denied.insert(after.denied.begin(), after.denied.end());
}

std::string Text(const std::map<std::string, ServiceShare>& services) {
  std::string text;
  for (const auto& [name, share] : services) {
    absl::StrAppendFormat(&text, "%s%s: %d process%s", text.empty() ? "" : "\n", name, share.processes,
                          share.processes == 1 ? "" : "es");
    absl::StrAppend(&text, share.requests
                               ? absl::StrFormat(", %.1f requests/s\n", *share.requests / share.seconds)
                               : ", which do not count requests\n");
    absl::StrAppendFormat(&text, "  %-22s %14s %14s\n", "", "a second", "a request");
    for (const auto& [what, count] : share.counts.counts) {
      const bool each = share.requests && *share.requests > 0;
      absl::StrAppendFormat(&text, "  %-22s %14.1f %14s\n", what, count / share.seconds,
                            each ? absl::StrFormat("%.2f", count / *share.requests) : "-");
    }
    for (const auto& [what, why] : share.counts.denied)
      absl::StrAppendFormat(&text, "  %-22s absent: %s\n", what, why);
  }
  return text;
}

std::string ToJson(const std::string& target, const std::map<std::string, ServiceShare>& services) {
  nlohmann::json all = nlohmann::json::array();
  for (const auto& [name, share] : services) {
    nlohmann::json counts = nlohmann::json::object();
    for (const auto& [what, count] : share.counts.counts) {
      counts[what] = {{"count", count}, {"per_s", count / share.seconds}, {"per_request", nullptr}};
      if (share.requests && *share.requests > 0) counts[what]["per_request"] = count / *share.requests;
    }
    all.push_back({{"service", name},
                   {"processes", share.processes},
                   {"seconds", share.seconds},
                   {"requests", share.requests ? nlohmann::json(*share.requests) : nlohmann::json()},
                   {"counts", std::move(counts)},
                   {"absent", share.counts.denied}});
  }
  const nlohmann::json json = {
      {"schema_version", kSchemaVersion}, {"target", target}, {"services", std::move(all)}};
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

absl::Status Write(const std::string& path, const std::string& text, Console& console) {
  if (path == "-") return console.Deliver(text);
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  return out ? absl::OkStatus() : absl::InternalError(absl::StrCat("cannot write ", path));
}

}  // namespace

int RunObserve(const ObserveFlags& flags, Console& console, const std::atomic<bool>& stop) {
  if (flags.json == "-") console.print_to_stderr();
  if (const absl::Status writable = CheckWritable(flags.json); !writable.ok()) {
    console.Error(std::string(Message(writable)), "");
    return kBadConfig;
  }
  absl::StatusOr<std::vector<ProcessState>> processes = ProcessesOf(flags.target);
  if (!processes.ok()) return AdminFailure(processes.status(), "", console);
  const std::vector<Observed> observed = BeginAll(*std::move(processes));
  if (observed.empty()) {
    console.Error(absl::StrCat(flags.target, " has no process on this machine"), "");
    return kFailed;
  }
  const Deadline end =
      Deadline::In(std::chrono::duration_cast<Nanos>(std::chrono::duration<double>(flags.seconds)));
  while (!end.Expired() && !stop.load(std::memory_order_relaxed)) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end.Remaining());
    poll(nullptr, 0, std::clamp(static_cast<int>(left.count()), 0, kLookMs));  // a signal ends it
  }
  std::map<std::string, ServiceShare> services;
  for (const Observed& each : observed) AddTo(each, &services[each.process.service]);
  console.Print(Text(services));
  if (!flags.json.empty()) {
    if (const absl::Status written = Write(flags.json, ToJson(flags.target, services), console);
        !written.ok()) {
      console.Error(std::string(Message(written)), "");
      return kFailed;
    }
  }
  return stop.load(std::memory_order_relaxed) ? kInterrupted : kOk;
}

}  // namespace curtail::tool
