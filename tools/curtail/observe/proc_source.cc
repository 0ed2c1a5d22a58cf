// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tools/curtail/observe/os_source.h"

namespace curtail::tool {
namespace {

// Adds nothing for a thread that has ended meanwhile.
void AddSwitches(const std::filesystem::path& task, OsCounts* into) {
  std::ifstream status(task / "status");
  for (std::string line; std::getline(status, line);) {
    const size_t colon = line.find(':');
    double value = 0;
    if (colon == std::string::npos || !absl::SimpleAtod(line.substr(colon + 1), &value)) continue;
    if (line.starts_with("voluntary_ctxt")) into->counts["switches_voluntary"] += value;
    if (line.starts_with("nonvoluntary_ctxt")) into->counts["switches_involuntary"] += value;
  }
}

class ProcSource final : public OsSource {
 public:
  explicit ProcSource(pid_t pid) : tasks_(absl::StrCat("/proc/", pid, "/task")) {}

  void Read(OsCounts* into) const override {
    std::error_code error;
    bool timed = false;
    std::filesystem::directory_iterator task(tasks_, error);
    for (; !error && task != std::filesystem::directory_iterator(); task.increment(error)) {
      AddSwitches(task->path(), into);
      double cpu_ns = 0, delay_ns = 0, turns = 0;
      if (!(std::ifstream(task->path() / "schedstat") >> cpu_ns >> delay_ns >> turns)) continue;
      timed = true;
      into->counts["cpu_us"] += cpu_ns / 1e3;
      into->counts["run_queue_delay_us"] += delay_ns / 1e3;
      into->counts["run_queue_turns"] += turns;
    }
    if (into->counts.find("switches_voluntary") == into->counts.end()) {
      into->denied["switches"] =
          absl::StrCat(tasks_, " cannot be read: the process has ended, or is another user's");
    } else if (!timed) {
      into->denied["run_queue_delay_us"] = "the kernel has no schedstat (CONFIG_SCHED_INFO)";
    }
  }

 private:
  const std::string tasks_;
};

}  // namespace

std::unique_ptr<OsSource> NewProcSource(pid_t pid) { return std::make_unique<ProcSource>(pid); }

}  // namespace curtail::tool
