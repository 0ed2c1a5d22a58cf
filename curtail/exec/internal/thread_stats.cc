// SPDX-License-Identifier: Apache-2.0
#include "curtail/exec/internal/thread_stats.h"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "curtail/base/strings.h"

namespace curtail {
namespace {

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream in(path);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

// The number that follows `label` in `text`, 0 without.
uint64_t NumberAfter(std::string_view text, std::string_view label) {
  size_t at = label.empty() ? 0 : text.find(label);
  if (at == std::string_view::npos) return 0;
  at = text.find_first_not_of(" \t\n", at + label.size());
  if (at == std::string_view::npos) return 0;
  uint64_t value = 0;
  std::from_chars(text.data() + at, text.data() + text.size(), value);
  return value;
}

}  // namespace

namespace internal {

void AddThreadStats(std::string_view status, std::string_view schedstat, ThreadStats* stats) {
  ++stats->threads;
  stats->voluntary_switches += NumberAfter(status, "\nvoluntary_ctxt_switches:");
  stats->involuntary_switches += NumberAfter(status, "\nnonvoluntary_ctxt_switches:");
  // Running time, waiting time, time slices.
  stats->cpu += Nanos(NumberAfter(schedstat, ""));
  const size_t second = schedstat.find(' ');
  if (second != std::string_view::npos) stats->run_delay += Nanos(NumberAfter(schedstat.substr(second), ""));
}

}  // namespace internal

ThreadStats ThreadStats::Since(const ThreadStats& before) const {
  const auto less = [](auto after, auto earlier) {
    return after > earlier ? after - earlier : after - after;
  };
  return {.threads = threads,
          .voluntary_switches = less(voluntary_switches, before.voluntary_switches),
          .involuntary_switches = less(involuntary_switches, before.involuntary_switches),
          .cpu = less(cpu, before.cpu),
          .run_delay = less(run_delay, before.run_delay)};
}

absl::StatusOr<ThreadStats> ReadThreadStats(const std::string& pid) {
  ThreadStats stats;
  std::error_code error;
  std::filesystem::directory_iterator tasks(Join("/proc/", pid, "/task"), error);
  if (error) return absl::NotFoundError(Join("no process ", pid));
  for (; !error && tasks != std::filesystem::directory_iterator(); tasks.increment(error)) {
    const std::string status = ReadFile(tasks->path() / "status");
    if (status.empty()) continue;  // it has ended meanwhile
    internal::AddThreadStats(status, ReadFile(tasks->path() / "schedstat"), &stats);
  }
  return stats;
}

}  // namespace curtail
