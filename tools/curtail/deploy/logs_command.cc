// SPDX-License-Identifier: Apache-2.0
//
// `curtail logs`: what the processes of an application wrote.
#include <poll.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "curtail/base/internal/closest.h"
#include "curtail/base/strings.h"
#include "curtail/term/console.h"
#include "curtail/term/exit_code.h"
#include "tools/curtail/deploy/log_tail.h"
#include "tools/curtail/deploy/run_folder.h"
#include "tools/curtail/deploy/target.h"
#include "tools/curtail/term/command.h"

namespace curtail::tool {
namespace {

struct LogsFlags {
  std::string application;  // or "APP/PROCESS"
  std::string process;      // as target.h understands it; empty: all
  bool follow = false;
  int tail = 100;  // lines of each
};

constexpr int kFollowMs = 100;

// Adds those that are asked for. Returns the names of all.
std::vector<std::string> FindNew(const LogsFlags& flags, std::map<std::string, LogTail>* logs) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(RunFolderOf(flags.application), error)) {
    if (entry.path().extension() != ".log" || entry.path().stem() == "memory") continue;
    names.push_back(entry.path().stem());
  }
  std::sort(names.begin(), names.end());
  const std::string asked = InstanceMeant(flags.process, names);
  for (const std::string& name : names) {
    if (!asked.empty() && !NamesProcess(asked, name)) continue;
    logs->try_emplace(name, RunFolderOf(flags.application) + "/" + name + ".log");
  }
  return names;
}

int NoLogs(const LogsFlags& flags, const std::vector<std::string>& names, Console& console) {
  if (!names.empty()) {
    console.Error(absl::StrCat(flags.application, " has no log of ", flags.process, "; there are ",
                               absl::StrJoin(names, ", "), internal::DidYouMean(flags.process, names)),
                  "");
  } else if (IsUp(flags.application)) {
    console.Error(absl::StrCat(flags.application, " has no logs yet"),
                  "its processes are starting; try again in a moment");
  } else {
    console.Error(absl::StrCat("there are no logs: ", std::string(Message(NotUp(flags.application)))), "");
  }
  return kBadConfig;
}

// Also of an application that is no longer up. Returns the exit code.
int RunLogs(const LogsFlags& given, Console& console, const std::atomic<bool>& stop) {
  LogsFlags flags = given;
  if (const size_t slash = flags.application.find('/'); slash != std::string::npos && flags.process.empty()) {
    flags.process = flags.application.substr(slash + 1);
    flags.application.resize(slash);
  }
  std::map<std::string, LogTail> logs;
  const std::vector<std::string> names = FindNew(flags, &logs);
  if (logs.empty()) return NoLogs(flags, names, console);
  const auto print = [&](size_t last, bool end) {
    for (auto& [name, log] : logs) {
      for (const std::string& line : log.Take(last, end))
        console.Print(absl::StrCat(name, " | ", line, "\n"));
    }
    fflush(stdout);
  };
  bool follow = flags.follow && IsUp(flags.application);
  print(static_cast<size_t>(std::max(flags.tail, 1)), !follow);
  while (follow && !stop.load(std::memory_order_relaxed)) {
    poll(nullptr, 0, kFollowMs);
    follow = IsUp(flags.application);  // if not, nothing more comes after this look
    FindNew(flags, &logs);
    print(0, !follow);
  }
  return kOk;
}

}  // namespace

Command AddLogs(CLI::App& app) {
  const auto f = std::make_shared<LogsFlags>();
  CLI::App* command = app.add_subcommand("logs", "What the processes of an application wrote");
  command->add_option("APP", f->application, "Its name, or APP/PROCESS")->required();
  command->add_option("PROCESS", f->process, "A process (leaf-0), or a service (leaf); all by default");
  command->add_flag("-f,--follow", f->follow, "Wait for more, until it is down or Ctrl-C");
  command->add_option("-n,--tail", f->tail, "Lines of each process at most")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  command->footer("Example: curtail logs router leaf -f");
  return {command, [f](const Invocation& given) { return RunLogs(*f, given.console, given.stop); }};
}

}  // namespace curtail::tool
