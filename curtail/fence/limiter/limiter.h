// SPDX-License-Identifier: Apache-2.0
//
// limiter.h - finds the limit of a path class from what it measures of it.
//
// A strategy is a file beside this one, and a line of the table in limiters.cc. It is a pure
// function of the bins that it is given: no clock, no lock, no thread. docs/design/fences.md says
// which to take.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "curtail/base/clock.h"

namespace curtail {

// The activity of a class in a short interval, about kLoadBin long.
struct LoadBin {
  Nanos length{0};
  double concurrency = 0;  // requests begun and not answered, the mean over the interval
  uint64_t completed = 0;  // answered
  uint64_t dropped = 0;    // of those: overload or a deadline was the answer
  bool limited = false;    // requests waited for a permit
  uint32_t most = 1;       // the limit that the server can give at most
};

// The length of bins that SCT's paper found right.
inline constexpr Nanos kLoadBin = std::chrono::milliseconds(50);

// A Limiter follows one class. Thread-compatible.
class Limiter {
 public:
  virtual ~Limiter() = default;
  // Takes the next bin. Returns the limit from now on: from 1 to `bin.most`.
  virtual uint32_t Next(const LoadBin& bin) = 0;
};

// The name of limits that do not follow anything: the profile's, or equal shares.
inline constexpr std::string_view kFixedLimit = "fixed";

// True for kFixedLimit and the strategies.
bool IsLimiter(std::string_view name);
// "fixed, sct, ...".
std::string LimiterNames();
// A limiter that begins with the limit `first`. REQUIRES: IsLimiter(name), and not kFixedLimit.
std::unique_ptr<Limiter> MakeLimiter(std::string_view name, uint32_t first);

// The strategies.
std::unique_ptr<Limiter> MakeSct(uint32_t first);
std::unique_ptr<Limiter> MakeAimd(uint32_t first);
std::unique_ptr<Limiter> MakeVegas(uint32_t first);
std::unique_ptr<Limiter> MakeGradient2(uint32_t first);

}  // namespace curtail
