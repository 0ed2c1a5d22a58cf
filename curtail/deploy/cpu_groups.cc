// SPDX-License-Identifier: Apache-2.0
//
// DESIGN: a group is the folder curtail.PID.NAME. So what a killed process left is known by an id that no process has.
#include "curtail/deploy/cpu_groups.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace curtail::deploy {
namespace {

constexpr char kPrefix[] = "curtail.";
constexpr int64_t kPeriodUs = kCpuPeriod / std::chrono::microseconds(1);

std::string Errno(int error) { return std::generic_category().message(error); }

// Files of cgroups take a value by one write, whose error is the kernel's answer.
absl::Status WriteValue(const std::string& path, const std::string& value) {
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  const bool written = fd >= 0 && write(fd, value.data(), value.size()) == static_cast<ssize_t>(value.size());
  const int error = errno;
  if (fd >= 0) close(fd);
  if (written) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("cannot write ", value, " to ", path, ": ", Errno(error)));
}

std::string FileText(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

bool HasWord(const std::string& text, const std::string& word) {
  const std::vector<std::string> words = absl::StrSplit(text, absl::ByAnyChar(" ,\n"), absl::SkipEmpty());
  return std::find(words.begin(), words.end(), word) != words.end();
}

// The path of this process below the mount, of the controller "cpu" of version 1 or of version 2.
std::optional<std::string> OwnPath(const std::string& own, bool version2) {
  const std::vector<std::string> lines = absl::StrSplit(FileText(own), '\n');
  for (const std::string& line : lines) {  // "1:cpu,cpuacct:/a/b", "0::/a/b"
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() == 3 && (version2 ? parts[0] == "0" && parts[1].empty() : HasWord(parts[1], "cpu"))) {
      return parts[2] == "/" ? "" : parts[2];
    }
  }
  return std::nullopt;
}

// Where a group of this process may be made, if all goes well.
std::optional<std::string> ParentOf(const std::string& mount, const std::string& own, bool version2) {
  if (!version2) {
    // In a container the path may be one that is not seen there.
    const std::string path = OwnPath(own, false).value_or("");
    for (const char* controller : {"/cpu", "/cpu,cpuacct"}) {
      const std::string root = mount + controller;
      if (access((root + path + "/cpu.cfs_quota_us").c_str(), F_OK) == 0) return root + path;
      if (access((root + "/cpu.shares").c_str(), F_OK) == 0) return root;
    }
    return std::nullopt;
  }
  std::string path = OwnPath(own, true).value_or("");
  while (true) {
    const std::string folder = mount + path;
    if (HasWord(FileText(folder + "/cgroup.subtree_control"), "cpu")) return folder;
    if (path.empty()) return std::nullopt;
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
}

// Removes groups of processes that are gone.
void Sweep(const std::string& parent) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(parent, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix)) continue;
    const std::vector<std::string> parts = absl::StrSplit(name, absl::MaxSplits('.', 2));
    int pid = 0;
    if (parts.size() == 3 && absl::SimpleAtoi(parts[1], &pid) && kill(pid, 0) != 0 && errno == ESRCH) {
      rmdir(entry.path().c_str());
    }
  }
}

}  // namespace

absl::StatusOr<CpuGroups> CpuGroups::Find(const std::string& mount, const std::string& own) {
  bool seen = false;
  std::string why;
  for (const bool version2 : {false, true}) {
    const std::optional<std::string> parent = ParentOf(mount, own, version2);
    if (!parent) continue;
    seen = true;
    Sweep(*parent);
    const CpuGroups groups(*parent, version2);
    const auto probe = groups.Make("probe");
    const absl::Status limited = probe.ok() ? (*probe)->Limit(1) : probe.status();
    if (limited.ok()) return groups;
    why = std::string(limited.message());
  }
  return absl::FailedPreconditionError(
      seen ? absl::StrCat("CPU time of services cannot be limited here: ", why,
                          "; it takes root, or a cgroup that was delegated to this user")
           : absl::StrCat("CPU time of services cannot be limited here: below ", mount,
                          " no cgroup hands the controller cpu on"));
}

absl::StatusOr<std::unique_ptr<CpuGroup>> CpuGroups::Make(const std::string& name) const {
  std::string folder = absl::StrCat(parent_, "/", kPrefix, getpid(), ".", name);
  if (mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) {
    return absl::InternalError(absl::StrCat("cannot make ", folder, ": ", Errno(errno)));
  }
  return std::make_unique<CpuGroup>(std::move(folder), version2_);
}

CpuGroup::~CpuGroup() { rmdir(folder_.c_str()); }

absl::Status CpuGroup::Limit(double cpus) {
  const int64_t steps = std::max<int64_t>(1, std::llround(cpus / kLeastCpu));
  const int64_t quota_us =
      static_cast<int64_t>(std::llround(static_cast<double>(kPeriodUs) * kLeastCpu)) * steps;
  if (version2_) {
    return WriteValue(folder_ + "/cpu.max",
                      absl::StrCat(cpus > 0 ? absl::StrCat(quota_us) : "max", " ", kPeriodUs));
  }
  absl::Status written = WriteValue(folder_ + "/cpu.cfs_period_us", absl::StrCat(kPeriodUs));
  if (written.ok())
    written = WriteValue(folder_ + "/cpu.cfs_quota_us", absl::StrCat(cpus > 0 ? quota_us : -1));
  return written;
}

absl::StatusOr<CpuGroupUse> CpuGroup::Use() const {
  std::ifstream in(folder_ + "/cpu.stat");
  CpuGroupUse use;
  int known = 0;
  uint64_t value = 0;
  for (std::string key; in >> key >> value;) {
    if (key == "nr_periods") use.periods = value, ++known;
    if (key == "nr_throttled") use.throttled = value, ++known;
  }
  if (known == 2) return use;
  return absl::InternalError(absl::StrCat(folder_, "/cpu.stat does not say how often the group had to wait"));
}

}  // namespace curtail::deploy
