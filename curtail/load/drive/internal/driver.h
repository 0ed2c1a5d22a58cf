// SPDX-License-Identifier: Apache-2.0
//
// driver.h - the part that open and closed loop share: a client, the calls in flight, the recorder.
//
// Thread-compatible: made, used and destroyed by the sending thread.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "curtail/load/drive/internal/sampler.h"
#include "curtail/load/drive/internal/unread_reply.h"
#include "curtail/load/drive/internal/wake_margin.h"
#include "curtail/load/drive/recorder.h"
#include "curtail/load/drive/runner.h"
#include "curtail/load/target/load_client.h"

namespace curtail::internal {

// A Driver starts calls, polls, and books their ends. Times are offsets from Start().
class Driver {
 public:
  // `curve` is the rate of an open loop and outlives the driver; null in a closed loop.
  Driver(const RunOptions& options, const Workload& workload, LoadPlan plan, const RateCurve* curve);
  ~Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  // One call a connection, to completion; none if options.requests says how many there may be. Errors: see runner.h; `strict` as TryEachMethod().
  absl::Status Preflight(bool strict = false);
  // The run begins now, or at options.start_at. Errors: see runner.h.
  absl::Status Start();
  Nanos Elapsed() const { return Now() - start_; }

  // Starts request `number` of this thread, due at `intended`; or counts it as dropped when the limit of calls in flight is
  // reached. Bytes move with the next Poll().
  void Send(uint64_t number, Nanos intended);
  // Builds the message of request `number` ahead of its Send().
  void Prepare(uint64_t number);
  // Flushes, reads, and returns at once.
  void Poll();
  // Flushes, reads, waits until something happened or until `when` is near (by WakeMargin).
  // Within that distance it does not wait at all. A reply may stay unread until then (UnreadReply).
  void PollUntil(Nanos when);
  // Awaits the calls in flight until `limit`; books the rest as unfinished, journeys of an interrupted run as cut.
  void Drain(Nanos limit);

  bool Stopped() const { return options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed); }
  size_t in_flight() const { return in_flight_; }
  // The number of the run's first request. A journey may change its server, so the requests of Preflight() are not repeated.
  uint64_t first_index() const { return first_index_; }
  // The measured window has all requests that RunOptions::requests grants it.
  // Or nobody is there to send them to.
  bool AllSent() const { return options_.requests > 0 && (measured_ >= options_.requests || hopeless_); }

  // Starts and ends the accounting of CPU time over the measured window.
  void BeginWindow();
  void EndWindow();
  LoadResult Finish(Nanos end, bool interrupted);
  // Why a run without a Preflight() made no sense: nobody was there, or nobody served the method. OK: it did.
  absl::Status JudgeRun(const LoadResult& result) const;

 private:
  struct Call;
  struct Probe;
  static constexpr uint64_t kNone = ~uint64_t{0};

  // Why a run against the target makes no sense, from its first calls. OK: it does.
  absl::Status JudgeTarget(size_t target) const;
  // RunOptions::first_must_succeed, of all probes.
  absl::Status JudgeRequests(bool strict) const;
  bool NobodyAnswered() const;
  // The index in the workload of request `number` of this thread.
  uint64_t IndexOf(uint64_t number) const { return number * options_.threads + options_.thread; }
  void StepEnded(Call* call, const LoadCompletion::Step& step);
  void Ended(Call* call, const absl::Status& status, std::string_view reply);
  void Observe(Nanos due, Nanos latency, bool ok) const;
  // The checks of the OK reply to a request that was due then.
  void CheckReply(Nanos due, std::string_view reply);
  // Every second: closes an interval of the series. Always: Publish().
  void Housekeep(Nanos now);
  void Publish(Nanos now);
  // Requests due until `now`.
  uint64_t DueUntil(Nanos now) const;
  Call* TakeCall();
  // `drawn` holds what the reference may lead to.
  const Metadata& MetadataOf(uint64_t index, Metadata* drawn) const;

  // Immutable after construction.
  const RunOptions options_;
  const Workload& workload_;
  const Journey* const journey_;  // null: requests are single calls
  const Nanos timeout_;
  const Nanos warmup_;
  const bool poisson_;
  const RateCurve* const curve_;
  const Nanos failure_latency_;
  std::vector<uint64_t> firsts_;  // the first request of each method; none for journeys
  std::map<std::string_view, size_t>
      methods_;  // by path: as LoadPlan::methods, if there are two; empty for journeys

  Recorder recorder_;
  Sampler sampler_;
  WakeMargin margin_;
  UnreadReply unread_;
  uint64_t first_measured_ = kNone;  // number of the first request in the measured window
  uint64_t first_index_ = 0;
  TimePoint start_;
  Nanos started_{0};  // the same, since 1970
  Nanos next_tick_{0};

  // The message of request `prepared_number_`, when `prepared_`.
  std::string prepared_message_;
  Metadata drawn_metadata_;
  Metadata traced_metadata_;  // that of the request that is sent, with its trace
  uint64_t prepared_number_ = 0;
  bool prepared_ = false;

  size_t in_flight_ = 0;
  uint64_t sent_ = 0;
  uint64_t measured_ = 0;  // due in the measured window, dropped ones included
  uint64_t ok_ = 0;
  uint64_t failed_ = 0;
  absl::Status first_failure_;
  bool unprobed_ = false;  // Preflight() asked nothing
  bool hopeless_ = false;

  bool window_open_ = false;
  Nanos cpu_{0};   // at BeginWindow() its start, after EndWindow() its length
  Nanos spin_{0};  // time in polls that did nothing, within the window

  std::vector<std::pair<size_t, std::string>> failed_checks_;  // of one reply; kept for its memory

  std::vector<Probe> probes_;
  std::deque<Call> calls_;
  std::vector<Call*> free_;
  // Destroyed first, before the calls that it may complete.
  const std::unique_ptr<LoadClient> client_;
};

}  // namespace curtail::internal
