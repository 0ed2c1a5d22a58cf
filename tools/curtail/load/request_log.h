// SPDX-License-Identifier: Apache-2.0
//
// request_log.h - every request of a load test, for analyses that percentiles and seconds cannot serve.
#pragma once

#include <deque>
#include <string>

#include "curtail/base/clock.h"
#include "curtail/load/drive/runner.h"

namespace curtail::tool {

// A RequestLog keeps 24 bytes a request in memory and writes nothing while a run goes on, because a
// write would delay sends. Thread-compatible: the sending thread fills it.
class RequestLog final : public RunObserver {
 public:
  void Started(TimePoint) override { ++run_; }
  void Ended(Nanos due, Nanos latency, bool ok) override { entries_.push_back({due, latency, run_, ok}); }

  // A heading, then "run,due_us,latency_us,ok" for each request in the order in which they ended,
  // those of the warm-up too. Runs count from 1; `due_us` counts from the start of the warm-up.
  std::string Csv() const;

 private:
  struct Entry {
    Nanos due, latency;
    int run;
    bool ok;
  };

  int run_ = 0;
  std::deque<Entry> entries_;  // never moved, as a vector's would be
};

}  // namespace curtail::tool
