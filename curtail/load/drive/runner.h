// SPDX-License-Identifier: Apache-2.0
//
// runner.h - drives load at a server and measures it.
//
// RunOpenLoop() sends on schedule, whatever the server does: use it to measure latency. RunClosedLoop() keeps
// a number of requests in flight, so that a slow server is asked less: use it only to find the highest
// throughput. Both run on the calling thread, which they keep for the whole run, with one event-driven
// client. They check each target with one call a connection first. Memory does not grow with the length of the run.
// Thread safety: runs are independent; several may run at once.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "curtail/load/drive/live.h"
#include "curtail/load/drive/schedule.h"
#include "curtail/load/message/workload.h"
#include "curtail/load/report/result.h"
#include "curtail/rpc/channel.h"

namespace curtail {

// Hears what becomes of each request, for what a result does not keep. Called on the sending thread, which it must not
// keep.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  // The run begins at `start`: all times below are from there.
  virtual void Started(TimePoint start) = 0;
  // A request that was due at `due`, in the warm-up too, has ended or will never. `latency` is from `due`; that of a
  // failed one at least the timeout.
  virtual void Ended(Nanos due, Nanos latency, bool ok) = 0;
};

struct RunOptions {
  // "host:port" or "unix:/path" each; requests go to them in turn.
  std::vector<std::string> targets;
  // Connections to each target, TLS, the longest reply.
  ChannelOptions channel;
  // Sent with every request.
  Metadata metadata;
  // For the report; without a schedule_name the rate is constant.
  std::string workload_name;
  std::string schedule_name;
  // What a call may take from its intended send time; then it fails with DEADLINE_EXCEEDED. Raise for slow
  // methods.
  Nanos timeout = std::chrono::seconds(1);
  // The first part of the run, not measured.
  Nanos warmup = std::chrono::seconds(2);
  // How long before a send the thread stops sleeping and looks at the clock instead, as timers fire late: by 50 to 200
  // us on virtual machines. Costs at most this much CPU a request; while it spins, replies are also seen at once. By
  // default learnt during the run: what 99 of 100 timers here are late at most. Zero: sleep always.
  std::optional<Nanos> spin;
  // Run the sending thread at real-time priority where the process may, so that a server that shares its CPUs
  // does not make it late. It then takes the CPU from the server when a send is due, as spinning does. The
  // result says whether it was so.
  bool realtime = true;
  // A request due while so many are in flight is not sent and counts as failed.
  size_t max_in_flight = 100'000;
  // When it becomes true, sending ends, what is in flight is awaited, and the result is marked interrupted.
  // May be null.
  const std::atomic<bool>* stop = nullptr;
  // Kept up to date if not null.
  Live* live = nullptr;
  // Told of everything if not null.
  RunObserver* observer = nullptr;
};

// The plans of such runs, as their results will have them but for what only a run shows: real-time priority and the spin
// that was learnt. REQUIRES: the schedule is longer than the warm-up.
LoadPlan PlanOpenLoop(const RunOptions& options, const Workload& workload, const Schedule& schedule);
LoadPlan PlanClosedLoop(const RunOptions& options, const Workload& workload, int outstanding, Nanos duration);

// Sends workload.Request(i) when the i-th arrival of `schedule` is due. The schedule covers warm-up and measured window; what
// lies before options.warmup is not measured. Returns at most timeout + 2 s after the last send. Errors, all
// from the check before the run: UNAVAILABLE (nobody there), UNIMPLEMENTED (no such method),
// DEADLINE_EXCEEDED (no answer), INVALID_ARGUMENT (options, or the target is no address). Any other failure
// of the check is left for the run to count.
absl::StatusOr<LoadResult> RunOpenLoop(const RunOptions& options, const Workload& workload,
                                       const Schedule& schedule);

// Keeps `outstanding` requests in flight for warm-up and `duration`. Latency is that of a caller who waits:
// it hides stalls (coordinated omission). Errors as above.
absl::StatusOr<LoadResult> RunClosedLoop(const RunOptions& options, const Workload& workload, int outstanding,
                                         Nanos duration);

}  // namespace curtail
