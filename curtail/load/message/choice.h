// SPDX-License-Identifier: Apache-2.0
//
// choice.h - chooses the item of each request of a run: in turn, evenly at random, or skewed.
//
// Real users ask for few things often. Their skew decides what caches and shards are worth, so it
// is part of the offered load.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace curtail {

// An ItemChoice gives each request of a run one of n items, 0 to n - 1. Immutable: any thread may
// call its methods.
class ItemChoice {
 public:
  // More items are refused: whole numbers in a double end here.
  static constexpr uint64_t kMaxItems = uint64_t{1} << 53;

  // The item of a request. It depends only on the parsed spec, the seed and the number, so runs can
  // be repeated and requests built in any order. Takes some tens of ns.
  uint64_t Index(uint64_t request) const;

  // The parsed text: "zipf:0.99".
  const std::string& spec() const { return spec_; }
  uint64_t items() const { return items_; }

 private:
  friend absl::StatusOr<ItemChoice> ParseItemChoice(std::string_view spec, uint64_t n, uint64_t seed);
  enum class Kind { kInTurn, kUniform, kZipf, kSkew };

  ItemChoice() = default;
  void PrepareZipf(double exponent);
  uint64_t Zipf(uint64_t request) const;

  std::string spec_;
  Kind kind_ = Kind::kInTurn;
  uint64_t items_ = 1;
  uint64_t key_ = 0;  // derived from the seed, for request 0
  // kSkew: the first items, which are hot.
  uint64_t hot_ = 0;
  // kZipf: the exponent, and the sampler's constants.
  double exponent_ = 0;
  double low_ = 0, high_ = 0;  // the range of the integral that is sampled
  double sure_ = 0;            // a rank this far to the right of the sample is accepted at once
};

// Reads how to choose among `n` items:
//   in-turn    0, 1, ..., n - 1, 0, ...
//   uniform    each as likely as any other
//   zipf:S     item i with probability proportional to 1 / (i + 1)^S, 0 < S <= 100; item 0 is the
//              most popular
//   skew:S     the first 100 - S percent of the items (at least one) get 90 % of the requests, the
//              others the rest; 0 <= S < 100, and at 0 all are alike
// skew is DeathStarBench's measure of skewed users (Gan et al., ASPLOS 2019, section 8). zipf uses
// rejection-inversion, exact for any n (Hormann and Derflinger, "Rejection-inversion to generate
// variates from monotone discrete distributions", ACM TOMACS 1996).
// Errors: INVALID_ARGUMENT for another spec, and for n = 0 or above kMaxItems.
absl::StatusOr<ItemChoice> ParseItemChoice(std::string_view spec, uint64_t n, uint64_t seed);

}  // namespace curtail
