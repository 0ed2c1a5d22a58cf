// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/load_reporter.h"

#include <algorithm>

#include "curtail/base/cpus.h"
#include "curtail/rpc/client/balancer/reported_load.h"

namespace curtail {
LoadReporter::LoadReporter(Nanos period) : period_(std::max(period, Nanos(1))), cpus_(UsableCpuTime()) {
  MutexLock lock(mu_);
  measured_at_ = Now();
  cpu_ns_ = ProcessCpuTime().count();
  due_.store((measured_at_ + period_).time_since_epoch().count(), std::memory_order_relaxed);
}

absl::Status LoadReporter::Before(const IncomingCall& call) {
  int64_t due = due_.load(std::memory_order_relaxed);
  if (call.began.time_since_epoch().count() >= due &&
      due_.compare_exchange_strong(due, (call.began + period_).time_since_epoch().count(),
                                   std::memory_order_relaxed)) {
    Measure(call.began);
  }
  const internal::ServerLoad load{.cpu = cpu_.load(std::memory_order_relaxed),
                                  .application = said_.load(std::memory_order_relaxed),
                                  .qps = qps_.load(std::memory_order_relaxed),
                                  .eps = eps_.load(std::memory_order_relaxed)};
  if (load.qps > 0) call.context.AddTrailingMetadata(internal::kLoadReportKey, internal::WriteLoad(load));
  return absl::OkStatus();
}

void LoadReporter::After(const IncomingCall&, const absl::Status& status, Nanos) {
  calls_.fetch_add(1, std::memory_order_relaxed);
  if (!status.ok()) errors_.fetch_add(1, std::memory_order_relaxed);
}

void LoadReporter::Measure(TimePoint now) {
  MutexLock lock(mu_);
  const double seconds = InSeconds(now - measured_at_);
  if (seconds <= 0) return;
  const int64_t cpu_ns = ProcessCpuTime().count();
  const uint64_t calls = calls_.load(std::memory_order_relaxed);
  const uint64_t errors = errors_.load(std::memory_order_relaxed);
  cpu_.store(static_cast<double>(cpu_ns - cpu_ns_) / 1e9 / seconds / cpus_, std::memory_order_relaxed);
  qps_.store(static_cast<double>(calls - calls_then_) / seconds, std::memory_order_relaxed);
  eps_.store(static_cast<double>(errors - errors_then_) / seconds, std::memory_order_relaxed);
  measured_at_ = now;
  cpu_ns_ = cpu_ns;
  calls_then_ = calls;
  errors_then_ = errors;
}

}  // namespace curtail
