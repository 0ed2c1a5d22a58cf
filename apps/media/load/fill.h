// SPDX-License-Identifier: Apache-2.0
//
// fill.h - users, movies and reviews, made through the front end.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "apps/kit/load/fill.h"

namespace curtail::media {

struct FillOptions : apps::FillTarget {
  uint64_t users = 100;
  uint64_t movies = 1000;
  std::string films = "none";  // a folder for ReadFilms(), in place of generated movies
  uint64_t reviews = 500;
  uint64_t deposit = 100'000'000;  // cents of each user
};

// Registers the users, or logs them in if they are there, adds the movies that are not there, and has users review some. With a
// deposit of at least 1,000.00, each user rents a movie for 30 days, unless a rental of it lasts or the wallet has too little. Leaves
// sessions and movies for load tests. Errors: of a wrong target, of ReadFilms(); the first call that fails.
[[nodiscard]] absl::Status Fill(const FillOptions& options);

}  // namespace curtail::media
