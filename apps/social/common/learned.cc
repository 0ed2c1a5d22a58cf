// SPDX-License-Identifier: Apache-2.0
#include "apps/social/common/learned.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <unordered_set>

#include "apps/recommend/model/factorization.h"
#include "apps/recommend/model/matrix.h"
#include "curtail/base/mix.h"
#include "curtail/base/rng.h"
#include "curtail/base/strings.h"

namespace curtail::social {
namespace {

using Pair = std::pair<uint32_t, uint32_t>;

// Ids as numbers from 0, and the follows in these.
struct Numbered {
  std::vector<uint64_t> users;
  std::vector<Pair> follows;
};

uint64_t KeyOf(const Pair& pair) { return uint64_t{pair.first} << 32 | pair.second; }

Numbered Number(std::span<const FollowOf> follows) {
  Numbered all;
  for (const auto& [from, to] : follows) all.users.insert(all.users.end(), {from, to});
  std::ranges::sort(all.users);
  all.users.erase(std::ranges::unique(all.users).begin(), all.users.end());
  const auto number = [&](uint64_t id) {
    return static_cast<uint32_t>(std::ranges::lower_bound(all.users, id) - all.users.begin());
  };
  for (const auto& [from, to] : follows) all.follows.emplace_back(number(from), number(to));
  return all;
}

// A pair of `users` users that is not `known`, if a few tries find one.
bool DrawOther(uint64_t users, const std::unordered_set<uint64_t>& known, Rng& rng, Pair* pair) {
  constexpr int kTries = 20;
  for (int i = 0; i < kTries; ++i) {
    *pair = {static_cast<uint32_t>(rng.Below(users)), static_cast<uint32_t>(rng.Below(users))};
    if (pair->first != pair->second && !known.contains(KeyOf(*pair))) return true;
  }
  return false;
}

// `used(i)`: follow i is trained on, and the others are as if they were not there.
template <class Used>
absl::StatusOr<FollowModel> Train(const Numbered& all, const FollowTraining& training, Used used) {
  if (all.users.size() < 2) return absl::InvalidArgumentError("no user follows another yet");
  Rng rng(training.seed);
  recommend::Ratings ratings;
  ratings.low = 0, ratings.high = 1;
  std::unordered_set<uint64_t> known;
  for (size_t i = 0; i < all.follows.size(); ++i) {
    if (!used(i)) continue;
    ratings.list.push_back({all.follows[i].first, all.follows[i].second, 1});
    known.insert(KeyOf(all.follows[i]));
  }
  Pair other;
  for (size_t n = ratings.list.size() * training.others; n > 0; --n) {
    if (DrawOther(all.users.size(), known, rng, &other))
      ratings.list.push_back({other.first, other.second, 0});
  }
  if (ratings.list.empty()) return absl::InvalidArgumentError("no user follows another yet");
  recommend::SortAndMerge(&ratings);
  const recommend::Matrix matrix = recommend::MakeMatrix(ratings);
  const double pairs = static_cast<double>(ratings.list.size()) / static_cast<double>(matrix.users.size());
  const recommend::TrainOptions options{.rank = training.rank,
                                        .iterations = training.iterations,
                                        .regularization = training.regularization * pairs,
                                        .seed = training.seed};
  if (absl::Status status = recommend::Check(options); !status.ok()) return status;
  const recommend::Factors factors = recommend::Factorize(matrix, options, training.threads, /*quiet=*/true);

  const int users = static_cast<int>(all.users.size()), rank = static_cast<int>(training.rank);
  FollowModel model;
  model.set_rank(training.rank);
  model.mutable_users()->Assign(all.users.begin(), all.users.end());
  model.mutable_taste()->Resize(users * rank, 0);
  model.mutable_appeal()->Resize(users * rank, 0);
  model.mutable_popularity()->Resize(users, 0);
  for (size_t row = 0; row < matrix.users.size(); ++row) {
    std::copy_n(factors.user_factors.begin() + static_cast<ptrdiff_t>(row * training.rank), rank,
                model.mutable_taste()->begin() + static_cast<ptrdiff_t>(matrix.users[row]) * rank);
  }
  for (size_t row = 0; row < matrix.items.size(); ++row) {
    const auto to = static_cast<ptrdiff_t>(matrix.items[row]);
    std::copy_n(factors.item_factors.begin() + static_cast<ptrdiff_t>(row * training.rank), rank,
                model.mutable_appeal()->begin() + to * rank);
    model.set_popularity(static_cast<int>(to), factors.item_bias[row]);
  }
  return model;
}

// The user's place in the model, or -1.
int PlaceOf(const FollowModel& model, uint64_t user) {
  const auto found = std::lower_bound(model.users().begin(), model.users().end(), user);
  return found != model.users().end() && *found == user ? static_cast<int>(found - model.users().begin())
                                                        : -1;
}

float Score(const FollowModel& model, int from, int to) {
  const int rank = static_cast<int>(model.rank());
  float score = model.popularity(to);
  if (from < 0) return score;
  const float* const taste = model.taste().data() + ptrdiff_t{from} * rank;
  return std::inner_product(taste, taste + rank, model.appeal().data() + ptrdiff_t{to} * rank, score);
}

}  // namespace

absl::StatusOr<FollowModel> TrainFollows(std::span<const FollowOf> follows, const FollowTraining& training) {
  return Train(Number(follows), training, [](size_t) { return true; });
}

absl::StatusOr<double> HeldOutRank(std::span<const FollowOf> follows, const FollowTraining& training) {
  const Numbered all = Number(follows);
  const auto held_out = [&](size_t i) { return Mix(training.seed, i) % 10 == 0; };
  const absl::StatusOr<FollowModel> model = Train(all, training, [&](size_t i) { return !held_out(i); });
  if (!model.ok()) return model.status();
  std::unordered_set<uint64_t> known;
  for (const Pair& follow : all.follows) known.insert(KeyOf(follow));
  Rng rng(training.seed + 1);
  double right = 0, compared = 0;
  Pair other;
  for (size_t i = 0; i < all.follows.size(); ++i) {
    if (!held_out(i) || !DrawOther(all.users.size(), known, rng, &other)) continue;
    const float follow =
        Score(*model, static_cast<int>(all.follows[i].first), static_cast<int>(all.follows[i].second));
    const float none = Score(*model, static_cast<int>(other.first), static_cast<int>(other.second));
    right += follow > none ? 1 : follow == none ? 0.5 : 0;
    compared += 1;
  }
  return compared == 0 ? 0.5 : right / compared;
}

std::vector<uint64_t> BestFor(const FollowModel& model, uint64_t user, size_t count) {
  const int from = PlaceOf(model, user);
  std::vector<std::pair<float, int>> scored;
  for (int to = 0; to < model.users_size(); ++to) {
    if (to != from) scored.emplace_back(Score(model, from, to), to);
  }
  count = std::min(count, scored.size());
  std::partial_sort(scored.begin(), scored.begin() + static_cast<ptrdiff_t>(count), scored.end(),
                    std::greater<>());
  std::vector<uint64_t> best;
  for (size_t i = 0; i < count; ++i) best.push_back(model.users(scored[i].second));
  return best;
}

absl::Status Check(const FollowModel& model) {
  const uint64_t users = static_cast<uint64_t>(model.users_size()), numbers = users * model.rank();
  const bool fits = model.rank() <= recommend::kMaxRank &&
                    static_cast<uint64_t>(model.taste_size()) == numbers &&
                    static_cast<uint64_t>(model.appeal_size()) == numbers &&
                    static_cast<uint64_t>(model.popularity_size()) == users &&
                    std::is_sorted(model.users().begin(), model.users().end());
  return fits ? absl::OkStatus() : absl::DataLossError("no model of follows: run social train again");
}

}  // namespace curtail::social
