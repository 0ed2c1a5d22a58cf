// SPDX-License-Identifier: Apache-2.0
#include "curtail/base/boundary.h"

#include <atomic>
#include <exception>

#include "curtail/base/clock.h"
#include "curtail/base/log.h"
#include "curtail/base/strings.h"

namespace curtail {
namespace {

constexpr Nanos kBetweenLines = std::chrono::seconds(10);

// Atomic, relaxed: they order nothing. The time of the last line is in ns; 0: there was none.
std::atomic<uint64_t> contained{0};
std::atomic<int64_t> told{0};

std::string_view WhatOf(const std::exception* e) { return e == nullptr ? "of a type of its own" : e->what(); }

void Tell(std::string_view where, const std::exception* e, uint64_t times) {
  const int64_t now = Nanos(Now().time_since_epoch()).count();
  int64_t last = told.load(std::memory_order_relaxed);
  if (last != 0 && now - last < kBetweenLines.count()) return;
  if (!told.compare_exchange_strong(last, now, std::memory_order_relaxed)) return;
  Log(Severity::kError,
      Join("an exception reached the boundary of ", where, ": ", WhatOf(e), "; ", times, " so far"),
      {{"where", where}, {"exception", WhatOf(e)}, {"times", times}});
}

}  // namespace

void internal::NoteException(std::string_view where) noexcept {
  const uint64_t times = contained.fetch_add(1, std::memory_order_relaxed) + 1;
  try {
    try {
      throw;
    } catch (const std::exception& e) {
      Tell(where, &e, times);
    } catch (...) {
      Tell(where, nullptr, times);
    }
  } catch (...) {  // no memory for the line
  }
}

uint64_t ContainedExceptions() { return contained.load(std::memory_order_relaxed); }

}  // namespace curtail
