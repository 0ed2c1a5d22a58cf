// SPDX-License-Identifier: Apache-2.0
//
// Everything is a hash of the seed and of what it belongs to, so that any part can be generated alone. Which
// items a user rates is drawn with probabilities that fall by rank in popularity, as in Zipf's law, each item
// at most once a user.
#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>
#include <unordered_set>

#include "apps/kit/parallel.h"
#include "apps/recommend/data/ratings.h"
#include "curtail/base/rng.h"

namespace curtail::recommend {
namespace {

// Shape of the generated data; MovieLens 100k has about these.
constexpr double kItemExponent = 0.8;
constexpr double kUserExponent = 0.7;
constexpr double kUserOffset = 10;
constexpr double kMean = 3.5;
constexpr double kUserBias = 0.45, kItemBias = 0.55;  // standard deviations
constexpr double kTaste = 0.65;                       // of the product of factors

enum Stream : uint64_t {
  kUserBiasStream = 1,
  kItemBiasStream,
  kTasteStream,
  kTraitStream,
  kPairStream,
  kDrawStream
};

// Of a standard normal distribution, by Box and Muller.
double Gaussian(uint64_t seed, Stream stream, uint64_t a, uint64_t b = 0) {
  const uint64_t bits = Mix(Mix(seed, stream), Mix(a, b));
  const double u = (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53;
  const double v = static_cast<double>(Mix(bits) >> 11) * 0x1p-53;
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
}

// Items by popularity; sums of the weights up to each, for drawing.
std::vector<double> Popularity(uint32_t items) {
  std::vector<double> sums(items);
  double sum = 0;
  for (uint32_t i = 0; i < items; ++i) sums[i] = sum += std::pow(i + 1.0, -kItemExponent);
  return sums;
}

// How many ratings each user gives: together all, none more than three quarters of the items.
std::vector<uint32_t> Activity(const SyntheticOptions& o) {
  double total = 0;
  for (uint32_t u = 0; u < o.users; ++u) total += std::pow(u + kUserOffset, -kUserExponent);
  const uint64_t most = std::max<uint64_t>(1, uint64_t{o.items} * 3 / 4);
  std::vector<uint32_t> counts(o.users);
  uint64_t given = 0;
  double sum = 0;
  for (uint32_t u = 0; u < o.users; ++u) {
    sum += std::pow(u + kUserOffset, -kUserExponent);
    const auto due = static_cast<uint64_t>(static_cast<double>(o.ratings) * std::min(1.0, sum / total));
    counts[u] = static_cast<uint32_t>(std::min(most, due > given ? due - given : 0));
    given += counts[u];
  }
  for (uint32_t u = 0; given < o.ratings; u = (u + 1) % o.users) {  // what rounding and the limit left
    const uint64_t more = std::min({most - counts[u], o.ratings - given, (o.ratings - given) / o.users + 1});
    counts[u] += static_cast<uint32_t>(more);
    given += more;
  }
  return counts;
}

float Stars(const SyntheticOptions& o, uint32_t user, uint32_t item) {
  double stars = kMean + kUserBias * Gaussian(o.seed, kUserBiasStream, user) +
                 kItemBias * Gaussian(o.seed, kItemBiasStream, item) +
                 o.noise * Gaussian(o.seed, kPairStream, user, item);
  double product = 0;
  for (uint32_t f = 0; f < o.rank; ++f) {
    product += Gaussian(o.seed, kTasteStream, user, f) * Gaussian(o.seed, kTraitStream, item, f);
  }
  if (o.rank > 0) stars += kTaste * product / std::sqrt(o.rank);
  return static_cast<float>(std::clamp(std::round(stars), 1.0, 5.0));
}

// Ids count from 1, as MovieLens' do.
void GenerateUser(const SyntheticOptions& o, const std::vector<double>& popularity, uint32_t user,
                  uint32_t count, Shard shard, std::vector<Rating>* out) {
  Rng rng(Mix(Mix(o.seed, kDrawStream), user));
  std::unordered_set<uint32_t> rated;
  while (rated.size() < count) {
    const double point = rng.Uniform01() * popularity.back();
    const auto place = std::upper_bound(popularity.begin(), popularity.end(), point) - popularity.begin();
    const auto item = std::min(static_cast<uint32_t>(place), o.items - 1);
    if (!rated.insert(item).second || !Holds(shard, user + 1, item + 1)) continue;
    out->push_back({user + 1, item + 1, Stars(o, user, item)});
  }
}

// The ratings depend on these and nothing else.
uint64_t FingerprintOf(const SyntheticOptions& o) {
  uint64_t sum = 0;
  for (const uint64_t part : {uint64_t{o.users}, uint64_t{o.items}, o.ratings, uint64_t{o.rank},
                              std::bit_cast<uint64_t>(o.noise), o.seed}) {
    sum = Mix(sum, part);
  }
  return sum;
}

}  // namespace

absl::StatusOr<Ratings> GenerateRatings(const SyntheticOptions& o, Shard shard, const ReadOptions& options) {
  const std::vector<double> popularity = Popularity(o.items);
  const std::vector<uint32_t> activity = Activity(o);
  std::vector<std::vector<Rating>> by_user(o.users);
  apps::Progress progress("generating ratings", o.users, options.quiet, "users");
  absl::Status status = apps::ForRanges(0, o.users, options.threads, [&](size_t begin, size_t end) {
    for (size_t user = begin; user < end; ++user, progress.Add(1)) {
      GenerateUser(o, popularity, static_cast<uint32_t>(user), activity[user], shard, &by_user[user]);
    }
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  Ratings ratings;
  ratings.low = 1, ratings.high = 5;
  ratings.fingerprint = FingerprintOf(o);
  for (std::vector<Rating>& list : by_user) {
    ratings.list.insert(ratings.list.end(), list.begin(), list.end());
    std::vector<Rating>().swap(list);
  }
  if (ratings.list.size() > kMaxRatings)
    return absl::ResourceExhaustedError("too many ratings; use more shards");
  return ratings;
}

}  // namespace curtail::recommend
