// SPDX-License-Identifier: Apache-2.0
#include "apps/hdsearch/index/hamming.h"

namespace curtail::hdsearch {
namespace {

constexpr size_t kAhead = 8;  // signatures in flight: each is a cache miss of its own

template <size_t kWords>
[[gnu::always_inline]] inline void Distances(const uint64_t* codes, size_t words, const uint64_t* query,
                                             std::span<const uint32_t> ids, uint16_t* distances) {
  const size_t n = kWords != 0 ? kWords : words;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i + kAhead < ids.size()) __builtin_prefetch(codes + ids[i + kAhead] * n);
    const uint64_t* code = codes + ids[i] * n;
    int sum = 0;
    for (size_t w = 0; w < n; ++w) sum += __builtin_popcountll(code[w] ^ query[w]);
    distances[i] = static_cast<uint16_t>(sum);
  }
}

[[gnu::always_inline]] inline void AnyWidth(const uint64_t* codes, size_t words, const uint64_t* query,
                                            std::span<const uint32_t> ids, uint16_t* distances) {
  switch (words) {
    case 2:
      return Distances<2>(codes, words, query, ids, distances);
    case 4:
      return Distances<4>(codes, words, query, ids, distances);
    case 8:
      return Distances<8>(codes, words, query, ids, distances);
    default:
      return Distances<0>(codes, words, query, ids, distances);
  }
}

using Fn = void (*)(const uint64_t*, size_t, const uint64_t*, std::span<const uint32_t>, uint16_t*);

void Baseline(const uint64_t* codes, size_t words, const uint64_t* query, std::span<const uint32_t> ids,
              uint16_t* distances) {
  AnyWidth(codes, words, query, ids, distances);
}

Fn Choose() {
#if defined(__x86_64__)
  struct Popcnt {
    __attribute__((target("popcnt"))) static void Run(const uint64_t* codes, size_t words,
                                                      const uint64_t* query, std::span<const uint32_t> ids,
                                                      uint16_t* distances) {
      AnyWidth(codes, words, query, ids, distances);
    }
  };
  if (__builtin_cpu_supports("popcnt")) return Popcnt::Run;
#endif
  return Baseline;
}

}  // namespace

void HammingDistances(const uint64_t* codes, size_t words, const uint64_t* query,
                      std::span<const uint32_t> ids, uint16_t* distances) {
  static const Fn run = Choose();
  run(codes, words, query, ids, distances);
}

}  // namespace curtail::hdsearch
