// SPDX-License-Identifier: Apache-2.0
//
// study.h - starts the processes, finds the baseline's peak, and measures all variants at all loads in turns.
//
// Every variant has a compose process of its own, all share the five parts. In a round every variant has its turn
// at the first load, then every variant at the second, and so on, so that what disturbs the machine for some
// seconds disturbs neighbours alike; each load begins with another variant. All variants get the same arrivals,
// and each round others.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/load/drive/runner.h"
#include "curtail/rpc/channel.h"
#include "results.h"
#include "serve.h"
#include "workload.h"

namespace curtail::study {

// A Study drives the load generator on the calling thread. Thread-compatible.
class Study {
 public:
  // Measures what `results` asks for into it. All arguments outlive the study; `progress` hears a line before
  // each measurement.
  Study(Results* results, const std::string& log_folder, const std::atomic<bool>& stop,
        std::function<void(const std::string&)> progress);
  ~Study();

  // Starts all processes, and has every variant compose a post, which is read back and compared. Errors: those
  // of Tier; INTERNAL when a variant composes a wrong post.
  absl::Status Start();
  // The highest median throughput of the baseline over closed loops with `outstanding` requests.
  absl::Status FindBaselinePeak(const std::vector<int>& outstanding);
  // All rounds. Errors: CANCELLED when stopped; what kept the load generator from running.
  absl::Status Measure();

 private:
  struct Composer;

  absl::Status StartComposer(const Variant& variant, const std::vector<std::string>& parts);
  absl::Status Check(Composer& composer);
  absl::StatusOr<Consumed> Usage(Composer& composer);
  absl::StatusOr<Measurement> MeasureCell(Composer& composer, const Load& load, uint64_t seed);
  absl::StatusOr<LoadResult> Drive(const std::string& address, const Load& load, uint64_t seed);
  double CellSeconds(const Load& load) const;

  Results& results_;
  const std::string log_folder_;
  const std::atomic<bool>& stop_;
  const std::function<void(const std::string&)> progress_;
  const ComposeWorkload workload_;
  RunOptions run_;
  std::vector<std::unique_ptr<Tier>> parts_;
  Client client_;
  std::unique_ptr<Channel> timeline_;
  std::vector<std::unique_ptr<Composer>> composers_;  // of results_.rows, in their order
};

}  // namespace curtail::study
