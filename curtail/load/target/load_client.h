// SPDX-License-Identifier: Apache-2.0
//
// load_client.h - how the requests of a run travel to its targets.
//
// A protocol is one LoadClient. Its driver starts requests, polls, and hears their ends; schedules, records and reports
// know no protocol.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "curtail/base/clock.h"
#include "curtail/load/message/journey.h"
#include "curtail/load/target/target_options.h"

namespace curtail::internal {

// A LoadCompletion hears of one request.
class LoadCompletion : public Completion {
 public:
  // The end of a step.
  struct Step {
    size_t step;
    Nanos pause;    // before it
    Nanos lag;      // from then to its sending
    Nanos latency;  // from when it was due to the end of its reply
    const absl::Status& status;
  };
  // A step of a journey has ended, in order. The last one, or a failed one, just before Done().
  virtual void OnStep(const Step& /*step*/) {}

  uint64_t index = 0;  // of the request in its workload
  // Of a journey: the time of each step, and the longest that it pauses between two.
  Nanos step_timeout{0};
  Nanos longest_pause = Nanos::max();
};

// A LoadClient belongs to one thread. It connects on first use, and again after a lost connection. When it is destroyed
// it drops the requests in flight: their completions never run.
class LoadClient {
 public:
  virtual ~LoadClient() = default;

  // Looks the targets up; before the first Start(). Errors: INVALID_ARGUMENT, UNAVAILABLE.
  virtual absl::Status Resolve() = 0;
  // Begins a request to target number `target` and returns. Bytes move with the next Poll(). `message` is the
  // serialized message, or the body. `method` serves protocols whose targets do not name it themselves. `done` hears
  // the end: at the latest soon after `deadline`.
  virtual void Start(size_t target, std::string_view method, Deadline deadline, const Metadata& metadata,
                     std::string_view message, LoadCompletion* done) = 0;
  // Moves bytes and runs completions; waits at most until `deadline` for the first event. Returns how many requests
  // have ended.
  virtual size_t Poll(Deadline deadline) = 0;
  // True if that target has ever answered a request, with any status.
  virtual bool Answered(size_t target) const = 0;
  // When the client will have something to send by itself.
  virtual TimePoint NextDue() const { return TimePoint::max(); }
  // Advice for the reader of the result.
  virtual std::vector<std::string> Warnings() const { return {}; }
};

// The client that `options` ask for; with a journey, which outlives it, one whose requests are journeys.
std::unique_ptr<LoadClient> MakeLoadClient(const TargetOptions& options, const Journey* journey = nullptr);

}  // namespace curtail::internal
