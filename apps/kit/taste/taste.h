// SPDX-License-Identifier: Apache-2.0
//
// taste.h - a model of which items users like, learned from the scores that they gave; pure and repeatable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "taste_model.pb.h"

namespace curtail::apps {

struct Liking {
  uint64_t user = 0, item = 0;
  float score = 0;
};

struct TasteTraining {
  float most = 1;  // the highest score; the lowest is 0
  uint32_t rank = 8;
  uint32_t iterations = 12;
  // Weight of the squared factors. Raise it when chance looks like taste.
  double regularization = 10;
  uint64_t seed = 1;  // of the first factors, and of the scores that are held out
  int threads = 1;
};

// Alternating least squares over the scores; of a user and an item the last one counts. Errors: INVALID_ARGUMENT (an option; no
// scores).
absl::StatusOr<TasteModel> TrainTaste(std::span<const Liking> likings, const TasteTraining& training);

// Root mean squares of the errors for scores that were held out.
struct HeldOutError {
  size_t scores = 0;
  double by_model = 0;
  double by_mean = 0;  // if each were the mean of the others
};
// Trains on nine tenths, and predicts the rest. Errors: as TrainTaste(); INVALID_ARGUMENT (too few scores).
absl::StatusOr<HeldOutError> ErrorOfHeldOut(std::span<const Liking> likings, const TasteTraining& training);

// Adds a score of 0 for `others` times as many drawn pairs of a user and an item that the user has not scored: for likings that
// only report what users took. A small number of items may leave fewer to draw.
void AddOthers(uint32_t others, uint64_t seed, std::vector<Liking>* likings);

// The score that the user would give. A user or an item that the model does not have counts as an average one.
double PredictScore(const TasteModel& model, uint64_t user, uint64_t item);
// At most `count` items, the best first. For a user that the model does not have, these are the items with the best scores.
std::vector<uint64_t> BestFor(const TasteModel& model, uint64_t user, size_t count);
// At most `count` other items that are liked by users who like these, the most similar first; none if the model has none of these.
std::vector<uint64_t> SimilarTo(const TasteModel& model, std::span<const uint64_t> items, size_t count);
// DATA_LOSS unless the parts fit each other.
absl::Status Check(const TasteModel& model);

}  // namespace curtail::apps
