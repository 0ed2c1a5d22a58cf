// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. PostgreSQL refuses to run as root. Then another user runs it, which the folders on the way keep out. So the
// folders are opened before, and the server knows them as /proc/self/fd/NUMBER. A folder is made beside its place
// and moved there once it is whole, so that one that was left half made is none. Two servers: postgresql_group.h.
#include "curtail/store/sql/postgresql_server.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <system_error>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "curtail/base/strings.h"
#include "curtail/deploy/process/process.h"
#include "curtail/store/sql/postgresql_group.h"

namespace curtail {
namespace {

namespace fs = std::filesystem;

absl::Status Failed(std::string_view what) {
  return absl::FailedPreconditionError(Join(what, ": ", std::generic_category().message(errno)));
}

// The user that runs the server, where this one may not.
struct Runner {
  uid_t uid = 0;
  gid_t gid = 0;
};

absl::StatusOr<std::optional<Runner>> RunnerOf() {
  if (geteuid() != 0) return std::optional<Runner>();
  const passwd* const user = getpwnam("postgres");
  if (user == nullptr)
    return absl::FailedPreconditionError("no user postgres; install Debian's package postgresql");
  return Runner{user->pw_uid, user->pw_gid};
}

// Gives rights away. The signal of the parent's death, which goes with them, stays.
absl::Status Become(const Runner& runner) {
  int signal = 0;
  prctl(PR_GET_PDEATHSIG, &signal);
  const pid_t parent = getppid();
  if (setgroups(0, nullptr) != 0 || setgid(runner.gid) != 0 || setuid(runner.uid) != 0)
    return Failed("setuid");
  prctl(PR_SET_PDEATHSIG, signal);
  if (signal != 0 && getppid() != parent) return absl::FailedPreconditionError("the parent is gone");
  return absl::OkStatus();
}

// Where the programs are: those of `version`, or of the newest one.
absl::StatusOr<fs::path> ProgramsOf(const std::string& version) {
  std::error_code error;
  int newest = 0;
  for (const auto& entry : fs::directory_iterator("/usr/lib/postgresql", error)) {
    const int number = std::atoi(entry.path().filename().c_str());
    if (number > newest && fs::exists(entry.path() / "bin/initdb", error) &&
        (version.empty() || entry.path().filename() == version)) {
      newest = number;
    }
  }
  if (newest > 0) return fs::path(Join("/usr/lib/postgresql/", newest, "/bin"));
  return absl::FailedPreconditionError(Join("PostgreSQL", version.empty() ? "" : " ", version,
                                            " is not here; Debian has it in the package postgresql"));
}

// A folder for the runner alone, as a path that is valid in this process and its children.
absl::StatusOr<std::string> OpenFolder(const std::string& path, const std::optional<Runner>& runner) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return Failed(path);
  const int fd = open(path.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW);  // inherited by the server
  if (fd < 0) return Failed(path);
  const std::string opened = Join("/proc/self/fd/", fd);
  if (runner.has_value() && chown(opened.c_str(), runner->uid, runner->gid) != 0) return Failed(path);
  return opened;
}

// The server to be, for the steps below.
struct Place {
  PostgresqlGroup group;
  size_t server = 0;
  std::optional<Runner> runner;
  fs::path programs;
  std::string user;  // of the database
  std::string folder() const { return internal::FolderOf(group, server); }
};

// Runs one of PostgreSQL's programs to its end. Errors: FAILED_PRECONDITION.
absl::Status RunProgram(const Place& place, const std::string& program, std::vector<std::string> flags) {
  flags.insert(flags.begin(), place.programs / program);
  auto process = deploy::Process::Spawn({.name = program, .run = [&] {
                                           if (place.runner.has_value() && !Become(*place.runner).ok())
                                             _exit(126);
                                           (void)deploy::BecomeProgram(flags);
                                           _exit(127);
                                         }});
  if (!process.ok()) return process.status();
  (void)(*process)->ReadToEnd(Deadline::Infinite());
  if ((*process)->Terminate(Nanos(0)) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(program + " has failed; its messages say why");
}

// Makes the folder, by a function that fills an empty one.
absl::Status MakeFolder(const Place& place,
                        const std::function<absl::Status(const std::string& folder)>& fill) {
  const std::string made = place.folder() + ".new";
  std::error_code error;
  fs::remove_all(made, error);
  const absl::StatusOr<std::string> opened = OpenFolder(made, place.runner);
  if (!opened.ok()) return opened.status();
  if (absl::Status filled = fill(*opened); !filled.ok()) return filled;
  return rename(made.c_str(), place.folder().c_str()) == 0 ? absl::OkStatus() : Failed(place.folder());
}

absl::Status MakeData(const Place& place) {
  return MakeFolder(place, [&](const std::string& folder) {
    return RunProgram(place, "initdb",
                      {"-D", folder, "-U", place.user, "--auth=trust", "--no-locale", "-E", "UTF8"});
  });
}

// ----- a standby -----------------------------------------------------------------------------------------------------

constexpr Nanos kPrimaryPatience = std::chrono::seconds(100);
constexpr Nanos kOwnPatience = std::chrono::seconds(10);  // for what is left of this server's last life
constexpr int kLookAgainMs = 50;

bool Has(const Place& place, const char* file) {
  std::error_code error;
  return fs::exists(place.folder() + "/" + file, error);
}

// A file that says how the server starts, for its user.
absl::Status Mark(const Place& place, const std::string& folder, const char* file) {
  const int fd = open(Join(folder, "/", file).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return Failed(file);
  const bool made =
      (!place.runner || fchown(fd, place.runner->uid, place.runner->gid) == 0) && fsync(fd) == 0;
  close(fd);
  return made ? absl::OkStatus() : Failed(file);
}

// Waits until the other server is the primary, and takes a checkpoint there: pg_rewind goes by its last one.
absl::Status AwaitPrimary(const Place& place, size_t primary) {
  const Deadline deadline = Deadline::In(kPrimaryPatience);
  while (true) {
    const auto session = internal::ConnectTo(place.group, primary, kOwnPatience);
    absl::Status status = session.status();
    if (session.ok()) {
      const absl::StatusOr<int64_t> standby = internal::Ask(**session, internal::kInRecovery);
      status = standby.ok() && *standby == 0 ? (*session)->Execute("CHECKPOINT") : standby.status();
      if (status.ok() && *standby == 0) return status;
    }
    if (deadline.Expired())
      return absl::DeadlineExceededError(
          Join("replica ", primary, " does not become the primary: ", Message(status)));
    poll(nullptr, 0, kLookAgainMs);
  }
}

// Makes a folder that was a primary's a copy of the new primary again. It is elsewhere meanwhile, since what an interrupted
// pg_rewind leaves is no data.
absl::Status Rewind(const Place& place, const std::string& source) {
  const std::string aside = place.folder() + ".old";
  if (rename(place.folder().c_str(), aside.c_str()) != 0) return Failed(aside);
  const absl::StatusOr<std::string> opened = OpenFolder(aside, place.runner);
  if (!opened.ok()) return opened.status();
  absl::Status status =
      RunProgram(place, "pg_rewind", {"-D", *opened, "--source-server", source + " dbname=postgres"});
  if (status.ok()) status = Mark(place, *opened, "standby.signal");
  if (status.ok() && rename(aside.c_str(), place.folder().c_str()) != 0) status = Failed(place.folder());
  return status;
}

// `sockets` is the folder of the primary's socket. The primary acknowledges nothing meanwhile, as it has no standby (G5).
absl::Status CopyPrimary(const Place& place, const internal::PostgresqlRoles& roles,
                         const std::string& sockets) {
  std::error_code error;
  fs::remove_all(place.folder(), error);
  absl::Status status = MakeFolder(place, [&](const std::string& folder) {
    absl::Status copied = RunProgram(
        place, "pg_basebackup",
        {"-D", folder, "-h", sockets, "-p", "5432", "-U", place.user, "-X", "stream", "-c", "fast"});
    return copied.ok() ? Mark(place, folder, "standby.signal") : copied;
  });
  if (!status.ok()) return status;
  return internal::WriteRoles(
      place.group, {.primary = roles.primary, .standby = internal::PostgresqlRoles::Standby::kComplete});
}

absl::Status BeStandby(const Place& place, const internal::PostgresqlRoles& roles, const std::string& sockets,
                       const std::string& source) {
  std::error_code error;
  fs::remove_all(place.folder() + ".old", error);
  const bool stale = roles.standby == internal::PostgresqlRoles::Standby::kStale;
  if (!stale && Has(place, "standby.signal")) return absl::OkStatus();
  if (absl::Status there = AwaitPrimary(place, roles.primary); !there.ok()) return there;
  if (!stale && Has(place, "PG_VERSION") && Rewind(place, source).ok()) return absl::OkStatus();
  fs::remove_all(place.folder() + ".old", error);
  return CopyPrimary(place, roles, sockets);
}

// ----- both ----------------------------------------------------------------------------------------------------------

// G1, G2. Which role this server has; it has its lock.
absl::StatusOr<internal::PostgresqlRoles> RolesNow(const Place& place) {
  using internal::PostgresqlRoles;
  const Deadline deadline = Deadline::In(kPrimaryPatience);
  while (true) {
    const absl::StatusOr<std::optional<PostgresqlRoles>> roles = internal::ReadRoles(place.group);
    if (!roles.ok()) return roles.status();
    if (roles->has_value()) return **roles;
    std::error_code error;
    if (place.server == 0) {
      const std::string other = internal::FolderOf(place.group, 1);
      if (fs::exists(other, error)) {
        return absl::FailedPreconditionError(
            Join(place.group.folder, ".roles is missing, which says whether ", other, " has the newer data"));
      }
      if (!Has(place, "PG_VERSION")) {
        if (absl::Status made = MakeData(place); !made.ok()) return made;
      }
      if (absl::Status written = internal::WriteRoles(place.group, {}); !written.ok()) return written;
    }
    if (deadline.Expired()) return absl::DeadlineExceededError("the primary does not start");
    poll(nullptr, 0, kLookAgainMs);
  }
}

// A single server: of two, it is the primary, and the other one is not a copy from now on.
absl::Status BeAlone(const Place& place) {
  const auto roles = internal::ReadRoles(place.group);
  if (!roles.ok()) return roles.status();
  if (!roles->has_value()) return Has(place, "PG_VERSION") ? absl::OkStatus() : MakeData(place);
  if ((*roles)->primary != 0) {
    return absl::FailedPreconditionError(Join("the primary is in ", internal::FolderOf(place.group, 1),
                                              ": start both, with postgresql.replicas=2, and let curtail "
                                              "failover make the first one the primary"));
  }
  const auto other = internal::TakeLock(internal::LockOf(place.group, 1), Deadline::In(kOwnPatience));
  if (!other.ok()) return absl::FailedPreconditionError("its standby still runs");
  return internal::WriteRoles(place.group, {});
}

std::vector<std::string> Settings(const std::string& conninfo, bool promoted) {
  std::vector<std::string> flags;
  // A commit that reached the standby while it caught up waits for its next report.
  for (std::string setting :
       {Join("synchronous_standby_names=", internal::kStandbyName), Join("primary_conninfo=", conninfo),
        std::string("wal_receiver_status_interval=1s"), std::string("wal_retrieve_retry_interval=250ms"),
        std::string(promoted ? "restore_command=/bin/false" : "hot_standby=on")}) {
    flags.insert(flags.end(), {"-c", std::move(setting)});
  }
  return flags;
}

// Sets for good what pg_rewind needs, as it starts a server without the flags of this one. A standby that was away for
// longer than the log that is kept cannot follow.
absl::Status KeepLog(const Place& place) {
  constexpr std::string_view kSetting = "wal_log_hints = on";
  const std::string path = place.folder() + "/postgresql.conf";
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line == kSetting) return absl::OkStatus();
  }
  std::ofstream more(path, std::ios::app);
  more << '\n' << kSetting << "\nwal_keep_size = 256MB\n";
  return more.flush() ? absl::OkStatus() : Failed(path);
}

// Makes the data and the role of one of two servers; returns its further flags.
absl::StatusOr<std::vector<std::string>> BeOneOfTwo(const Place& place) {
  const absl::StatusOr<internal::PostgresqlRoles> roles = RolesNow(place);
  if (!roles.ok()) return roles.status();
  const absl::StatusOr<std::string> sockets =
      OpenFolder(place.group.sockets[1 - place.server] + ".d", place.runner);
  if (!sockets.ok()) return sockets.status();
  const std::string source = Join("host=", *sockets, " port=5432 user=", place.user);
  if (roles->primary != place.server) {
    if (absl::Status ready = BeStandby(place, *roles, *sockets, source); !ready.ok()) return ready;
  } else if (!Has(place, "PG_VERSION")) {
    return absl::FailedPreconditionError(
        Join(place.folder(), " is gone; curtail failover makes the standby the primary"));
  } else if (Has(place, "standby.signal")) {
    // The end of a recovery that is no standby's begins a timeline, as a promotion does.
    if (absl::Status marked = Mark(place, place.folder(), "recovery.signal"); !marked.ok()) return marked;
    if (unlink((place.folder() + "/standby.signal").c_str()) != 0) return Failed(place.folder());
  }
  if (absl::Status kept = KeepLog(place); !kept.ok()) return kept;
  return Settings(Join(source, " application_name=", internal::kStandbyName), Has(place, "recovery.signal"));
}

// A path that a client can connect to, by the link and by where it leads.
absl::Status CheckSocket(const std::string& socket) {
  constexpr size_t kMost = sizeof(sockaddr_un::sun_path) - 1;
  const std::string path = Join(fs::absolute(socket).string(), ".d/.s.PGSQL.5432");
  if (path.size() <= kMost) return absl::OkStatus();
  return absl::FailedPreconditionError(
      Join("the socket's path has ", path.size(), " bytes, and at most ", kMost,
           " can be connected to: choose a shorter folder, such as by XDG_RUNTIME_DIR; ", path));
}

absl::Status Become(Place place) {
  const std::string socket = place.group.sockets[place.server];
  if (absl::Status reachable = CheckSocket(socket); !reachable.ok()) return reachable;
  if (absl::Status free =
          internal::TakeLock(internal::StartLockOf(place.group), Deadline::In(kOwnPatience)).status();
      !free.ok()) {
    return free;
  }
  absl::StatusOr<internal::UniqueFd> lock =
      internal::TakeLock(internal::LockOf(place.group, place.server), Deadline::In(kOwnPatience));
  if (!lock.ok()) return lock.status();
  fcntl(lock->get(), F_SETFD, 0);  // G3 of postgresql_group.h
  std::vector<std::string> more;
  if (place.group.sockets.size() == 1) {
    if (absl::Status alone = BeAlone(place); !alone.ok()) return alone;
  } else {
    absl::StatusOr<std::vector<std::string>> flags = BeOneOfTwo(place);
    if (!flags.ok()) return flags.status();
    more = *std::move(flags);
  }
  const absl::StatusOr<std::string> data = OpenFolder(place.folder(), place.runner);
  if (!data.ok()) return data.status();
  const std::string sockets = socket + ".d";
  const absl::StatusOr<std::string> opened = OpenFolder(sockets, place.runner);
  if (!opened.ok()) return opened.status();
  if (unlink(socket.c_str()) != 0 && errno != ENOENT) return Failed(socket);
  const std::string target = fs::path(sockets).filename().string() + "/.s.PGSQL.5432";
  if (symlink(target.c_str(), socket.c_str()) != 0) return Failed(socket);
  if (place.runner.has_value()) {
    if (absl::Status became = Become(*place.runner); !became.ok()) return became;
  }
  std::vector<std::string> argv = {place.programs / "postgres",
                                   "-D",
                                   *data,
                                   "-c",
                                   "listen_addresses=",
                                   "-c",
                                   "port=5432",
                                   "-c",
                                   Join("unix_socket_directories=", *opened),
                                   "-c",
                                   "max_connections=300",
                                   "-c",
                                   "shared_buffers=32MB",
                                   "-c",
                                   "log_min_messages=fatal",
                                   "-c",
                                   "jit=off"};
  argv.insert(argv.end(), more.begin(), more.end());
  return deploy::BecomeProgram(std::move(argv));
}

}  // namespace

absl::Status BecomePostgresql(const PostgresqlGroup& group, size_t server) {
  if (group.sockets.size() > 2)
    return absl::FailedPreconditionError("a PostgreSQL has one replica, or two: a primary and its standby");
  const absl::StatusOr<std::optional<Runner>> runner = RunnerOf();
  if (!runner.ok()) return runner.status();
  // All of a group have one version.
  std::string version;
  for (size_t other = 0; version.empty() && other < group.sockets.size(); ++other)
    std::ifstream(internal::FolderOf(group, other) + "/PG_VERSION") >> version;
  const absl::StatusOr<fs::path> programs = ProgramsOf(version);
  if (!programs.ok()) return programs.status();
  const passwd* const user = getpwuid(geteuid());
  return Become(Place{.group = group,
                      .server = server,
                      .runner = *runner,
                      .programs = *programs,
                      .user = user == nullptr ? "root" : user->pw_name});
}

absl::Status BecomePostgresql(const std::string& folder, const std::string& socket) {
  return BecomePostgresql({.folder = folder, .sockets = {socket}}, 0);
}

}  // namespace curtail
