// SPDX-License-Identifier: Apache-2.0
#include "curtail/deploy/process/process_usage.h"

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace curtail::deploy {
namespace {

int OpenCounter(pid_t pid, uint32_t type, uint64_t what, bool user, bool kernel) {
  perf_event_attr attributes{};
  attributes.size = sizeof(attributes);
  attributes.type = type;
  attributes.config = what;
  attributes.inherit = 1;
  attributes.exclude_user = !user;
  attributes.exclude_kernel = !kernel;
  attributes.exclude_hv = 1;
  return static_cast<int>(syscall(SYS_perf_event_open, &attributes, pid, -1, -1, PERF_FLAG_FD_CLOEXEC));
}

std::optional<double> ReadCounter(int counter) {
  uint64_t value = 0;
  if (counter < 0 || read(counter, &value, sizeof(value)) != sizeof(value)) return std::nullopt;
  return static_cast<double>(value);
}

// proc_pid_stat(5): field 14 is utime, 15 stime.
void ReadTicks(pid_t pid, ProcessUsage* usage) {
  std::ifstream in(absl::StrCat("/proc/", pid, "/stat"));
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  const size_t name_end = text.rfind(')');  // the name may hold spaces
  if (name_end == std::string::npos) return;
  std::istringstream fields(text.substr(name_end + 1));
  std::string skipped;
  for (int field = 3; field < 14; ++field) fields >> skipped;
  fields >> usage->user_ticks >> usage->system_ticks;
}

// The sum of the numbers in those lines of a file of /proc, "Name:  1 kB", whose names contain `name`.
double SumIn(const std::filesystem::path& file, absl::string_view name) {
  std::ifstream in(file);
  double sum = 0;
  for (std::string line; std::getline(in, line);) {
    const absl::string_view value = absl::StripSuffix(line, " kB");
    double number = 0;
    const size_t colon = value.find(':');
    if (absl::StrContains(line, name) && absl::SimpleAtod(value.substr(colon + 1), &number)) sum += number;
  }
  return sum;
}

double SwitchesOfThreads(pid_t pid) {
  double total = 0;
  std::error_code ignored;
  for (const auto& task : std::filesystem::directory_iterator(absl::StrCat("/proc/", pid, "/task"), ignored))
    total += SumIn(task.path() / "status", "ctxt_switches");
  return total;
}

}  // namespace

Nanos CpuOf(pid_t pid) {
  clockid_t clock;
  timespec time{};
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0) return Nanos::zero();
  return std::chrono::seconds(time.tv_sec) + Nanos(time.tv_nsec);
}

double ResidentMib(pid_t pid) {
  std::ifstream statm(absl::StrCat("/proc/", pid, "/statm"));
  double size = 0, resident = 0;
  statm >> size >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

double PeakResidentMib(pid_t pid) { return SumIn(absl::StrCat("/proc/", pid, "/status"), "VmHWM") / 1024; }

ProcessCounters::~ProcessCounters() {
  for (const int counter : {user_instructions_, kernel_instructions_, context_switches_}) {
    if (counter >= 0) close(counter);
  }
}

void ProcessCounters::Attach(pid_t pid) {
  user_instructions_ = OpenCounter(pid, PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, true, false);
  kernel_instructions_ = OpenCounter(pid, PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, false, true);
  context_switches_ = OpenCounter(pid, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, true, true);
}

ProcessUsage ProcessCounters::Read(pid_t pid) const {
  ProcessUsage usage;
  usage.cpu_us = static_cast<double>(CpuOf(pid).count()) / 1e3;
  ReadTicks(pid, &usage);
  usage.resident_mib = ResidentMib(pid);
  const std::optional<double> switches = ReadCounter(context_switches_);
  usage.context_switches = switches ? *switches : SwitchesOfThreads(pid);
  usage.user_instructions = ReadCounter(user_instructions_);
  usage.kernel_instructions = ReadCounter(kernel_instructions_);
  return usage;
}

}  // namespace curtail::deploy
