// SPDX-License-Identifier: Apache-2.0
//
// load_reporter.h - tells clients how busy this server is, so that clients with the balancer
// `weighted_round_robin` send it its share of the calls.
//
// An interceptor: ServerOptions::interceptors. Each reply then carries in its trailing metadata, as
// `endpoint-load-metrics-bin`, the utilisation, the calls a second, and how many fail.
//
// The utilisation is of the CPUs that the process may use. A server that polls keeps them busy
// at any load, and one that waits for a store hardly uses them: such programs say by
// SetUtilization() how busy they are.
//
// Code: server/observe/load_reporter.cc.
#pragma once

#include <atomic>
#include <cstdint>

#include "curtail/base/mutex.h"
#include "curtail/rpc/interceptor.h"

namespace curtail {

// A LoadReporter measures the load of the process, and adds it to replies. Thread-safe; no call
// waits for another.
class LoadReporter final : public ServerInterceptor {
 public:
  // `period`: from one measurement to the next. Replies of the first period carry nothing.
  explicit LoadReporter(Nanos period = std::chrono::seconds(1));

  // Reports `share` of the program's capacity as used, from the next call on: 1 is all of it, and
  // more is overload. Zero: the CPU's again. Any thread.
  void SetUtilization(double share) { said_.store(share, std::memory_order_relaxed); }

  absl::Status Before(const IncomingCall& call) override;
  void After(const IncomingCall& call, const absl::Status& status, Nanos took) override;

 private:
  void Measure(TimePoint now);

  // Immutable after construction.
  const Nanos period_;
  const double cpus_;

  // Atomic, relaxed: each stands for itself. The first three are the last period's.
  std::atomic<double> cpu_{0};
  std::atomic<double> qps_{0};
  std::atomic<double> eps_{0};
  std::atomic<double> said_{0};
  std::atomic<uint64_t> calls_{0};
  std::atomic<uint64_t> errors_{0};
  std::atomic<int64_t> due_;  // in ns; the thread that moves it measures

  Mutex mu_;
  // At the last measurement.
  TimePoint measured_at_ CURTAIL_GUARDED_BY(mu_);
  int64_t cpu_ns_ CURTAIL_GUARDED_BY(mu_) = 0;
  uint64_t calls_then_ CURTAIL_GUARDED_BY(mu_) = 0;
  uint64_t errors_then_ CURTAIL_GUARDED_BY(mu_) = 0;
};

}  // namespace curtail
