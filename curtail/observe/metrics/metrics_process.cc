// SPDX-License-Identifier: Apache-2.0
#include "curtail/observe/metrics/metrics_process.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "curtail/base/strings.h"

namespace curtail::observe {
namespace {

namespace fs = std::filesystem;

std::string ReadSmallFile(const fs::path& path) {
  std::ifstream in(path);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

uint64_t ToNumber(std::string_view text) {
  uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// The number behind `label`, which begins a line of `text`; 0 without.
uint64_t NumberBehind(std::string_view label, std::string_view text) {
  const size_t at = text.find(Join("\n", label));
  if (at == std::string_view::npos) return 0;
  text.remove_prefix(at + 1 + label.size());
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  return ToNumber(text);
}

Nanos ToNanos(const timeval& time) {
  return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
}

// Of the machine, in seconds since 1970.
uint64_t BootTime() { return NumberBehind("btime ", ReadSmallFile("/proc/stat")); }

}  // namespace

std::vector<std::string_view> FieldsAfterName(std::string_view stat) {
  std::vector<std::string_view> fields;
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string_view::npos) return fields;
  stat.remove_prefix(name_end + 1);
  while (true) {
    stat.remove_prefix(std::min(stat.find_first_not_of(" \n"), stat.size()));
    if (stat.empty()) return fields;
    fields.push_back(stat.substr(0, stat.find_first_of(" \n")));
    stat.remove_prefix(fields.back().size());
  }
}

ProcessUsage ReadProcessUsage() {
  ProcessUsage usage;
  rusage counts = {};
  getrusage(RUSAGE_SELF, &counts);
  usage.user_cpu = ToNanos(counts.ru_utime);
  usage.system_cpu = ToNanos(counts.ru_stime);
  usage.voluntary_switches = static_cast<uint64_t>(counts.ru_nvcsw);
  usage.involuntary_switches = static_cast<uint64_t>(counts.ru_nivcsw);
  const std::string stat = ReadSmallFile("/proc/self/stat");
  const std::vector<std::string_view> fields = FieldsAfterName(stat);
  // proc(5) counts from the process id, 1; the state is its field 3.
  constexpr size_t kThreads = 20 - 3, kStart = 22 - 3, kVirtual = 23 - 3, kResident = 24 - 3;
  if (fields.size() <= kResident) return usage;
  usage.threads = static_cast<int>(ToNumber(fields[kThreads]));
  usage.virtual_bytes = ToNumber(fields[kVirtual]);
  usage.resident_bytes = ToNumber(fields[kResident]) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  // Constant for the life of the machine.
  static const uint64_t boot_time = BootTime();
  if (boot_time == 0) return usage;
  usage.start_time_s = static_cast<double>(boot_time) + static_cast<double>(ToNumber(fields[kStart])) /
                                                            static_cast<double>(sysconf(_SC_CLK_TCK));
  return usage;
}

std::vector<ThreadUsage> ReadThreadUsages() {
  std::vector<ThreadUsage> threads;
  std::error_code error;
  fs::directory_iterator tasks("/proc/self/task", error);
  for (; !error && tasks != fs::directory_iterator(); tasks.increment(error)) {
    const std::string status = ReadSmallFile(tasks->path() / "status");
    if (status.empty()) continue;  // it has ended meanwhile
    ThreadUsage& thread = threads.emplace_back();
    thread.id = static_cast<int64_t>(ToNumber(tasks->path().filename().native()));
    thread.name = ReadSmallFile(tasks->path() / "comm");
    while (thread.name.ends_with('\n')) thread.name.pop_back();
    const size_t state = status.find("\nState:\t");
    if (state != std::string::npos && state + 8 < status.size()) thread.state = status[state + 8];
    thread.voluntary_switches = NumberBehind("voluntary_ctxt_switches:", status);
    thread.involuntary_switches = NumberBehind("nonvoluntary_ctxt_switches:", status);
    const std::string times = ReadSmallFile(tasks->path() / "schedstat");
    thread.cpu = Nanos(ToNumber(times));
    const size_t second = times.find(' ');
    if (second != std::string::npos) {
      thread.run_delay = Nanos(ToNumber(std::string_view(times).substr(second + 1)));
    }
  }
  std::sort(threads.begin(), threads.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  return threads;
}

}  // namespace curtail::observe
