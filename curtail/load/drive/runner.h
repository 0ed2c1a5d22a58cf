// SPDX-License-Identifier: Apache-2.0
//
// runner.h - drives load at a server and measures it.
//
// RunOpenLoop() sends on schedule, whatever the server does: use it to measure latency.
// RunClosedLoop() keeps a number of requests in flight, so a slow server gets fewer: use it only to
// find the highest throughput. Both run on the calling thread for the whole run, with one
// event-driven client. They first check each target with one call a connection. Memory does not
// grow with the length of the run.
// Thread safety: runs are independent; several may run at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "curtail/load/drive/live.h"
#include "curtail/load/drive/request_tracer.h"
#include "curtail/load/drive/schedule.h"
#include "curtail/load/message/metadata_template.h"
#include "curtail/load/message/reply_check.h"
#include "curtail/load/message/workload.h"
#include "curtail/load/report/result.h"
#include "curtail/load/target/target_options.h"

namespace curtail {

// A RunObserver hears the end of each request, for data that a result does not keep. The sending
// thread calls it; an observer must return at once.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  // The run begins at `start`: all times below count from there.
  virtual void Started(TimePoint start) = 0;
  // The request due at `due`, in the warm-up too, has ended or never will. `latency` counts from
  // `due`; a failed request's is at least the timeout.
  virtual void Ended(Nanos due, Nanos latency, bool ok) = 0;
};

// More connections to a target, or requests in flight of a closed loop, are refused.
inline constexpr int kMaxConnections = 1024;
inline constexpr int kMaxOutstanding = 100'000;

struct RunOptions : TargetOptions {
  // How often that makes a call again at most, for the report.
  int retries = 0;
  // Where several threads send a run at once, their number, and which one this is: thread 1 of 4
  // sends requests 1, 5, 9, ... of the workload.
  uint64_t threads = 1;
  uint64_t thread = 0;
  // When the run starts, which several generators agree on. By default as soon as the targets have
  // answered.
  std::optional<TimePoint> start_at;
  // Sent with every request.
  Metadata metadata;
  // Draws the metadata of each request, in place of `metadata`, if not null.
  std::shared_ptr<const MetadataTemplate> drawn_metadata;
  // Checks every OK reply if not null, a journey's last one. The sending thread does, after it has
  // taken the latency.
  std::shared_ptr<const ReplyChecks> checks;
  // For the report. Without a schedule_name the rate is constant.
  std::string workload_name;
  std::string schedule_name;
  // The time of a call from its intended send time; then it fails with DEADLINE_EXCEEDED. Raise for
  // slow methods.
  Nanos timeout = std::chrono::seconds(1);
  // The first request of each method must succeed, or there is no run: for workloads whose requests
  // are all right for the servers that they are meant for.
  bool first_must_succeed = false;
  // The first part of the run, not measured.
  Nanos warmup = std::chrono::seconds(2);
  // Ends the measured window after this many requests, if it has not ended before. 0: it has its
  // full length.
  uint64_t requests = 0;
  // The time before a send at which the thread stops sleeping and watches the clock. Timers fire
  // late, by 20 to 200 us on virtual machines. Costs at most this much CPU a request. While the
  // thread spins, it also sees replies at once. By default the run learns it: the lateness that 9
  // of 10 timers stay below. Zero: always sleep.
  std::optional<Nanos> spin;
  // Run the sending thread at real-time priority where the process may. A server that shares its
  // CPUs then does not make it late. In return it takes the CPU from the server when a send is due,
  // as spinning does. The result says if the thread had that priority.
  bool realtime = true;
  // A request due while this many are in flight is not sent and counts as failed.
  size_t max_in_flight = 100'000;
  // When it becomes true, sending ends, the run awaits the requests in flight, and the result is
  // marked interrupted. May be null.
  const std::atomic<bool>* stop = nullptr;
  // Updated during the run if not null.
  Live* live = nullptr;
  // Hears every request if not null.
  RunObserver* observer = nullptr;
  // Begins traces with requests if not null.
  RequestTracer* tracer = nullptr;
};

// The plans of such runs. Their results have the same but for two values that only a run shows:
// real-time priority and the learnt spin. REQUIRES: the schedule is longer than the warm-up.
LoadPlan PlanOpenLoop(const RunOptions& options, const Workload& workload, const Schedule& schedule);
LoadPlan PlanClosedLoop(const RunOptions& options, const Workload& workload, int outstanding, Nanos duration);

// Sends workload.Request(i) when the i-th arrival of `schedule` is due. The schedule covers warm-up
// and measured window; requests before options.warmup are not measured. Returns at most timeout + 2
// s after the last send.
// Before the run one request a connection is made, which it does not count; none if
// options.requests says how many there are, and they are single calls of no known application.
// Errors: UNAVAILABLE (no connection), UNIMPLEMENTED (of every first call to a target),
// INVALID_ARGUMENT (options, or the target is not an address), FAILED_PRECONDITION
// (first_must_succeed: a method's first request did not, for a reason that is not of the moment).
// Also INVALID_ARGUMENT if start_at has passed, and CANCELLED if options.stop came before it. A
// server that answers with another status, or stands still, is there: the run counts it.
absl::StatusOr<LoadResult> RunOpenLoop(const RunOptions& options, const Workload& workload,
                                       const Schedule& schedule);

// Keeps `outstanding` requests in flight for warm-up and `duration`. Latency is what a caller that
// waits sees: it hides stalls (coordinated omission). Errors as above.
absl::StatusOr<LoadResult> RunClosedLoop(const RunOptions& options, const Workload& workload, int outstanding,
                                         Nanos duration);

// Sends the first request of each method, all at once, and awaits them for 5 s, or options.timeout
// if that is more. Errors of the check before a run; FAILED_PRECONDITION names a method
// whose first request failed, for whatever reason.
absl::Status TryEachMethod(RunOptions options, const Workload& workload);

}  // namespace curtail
