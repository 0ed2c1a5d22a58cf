// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. PostgreSQL refuses to run as root. Then another user runs it, which the folders on the way keep out. So the
// two folders are opened before, and the server knows them as /proc/self/fd/NUMBER. A folder is made beside its place
// and moved there once it is whole, so that one that was left half made is none.
#include "curtail/store/sql/postgresql_server.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
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

// Fills the empty folder.
absl::Status MakeData(const fs::path& programs, const std::string& folder,
                      const std::optional<Runner>& runner) {
  const passwd* const user = getpwuid(geteuid());
  const std::string name = user == nullptr ? "root" : user->pw_name;
  auto initdb =
      deploy::Process::Spawn({.name = "initdb", .run = [&] {
                                if (runner.has_value() && !Become(*runner).ok()) _exit(126);
                                (void)deploy::BecomeProgram({programs / "initdb", "-D", folder, "-U", name,
                                                             "--auth=trust", "--no-locale", "-E", "UTF8"});
                                _exit(127);
                              }});
  if (!initdb.ok()) return initdb.status();
  (void)(*initdb)->ReadToEnd(Deadline::Infinite());
  if ((*initdb)->Terminate(Nanos(0)) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError("initdb has failed; its messages say why");
}

absl::Status MakeFolder(const std::string& folder, const std::optional<Runner>& runner) {
  const absl::StatusOr<fs::path> programs = ProgramsOf("");
  if (!programs.ok()) return programs.status();
  const std::string made = folder + ".new";
  std::error_code error;
  fs::remove_all(made, error);
  const absl::StatusOr<std::string> opened = OpenFolder(made, runner);
  if (!opened.ok()) return opened.status();
  if (absl::Status filled = MakeData(*programs, *opened, runner); !filled.ok()) return filled;
  return rename(made.c_str(), folder.c_str()) == 0 ? absl::OkStatus() : Failed(folder);
}

}  // namespace

absl::Status BecomePostgresql(const std::string& folder, const std::string& socket) {
  const absl::StatusOr<std::optional<Runner>> runner = RunnerOf();
  if (!runner.ok()) return runner.status();
  std::error_code error;
  if (!fs::exists(folder, error)) {
    if (absl::Status made = MakeFolder(folder, *runner); !made.ok()) return made;
  }
  std::string version;
  std::ifstream(folder + "/PG_VERSION") >> version;
  const absl::StatusOr<fs::path> programs = ProgramsOf(version);
  if (!programs.ok()) return programs.status();
  const absl::StatusOr<std::string> data = OpenFolder(folder, *runner);
  if (!data.ok()) return data.status();
  const std::string sockets = socket + ".d";
  const absl::StatusOr<std::string> opened = OpenFolder(sockets, *runner);
  if (!opened.ok()) return opened.status();
  if (unlink(socket.c_str()) != 0 && errno != ENOENT) return Failed(socket);
  const std::string target = fs::path(sockets).filename().string() + "/.s.PGSQL.5432";
  if (symlink(target.c_str(), socket.c_str()) != 0) return Failed(socket);
  if (runner->has_value()) {
    if (absl::Status became = Become(**runner); !became.ok()) return became;
  }
  return deploy::BecomeProgram({*programs / "postgres", "-D", *data, "-c", "listen_addresses=", "-c",
                                "port=5432", "-c", Join("unix_socket_directories=", *opened), "-c",
                                "max_connections=300", "-c", "shared_buffers=32MB", "-c",
                                "log_min_messages=fatal", "-c", "jit=off"});
}

}  // namespace curtail
