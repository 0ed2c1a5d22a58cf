// SPDX-License-Identifier: Apache-2.0
//
// learned.h - a model of which movies users like, learned from the stars of their reviews; pure and repeatable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "movie_models.pb.h"

namespace curtail::media {

struct UserRating {
  uint64_t user = 0, movie = 0;
  float stars = 0;
};

struct MovieTraining {
  uint32_t rank = 8;
  uint32_t iterations = 12;
  // Weight of the squared factors. Raise it when chance looks like taste.
  double regularization = 10;
  uint64_t seed = 1;  // of the first factors, and of the ratings that are held out
  int threads = 1;
};

// Alternating least squares over the ratings; of a user and a movie the last one counts. Errors: INVALID_ARGUMENT (an option; no
// ratings).
absl::StatusOr<MovieModel> TrainMovies(std::span<const UserRating> ratings, const MovieTraining& training);

// Root mean squares of the errors in stars for ratings that were held out.
struct HeldOutError {
  size_t ratings = 0;
  double by_model = 0;
  double by_mean = 0;  // if each were the mean of the others
};
// Trains on nine tenths, and predicts the rest. Errors: as TrainMovies(); INVALID_ARGUMENT (too few ratings).
absl::StatusOr<HeldOutError> ErrorOfHeldOut(std::span<const UserRating> ratings,
                                            const MovieTraining& training);

// The stars that the user would give, 0 to 10. A user or a movie that the model does not have counts as an average one.
double PredictStars(const MovieModel& model, uint64_t user, uint64_t movie);
// At most `count` movies, the best first. For a user that the model does not have, these are the movies with the best ratings.
std::vector<uint64_t> BestFor(const MovieModel& model, uint64_t user, size_t count);
// At most `count` other movies that are liked by users who like this one, the most similar first; none if the model does not have it.
std::vector<uint64_t> SimilarTo(const MovieModel& model, uint64_t movie, size_t count);
// DATA_LOSS unless the parts fit each other.
absl::Status Check(const MovieModel& model);

}  // namespace curtail::media
