// SPDX-License-Identifier: Apache-2.0
//
// reported_load.h - what a server says of its load at the end of each call, and the weight that this makes.
//
// The rules and the names are gRPC's: https://github.com/grpc/proposal/blob/master/A58-client-side-weighted-round-robin-lb-policy.md
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "curtail/base/clock.h"

namespace curtail::internal {

// The balancer that goes by it.
inline constexpr std::string_view kWeightedRoundRobin = "weighted_round_robin";
// The key of a report in the trailing metadata. Its value is an xds.data.orca.v3.OrcaLoadReport, whose fields are
// 1 cpu_utilization, 6 rps_fractional, 7 eps and 9 application_utilization, all of them doubles; others are passed over.
inline constexpr std::string_view kLoadReportKey = "endpoint-load-metrics-bin";

struct ServerLoad {
  double cpu = 0;          // 1: all CPUs are busy; may be above
  double application = 0;  // in its place, if above zero
  double qps = 0;
  double eps = 0;  // calls that fail, a second
};
// False: `bytes` is no report.
bool ReadLoad(std::string_view bytes, ServerLoad* load);
std::string WriteLoad(const ServerLoad& load);

struct WeightOptions {
  // A server has its weight once it has reported for so long ...
  Nanos blackout = std::chrono::seconds(10);
  // ... and until so long after its last report.
  Nanos expiration = std::chrono::minutes(3);
  Nanos update = std::chrono::seconds(1);  // of the balancer; at least 0.1 s
  double error_penalty = 1;                // utilisation for a server whose calls all fail
};

// A ReportedLoad is the weight of one server. Calls report on any thread.
class ReportedLoad {
 public:
  // A call has ended with a report.
  void Report(std::string_view bytes, double error_penalty, TimePoint now);
  // Zero: there is none.
  double Weight(const WeightOptions& options, TimePoint now);
  // A connection is lost: the blackout begins anew with the next report.
  void Forget() { since_.store(kNever, std::memory_order_relaxed); }

 private:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  // Atomic, relaxed: hints, which order nothing. Times in ns.
  std::atomic<double> weight_{0};
  std::atomic<int64_t> since_{kNever};  // the first report
  std::atomic<int64_t> last_{0};
};

}  // namespace curtail::internal
