// SPDX-License-Identifier: Apache-2.0
//
// data_spec.h - names ratings in one string, as every flag called --data takes it.
//
//   FILE                               MovieLens' u.data (tabs), ratings.dat (::) or ratings.csv, told apart
//                                      by the first line; like all files here plain, gzip or bzip2
//   csv:FILE,user=U,item=I,rating=R    any CSV with a header, by the names of its columns
//   synthetic:users=943,items=1682,ratings=100000,rank=4,noise=0.7,seed=1
//                                      generated; what is left out is as here
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace curtail::recommend {

// As large as MovieLens 100k.
inline constexpr char kDefaultData[] =
    "synthetic:users=943,items=1682,ratings=100000,rank=4,noise=0.7,seed=1";

// Ratings of 1 to 5 stars: a mean, how generous the user is, how well liked the item is, the product of
// `rank` tastes of the user and traits of the item, and noise, rounded. Few items have most of the ratings
// (Zipf), few users give many.
struct SyntheticOptions {
  uint32_t users = 943;
  uint32_t items = 1682;
  uint64_t ratings = 100000;  // at most half of users * items
  uint32_t rank = 4;
  double noise = 0.7;  // standard deviation, in stars
  uint64_t seed = 1;
};
// Larger numbers are mistakes: the largest set of MovieLens has a tenth of them and less.
inline constexpr uint32_t kMaxSyntheticIds = 10'000'000;         // users, and items
inline constexpr uint64_t kMaxSyntheticRatings = 1'000'000'000;  // below kMaxRatings

// A DataSpec is one parsed data string. Value type.
struct DataSpec {
  enum class Format { kFile, kColumns, kSynthetic };

  // Errors: INVALID_ARGUMENT that lists what would be right. Opens no file.
  static absl::StatusOr<DataSpec> Parse(std::string_view text);

  std::string text;  // as given
  Format format = Format::kFile;
  std::string path;                // all but kSynthetic
  std::string user, item, rating;  // kColumns: what the columns are called
  SyntheticOptions synthetic;      // kSynthetic
};

}  // namespace curtail::recommend
