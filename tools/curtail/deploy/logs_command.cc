// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/deploy/logs_command.h"

#include <poll.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/curtail/cli/exit_code.h"
#include "tools/curtail/deploy/run_folder.h"

namespace curtail::tool {
namespace {

constexpr int kFollowMs = 100;

// Whether `name` is asked for: itself, its service ("leaf" for "leaf-0"), or all.
bool Matches(const std::string& name, const std::string& asked) {
  return asked.empty() || name == asked || name.starts_with(asked + "-");
}

// One log that is read from where it was left.
struct Log {
  std::string name;
  std::string path;
  std::streamoff at = 0;

  // The whole lines that have come since the last look, at the end also one that was not finished; at most `last` of
  // them unless 0.
  std::deque<std::string> Take(size_t last, bool end) {
    std::deque<std::string> lines;
    std::ifstream in(path, std::ios::binary);
    in.seekg(at);
    for (std::string line; std::getline(in, line) && (end || !in.eof());) {
      at += static_cast<std::streamoff>(line.size()) + (in.eof() ? 0 : 1);
      lines.push_back(std::move(line));
      if (last > 0 && lines.size() > last) lines.pop_front();
    }
    return lines;
  }
};

void FindNew(const LogsFlags& flags, std::map<std::string, Log>* logs) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(RunFolderOf(flags.application), error)) {
    if (entry.path().extension() != ".log" || entry.path().stem() == "memory") continue;
    const std::string name = entry.path().stem();
    if (Matches(name, flags.process)) logs->try_emplace(name, Log{name, entry.path()});
  }
}

}  // namespace

int RunLogs(const LogsFlags& flags, Console& console, const std::atomic<bool>& stop) {
  std::map<std::string, Log> logs;
  FindNew(flags, &logs);
  if (logs.empty()) {
    std::error_code error;
    const bool ran = std::filesystem::exists(RunFolderOf(flags.application), error);
    console.Error(ran ? absl::StrCat(flags.application, " has no log of ", flags.process)
                      : absl::StrCat(flags.application, " was never up here"),
                  "curtail ps lists what is up");
    return kFailed;
  }
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

}  // namespace curtail::tool
