// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/deploy/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "apps/shipped/shipped_applications.h"
#include "curtail/base/internal/closest.h"
#include "curtail/base/internal/json_document.h"
#include "curtail/base/read_file.h"
#include "curtail/base/strings.h"
#include "tools/curtail/term/flags.h"

namespace curtail::tool {
namespace {

using internal::Json;
using internal::JsonNode;

constexpr int kSchemaVersion = 1;
constexpr size_t kMaxState = size_t{16} << 20;
constexpr size_t kMaxProcesses = 1u << 16;
constexpr size_t kMaxWords = 1024;
constexpr int kMaxPid = 1 << 30;
constexpr int kLockTries = 20;
constexpr useconds_t kLockRetryUs = 10000;
constexpr char kScaleRequests[] = "/scale";  // a file a service, which has the number
// The settings have keys for each service.
constexpr internal::JsonKind kKind = {"state of an application", 8, 8192};

std::string ErrorText(int error) { return std::generic_category().message(error); }

// The folder of XDG_RUNTIME_DIR; empty if it is not set.
std::string RuntimeFolder() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  return runtime == nullptr ? "" : runtime;
}

bool CanHold(const std::string& runtime) {
  std::error_code error;
  return std::filesystem::is_directory(runtime, error) && access(runtime.c_str(), W_OK) == 0;
}

std::string Base() {
  const std::string runtime = RuntimeFolder();
  return CanHold(runtime) ? absl::StrCat(runtime, "/curtail") : absl::StrCat("/tmp/curtail-", geteuid());
}

// True if it is a folder of our own that no other user can write to: anybody may take names below /tmp.
bool IsPrivate(const std::string& path) {
  struct stat info{};
  return lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == geteuid() &&
         (info.st_mode & 022) == 0;
}

// Names come from users and become parts of paths.
bool IsFileName(std::string_view name) {
  return !name.empty() && name.find('/') == std::string_view::npos && name.front() != '.';
}

absl::Status MakePrivate(const std::string& path) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return absl::PermissionDeniedError(absl::StrCat("cannot make ", path, ": ", ErrorText(errno)));
  }
  if (!IsPrivate(path)) {
    return absl::PermissionDeniedError(absl::StrCat(
        path, " is not a folder that only this user can write to; set XDG_RUNTIME_DIR to one that is"));
  }
  return absl::OkStatus();
}

// "hdsearch is", "bank, shop are". REQUIRES: one at least.
std::string NamesAnd(const std::vector<std::string>& up) {
  return absl::StrCat(absl::StrJoin(up, ", "), up.size() == 1 ? " is" : " are");
}

std::vector<std::string> ShippedNames() {
  std::vector<std::string> names;
  for (const apps::ShippedApplication& shipped : apps::ShippedApplications())
    names.emplace_back(shipped.name);
  return names;
}

// In one step, so that readers see the old or the new one. Errors: INTERNAL.
absl::Status Replace(const std::string& path, const std::string& text) {
  const std::string next = absl::StrCat(path, ".next");
  std::ofstream out(next, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  if (out && std::rename(next.c_str(), path.c_str()) == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("cannot write ", path, ": ", ErrorText(errno)));
}

bool IsHeld(const std::string& lock_path) {
  const int fd = open(lock_path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return false;
  // Shared, so that two processes that look do not take each other for the holder.
  const bool held = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close(fd);
  return held;
}

}  // namespace

std::string ToJson(const UpState& state) {
  Json processes = Json::array();
  for (const ProcessState& p : state.processes) {
    processes.push_back({{"name", p.name},
                         {"service", p.service},
                         {"variant", p.variant},
                         {"state", p.state},
                         {"pid", p.pid},
                         {"protocol", p.protocol},
                         {"address", p.address},
                         {"admin", p.admin},
                         {"http_admin", p.http_admin},
                         {"under", p.under},
                         {"log", p.log},
                         {"failover", p.failover},
                         {"scales", p.scales},
                         {"restarts", p.restarts},
                         {"problem", p.problem},
                         {"problem_unix_ms", p.problem_unix_ms},
                         {"since_unix_ms", p.since_unix_ms}});
    if (!p.look) continue;
    Json& json = processes.back();
    json["health"] = p.look->health;
    json["config"] = p.look->config;
    json["cpu_s"] = p.look->cpu_s;
    json["resident_mib"] = p.look->resident_mib;
  }
  const Json json = {{"schema_version", kSchemaVersion},
                     {"application", state.application},
                     {"pid", state.pid},
                     {"entry", state.entry},
                     {"started_unix_ms", state.started_unix_ms},
                     {"settings", state.settings},
                     {"processes", std::move(processes)}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

absl::StatusOr<UpState> ParseUpState(std::string_view text) {
  const absl::StatusOr<Json> json = internal::ParseJson(text, kKind);
  if (!json.ok()) return json.status();
  if (absl::Status version = internal::CheckSchemaVersion(*json, kKind, kSchemaVersion); !version.ok()) {
    return version;
  }
  std::string problem;
  const JsonNode root(&*json, &problem);
  UpState state;
  state.application = root["application"].Text();
  state.pid = root["pid"].Int(kMaxPid);
  state.entry = root["entry"].Text();
  state.started_unix_ms = static_cast<int64_t>(root["started_unix_ms"].Count(INT64_MAX));
  root["settings"].ForMembers(
      [&state](const std::string& name, const JsonNode& node) { state.settings[name] = node.Text(); });
  root["processes"].ForItems(kMaxProcesses, [&state](const JsonNode& node) {
    ProcessState p;
    p.name = node["name"].Text();
    p.service = node["service"].Text();
    p.variant = node["variant"].Text();
    p.state = node["state"].Text();
    p.pid = node["pid"].Int(kMaxPid);
    p.protocol = node["protocol"].Text();
    p.address = node["address"].Text();
    p.admin = node["admin"].Text();
    p.http_admin = node["http_admin"].Text();
    p.under = node["under"].Text();
    p.log = node["log"].Text();
    node["failover"].ForItems(kMaxWords, [&p](const JsonNode& word) { p.failover.push_back(word.Text()); });
    p.scales = node["scales"].Flag();
    p.restarts = node["restarts"].Int(kMaxPid);
    p.problem = node["problem"].Text();
    p.problem_unix_ms = static_cast<int64_t>(node["problem_unix_ms"].Count(INT64_MAX));
    p.since_unix_ms = static_cast<int64_t>(node["since_unix_ms"].Count(INT64_MAX));
    state.processes.push_back(std::move(p));
  });
  if (!problem.empty()) return absl::InvalidArgumentError(problem);
  return state;
}

std::string OtherRunFolder() {
  const std::string runtime = RuntimeFolder();
  if (runtime.empty() || CanHold(runtime)) return "";
  return absl::StrCat("XDG_RUNTIME_DIR: ", runtime, " is not a folder that can be written to; using ",
                      Base());
}

std::string RunFolderOf(std::string_view application) {
  return absl::StrCat(Base(), "/", std::string(application));
}

bool IsUp(const std::string& application) {
  const std::string folder = RunFolderOf(application);
  return IsFileName(application) && IsPrivate(Base()) && IsPrivate(folder) &&
         IsHeld(absl::StrCat(folder, "/lock"));
}

absl::StatusOr<pid_t> KeeperOf(const std::string& application) {
  std::ifstream in(absl::StrCat(RunFolderOf(application), "/lock"));
  pid_t pid = 0;
  if (!IsUp(application) || !(in >> pid) || pid < 2) {
    return absl::NotFoundError(absl::StrCat(application, " is not up"));
  }
  return pid;
}

absl::StatusOr<std::unique_ptr<RunFolder>> RunFolder::Take(const std::string& application) {
  const std::string path = RunFolderOf(application);
  if (!IsFileName(application))
    return absl::InvalidArgumentError(absl::StrCat("'", application, "' is not a name"));
  for (const std::string& folder : {Base(), path}) {
    if (absl::Status made = MakePrivate(folder); !made.ok()) return made;
  }
  const std::string lock_path = absl::StrCat(path, "/lock");
  const int lock = open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (lock < 0) {
    return absl::PermissionDeniedError(absl::StrCat("cannot open ", lock_path, ": ", ErrorText(errno)));
  }
  // Processes that only look hold it for a moment.
  for (int tries = 0; flock(lock, LOCK_EX | LOCK_NB) != 0; ++tries) {
    if (tries == kLockTries) {
      close(lock);
      return absl::AlreadyExistsError(absl::StrCat(application, " is up already"));
    }
    usleep(kLockRetryUs);
  }
  std::unique_ptr<RunFolder> folder(new RunFolder(path, lock));
  if (absl::Status written = folder->WritePid(); !written.ok()) return written;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
    std::error_code ignored;
    if (entry.path() != lock_path) std::filesystem::remove_all(entry.path(), ignored);
  }
  if (absl::Status made = MakePrivate(absl::StrCat(path, kScaleRequests)); !made.ok()) return made;
  return folder;
}

RunFolder::~RunFolder() { close(lock_); }

absl::Status RunFolder::WritePid() const {
  const std::string text = absl::StrCat(getpid(), "\n");
  if (ftruncate(lock_, 0) == 0 &&
      pwrite(lock_, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size())) {
    return absl::OkStatus();
  }
  return absl::InternalError(absl::StrCat("cannot write ", path_, "/lock: ", ErrorText(errno)));
}

absl::Status RunFolder::Write(const UpState& state) const {
  return Replace(absl::StrCat(path_, "/state.json"), ToJson(state));
}

absl::Status AskToScale(const std::string& application, const std::string& service, int count) {
  return Replace(absl::StrCat(RunFolderOf(application), kScaleRequests, "/", service),
                 absl::StrCat(count, "\n"));
}

std::map<std::string, int> RunFolder::TakeScaleRequests() const {
  std::map<std::string, int> requests;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(path_ + kScaleRequests, error)) {
    int count = 0;
    if (entry.path().extension() == ".next" || !(std::ifstream(entry.path()) >> count)) continue;
    requests[entry.path().filename()] = count;
    std::error_code ignored;
    std::filesystem::remove(entry.path(), ignored);
  }
  return requests;
}

std::vector<std::string> ApplicationsUp() {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(Base(), error)) {
    if (IsUp(entry.path().filename())) names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool WasUp(const std::string& application) {
  std::error_code error;
  return IsFileName(application) && std::filesystem::exists(RunFolderOf(application), error);
}

std::string WhatIsUp() {
  const std::vector<std::string> up = ApplicationsUp();
  return up.empty() ? "no application is up" : absl::StrCat(NamesAnd(up), " up");
}

absl::Status NotUp(std::string_view application) {
  const std::string name(application);
  const std::vector<std::string> up = ApplicationsUp(), shipped = ShippedNames();
  const bool known = std::ranges::count(shipped, name) > 0;
  const std::string others = up.empty() ? "" : NamesAnd(up);
  std::string text =
      known || WasUp(name)
          ? absl::StrCat(name, " is not up, ", up.empty() ? "nor is any other application" : "but " + others)
          : absl::StrCat("unknown application \"", name, "\"",
                         up.empty() ? "" : absl::StrCat("; ", others, " up"));
  if (known) return absl::NotFoundError(absl::StrCat(text, "; start it with curtail up ", name));
  std::string meant = internal::DidYouMean(name, up);
  if (meant.empty() && !WasUp(name)) meant = internal::DidYouMean(name, shipped);
  return absl::NotFoundError(text + meant);
}

std::string NotAnApplication(std::string_view command, std::string_view target) {
  const size_t slash = target.find('/');
  if (slash == 0 || slash == target.npos || slash + 1 == target.size() || target.front() == '.') return "";
  return Join(command, " takes an application: curtail ", command, " ", target.substr(0, slash));
}

absl::StatusOr<UpState> ReadUpState(const std::string& application) {
  if (!IsUp(application)) return NotUp(application);
  const std::string path = absl::StrCat(RunFolderOf(application), "/state.json");
  const absl::StatusOr<std::string> text = ReadWholeFile(path, kMaxState);
  if (!text.ok())
    return absl::NotFoundError(absl::StrCat(application, " is still starting; try again in a moment"));
  absl::StatusOr<UpState> state = ParseUpState(*text);
  if (!state.ok()) return absl::InternalError(absl::StrCat(path, " ", state.status().message()));
  const absl::StatusOr<pid_t> keeper = KeeperOf(application);
  if (!keeper.ok() || *keeper != state->pid) {
    return absl::NotFoundError(absl::StrCat(application, " is still starting; try again in a moment"));
  }
  return state;
}

}  // namespace curtail::tool
