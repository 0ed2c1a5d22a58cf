// SPDX-License-Identifier: Apache-2.0
//
// train.h - learns from the reviews and the clicks of a data folder, and leaves models there for `movie-recommender` and `ads`.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "apps/kit/logistic.h"
#include "apps/kit/taste/taste.h"

namespace curtail::media {

inline constexpr char kMovieModelFile[] = "movies.model";

struct TrainOptions {
  std::string data = "auto";                  // the folder
  apps::TasteTraining movies = {.most = 10};  // stars
  apps::LogisticTraining ads;
};

// Writes a model of movies, and one of ads once any was shown. Services that are up use them from then on. Prints how good they are. Errors:
// NOT_FOUND (no such stores); those of the stores and of training.
absl::Status Train(const TrainOptions& options);

}  // namespace curtail::media
