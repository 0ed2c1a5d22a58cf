// SPDX-License-Identifier: Apache-2.0
//
// fair_semaphore.h - a Semaphore whose callers have keys, such as addresses or users, so that no key keeps others from their turns.
//
//   const absl::StatusOr<FairSemaphore::Permit> permit = co_await semaphore.Acquire(ctx, address);
//   if (!permit.ok()) co_return permit.status();
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "curtail/base/mutex.h"
#include "curtail/exec/semaphore.h"
#include "curtail/rpc/co.h"
#include "curtail/rpc/context.h"

namespace curtail::apps {

// A FairSemaphore has places for callers that hold a permit or wait for one. A key takes a place only while it has fewer than
// half as many as are free, so others find places. Callers of one key wait in a line of their own, of which at most `of_key` hold
// permits of all or wait for them. So a caller waits for the callers of its key, and for `of_key` of each other key. Thread-safe.
class FairSemaphore {
 private:
  struct Line {
    explicit Line(int permits) : own(permits, SIZE_MAX) {}
    Semaphore own;
    size_t places = 0;  // guarded by mu_
  };
  using Lines = std::map<std::string, Line>;
  // Has a place until its end.
  class Place {
   public:
    Place(FairSemaphore& all, Lines::iterator line) : all_(all), line_(line) {}
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    ~Place();
    Semaphore& own() const { return line_->second.own; }

   private:
    FairSemaphore& all_;
    const Lines::iterator line_;
  };

 public:
  // A Permit is its holder's until its end. Thread-compatible.
  class [[nodiscard]] Permit {
   private:
    friend class FairSemaphore;
    Permit(std::unique_ptr<Place> place, Semaphore::Permit own, Semaphore::Permit one)
        : place_(std::move(place)), own_(std::move(own)), one_(std::move(one)) {}
    std::unique_ptr<Place> place_;  // gone last
    Semaphore::Permit own_, one_;
  };

  // REQUIRES: permits >= of_key > 0. There are `permits` and `most_waiting` places.
  FairSemaphore(int permits, int of_key, size_t most_waiting)
      : of_key_(of_key), places_(static_cast<size_t>(permits) + most_waiting), all_(permits, SIZE_MAX) {}
  FairSemaphore(const FairSemaphore&) = delete;
  FairSemaphore& operator=(const FairSemaphore&) = delete;

  // Errors: RESOURCE_EXHAUSTED at once, if the key has as many places as it may; DEADLINE_EXCEEDED and CANCELLED, as
  // Semaphore::Acquire(). `ctx` lives until then.
  Co<absl::StatusOr<Permit>> Acquire(const Context& ctx, std::string key);

  // How many callers hold a permit or wait.
  size_t taken() const {
    MutexLock lock(mu_);
    return taken_;
  }

 private:
  // Null if the key has as many places as it may.
  std::unique_ptr<Place> Take(std::string key);

  const int of_key_;
  const size_t places_;
  Semaphore all_;
  mutable Mutex mu_;
  Lines lines_ CURTAIL_GUARDED_BY(mu_);  // of the keys that have places
  size_t taken_ CURTAIL_GUARDED_BY(mu_) = 0;
};

}  // namespace curtail::apps
