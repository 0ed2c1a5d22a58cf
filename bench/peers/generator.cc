// SPDX-License-Identifier: Apache-2.0
#include "generator.h"

#include <algorithm>
#include <deque>
#include <random>

#include "absl/strings/str_cat.h"

namespace curtail::bench {
namespace {

// How long the last answers may take once sending has ended.
constexpr Nanos kDrainTimeout = std::chrono::seconds(10);
// How long a poll may last at most, so that a stop request is noticed.
constexpr Nanos kLongestWait = std::chrono::milliseconds(100);

float Micros(Nanos nanos) { return static_cast<float>(nanos.count()) / 1000.0f; }

// The requests under way, when each is counted from, and what came of them.
class Book {
 public:
  Book(Generator& generator, const std::atomic<bool>& stop)
      : generator_(generator), stop_(stop), started_(generator.slots()) {
    for (uint32_t slot = generator.slots(); slot > 0; --slot) free_.push_back(slot - 1);
  }

  bool full() const { return free_.empty(); }
  bool idle() const { return free_.size() == started_.size(); }

  void Send(TimePoint counted_from) {
    const uint32_t slot = TakeSlot();
    started_[slot] = counted_from;
    generator_.Send(slot);
  }

  // Waits for answers and records them. Returns how many there were. Errors: CANCELLED, which is a stop request.
  absl::StatusOr<size_t> Collect(Deadline deadline) {
    done_.clear();
    do {
      if (stop_.load(std::memory_order_relaxed)) return absl::CancelledError("interrupted");
      const Deadline soon = std::min(deadline, Deadline::In(kLongestWait));
      if (absl::Status polled = generator_.Poll(soon, &done_); !polled.ok()) return polled;
    } while (done_.empty() && !deadline.Expired());
    if (!done_.empty()) last_answer_ = Now();
    for (const Generator::Done& done : done_) {
      if (done.status.ok()) {
        sample_.latencies_us.push_back(Micros(last_answer_ - started_[done.slot]));
      } else {
        ++sample_.failed;
        sample_.first_error.Update(done.status);
      }
      free_.push_back(done.slot);
    }
    return done_.size();
  }

  // Of requests answered or failed.
  uint64_t finished() const { return sample_.latencies_us.size() + sample_.failed; }

  // Waits for what is under way. What is not answered in time has failed, and the generator is of no more
  // use.
  absl::Status Drain() {
    const Deadline deadline = Deadline::In(kDrainTimeout);
    while (!idle()) {
      if (absl::StatusOr<size_t> collected = Collect(deadline); !collected.ok()) return collected.status();
      if (!idle() && deadline.Expired()) {
        return absl::DeadlineExceededError(
            absl::StrCat(started_.size() - free_.size(), " requests were not answered within 10 s"));
      }
    }
    return absl::OkStatus();
  }

  Sample Finish(TimePoint begin) {
    sample_.seconds = std::chrono::duration<double>(last_answer_ - begin).count();
    std::sort(sample_.latencies_us.begin(), sample_.latencies_us.end());
    return std::move(sample_);
  }

 private:
  uint32_t TakeSlot() {
    const bool front = generator_.in_turn();
    const uint32_t slot = front ? free_.front() : free_.back();
    if (front) {
      free_.pop_front();
    } else {
      free_.pop_back();
    }
    return slot;
  }

  Generator& generator_;
  const std::atomic<bool>& stop_;
  std::vector<TimePoint> started_;  // by slot
  std::deque<uint32_t> free_;
  std::vector<Generator::Done> done_;
  TimePoint last_answer_ = Now();
  Sample sample_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Generator>> MakeGenerator(Protocol protocol, const std::string& address,
                                                         const Setup& setup) {
  if (protocol == Protocol::kGrpc) return MakeRpcGenerator(address, setup);
#ifdef CURTAIL_BENCH_CAPNP
  if (protocol == Protocol::kCapnp) return MakeCapnpGenerator(address, setup);
#endif
  return MakeFrameGenerator(protocol, address, setup);
}

absl::StatusOr<Sample> RunClosedLoop(Generator& generator, uint32_t outstanding, Nanos duration,
                                     const std::atomic<bool>& stop) {
  Book book(generator, stop);
  const TimePoint begin = Now();
  const Deadline end = Deadline::At(begin + duration);
  for (uint32_t i = 0; i < outstanding && !book.full(); ++i) book.Send(begin);
  while (!end.Expired()) {
    absl::StatusOr<size_t> answered = book.Collect(end);
    if (!answered.ok()) return answered.status();
    const TimePoint now = Now();
    for (size_t i = 0; i < *answered; ++i) book.Send(now);
  }
  if (absl::Status drained = book.Drain(); !drained.ok()) return drained;
  return book.Finish(begin);
}

absl::StatusOr<Sample> RunRequests(Generator& generator, uint32_t outstanding, uint64_t requests,
                                   const std::atomic<bool>& stop) {
  Book book(generator, stop);
  const TimePoint begin = Now();
  uint64_t sent = 0;
  for (; sent < std::min<uint64_t>(outstanding, requests) && !book.full(); ++sent) book.Send(begin);
  while (book.finished() < requests) {
    absl::StatusOr<size_t> answered = book.Collect(Deadline::In(kDrainTimeout));
    if (!answered.ok()) return answered.status();
    if (*answered == 0) return absl::DeadlineExceededError("the mid-tier has stopped answering");
    const TimePoint now = Now();
    for (size_t i = 0; i < *answered && sent < requests; ++i, ++sent) book.Send(now);
  }
  return book.Finish(begin);
}

absl::StatusOr<Sample> RunOpenLoop(Generator& generator, double rate, Nanos duration, uint64_t seed,
                                   const std::atomic<bool>& stop) {
  Book book(generator, stop);
  std::mt19937_64 random(seed);
  std::exponential_distribution<double> gap_seconds(rate);
  const auto next_gap = [&] { return Nanos(static_cast<int64_t>(gap_seconds(random) * 1e9)); };
  const TimePoint begin = Now();
  const TimePoint end = begin + duration;
  TimePoint due = begin + next_gap();
  while (due < end) {
    // All that is due goes out together, as it would from many callers.
    for (const TimePoint now = Now(); due <= now && due < end && !book.full(); due += next_gap())
      book.Send(due);
    const Deadline wake = book.full() ? Deadline::In(kDrainTimeout) : Deadline::At(std::min(due, end));
    absl::StatusOr<size_t> answered = book.Collect(wake);
    if (!answered.ok()) return answered.status();
    if (*answered == 0 && book.full())
      return absl::DeadlineExceededError("the mid-tier has stopped answering");
  }
  if (absl::Status drained = book.Drain(); !drained.ok()) return drained;
  return book.Finish(begin);
}

}  // namespace curtail::bench
