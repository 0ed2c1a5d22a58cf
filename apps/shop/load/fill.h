// SPDX-License-Identifier: Apache-2.0
//
// fill.h - products with stock, users and orders, made through the front end.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "apps/kit/load/fill.h"

namespace curtail::shop {

// The number of each generated user's card. The bank of the cards declines none for its number.
inline constexpr char kLoadCard[] = "4111111111111111";
// The code that takes ten percent off.
inline constexpr char kLoadCode[] = "WELCOME";

struct FillOptions : apps::FillTarget {
  uint64_t users = 100;
  uint64_t products = 1000;
  uint64_t stock = 100'000;  // of each product
  uint64_t orders = 200;
  std::string pictures = "fashion-mnist";  // or a folder of such files; none: products have no pictures
  std::string secret;                      // the file of the secret that signs tokens; empty: in the folder
};

// As the clerk (clerk.h), enters the products that are not there, with their pictures and one delivery each. Registers the users,
// each of which gets an address and a card, and has some place orders. Leaves sessions and products for load tests. Errors: of a wrong
// target, of ReadGarments(), of a secret that is not the front end's; the first call that fails.
[[nodiscard]] absl::Status Fill(const FillOptions& options);

}  // namespace curtail::shop
