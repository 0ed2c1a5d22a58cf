// SPDX-License-Identifier: Apache-2.0
//
// products.h - products to fill the application with, and the ones that it has, for load tests.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "goods.curtail.h"

namespace curtail::shop {

// Product `number`, without its id, by a seed: a piece of clothing of this kind, in words of WordNet, if that is installed. Its price
// is log-normal, and its tags are its kind and its colour.
Product GenerateProduct(uint64_t seed, uint64_t number, std::string_view kind);

// A product of the application.
struct KnownProduct {
  uint64_t id = 0;
  int64_t cents = 0;
  std::string tag;  // its kind
};
// FOLDER/load-products. Errors: INTERNAL; NOT_FOUND with what to do.
absl::Status WriteKnownProducts(const std::string& folder, const std::vector<KnownProduct>& products);
absl::StatusOr<std::vector<KnownProduct>> ReadKnownProducts(const std::string& folder);

}  // namespace curtail::shop
