// SPDX-License-Identifier: Apache-2.0
//
// predictor.h - predicts a rating from the users of a model whose taste is most similar.
//
// Two users are as far apart as their factors say that their ratings of all items are (root mean square),
// which is how mlpack, the library of muTune's Recommend, measures it as well. The nearest `neighbors` each
// say how far the item is above or below what its and their biases make expected: by their rating where they
// gave one, by the product of factors otherwise. Neighbours count less the farther they are, down to nothing
// where the first user who is none would be, so that a prediction does not jump when two users change places;
// the user itself counts as one at distance 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "apps/recommend/model/model.h"

namespace curtail::recommend {

// The ground of a prediction; the numbers are those of the proto.
enum class Evidence { kMean = 1, kUser = 2, kItem = 3, kNeighbors = 4 };

struct Prediction {
  double rating = 0;  // finite, within the scale of the ratings
  Evidence evidence = Evidence::kMean;
};

// A Predictor answers from one model. Immutable: any thread; does not wait.
class Predictor {
 public:
  // REQUIRES: neighbors > 0.
  Predictor(Model model, size_t neighbors);

  // Ids as the data has them; any are fine.
  Prediction Predict(uint32_t user, uint32_t item) const;

  const Model& model() const { return model_; }

 private:
  double Deviation(uint32_t user, uint32_t item) const;
  double DeviationOf(uint32_t neighbor, uint32_t item) const;

  // Immutable after construction.
  const Model model_;
  const size_t neighbors_;
  // The users' factors, turned and stretched so that their squared distance is the mean square over all
  // items; rank a user.
  std::vector<float> tastes_;
};

// The mean with the biases alone: what is expected of a user and an item whose tastes are unknown. For
// comparison.
double PredictByBiases(const Model& model, uint32_t user, uint32_t item);

}  // namespace curtail::recommend
