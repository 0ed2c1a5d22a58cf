// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/taste/taste.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

#include "apps/recommend/data/ratings.h"
#include "apps/recommend/model/factorization.h"
#include "apps/recommend/model/matrix.h"
#include "curtail/base/mix.h"
#include "curtail/base/rng.h"

namespace curtail::apps {
namespace {

template <class Ids>
int PlaceOf(const Ids& ids, uint64_t id) {
  const auto found = std::lower_bound(ids.begin(), ids.end(), id);
  return found != ids.end() && *found == id ? static_cast<int>(found - ids.begin()) : -1;
}

std::vector<uint64_t> Distinct(std::vector<uint64_t> ids) {
  std::ranges::sort(ids);
  ids.erase(std::ranges::unique(ids).begin(), ids.end());
  return ids;
}

std::span<const float> RowOf(const google::protobuf::RepeatedField<float>& rows, int row, uint32_t rank) {
  return {rows.data() + ptrdiff_t{row} * rank, rank};
}

double Product(std::span<const float> a, std::span<const float> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

// The items of the best scores, by their places in the model.
template <class Score>
std::vector<uint64_t> Best(const TasteModel& model, size_t count, Score score) {
  std::vector<std::pair<double, uint64_t>> scored;
  for (int place = 0; place < model.items_size(); ++place)
    scored.emplace_back(-score(place), model.items(place));
  count = std::min(count, scored.size());
  std::partial_sort(scored.begin(), scored.begin() + static_cast<ptrdiff_t>(count), scored.end());
  std::vector<uint64_t> best;
  for (size_t i = 0; i < count; ++i) best.push_back(scored[i].second);
  return best;
}

double ScoreAt(const TasteModel& model, int user, int item) {
  double score = model.mean();
  if (user >= 0) score += model.user_bias(user);
  if (item >= 0) score += model.item_bias(item);
  if (user >= 0 && item >= 0)
    score += Product(RowOf(model.taste(), user, model.rank()), RowOf(model.appeal(), item, model.rank()));
  return std::clamp<double>(score, 0, model.most());
}

}  // namespace

absl::StatusOr<TasteModel> TrainTaste(std::span<const Liking> likings, const TasteTraining& training) {
  const recommend::TrainOptions options{.rank = training.rank,
                                        .iterations = training.iterations,
                                        .regularization = training.regularization,
                                        .seed = training.seed};
  if (absl::Status status = recommend::Check(options); !status.ok()) return status;
  if (likings.empty()) return absl::InvalidArgumentError("training needs at least one score");
  std::vector<uint64_t> users, items;
  for (const Liking& one : likings) users.push_back(one.user), items.push_back(one.item);
  users = Distinct(std::move(users)), items = Distinct(std::move(items));
  recommend::Ratings numbered;
  numbered.low = 0, numbered.high = training.most;
  for (const Liking& one : likings)
    numbered.list.push_back({static_cast<uint32_t>(PlaceOf(users, one.user)),
                             static_cast<uint32_t>(PlaceOf(items, one.item)), one.score});
  recommend::SortAndMerge(&numbered);
  // Each user and each item has a score, so rows and columns are in the order of the ids.
  const recommend::Matrix matrix = recommend::MakeMatrix(numbered);
  const recommend::Factors factors = recommend::Factorize(matrix, options, training.threads, /*quiet=*/true);
  TasteModel model;
  model.set_rank(factors.rank);
  model.set_mean(factors.mean);
  model.set_most(training.most);
  model.mutable_users()->Assign(users.begin(), users.end());
  model.mutable_items()->Assign(items.begin(), items.end());
  model.mutable_user_bias()->Assign(factors.user_bias.begin(), factors.user_bias.end());
  model.mutable_item_bias()->Assign(factors.item_bias.begin(), factors.item_bias.end());
  model.mutable_taste()->Assign(factors.user_factors.begin(), factors.user_factors.end());
  model.mutable_appeal()->Assign(factors.item_factors.begin(), factors.item_factors.end());
  return model;
}

absl::StatusOr<HeldOutError> ErrorOfHeldOut(std::span<const Liking> likings, const TasteTraining& training) {
  std::vector<Liking> seen, held_out;
  for (size_t i = 0; i < likings.size(); ++i)
    (Mix(training.seed, i) % 10 == 0 ? held_out : seen).push_back(likings[i]);
  if (held_out.empty()) return absl::InvalidArgumentError("there are too few scores to hold some out");
  const absl::StatusOr<TasteModel> model = TrainTaste(seen, training);
  if (!model.ok()) return model.status();
  double by_model = 0, by_mean = 0;
  for (const Liking& one : held_out) {
    by_model += std::pow(one.score - PredictScore(*model, one.user, one.item), 2);
    by_mean += std::pow(one.score - model->mean(), 2);
  }
  const auto count = static_cast<double>(held_out.size());
  return HeldOutError{held_out.size(), std::sqrt(by_model / count), std::sqrt(by_mean / count)};
}

double PredictScore(const TasteModel& model, uint64_t user, uint64_t item) {
  return ScoreAt(model, PlaceOf(model.users(), user), PlaceOf(model.items(), item));
}

std::vector<uint64_t> BestFor(const TasteModel& model, uint64_t user, size_t count) {
  const int place = PlaceOf(model.users(), user);
  return Best(model, count, [&](int item) { return ScoreAt(model, place, item); });
}

std::vector<uint64_t> SimilarTo(const TasteModel& model, std::span<const uint64_t> items, size_t count) {
  const auto row = [&](int place) { return RowOf(model.appeal(), place, model.rank()); };
  std::vector<int> places;
  for (const uint64_t item : items)
    if (const int place = PlaceOf(model.items(), item); place >= 0) places.push_back(place);
  if (places.empty()) return {};
  std::vector<uint64_t> best = Best(model, count + items.size(), [&](int other) {
    double sum = 0;
    for (const int place : places) {
      const double lengths = std::sqrt(Product(row(place), row(place)) * Product(row(other), row(other)));
      sum += lengths > 0 ? Product(row(place), row(other)) / lengths : -1;
    }
    return sum;
  });
  std::erase_if(best, [&](uint64_t item) { return std::ranges::find(items, item) != items.end(); });
  if (best.size() > count) best.resize(count);
  return best;
}

void AddOthers(uint32_t others, uint64_t seed, std::vector<Liking>* likings) {
  constexpr int kTries = 20;
  std::vector<uint64_t> users, items;
  std::set<std::pair<uint64_t, uint64_t>> known;
  for (const Liking& one : *likings) {
    users.push_back(one.user), items.push_back(one.item);
    known.emplace(one.user, one.item);
  }
  items = Distinct(std::move(items));
  Rng rng(seed);
  for (size_t left = likings->size() * others; left > 0; --left) {
    for (int tried = 0; tried < kTries; ++tried) {
      const uint64_t user = users[rng.Below(users.size())];
      const uint64_t item = items[rng.Below(items.size())];
      if (!known.emplace(user, item).second) continue;
      likings->push_back({user, item, 0});
      break;
    }
  }
}

absl::Status Check(const TasteModel& model) {
  const auto users = static_cast<uint64_t>(model.users_size()),
             items = static_cast<uint64_t>(model.items_size());
  const auto has = [](const auto& numbers, uint64_t count) {
    return static_cast<uint64_t>(numbers.size()) == count;
  };
  const bool fits = model.rank() <= recommend::kMaxRank && model.most() > 0 &&
                    has(model.user_bias(), users) && has(model.item_bias(), items) &&
                    has(model.taste(), model.rank() * users) && has(model.appeal(), model.rank() * items) &&
                    std::ranges::is_sorted(model.users()) && std::ranges::is_sorted(model.items());
  if (fits) return absl::OkStatus();
  return absl::DataLossError("the parts of the model do not fit each other: train again");
}

}  // namespace curtail::apps
