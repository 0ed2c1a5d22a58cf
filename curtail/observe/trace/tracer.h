// SPDX-License-Identifier: Apache-2.0
//
// tracer.h - chooses the calls that become spans, and takes those to a collector, off the threads that answer.
//
// A thread that answers a call takes a span from a pool, fills it in and hands it over: no lock, no system call but to wake
// the exporter at times, no memory in the steady state. One thread of the tracer's own does the rest. Whatever the
// collector does, memory stays within kMostSpans spans and kMostBytes for each of two batches; what exceeds that is
// dropped, and counted by reason.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "curtail/base/mix.h"
#include "curtail/observe/trace/exemplars.h"
#include "curtail/observe/trace/slow_calls.h"
#include "curtail/observe/trace/span.h"
#include "curtail/observe/trace/trace_exporter.h"

namespace curtail::observe {

struct TracerOptions {
  double sample = 0.001;  // the share of calls chosen before they run
  Nanos slow{0};          // calls that take longer become spans; 0: those beyond their method's p99.9
  size_t methods = 0;
  std::string service;  // the name of this one
  TraceTarget target;
  Nanos batch_time = std::chrono::seconds(1);  // between POSTs
  Nanos retry_time =
      std::chrono::seconds(1);  // after a failure; twice as long after each further one, up to 30 s
  Nanos flush_time = std::chrono::seconds(1);  // for the last batch, when the tracer is destroyed
};

struct TracerStats {
  uint64_t spans = 0;        // of calls, taken from the threads that answered
  uint64_t delivered = 0;    // of these, in batches that the collector took
  uint64_t full = 0;         // dropped: a ring, or the pool, was full
  uint64_t backlog = 0;      // dropped: the collector is behind
  uint64_t refused = 0;      // dropped: in batches that the collector refused, or did not take in time
  uint64_t bad_context = 0;  // contexts of callers that were ignored
  uint64_t bad_state = 0;    // tracestates, likewise
};

namespace internal {

// The state of the random numbers of one thread; 0: to be seeded.
inline thread_local constinit uint64_t random_state = 0;
uint64_t RandomSeed();

// Not for secrets.
inline uint64_t NextRandom() {
  if (random_state == 0) [[unlikely]]
    random_state = RandomSeed();
  return NextMix(random_state);
}

}  // namespace internal

// A Tracer works until it is destroyed. Thread-safe; all that hand spans over have stopped before its end.
class Tracer {
 public:
  static constexpr size_t kMostSpans = 512;
  static constexpr size_t kMostBytes = 1u << 20;
  static constexpr size_t kRecent = 128;
  static constexpr size_t kMostThreads = 256;
  static constexpr int kLateShare = 8;

  // Errors: RESOURCE_EXHAUSTED without descriptors.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Tracer>> Start(TracerOptions options);
  // Sends the last batch, for flush_time at most, plus the time of a name lookup.
  ~Tracer();
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  // Draws: true for the share of calls that are chosen. Any thread.
  bool Draw() const { return internal::NextRandom() < threshold_ || all_; }
  // A random number that is not 0, not for secrets. Any thread.
  static uint64_t NewId() {
    const uint64_t id = internal::NextRandom();
    return id != 0 ? id : 1;
  }
  // Counts a call that was not chosen. True if it is slow. Any thread.
  bool IsSlow(size_t method, Nanos duration) { return slow_.IsSlow(method, duration); }
  // A share of the limit of slow calls: what a call has done sooner after its arrival does not make it slow. Any thread.
  Nanos LateAfter(size_t method) const { return slow_.limit(method) / kLateShare; }
  // Counts what a caller sent.
  void CountErrors(const TraceErrors& errors);

  // A span to fill in; null when too many are on their way, which counts. Hand it over then.
  Span* TakeSpan();
  void HandOver(Span* span);

  TracerStats stats() const;
  // The latest spans, the newest first, as the page /traces has them (docs/observe.md).
  std::string RecentJson() const;
  // The latest calls that became spans, by method and bucket.
  std::vector<BucketExemplars> exemplars() const;

 private:
  class Impl;
  explicit Tracer(TracerOptions options);

  // Immutable.
  const uint64_t threshold_;  // of Draw()
  const bool all_;
  SlowCalls slow_;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace curtail::observe
