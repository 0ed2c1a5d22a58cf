// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/observe/vitals.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <system_error>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "curtail/base/strings.h"
#include "curtail/deploy/deployment.h"
#include "curtail/deploy/process/process_usage.h"
#include "tools/curtail/observe/page_reader.h"

namespace curtail::tool {
namespace {

constexpr Nanos kPagesTime = std::chrono::milliseconds(500);
constexpr int64_t kProblemShownMs = 10'000;  // a process may be back before it was seen to be gone

// Of health checks, reflection and the admin interface: none of the application's calls.
bool IsOwn(std::string_view service) {
  return service.starts_with("grpc.") || service.starts_with("curtail.admin.");
}

void ReadResources(ProcessVitals* of) {
  const pid_t pid = of->process.pid;
  if (pid <= 0) return;
  std::error_code error;
  const std::filesystem::directory_iterator tasks(absl::StrCat("/proc/", pid, "/task"), error);
  if (error) return;
  of->threads = static_cast<int>(std::distance(begin(tasks), end(tasks)));
  of->cpu_s = InSeconds(deploy::CpuOf(pid));
  of->resident_mib = deploy::ResidentMib(pid);
}

int64_t UnixMs() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

void AddProblem(const ProcessVitals& of, ServiceVitals* service) {
  const ProcessState& process = of.process;
  const bool recent = !process.problem.empty() && UnixMs() - process.problem_unix_ms < kProblemShownMs;
  if (of.ready() && !recent) return;
  // The state is as `curtail up` last saw it: a process that is stopped is "ready" still.
  const bool silent =
      process.state == deploy::StateName(deploy::Instance::State::kReady) && !of.error.empty();
  std::string text = silent ? absl::StrCat(process.name, " does not answer: ", of.error)
                            : absl::StrCat(process.name, " is ", process.state, of.ready() ? " again" : "");
  if (!process.problem.empty())
    absl::StrAppend(&text, ": it ", process.problem.substr(0, process.problem.find('\n')));
  if (!of.error.empty() && !silent) absl::StrAppend(&text, ": ", of.error);
  service->problems.push_back(std::move(text));
}

void AddTo(std::optional<double>* sum, double value) { *sum = sum->value_or(0) + value; }

// Adds a sample of the family whose names begin with `family`.
void AddSample(const MetricSample& sample, std::string_view family, CallCounts* counts) {
  const std::string_view kind = sample.name.substr(family.size());
  if (kind == "calls_total") {
    counts->calls += sample.value;
    if (sample.Label("rpc_response_status_code") != "OK") counts->errors += sample.value;
  } else if (kind == "duration_seconds_sum") {
    counts->seconds += sample.value;
  } else if (kind == "duration_seconds_bucket") {
    if (const auto bound = BoundOf(sample)) counts->durations[*bound] += sample.value;
  }
}

// True if `address` is one of those that a target lists.
bool Lists(std::string_view target, std::string_view address) {
  const size_t at = address.empty() ? target.npos : target.find(address);
  if (at == target.npos) return false;
  const std::string_view after = target.substr(at + address.size());
  return (at == 0 || target[at - 1] == ',' || target[at - 1] == ':' || target[at - 1] == '/') &&
         (after.empty() || after.front() == ',');
}

std::string CalleeOf(const ApplicationVitals& vitals, const std::string& target) {
  for (const ProcessVitals& of : vitals.processes) {
    if (Lists(target, of.process.address)) return of.process.service;
    // Of a service that scales, callers read the addresses of its instances.
    if (target.starts_with("file:") && target.ends_with(deploy::RegisteredAt("", of.process.service)))
      return of.process.service;
  }
  return target;
}

// Sums over the processes of a service.
struct Sum {
  ServiceVitals service;
  std::set<std::string> configs;
  CumulatedBuckets durations;
  double calls = 0, seconds = 0;
  double begun = 0, queue_wait_s = 0;
};

void AddRates(const ProcessVitals& before, const ProcessVitals& now, Sum* sum) {
  ServiceVitals& service = sum->service;
  const double seconds = InSeconds(now.at - before.at);
  if (seconds <= 0 || before.process.pid != now.process.pid) return;
  if (before.threads && now.threads) AddTo(&service.cpus, std::max(0.0, now.cpu_s - before.cpu_s) / seconds);
  if (!before.counted || !now.counted || now.calls.calls < before.calls.calls) return;
  AddTo(&service.calls_per_s, (now.calls.calls - before.calls.calls) / seconds);
  AddTo(&service.errors_per_s, std::max(0.0, now.calls.errors - before.calls.errors) / seconds);
  for (const auto& [bound, count] : Since(before.calls.durations, now.calls.durations)) {
    sum->durations[bound] += count;
  }
  sum->calls += now.calls.calls - before.calls.calls;
  sum->seconds += std::max(0.0, now.calls.seconds - before.calls.seconds);
  sum->begun += now.begun - before.begun;
  sum->queue_wait_s += now.queue_wait_s - before.queue_wait_s;
}

void Add(const ProcessVitals* before, const ProcessVitals& now, Sum* sum) {
  ServiceVitals& service = sum->service;
  ++service.processes;
  service.ready += now.ready() ? 1 : 0;
  service.restarts += now.process.restarts;
  AddProblem(now, &service);
  if (now.counted) {
    AddTo(&service.queued, now.queued);
    sum->configs.insert(now.config);
  }
  if (now.threads) {
    AddTo(&service.threads, *now.threads);
    AddTo(&service.resident_mib, now.resident_mib);
  }
  if (before != nullptr) AddRates(*before, now, sum);
}

ServiceVitals Finish(Sum sum) {
  ServiceVitals& service = sum.service;
  service.config = absl::StrJoin(sum.configs, ",");
  service.p50_s = Quantile(sum.durations, 0.5);
  service.p99_s = Quantile(sum.durations, 0.99);
  if (sum.calls > 0) service.mean_s = sum.seconds / sum.calls;
  if (sum.begun > 0) service.queue_wait_s = sum.queue_wait_s / sum.begun;
  return std::move(service);
}

}  // namespace

bool ProcessVitals::ready() const {
  if (process.state == deploy::StateName(deploy::Instance::State::kExternal)) return true;
  return process.state == deploy::StateName(deploy::Instance::State::kReady) && error.empty();
}

void ReadCounts(const std::string& metrics, ProcessVitals* into) {
  into->counted = true;
  for (const MetricSample& sample : ReadMetrics(metrics)) {
    if (sample.name == "curtail_config_info") into->config = sample.Label("config");
    if (sample.name == "curtail_queue_requests") into->queued = sample.value;
    if (sample.name == "curtail_queue_begun_total") into->begun = sample.value;
    if (sample.name == "curtail_queue_wait_seconds_total") into->queue_wait_s = sample.value;
    if (sample.name.starts_with("rpc_server_") && !IsOwn(sample.Label("rpc_service"))) {
      AddSample(sample, "rpc_server_", &into->calls);
    } else if (sample.name.starts_with("rpc_client_")) {
      AddSample(sample, "rpc_client_", &into->edges[std::string(sample.Label("server_address"))]);
    }
  }
}

absl::StatusOr<ApplicationVitals> LookAt(const std::string& application, const std::atomic<bool>& stop) {
  absl::StatusOr<UpState> state = ReadUpState(application);
  if (!state.ok()) return state.status();
  ApplicationVitals vitals{.application = state->application, .started_unix_ms = state->started_unix_ms};
  std::vector<PageWanted> wanted;
  for (ProcessState& process : state->processes) {
    ProcessVitals& of = vitals.processes.emplace_back();
    of.process = std::move(process);
    if (of.process.http_admin.empty() || of.process.pid <= 0) continue;
    wanted.push_back({of.process.http_admin, "/metrics"});
  }
  const auto pages = ReadPages(wanted, Deadline::In(kPagesTime), &stop);
  size_t next = 0;
  for (ProcessVitals& of : vitals.processes) {
    ReadResources(&of);
    of.at = Now();
    if (of.process.http_admin.empty() || of.process.pid <= 0) continue;
    const absl::StatusOr<std::string>& page = pages[next++];
    if (page.ok()) {
      ReadCounts(*page, &of);
    } else {
      of.error = std::string(Message(page.status()));
    }
  }
  return vitals;
}

std::vector<ServiceVitals> Compare(const ApplicationVitals& before, const ApplicationVitals& now) {
  std::map<std::string, const ProcessVitals*> earlier;
  for (const ProcessVitals& of : before.processes) earlier[of.process.name] = &of;
  std::map<std::string, Sum> sums;
  for (const ProcessVitals& of : now.processes) {
    Sum& sum = sums[of.process.service];
    sum.service.name = of.process.service;
    const auto found = earlier.find(of.process.name);
    Add(found == earlier.end() ? nullptr : found->second, of, &sum);
  }
  std::vector<ServiceVitals> services;
  for (auto& [name, sum] : sums) services.push_back(Finish(std::move(sum)));
  return services;
}

std::vector<EdgeVitals> CompareEdges(const ApplicationVitals& before, const ApplicationVitals& now) {
  std::map<std::string, const ProcessVitals*> earlier;
  for (const ProcessVitals& of : before.processes) earlier[of.process.name] = &of;
  struct EdgeSum {
    EdgeVitals edge;
    CumulatedBuckets durations;
  };
  std::map<std::pair<std::string, std::string>, EdgeSum> sums;
  for (const ProcessVitals& of : now.processes) {
    const auto was = earlier.find(of.process.name);
    const double seconds = was == earlier.end() ? 0 : InSeconds(of.at - was->second->at);
    for (const auto& [target, counts] : of.edges) {
      EdgeSum& sum = sums[{of.process.service, CalleeOf(now, target)}];
      if (seconds <= 0 || was->second->process.pid != of.process.pid || !was->second->counted) continue;
      const auto found = was->second->edges.find(target);
      const CallCounts none, &past = found == was->second->edges.end() ? none : found->second;
      AddTo(&sum.edge.calls_per_s, std::max(0.0, counts.calls - past.calls) / seconds);
      AddTo(&sum.edge.errors_per_s, std::max(0.0, counts.errors - past.errors) / seconds);
      for (const auto& [bound, count] : Since(past.durations, counts.durations))
        sum.durations[bound] += count;
    }
  }
  std::vector<EdgeVitals> edges;
  for (auto& [names, sum] : sums) {
    std::tie(sum.edge.caller, sum.edge.callee) = names;
    sum.edge.p50_s = Quantile(sum.durations, 0.5);
    sum.edge.p99_s = Quantile(sum.durations, 0.99);
    edges.push_back(std::move(sum.edge));
  }
  return edges;
}

}  // namespace curtail::tool
