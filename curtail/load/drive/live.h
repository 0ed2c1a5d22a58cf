// SPDX-License-Identifier: Apache-2.0
//
// live.h - the state of a running load as another thread sees it, for progress displays.
#pragma once

#include <atomic>
#include <cstdint>

namespace curtail {

// A Live is written by the sending thread and read by a display. Thread-safe. Each field is
// independent and approximate (relaxed order): a reader may see counts of slightly different
// moments.
struct alignas(64) Live {
  std::atomic<int64_t> elapsed_ns{0};  // since the start of the run; 0 until it starts
  std::atomic<uint64_t> sent{0};
  std::atomic<uint64_t> ok{0};
  std::atomic<uint64_t> failed{0};
  std::atomic<uint64_t> in_flight{0};
  // Of the last whole second.
  std::atomic<int64_t> p50_ns{0};
  std::atomic<int64_t> p99_ns{0};
  std::atomic<double> due_per_s{0};
  std::atomic<double> sent_per_s{0};
};

}  // namespace curtail
