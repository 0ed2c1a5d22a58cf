// SPDX-License-Identifier: Apache-2.0
#include "process.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace curtail::bench {
namespace {

// A file in memory, which has a path as long as this lives.
class MemoryFile {
 public:
  MemoryFile() : fd_(memfd_create("curtail", MFD_CLOEXEC)) {}
  ~MemoryFile() {
    if (fd_ >= 0) close(fd_);
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return absl::StrCat("/proc/self/fd/", fd_); }
  std::string Text() const {
    std::ifstream in(path(), std::ios::binary);
    return std::string((std::istreambuf_iterator<char>(in)), {});
  }

 private:
  const int fd_;
};

}  // namespace

absl::StatusOr<ProgramResult> RunProgram(const ProgramOptions& options) {
  const MemoryFile err;
  deploy::ProcessOptions process_options{
      .name = options.argv[0], .argv = options.argv, .log_path = err.path(), .nice = options.nice};
  if (options.cpu) process_options.cpus = {*options.cpu};
  const auto process = deploy::Process::Spawn(std::move(process_options));
  if (!process.ok()) return process.status();
  absl::StatusOr<std::string> out = (*process)->ReadToEnd(Deadline::In(options.timeout));
  if (!out.ok()) return out.status();
  const int status = (*process)->Terminate(Nanos::zero());
  return ProgramResult{.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
                       .out = *std::move(out),
                       .err = err.Text(),
                       .cpu = (*process)->Cpu()};
}

absl::StatusOr<std::unique_ptr<deploy::Process>> StartBusyProcess(int cpu) {
  return deploy::Process::Spawn({.name = "busy", .cpus = {cpu}, .run = [] {
                                   volatile bool busy = true;
                                   while (busy) {
                                   }
                                 }});
}

int AnyCpu() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 0;
  for (int cpu = CPU_SETSIZE - 1; cpu > 0; --cpu) {
    if (CPU_ISSET(cpu, &set)) return cpu;
  }
  return 0;
}

}  // namespace curtail::bench
