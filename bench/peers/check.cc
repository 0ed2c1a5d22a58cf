// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include "absl/strings/str_cat.h"

namespace curtail::bench {
namespace {

// Long against a round trip. That a slow machine answers no sooner can only hide a fault, never make one up.
constexpr Nanos kQuiet = std::chrono::milliseconds(100);
constexpr Nanos kAnswer = std::chrono::seconds(10);

// The outcome of the request under way within `timeout`; nothing if it still is.
absl::StatusOr<std::vector<Generator::Done>> Await(Generator& generator, Nanos timeout) {
  std::vector<Generator::Done> done;
  const Deadline deadline = Deadline::In(timeout);
  while (done.empty() && !deadline.Expired()) {
    if (absl::Status polled = generator.Poll(deadline, &done); !polled.ok()) return polled;
  }
  return done;
}

double Switches(const ServerProcess& server) { return server.process->Usage().context_switches; }

// Waits until every leaf but `stopped` has run since `before`; it sleeps when it is not called.
absl::Status AwaitOthers(const Servers& servers, size_t stopped, const std::vector<double>& before,
                         Generator& generator) {
  const Deadline deadline = Deadline::In(kAnswer);
  for (size_t i = 0; i < servers.leaves.size(); ++i) {
    while (i != stopped && Switches(servers.leaves[i]) == before[i]) {
      if (deadline.Expired()) {
        return absl::FailedPreconditionError(
            absl::StrCat("the mid-tier does not call leaf ", i, " while leaf ", stopped, " is silent"));
      }
      absl::StatusOr<std::vector<Generator::Done>> early = Await(generator, kQuiet);
      if (!early.ok()) return early.status();
    }
  }
  return absl::OkStatus();
}

// With the leaf stopped.
absl::Status CheckWaits(const Servers& servers, size_t stopped, Generator& generator) {
  std::vector<double> before;
  for (const ServerProcess& leaf : servers.leaves) before.push_back(Switches(leaf));
  generator.Send(0);
  absl::StatusOr<std::vector<Generator::Done>> early = Await(generator, kQuiet);
  if (!early.ok()) return early.status();
  if (!early->empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the mid-tier answers without leaf ", stopped, ": ", early->front().status.ToString()));
  }
  return AwaitOthers(servers, stopped, before, generator);
}

absl::Status CheckLeaf(const Servers& servers, size_t index, Generator& generator) {
  servers.leaves[index].process->Pause();
  absl::Status waits = CheckWaits(servers, index, generator);
  servers.leaves[index].process->Resume();
  if (!waits.ok()) return waits;
  absl::StatusOr<std::vector<Generator::Done>> late = Await(generator, kAnswer);
  if (!late.ok()) return late.status();
  if (late->empty()) return absl::DeadlineExceededError(absl::StrCat("no answer after leaf ", index));
  return late->front().status;
}

}  // namespace

absl::Status CheckFanOut(const Servers& servers, Generator& generator) {
  for (size_t i = 0; i < servers.leaves.size(); ++i) {
    if (absl::Status checked = CheckLeaf(servers, i, generator); !checked.ok()) return checked;
  }
  return absl::OkStatus();
}

}  // namespace curtail::bench
