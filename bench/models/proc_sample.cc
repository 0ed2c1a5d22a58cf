// SPDX-License-Identifier: Apache-2.0
#include "proc_sample.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace curtail::models {
namespace {

// The number behind "NAME:" in a status file.
std::optional<uint64_t> Field(std::string_view status, absl::string_view name) {
  for (absl::string_view line : absl::StrSplit(absl::string_view(status.data(), status.size()), '\n')) {
    uint64_t value = 0;
    if (absl::ConsumePrefix(&line, name) && absl::ConsumePrefix(&line, ":") &&
        absl::SimpleAtoi(line, &value)) {
      return value;
    }
  }
  return std::nullopt;
}

// Empty when it cannot be read.
std::string Read(const std::filesystem::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

uint64_t Less(uint64_t after, uint64_t before) { return after > before ? after - before : 0; }

}  // namespace

absl::Status AddThread(std::string_view status, std::string_view schedstat, ProcSample* sample) {
  const std::optional<uint64_t> voluntary = Field(status, "voluntary_ctxt_switches");
  const std::optional<uint64_t> involuntary = Field(status, "nonvoluntary_ctxt_switches");
  if (!voluntary || !involuntary)
    return absl::InvalidArgumentError("a thread's status has no context switches");
  // On the CPU, ready, and how often it ran (Documentation/scheduler/sched-stats.rst).
  const std::vector<absl::string_view> times = absl::StrSplit(
      absl::string_view(schedstat.data(), schedstat.size()), absl::ByAnyChar(" \n"), absl::SkipEmpty());
  uint64_t cpu = 0, runqueue = 0;
  if (times.size() != 3 || !absl::SimpleAtoi(times[0], &cpu) || !absl::SimpleAtoi(times[1], &runqueue)) {
    return absl::InvalidArgumentError("a thread's schedstat is not three numbers");
  }
  ++sample->threads;
  sample->voluntary_switches += *voluntary;
  sample->involuntary_switches += *involuntary;
  sample->cpu_ns += cpu;
  sample->runqueue_ns += runqueue;
  return absl::OkStatus();
}

absl::StatusOr<ProcSample> SampleProcess(pid_t pid) {
  ProcSample sample;
  absl::Status problem;
  std::error_code error;
  const std::string folder = absl::StrCat("/proc/", pid, "/task");
  std::filesystem::directory_iterator task(folder, error);
  for (; !error && task != std::filesystem::directory_iterator(); task.increment(error)) {
    const std::string status = Read(task->path() / "status");
    const std::string schedstat = Read(task->path() / "schedstat");
    if (status.empty() || schedstat.empty()) continue;  // it has ended
    problem.Update(AddThread(status, schedstat, &sample));
  }
  if (!problem.ok()) return problem;
  if (sample.threads == 0) return absl::NotFoundError(absl::StrCat("nothing to read in ", folder));
  return sample;
}

ProcSample Difference(const ProcSample& before, const ProcSample& after) {
  ProcSample d;
  d.threads = after.threads;
  d.voluntary_switches = Less(after.voluntary_switches, before.voluntary_switches);
  d.involuntary_switches = Less(after.involuntary_switches, before.involuntary_switches);
  d.cpu_ns = Less(after.cpu_ns, before.cpu_ns);
  d.runqueue_ns = Less(after.runqueue_ns, before.runqueue_ns);
  return d;
}

}  // namespace curtail::models
