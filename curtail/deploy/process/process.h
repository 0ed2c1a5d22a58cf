// SPDX-License-Identifier: Apache-2.0
//
// process.h - a child process that never outlives this one; all code starts processes by it.
//
// The destructor ends the child and waits for it. The kernel kills the child when the thread that
// spawned it dies (PR_SET_PDEATHSIG), whatever killed that thread. The child has a process group of
// its own: Ctrl-C on the terminal reaches only this process, which then ends its children in order.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "curtail/base/internal/unique_fd.h"
#include "curtail/deploy/process/process_usage.h"

namespace curtail::deploy {

struct ProcessOptions {
  std::string name;               // for messages: "leaf 0"
  std::vector<std::string> argv;  // argv[0] is an executable: its path, or its name in $PATH
  // Takes its standard error; empty: the standard error of this process.
  std::string log_path;
  // Its standard output goes with its standard error. AwaitLine() and ReadToEnd() then see nothing.
  bool out_to_log = false;
  std::vector<int> cpus;  // on which it may run; empty: this process's
  int nice = 0;
  // A write beyond fails with EFBIG, as if the disk were full; 0: no bound.
  uint64_t max_file_bytes = 0;
  // The file cgroup.procs of a group that it joins before it runs anything; empty: none.
  std::string cgroup_procs;
  bool counted = false;  // the kernel counts its context switches and instructions for Usage()
  // Replaces the program: the child is a copy of this process that calls this and ends with code 0.
  // Only the calling thread goes on in the copy, so the function must not need a lock that another
  // thread may hold.
  std::function<void()> run;
};

// A Process is one running child. Thread-compatible. The thread that spawns it must live as long.
class Process {
 public:
  // Errors: NOT_FOUND or PERMISSION_DENIED (the executable), INTERNAL (what the system said).
  static absl::StatusOr<std::unique_ptr<Process>> Spawn(ProcessOptions options);
  // Terminate(2 s).
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // Reads standard output up to a line that begins with `prefix` and returns the rest of that line.
  // Errors: ABORTED when the child has ended, DEADLINE_EXCEEDED, both with the end of its log;
  // CANCELLED when `stop` (may be null) was set.
  absl::StatusOr<std::string> AwaitLine(std::string_view prefix, Deadline deadline,
                                        const std::atomic<bool>* stop);
  // Like AwaitLine(), with a choice of prefixes.
  absl::StatusOr<std::string> AwaitAnyLine(const std::vector<std::string_view>& prefixes, Deadline deadline,
                                           const std::atomic<bool>* stop);

  // Reads standard output until the child has ended and returns it. Errors: DEADLINE_EXCEEDED; the
  // child then runs on.
  absl::StatusOr<std::string> ReadToEnd(Deadline deadline);

  // Asks it to end (SIGTERM), and kills it once `grace` has passed. Returns its wait status when it
  // is gone; later calls return the same.
  int Terminate(Nanos grace);
  // Like Terminate(), for a child that must end well. Errors: DEADLINE_EXCEEDED when it had to be
  // killed, INTERNAL when it ended with another code than 0, both with the end of its log.
  absl::Status End(Nanos grace);
  // Kills it (SIGKILL). Returns its wait status when it is gone.
  int Kill();
  // Returns true once it has ended by itself; false at the deadline.
  bool AwaitEnd(Deadline deadline);
  // Stops its execution, so that an idle but polling server takes no CPU, and lets it go on. All of
  // its threads have stopped when Pause() returns.
  void Pause();
  void Resume();

  // True if it has not ended. What it started in its process group ends with it.
  bool Running();
  // Drops what it writes to standard output from now on, so that it never waits for a reader: a
  // thread reads it. REQUIRES: it is called once, and no call reads the output afterwards.
  void DiscardOutput();
  // Asks it to end (SIGTERM) and does not wait.
  void BeginToEnd();
  pid_t pid() const { return pid_; }
  const std::string& name() const { return options_.name; }
  // User and system time so far; once the child has ended, its own children's as well.
  Nanos Cpu() const;
  // Zeros once the child has ended.
  ProcessUsage Usage() const { return counters_.Read(pid_); }
  // "ended with code 3", "was killed by signal 9 (Killed)". REQUIRES: it has ended.
  std::string HowItEnded() const;
  // The last lines of its standard error, indented, or empty.
  std::string LogTail() const;

 private:
  Process(ProcessOptions options, pid_t pid, int out) : options_(std::move(options)), pid_(pid), out_(out) {}
  // Waits for output, briefly and no longer than `deadline`, and appends it to unread_. Returns how
  // many bytes came; 0 at the end of the output; -1 when none came.
  ssize_t ReadMore(Deadline deadline);
  absl::Status Ended() const;

  const ProcessOptions options_;
  const pid_t pid_;
  int out_;                    // read end of its standard output
  internal::UniqueFd enough_;  // tells discarding_ to end
  std::thread discarding_;
  ProcessCounters counters_;
  std::string unread_;
  bool asked_to_end_ = false;
  bool reaped_ = false;
  int wait_status_ = 0;
  Nanos cpu_at_end_{0};
};

// Runs a program in the place of this process. Returns only on an error, one of Process::Spawn().
absl::Status BecomeProgram(std::vector<std::string> argv);

}  // namespace curtail::deploy
