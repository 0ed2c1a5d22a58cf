// SPDX-License-Identifier: Apache-2.0
//
// train.h - learns from the reviews of a data folder, and leaves a model there for `movie-recommender`.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "apps/media/learned.h"

namespace curtail::media {

inline constexpr char kMovieModelFile[] = "movies.model";

struct TrainOptions {
  std::string data = "auto";  // the folder
  MovieTraining movies;
};

// Writes a model, which services that are up use from then on. Prints its error for reviews that it has not seen. Errors: NOT_FOUND (no such
// stores); those of the stores and of training.
absl::Status Train(const TrainOptions& options);

}  // namespace curtail::media
