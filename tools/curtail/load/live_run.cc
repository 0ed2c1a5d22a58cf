// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/load/live_run.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "curtail/base/boundary.h"
#include "curtail/base/internal/json_document.h"
#include "curtail/base/internal/unique_fd.h"
#include "curtail/exec/signals.h"

namespace curtail::tool {
namespace {

using internal::Json;
using internal::JsonNode;
using observe::DashboardLoad;

constexpr int kLiveSchema = 1;
constexpr internal::JsonKind kLiveKind = {"run of a load generator", 2, 16};
constexpr Nanos kLivePeriod = std::chrono::seconds(1);
constexpr time_t kSilentS = 10;
constexpr size_t kMaxLiveFile = 4096;
constexpr size_t kMaxLiveText = 500;
constexpr size_t kMostEntries = 10'000;
constexpr double kMaxLiveRate = 1e12;
constexpr double kMaxLiveSeconds = 1e9;

std::string LiveFileOf(const std::string& folder, pid_t pid) {
  return absl::StrCat(folder, "/load-", pid, ".json");
}

// The process in a name as LiveFileOf() makes it, or of a file on its way to that name.
std::optional<pid_t> LivePidOf(absl::string_view name) {
  absl::ConsumeSuffix(&name, ".next");
  pid_t pid = 0;
  if (!absl::ConsumePrefix(&name, "load-") || !absl::ConsumeSuffix(&name, ".json")) return std::nullopt;
  if (!absl::SimpleAtoi(name, &pid) || pid < 2 || absl::StrCat(pid) != name) return std::nullopt;
  return pid;
}

bool IsGone(pid_t pid) { return kill(pid, 0) != 0 && errno == ESRCH; }

// The content of a file of ours that is short and was written lately. Never blocks, whatever lies there.
std::optional<std::string> ReadFresh(const std::string& path) {
  const internal::UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat info{};
  if (!fd || fstat(fd.get(), &info) != 0) return std::nullopt;
  const time_t now = time(nullptr);
  if (!S_ISREG(info.st_mode) || info.st_uid != geteuid() || info.st_mtime + kSilentS < now)
    return std::nullopt;
  std::array<char, kMaxLiveFile + 1> bytes;
  const ssize_t n = read(fd.get(), bytes.data(), bytes.size());
  if (n <= 0 || static_cast<size_t>(n) > kMaxLiveFile) return std::nullopt;
  return std::string(bytes.data(), static_cast<size_t>(n));
}

double LiveUs(const std::atomic<int64_t>& ns) {
  return static_cast<double>(ns.load(std::memory_order_relaxed)) / 1e3;
}

}  // namespace

std::string ToJson(const DashboardLoad& run) {
  const Json json = {{"schema_version", kLiveSchema},
                     {"command", run.command.substr(0, kMaxLiveText)},
                     {"label", run.label.substr(0, kMaxLiveText)},
                     {"elapsed_s", run.elapsed_s},
                     {"total_s", run.total_s},
                     {"due_per_s", run.due_per_s},
                     {"sent_per_s", run.sent_per_s},
                     {"ok", run.ok},
                     {"failed", run.failed},
                     {"in_flight", run.in_flight},
                     {"p50_us", run.p50_us},
                     {"p99_us", run.p99_us}};
  return internal::Compact(json) + "\n";
}

absl::StatusOr<DashboardLoad> ParseLiveRun(std::string_view text) {
  const absl::StatusOr<Json> json = internal::ParseJson(text, kLiveKind);
  if (!json.ok()) return json.status();
  if (absl::Status version = internal::CheckSchemaVersion(*json, kLiveKind, kLiveSchema); !version.ok()) {
    return version;
  }
  std::string problem;
  const JsonNode root(&*json, &problem);
  DashboardLoad run;
  run.command = root["command"].Text(3 * kMaxLiveText);  // what is no UTF-8 grows
  run.label = root["label"].Text(3 * kMaxLiveText);
  run.elapsed_s = root["elapsed_s"].Number(0, kMaxLiveSeconds);
  run.total_s = root["total_s"].Number(0, kMaxLiveSeconds);
  run.due_per_s = root["due_per_s"].Number(0, kMaxLiveRate);
  run.sent_per_s = root["sent_per_s"].Number(0, kMaxLiveRate);
  run.ok = root["ok"].Count();
  run.failed = root["failed"].Count();
  run.in_flight = root["in_flight"].Count();
  run.p50_us = root["p50_us"].Number(0, kMaxLiveSeconds * 1e6);
  run.p99_us = root["p99_us"].Number(0, kMaxLiveSeconds * 1e6);
  if (!problem.empty()) return absl::InvalidArgumentError(problem);
  return run;
}

LiveRunFile::LiveRunFile(const std::string& folder, DashboardLoad run, const Live* live)
    : path_(folder.empty() ? "" : LiveFileOf(folder, getpid())), run_(std::move(run)), live_(live) {
  if (path_.empty()) return;
  Write();
  const SignalsKeptOut keep_out;
  thread_ = std::thread([this] { Run(); });
}

LiveRunFile::~LiveRunFile() {
  if (!thread_.joinable()) return;
  parker_.Notify(kDone);
  thread_.join();
  unlink(path_.c_str());
}

void LiveRunFile::Run() {
  for (TimePoint next = Now() + kLivePeriod;; next += kLivePeriod) {
    for (uint32_t ticket = parker_.Ticket(); Now() < next; ticket = parker_.Ticket()) {
      if ((ticket & kDone) != 0) return;
      parker_.Wait(ticket, Deadline::At(next));
    }
    if ((parker_.Ticket() & kDone) != 0) return;
    Contain("the file of a run", [this] { Write(); });
  }
}

void LiveRunFile::Write() {
  run_.elapsed_s = LiveUs(live_->elapsed_ns) / 1e6;
  run_.due_per_s = live_->due_per_s.load(std::memory_order_relaxed);
  run_.sent_per_s = live_->sent_per_s.load(std::memory_order_relaxed);
  run_.ok = live_->ok.load(std::memory_order_relaxed);
  run_.failed = live_->failed.load(std::memory_order_relaxed);
  run_.in_flight = live_->in_flight.load(std::memory_order_relaxed);
  run_.p50_us = LiveUs(live_->p50_ns);
  run_.p99_us = LiveUs(live_->p99_ns);
  const std::string text = ToJson(run_), next = path_ + ".next";
  internal::UniqueFd fd(open(next.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return;
  const bool whole = write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
  fd.Reset();
  // Readers see the old or the new one.
  if (!whole || std::rename(next.c_str(), path_.c_str()) != 0) unlink(next.c_str());
}

std::vector<DashboardLoad> ReadLiveRuns(const std::string& folder) {
  std::vector<DashboardLoad> runs;
  std::error_code error;
  size_t entries = 0;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (++entries > kMostEntries || runs.size() == kMostLiveRuns) break;
    const std::string path = at->path().string(), name = at->path().filename().string();
    const std::optional<pid_t> pid = LivePidOf(name);
    if (!pid) continue;
    if (IsGone(*pid)) {
      unlink(path.c_str());
      continue;
    }
    if (!name.ends_with(".json")) continue;
    const std::optional<std::string> text = ReadFresh(path);
    absl::StatusOr<DashboardLoad> run = text ? ParseLiveRun(*text) : absl::NotFoundError("");
    if (!run.ok()) continue;
    run->pid = *pid;
    runs.push_back(*std::move(run));
  }
  std::sort(runs.begin(), runs.end(), [](const auto& a, const auto& b) { return a.pid < b.pid; });
  return runs;
}

}  // namespace curtail::tool
