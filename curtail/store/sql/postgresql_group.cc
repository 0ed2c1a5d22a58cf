// SPDX-License-Identifier: Apache-2.0
#include "curtail/store/sql/postgresql_group.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <vector>

#include "curtail/base/internal/sync_folder.h"
#include "curtail/base/strings.h"
#include "curtail/store/sql/postgresql.h"

namespace curtail::internal {
namespace {

namespace fs = std::filesystem;

constexpr int kLookMs = 10;
constexpr std::array<std::string_view, 3> kStandbyWords = {"stale", "follows", "complete"};

std::string RolesOf(const PostgresqlGroup& group) { return group.folder + ".roles"; }

absl::Status CannotWrite(const std::string& path) {
  return absl::FailedPreconditionError(
      Join(path, " cannot be written: ", std::generic_category().message(errno)));
}

// The other processes that have the file open.
std::vector<pid_t> HoldersOf(const std::string& path) {
  struct stat file = {};
  std::vector<pid_t> holders;
  if (stat(path.c_str(), &file) != 0) return holders;
  std::error_code error;
  for (const auto& process : fs::directory_iterator("/proc", error)) {
    const pid_t pid = std::atoi(process.path().filename().c_str());
    if (pid <= 1 || pid == getpid()) continue;
    std::error_code gone;
    for (fs::directory_iterator fd(process.path() / "fd", gone), end; !gone && fd != end;
         fd.increment(gone)) {
      struct stat held = {};
      if (stat(fd->path().c_str(), &held) != 0 || held.st_dev != file.st_dev || held.st_ino != file.st_ino)
        continue;
      holders.push_back(pid);
      break;
    }
  }
  return holders;
}

}  // namespace

std::string FolderOf(const PostgresqlGroup& group, size_t server) {
  return server == 0 ? group.folder : Join(group.folder, "-", server);
}

std::string LockOf(const PostgresqlGroup& group, size_t server) { return FolderOf(group, server) + ".lock"; }

std::string StartLockOf(const PostgresqlGroup& group) { return group.folder + ".start"; }

absl::StatusOr<std::optional<PostgresqlRoles>> ReadRoles(const PostgresqlGroup& group) {
  std::ifstream file(RolesOf(group));
  if (!file) return std::optional<PostgresqlRoles>();
  PostgresqlRoles roles;
  std::string primary, standby, how;
  file >> primary >> roles.primary >> standby >> how;
  const auto* const known = std::ranges::find(kStandbyWords, how);
  if (!file || roles.primary > 1 || primary != "primary" || standby != "standby" ||
      known == kStandbyWords.end())
    return absl::FailedPreconditionError(Join(RolesOf(group), " does not say which server is the primary"));
  roles.standby = static_cast<PostgresqlRoles::Standby>(known - kStandbyWords.begin());
  return roles;
}

absl::Status WriteRoles(const PostgresqlGroup& group, const PostgresqlRoles& roles) {
  const std::string path = RolesOf(group), next = path + ".new";
  const std::string text =
      Join("primary ", roles.primary, "\nstandby ", kStandbyWords[static_cast<size_t>(roles.standby)], "\n");
  const UniqueFd fd(open(next.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  const bool written = fd && write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                       fsync(fd.get()) == 0 && rename(next.c_str(), path.c_str()) == 0;
  return written && SyncFolderOf(path) ? absl::OkStatus() : CannotWrite(path);
}

absl::StatusOr<UniqueFd> TakeLock(const std::string& path, Deadline deadline, Holders holders) {
  UniqueFd lock(open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!lock) return CannotWrite(path);
  while (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return CannotWrite(path);
    if (deadline.Expired())
      return absl::DeadlineExceededError(Join("processes that hold ", path, " do not end"));
    if (holders == Holders::kKill) {
      for (const pid_t pid : HoldersOf(path)) kill(pid, SIGKILL);
    }
    poll(nullptr, 0, kLookMs);
  }
  return lock;
}

void AskToEnd(const PostgresqlGroup& group, size_t server) {
  pid_t postmaster = 0;
  std::ifstream(FolderOf(group, server) + "/postmaster.pid") >> postmaster;
  const std::vector<pid_t> holders = HoldersOf(LockOf(group, server));
  if (std::ranges::find(holders, postmaster) != holders.end()) kill(postmaster, SIGINT);
}

absl::StatusOr<std::unique_ptr<SqlSession>> ConnectTo(const PostgresqlGroup& group, size_t server,
                                                      Nanos patience) {
  return PostgresqlSession::Open(
      {.address = Join("unix:", group.sockets[server]), .schema = "public", .patience = patience});
}

absl::StatusOr<int64_t> Ask(SqlSession& session, std::string_view sql) {
  int64_t answer = 0;
  absl::Status status = session.Query(sql, {}, [&](const SqlRow& row) { answer = row.Integer(0); });
  if (!status.ok()) return status;
  return answer;
}

}  // namespace curtail::internal
