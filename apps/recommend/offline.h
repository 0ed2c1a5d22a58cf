// SPDX-License-Identifier: Apache-2.0
//
// offline.h - the commands of `recommend` that serve nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apps/recommend/data/data_spec.h"
#include "apps/recommend/data/hash.h"
#include "apps/recommend/data/ratings.h"
#include "apps/recommend/model/factorization.h"

namespace curtail::recommend {

struct TrainFileOptions {
  std::string data = kDefaultData;
  std::string shard = "0/1";
  std::string out;
  TrainOptions train;
  int threads = 0;  // 0: one a CPU
};

// Trains the model of a shard and writes it. Errors: those of TrainModel() and WriteModel().
[[nodiscard]] absl::Status TrainToFile(const TrainFileOptions& options);

struct EvaluateOptions {
  std::string data = kDefaultData;
  size_t shards = 4;
  size_t neighbors = kDefaultNeighbors;
  uint64_t seed = 1;  // of which ratings are held out
  TrainOptions train;
  int threads = 0;  // 0: one a CPU
};

// Root mean square errors over the ratings held out, in stars.
struct Evaluation {
  size_t trained = 0, held_out = 0, users = 0, items = 0, duplicates = 0;
  float low = 0, high = 0;
  double by_mean = 0;     // of all ratings
  double by_biases = 0;   // of users and items
  double by_one = 0;      // model of all ratings
  double by_shards = 0;   // the mean of a model for each shard
  double train_s = 0;     // training of the one
  double predict_us = 0;  // a prediction of a shard, on average
};

// Holds out a tenth, by a hash of the seed, user and item, and learns from the rest. Errors: INVALID_ARGUMENT
// (also when there are too few ratings for that), those of reading.
[[nodiscard]] absl::StatusOr<Evaluation> Evaluate(const EvaluateOptions& options, bool quiet);
// The same, printed.
[[nodiscard]] absl::Status PrintEvaluation(const EvaluateOptions& options);

// Writes the ratings that `data` names as a ratings.csv of MovieLens. Errors: those of reading and writing.
[[nodiscard]] absl::Status WriteRatings(const std::string& data, const std::string& path);

}  // namespace curtail::recommend
