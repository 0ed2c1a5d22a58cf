// SPDX-License-Identifier: Apache-2.0
//
// The transform is written once over vectors of 16 floats, which the compiler maps to what the instruction
// set has; it is compiled for three of them and chosen at run time.
#include "apps/hdsearch/index/rotation.h"
#include "curtail/base/mix.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <memory>

namespace curtail::hdsearch {
namespace {

typedef float Lanes __attribute__((vector_size(64)));
constexpr size_t kLanes = 16;
constexpr int kRounds = 3;

// One butterfly stage inside a vector: lane i takes x[i] + x[i ^ H], or x[i ^ H] - x[i] where bit H of i is
// set.
template <int H>
[[gnu::always_inline]] inline void StageInside(Lanes& v) {
  constexpr auto s = [](int i) { return i & H ? -1.0f : 1.0f; };
  constexpr Lanes sign = {s(0), s(1), s(2),  s(3),  s(4),  s(5),  s(6),  s(7),
                          s(8), s(9), s(10), s(11), s(12), s(13), s(14), s(15)};
  const Lanes other = __builtin_shufflevector(v, v, 0 ^ H, 1 ^ H, 2 ^ H, 3 ^ H, 4 ^ H, 5 ^ H, 6 ^ H, 7 ^ H,
                                              8 ^ H, 9 ^ H, 10 ^ H, 11 ^ H, 12 ^ H, 13 ^ H, 14 ^ H, 15 ^ H);
  v = other + v * sign;
}

// Unnormalised Walsh-Hadamard transform of signs[i] * x[i], in place; n is a power of two >= 16.
[[gnu::always_inline]] inline void SignedHadamard(Lanes* x, const float* signs, size_t n) {
  const size_t vectors = n / kLanes;
  for (size_t i = 0; i < vectors; ++i) {
    Lanes sign;
    std::memcpy(&sign, signs + i * kLanes, sizeof sign);
    Lanes v = x[i] * sign;
    StageInside<1>(v), StageInside<2>(v), StageInside<4>(v), StageInside<8>(v);
    x[i] = v;
  }
  size_t h = 1;
  for (; h * 4 <= vectors; h *= 4) {  // two stages a pass halve the loads and stores
    for (size_t i = 0; i < vectors; i += 4 * h) {
      for (size_t j = i; j < i + h; ++j) {
        const Lanes a = x[j] + x[j + h], b = x[j] - x[j + h];
        const Lanes c = x[j + 2 * h] + x[j + 3 * h], d = x[j + 2 * h] - x[j + 3 * h];
        x[j] = a + c, x[j + h] = b + d, x[j + 2 * h] = a - c, x[j + 3 * h] = b - d;
      }
    }
  }
  if (h < vectors) {
    for (size_t j = 0; j < h; ++j) {
      const Lanes a = x[j], b = x[j + h];
      x[j] = a + b, x[j + h] = a - b;
    }
  }
}

using RoundsFn = void (*)(Lanes* x, const float* signs, size_t n);

[[gnu::always_inline]] inline void AllRounds(Lanes* x, const float* signs, size_t n) {
  for (int round = 0; round < kRounds; ++round) SignedHadamard(x, signs + static_cast<size_t>(round) * n, n);
}

void RoundsBaseline(Lanes* x, const float* signs, size_t n) { AllRounds(x, signs, n); }
#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) void RoundsAvx2(Lanes* x, const float* signs, size_t n) {
  AllRounds(x, signs, n);
}
__attribute__((target("avx512f"))) void RoundsAvx512(Lanes* x, const float* signs, size_t n) {
  AllRounds(x, signs, n);
}
#endif

RoundsFn ChooseRounds() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return RoundsAvx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return RoundsAvx2;
#endif
  return RoundsBaseline;
}

}  // namespace

Rotation::Rotation(size_t dimension, size_t outputs, uint64_t seed)
    : dimension_(dimension), outputs_(outputs), padded_(std::max(std::bit_ceil(dimension), kLanes)) {
  const size_t blocks = (outputs + padded_ - 1) / padded_;
  const float scale = 1.0f / std::sqrt(static_cast<float>(padded_));
  signs_.resize(blocks * kRounds * padded_);
  for (float& sign : signs_) sign = NextMix(seed) >> 63 ? scale : -scale;
}

void Rotation::Apply(const float* x, const float* mean, std::vector<float>& scratch, float* out) const {
  static const RoundsFn rounds = ChooseRounds();
  void* start = scratch.data();
  size_t space = scratch.size() * sizeof(float);
  auto* buffer = static_cast<float*>(std::align(sizeof(Lanes), padded_ * sizeof(float), start, space));
  for (size_t done = 0, block = 0; done < outputs_; done += padded_, ++block) {
    for (size_t i = 0; i < dimension_; ++i) buffer[i] = x[i] - mean[i];
    std::memset(buffer + dimension_, 0, (padded_ - dimension_) * sizeof(float));
    rounds(reinterpret_cast<Lanes*>(buffer), &signs_[block * kRounds * padded_], padded_);
    std::memcpy(out + done, buffer, std::min(padded_, outputs_ - done) * sizeof(float));
  }
}

}  // namespace curtail::hdsearch
