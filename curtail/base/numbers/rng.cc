// SPDX-License-Identifier: Apache-2.0
#include "curtail/base/rng.h"

#include <bit>
#include <cmath>

#include "curtail/base/mix.h"

namespace curtail {

Rng::Rng(uint64_t seed) {
  for (uint64_t& word : state_) word = NextMix(seed);
}

uint64_t Rng::Next() {
  const uint64_t result = std::rotl(state_[0] + state_[3], 23) + state_[0];
  const uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

double Rng::Uniform01() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

// 1 - u is in (0, 1], so the logarithm is finite.
double Rng::Exponential(double mean) { return -mean * std::log(1.0 - Uniform01()); }

uint64_t Rng::Below(uint64_t n) {
  __extension__ using Wide = unsigned __int128;
  Wide product = static_cast<Wide>(Next()) * n;
  if (static_cast<uint64_t>(product) < n) {
    const uint64_t threshold = -n % n;  // 2^64 mod n: draws below it would favour small results
    while (static_cast<uint64_t>(product) < threshold) product = static_cast<Wide>(Next()) * n;
  }
  return static_cast<uint64_t>(product >> 64);
}

}  // namespace curtail
