// SPDX-License-Identifier: Apache-2.0
//
// brute_force.h - the same predictions as predictor.h's, computed from their definition in the plainest way,
// to judge servers by and to test with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "apps/recommend/model/model.h"

namespace curtail::recommend {

// A BruteForce shares with the predictor what was learned, but neither its data structures nor its
// arithmetic. Immutable: any thread.
class BruteForce {
 public:
  // `model` outlives it. REQUIRES: neighbors > 0.
  BruteForce(const Model& model, size_t neighbors);

  double Predict(uint32_t user, uint32_t item) const;

 private:
  double SquaredDistance(uint32_t a, uint32_t b) const;
  double Deviation(uint32_t user, uint32_t item) const;

  // Immutable after construction.
  const Model& model_;
  const size_t neighbors_;
  std::map<uint32_t, uint32_t> users_, items_;               // places by id
  std::map<std::pair<uint32_t, uint32_t>, double> ratings_;  // by place of user and item
  std::vector<double> gram_;  // mean over the items of the products of their factors, rank x rank
};

// The mean over leaves that each have one of the models.
double MeanPrediction(const std::vector<BruteForce>& leaves, uint32_t user, uint32_t item);

}  // namespace curtail::recommend
