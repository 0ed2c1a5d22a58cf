// SPDX-License-Identifier: Apache-2.0
#include "apps/media/learned.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "apps/recommend/factorization.h"
#include "apps/recommend/hash.h"
#include "apps/recommend/matrix.h"
#include "apps/recommend/ratings.h"

namespace curtail::media {
namespace {

constexpr float kMostStars = 10;

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

// `places` of a model have the best scores first.
template <class Score>
std::vector<uint64_t> Best(const MovieModel& model, size_t count, Score score) {
  std::vector<std::pair<double, uint64_t>> scored;
  for (int place = 0; place < model.movies_size(); ++place)
    scored.emplace_back(-score(place), model.movies(place));
  count = std::min(count, scored.size());
  std::partial_sort(scored.begin(), scored.begin() + static_cast<ptrdiff_t>(count), scored.end());
  std::vector<uint64_t> best;
  for (size_t i = 0; i < count; ++i) best.push_back(scored[i].second);
  return best;
}

double StarsAt(const MovieModel& model, int user, int movie) {
  double stars = model.mean();
  if (user >= 0) stars += model.user_bias(user);
  if (movie >= 0) stars += model.movie_bias(movie);
  if (user >= 0 && movie >= 0)
    stars += Product(RowOf(model.taste(), user, model.rank()), RowOf(model.appeal(), movie, model.rank()));
  return std::clamp<double>(stars, 0, kMostStars);
}

}  // namespace

absl::StatusOr<MovieModel> TrainMovies(std::span<const UserRating> ratings, const MovieTraining& training) {
  const recommend::TrainOptions options{.rank = training.rank,
                                        .iterations = training.iterations,
                                        .regularization = training.regularization,
                                        .seed = training.seed};
  if (absl::Status status = recommend::Check(options); !status.ok()) return status;
  if (ratings.empty()) return absl::InvalidArgumentError("there are no reviews to learn from");
  std::vector<uint64_t> users, movies;
  for (const UserRating& one : ratings) users.push_back(one.user), movies.push_back(one.movie);
  users = Distinct(std::move(users)), movies = Distinct(std::move(movies));
  recommend::Ratings numbered;
  numbered.low = 0, numbered.high = kMostStars;
  for (const UserRating& one : ratings)
    numbered.list.push_back({static_cast<uint32_t>(PlaceOf(users, one.user)),
                             static_cast<uint32_t>(PlaceOf(movies, one.movie)), one.stars});
  recommend::SortAndMerge(&numbered);
  // Each user and each movie has a rating, so rows and columns are in the order of the ids.
  const recommend::Matrix matrix = recommend::MakeMatrix(numbered);
  const recommend::Factors factors = recommend::Factorize(matrix, options, training.threads, /*quiet=*/true);
  MovieModel model;
  model.set_rank(factors.rank);
  model.set_mean(factors.mean);
  model.mutable_users()->Assign(users.begin(), users.end());
  model.mutable_movies()->Assign(movies.begin(), movies.end());
  model.mutable_user_bias()->Assign(factors.user_bias.begin(), factors.user_bias.end());
  model.mutable_movie_bias()->Assign(factors.item_bias.begin(), factors.item_bias.end());
  model.mutable_taste()->Assign(factors.user_factors.begin(), factors.user_factors.end());
  model.mutable_appeal()->Assign(factors.item_factors.begin(), factors.item_factors.end());
  return model;
}

absl::StatusOr<HeldOutError> ErrorOfHeldOut(std::span<const UserRating> ratings,
                                            const MovieTraining& training) {
  std::vector<UserRating> seen, held_out;
  for (size_t i = 0; i < ratings.size(); ++i)
    (recommend::Mix(training.seed, i) % 10 == 0 ? held_out : seen).push_back(ratings[i]);
  if (held_out.empty()) return absl::InvalidArgumentError("there are too few reviews to hold some out");
  const absl::StatusOr<MovieModel> model = TrainMovies(seen, training);
  if (!model.ok()) return model.status();
  double by_model = 0, by_mean = 0;
  for (const UserRating& one : held_out) {
    by_model += std::pow(one.stars - PredictStars(*model, one.user, one.movie), 2);
    by_mean += std::pow(one.stars - model->mean(), 2);
  }
  const auto count = static_cast<double>(held_out.size());
  return HeldOutError{held_out.size(), std::sqrt(by_model / count), std::sqrt(by_mean / count)};
}

double PredictStars(const MovieModel& model, uint64_t user, uint64_t movie) {
  return StarsAt(model, PlaceOf(model.users(), user), PlaceOf(model.movies(), movie));
}

std::vector<uint64_t> BestFor(const MovieModel& model, uint64_t user, size_t count) {
  const int place = PlaceOf(model.users(), user);
  return Best(model, count, [&](int movie) { return StarsAt(model, place, movie); });
}

std::vector<uint64_t> SimilarTo(const MovieModel& model, uint64_t movie, size_t count) {
  const int place = PlaceOf(model.movies(), movie);
  if (place < 0) return {};
  const auto own = RowOf(model.appeal(), place, model.rank());
  std::vector<uint64_t> best = Best(model, count + 1, [&](int other) {
    const auto row = RowOf(model.appeal(), other, model.rank());
    const double lengths = std::sqrt(Product(own, own) * Product(row, row));
    return lengths > 0 ? Product(own, row) / lengths : -1;
  });
  std::erase(best, movie);
  if (best.size() > count) best.pop_back();
  return best;
}

absl::Status Check(const MovieModel& model) {
  const auto rank = static_cast<int>(model.rank());
  const bool fits =
      model.user_bias_size() == model.users_size() && model.movie_bias_size() == model.movies_size() &&
      model.taste_size() == rank * model.users_size() && model.appeal_size() == rank * model.movies_size() &&
      std::ranges::is_sorted(model.users()) && std::ranges::is_sorted(model.movies());
  return fits ? absl::OkStatus() : absl::DataLossError("the parts of the model do not fit each other");
}

}  // namespace curtail::media
