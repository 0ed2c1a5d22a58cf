// SPDX-License-Identifier: Apache-2.0
//
// name_lookups.h - the thread of a client that looks names up again.
#pragma once

#include <memory>
#include <vector>

#include "curtail/base/mutex.h"
#include "curtail/exec/internal/ticker.h"

namespace curtail::internal {

// Something whose answer may have changed. Thread-safe.
class Lookup {
 public:
  virtual ~Lookup() = default;
  // Asks anew. May block.
  virtual void LookUp() = 0;
};

// A NameLookups runs lookups when they are due. Its thread starts with the first of them. Thread-safe; no method but
// the destructor blocks, which waits for a lookup in progress.
class NameLookups {
 public:
  // Runs `lookup` once, at `when` or soon after, unless it is gone by then. One that is due already runs once, at the
  // earlier of both times. Returns false if the system has no thread for it: the lookup is forgotten, try again.
  [[nodiscard]] bool At(TimePoint when, std::weak_ptr<Lookup> lookup);

 private:
  struct Due {
    TimePoint when;
    std::weak_ptr<Lookup> lookup;
  };

  Nanos Tick(TimePoint now);

  Mutex mu_;
  bool started_ CURTAIL_GUARDED_BY(mu_) = false;
  std::vector<Due> due_ CURTAIL_GUARDED_BY(mu_);

  Ticker ticker_;  // last: its thread uses the rest
};

}  // namespace curtail::internal
