// SPDX-License-Identifier: Apache-2.0
//
// actors.h - random users in threads of their own: all at once, or each again and again until they shall rest.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "curtail/base/rng.h"

namespace curtail::apps {

// Returns when `act(rng, thread)` has returned in all of `threads`, the first of which is the caller's. Each has
// numbers of its own by `seed`.
void AllAtOnce(size_t threads, uint64_t seed, const std::function<void(Rng&, size_t)>& act);

// Actors are closed loops, and count what they have done. Thread-safe but for Begin() and Rest().
class Actors {
 public:
  enum class Did : uint8_t { kWrote, kFailedToWrite, kOther };

  Actors() = default;
  ~Actors() { Rest(); }
  Actors(const Actors&) = delete;
  Actors& operator=(const Actors&) = delete;

  // Has a thread act again and again until Rest(), with random numbers by `seed`.
  void Begin(uint64_t seed, std::function<void(Rng&)> act);
  // Waits for the acts in progress.
  void Rest();
  // For acts that are long.
  bool resting() const { return resting_; }

  // Counts an act.
  void Note(Did did);
  // Until so many more acts were counted. False: that took longer than kMaxTestWait.
  bool Await(int more) { return Await(&all_, more); }
  bool AwaitWrites(int more) { return Await(&written_, more); }
  // Until more writes than these have failed.
  bool AwaitFailedAfter(int failed);
  int failed() const;

 private:
  bool Await(const int* count, int more);

  std::atomic<bool> resting_{false};
  std::vector<std::thread> threads_;
  mutable std::mutex mu_;
  std::condition_variable acted_;
  int all_ = 0, written_ = 0, failed_ = 0;  // guarded by mu_
};

}  // namespace curtail::apps
