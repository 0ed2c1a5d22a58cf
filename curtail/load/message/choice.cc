// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/message/choice.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "absl/strings/str_format.h"
#include "curtail/base/rng.h"
#include "curtail/base/strings.h"

namespace curtail {
namespace {

// The share of the requests that the hot items get.
constexpr double kHotShare = 0.9;
constexpr double kMaxExponent = 100;

// (e^x - 1) / x and ln(1 + x) / x, which tend to 1 at 0.
double Expm1Over(double x) { return std::abs(x) > 1e-8 ? std::expm1(x) / x : 1 + x / 2; }
double Log1pOver(double x) { return std::abs(x) > 1e-8 ? std::log1p(x) / x : 1 - x / 2; }

// The integral of t^-s from 1 to x, and its inverse; both also for s = 1.
double Integral(double s, double x) { return Expm1Over((1 - s) * std::log(x)) * std::log(x); }
double Inverse(double s, double y) {
  // Rounding may lead just below -1, where the logarithm ends.
  return std::exp(Log1pOver(std::max(-1.0, (1 - s) * y)) * y);
}
double Weight(double s, double rank) { return std::exp(-s * std::log(rank)); }

absl::Status Unknown(std::string_view spec) {
  return absl::InvalidArgumentError(
      Join("no way to choose items is called \"", spec.substr(0, 40),
           "\"; there are in-turn, uniform, zipf:EXPONENT (zipf:0.99) and skew:PERCENT (skew:80)"));
}

}  // namespace

absl::StatusOr<ItemChoice> ParseItemChoice(std::string_view spec, uint64_t n, uint64_t seed) {
  if (n == 0) return absl::InvalidArgumentError("there is no item to choose");
  if (n > ItemChoice::kMaxItems) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%d items are too many to choose from; at most %d", n, ItemChoice::kMaxItems));
  }
  ItemChoice choice;
  choice.spec_ = spec;
  choice.items_ = n;
  choice.key_ = Rng(seed).Next();
  const size_t colon = spec.find(':');
  const std::string_view name = spec.substr(0, colon);
  const double none = std::numeric_limits<double>::quiet_NaN();
  const double number = colon == spec.npos ? none : ParseNumber(spec.substr(colon + 1)).value_or(none);
  if (spec == "in-turn") {
    choice.kind_ = ItemChoice::Kind::kInTurn;
  } else if (spec == "uniform") {
    choice.kind_ = ItemChoice::Kind::kUniform;
  } else if (name == "zipf") {
    if (!(number > 0 && number <= kMaxExponent)) {
      return absl::InvalidArgumentError("zipf needs an exponent above 0, up to 100, such as zipf:0.99");
    }
    choice.PrepareZipf(number);
  } else if (name == "skew") {
    if (!(number >= 0 && number < 100)) {
      return absl::InvalidArgumentError("skew needs a percentage from 0 to below 100, such as skew:80");
    }
    choice.kind_ = ItemChoice::Kind::kSkew;
    const double hot = std::round(static_cast<double>(n) * (100 - number) / 100);
    choice.hot_ = std::clamp<uint64_t>(static_cast<uint64_t>(hot), 1, n);
  } else {
    return Unknown(spec);
  }
  return choice;
}

uint64_t ItemChoice::Index(uint64_t request) const {
  switch (kind_) {
    case Kind::kInTurn:
      return request % items_;
    case Kind::kUniform:
      return Rng(key_ + request).Below(items_);
    case Kind::kZipf:
      return Zipf(request);
    case Kind::kSkew: {
      Rng rng(key_ + request);
      const bool hot = hot_ == items_ || rng.Uniform01() < kHotShare;
      return hot ? rng.Below(hot_) : hot_ + rng.Below(items_ - hot_);
    }
  }
  return 0;
}

void ItemChoice::PrepareZipf(double exponent) {
  kind_ = Kind::kZipf;
  exponent_ = exponent;
  low_ = Integral(exponent, 1.5) - 1;
  high_ = Integral(exponent, static_cast<double>(items_) + 0.5);
  sure_ = 2 - Inverse(exponent, Integral(exponent, 2.5) - Weight(exponent, 2));
}

uint64_t ItemChoice::Zipf(uint64_t request) const {
  // A point under the curve t^-s from 1/2 to n + 1/2 (its first piece replaced by one of area 1) falls to the
  // nearest rank; it is accepted with the share of that piece's area which belongs to the rank.
  Rng rng(key_ + request);
  for (;;) {
    const double y = high_ + rng.Uniform01() * (low_ - high_);
    const double x = Inverse(exponent_, y);
    const double rank = std::clamp(std::round(x), 1.0, static_cast<double>(items_));
    if (rank - x <= sure_ || y >= Integral(exponent_, rank + 0.5) - Weight(exponent_, rank)) {
      return static_cast<uint64_t>(rank) - 1;
    }
  }
}

}  // namespace curtail
