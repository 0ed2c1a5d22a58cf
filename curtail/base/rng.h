// SPDX-License-Identifier: Apache-2.0
//
// rng.h - a small seeded random generator that gives the same numbers on every platform.
//
// For schedules, samplers and tests. Not for secrets. A seed names one sequence on every platform,
// unlike the distributions of <random>, whose algorithms are the library's choice. Exponential() is
// the same up to the last bit of libm's log.
#pragma once

#include <array>
#include <cstdint>

namespace curtail {

// An Rng is xoshiro256++ 1.0 (Blackman and Vigna, "Scrambled linear pseudorandom number
// generators", 2021), seeded through splitmix64. Thread-compatible; copying it forks the sequence.
class Rng {
 public:
  explicit Rng(uint64_t seed);

  // 64 uniform bits.
  uint64_t Next();
  // Uniform in [0, 1), a multiple of 2^-53.
  double Uniform01();
  // Exponentially distributed with the given mean (> 0); finite and >= 0.
  double Exponential(double mean);
  // Uniform in [0, n), unbiased (Lemire, "Fast random integer generation in an interval", 2019).
  // REQUIRES: n > 0.
  uint64_t Below(uint64_t n);

  // For <algorithm> and <random>.
  using result_type = uint64_t;
  static constexpr uint64_t min() { return 0; }
  static constexpr uint64_t max() { return ~uint64_t{0}; }
  uint64_t operator()() { return Next(); }

 private:
  std::array<uint64_t, 4> state_;
};

}  // namespace curtail
