// SPDX-License-Identifier: Apache-2.0
#include "instructions.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <atomic>
#include <iterator>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "bench/common/callgrind.h"
#include "bench/common/round.h"
#include "bench/common/scratch.h"
#include "bench/common/spread.h"
#include "generator.h"
#include "servers.h"

namespace curtail::bench {
namespace {

constexpr Nanos kEndTimeout = std::chrono::seconds(60);

class Counter {
 public:
  Counter(const Options& options, Callgrind callgrind, const std::atomic<bool>& stop)
      : options_(options), callgrind_(std::move(callgrind)), stop_(stop) {}

  // The difference between two runs, a request.
  absl::StatusOr<double> PerRequest(const StackInfo& stack, const Setup& setup, uint32_t outstanding) {
    absl::StatusOr<double> few = Run(stack, setup, outstanding, kFewRequests);
    if (!few.ok()) return few;
    absl::StatusOr<double> many = Run(stack, setup, outstanding, kManyRequests);
    if (!many.ok()) return many;
    return (*many - *few) / static_cast<double>(kManyRequests - kFewRequests);
  }

 private:
  // How many the mid-tier took for all its life.
  absl::StatusOr<double> Run(const StackInfo& stack, const Setup& setup, uint32_t outstanding,
                             uint64_t requests) {
    absl::StatusOr<Servers> servers =
        StartServers(stack, setup, options_.leaf_config, callgrind_.NextWrapper());
    if (!servers.ok()) return servers.status();
    absl::StatusOr<std::unique_ptr<Generator>> generator =
        MakeGenerator(stack.protocol, servers->mid.address, setup);
    if (!generator.ok()) return generator.status();
    absl::StatusOr<Sample> sample = RunRequests(**generator, outstanding, requests, stop_);
    if (!sample.ok()) return sample.status();
    if (!sample->first_error.ok()) return sample->first_error;
    const int ended = servers->mid.process->Terminate(kEndTimeout);
    if (WIFSIGNALED(ended) && WTERMSIG(ended) == SIGKILL) {
      return absl::DeadlineExceededError("a server does not end on SIGTERM");
    }
    return callgrind_.Total();
  }

  const Options& options_;
  Callgrind callgrind_;
  const std::atomic<bool>& stop_;
};

std::vector<Instructions> Subjects(const Options& options, bool valgrind) {
  std::vector<Instructions> subjects;
  for (const Setup& setup : options.setups) {
    for (const std::string& name : options.stacks) {
      absl::StatusOr<StackInfo> stack = DescribeStack(name);
      if (!stack.ok()) continue;  // ParseOptions() has described it
      Instructions& one = subjects.emplace_back(Instructions{*stack, setup, stack->missing, {}});
      one.counts.resize(std::size(kCountedLoads));
      if (!valgrind) one.note = "no valgrind here";
      if (one.note.empty() && stack->polls) one.note = "polls: not counted";
    }
  }
  return subjects;
}

void CountOnce(Counter& counter, Instructions& subject) {
  for (size_t i = 0; i < std::size(kCountedLoads) && subject.note.empty(); ++i) {
    const absl::StatusOr<double> counted = counter.PerRequest(subject.stack, subject.setup, kCountedLoads[i]);
    if (counted.ok()) {
      subject.counts[i].push_back(*counted);
    } else if (!absl::IsCancelled(counted.status())) {
      subject.note = absl::StrCat("under valgrind: ", counted.status().ToString());
    }
  }
}

}  // namespace

std::vector<Instructions> CountInstructions(const Options& options, Session& session) {
  const ScratchFolder scratch;
  const absl::StatusOr<Callgrind> callgrind = Callgrind::Find(scratch.path());
  // For the children. Go interrupts its own threads by signals, on which callgrind fails; without them Go's scheduler
  // waits until a goroutine calls a function, as these do all the time.
  setenv("GODEBUG", "asyncpreemptoff=1", 1);
  std::vector<Instructions> subjects = Subjects(options, callgrind.ok());
  std::optional<Counter> counter;
  if (callgrind.ok()) counter.emplace(options, *callgrind, session.stop());
  const RoundPlan plan{
      .rounds = counter ? options.rounds : 0, .subjects = subjects.size(), .stop = &session.stop()};
  const absl::Status ended = RunRounds(plan, [&](const Turn& turn) {
    Instructions& one = subjects[turn.subject];
    session.Progress(
        absl::StrCat("instructions, ", RoundText(plan, turn), one.stack.name, " ", one.setup.label));
    if (one.note.empty()) CountOnce(*counter, one);
    return absl::OkStatus();
  });
  if (!ended.ok()) session.Note("interrupted: the report is partial");
  return subjects;
}

}  // namespace curtail::bench
