// SPDX-License-Identifier: Apache-2.0
//
// train.h - learns from the orders of a data folder which products customers buy, and leaves the model there for `recommender`.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "apps/kit/taste/taste.h"

namespace curtail::shop {

inline constexpr char kTasteModelFile[] = "products.model";

struct TrainOptions {
  std::string data = "auto";  // the folder
  // The regularization counts for each product that a customer bought or that was drawn for it, on average.
  apps::TasteTraining products = {.regularization = 0.1};
  uint32_t others = 2;  // products that a customer did not buy, drawn for each that it bought
};

// Writes a model of products, which a recommender that is up uses from then on. Prints how good it is. Errors: NOT_FOUND (no orders);
// errors of the store and of training.
absl::Status Train(const TrainOptions& options);

}  // namespace curtail::shop
