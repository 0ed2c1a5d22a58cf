// SPDX-License-Identifier: Apache-2.0
//
// ratings.h - reads or generates the ratings that a data spec names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apps/recommend/data/data_spec.h"
#include "apps/recommend/data/hash.h"
#include "apps/recommend/data/rating_parser.h"

namespace curtail::recommend {

inline constexpr size_t kMaxRatings = size_t{1} << 30;

struct Ratings {
  // By user, then item; no pair twice.
  std::vector<Rating> list;
  // The lowest and the highest of all ratings, those of other shards included.
  float low = 0, high = 0;
  // Ratings of a pair that a later line rates again; the last one counts.
  size_t duplicates = 0;
  // Of all ratings, those of other shards included: differs, as good as surely, between data.
  uint64_t fingerprint = 0;
};

struct ReadOptions {
  int threads = 1;
  bool quiet = false;  // no progress on stderr
};

// The ratings that belong to `shard`. Errors: those of LineReader, INVALID_ARGUMENT (a line that is no
// rating, with file, line and what was expected; no rating at all, or none for this shard),
// RESOURCE_EXHAUSTED (more than kMaxRatings).
[[nodiscard]] absl::StatusOr<Ratings> ReadRatings(const DataSpec& spec, Shard shard,
                                                  const ReadOptions& options);

// Sorts `ratings->list`, of which each pair's last rating stays.
void SortAndMerge(Ratings* ratings);

// About how many ratings there are, by the size of the file. Errors: NOT_FOUND and the like.
[[nodiscard]] absl::StatusOr<uint64_t> EstimateRatings(const DataSpec& spec);

// Implementation: the synthetic ratings of a shard, unsorted. User i's depend on the options and i only.
[[nodiscard]] absl::StatusOr<Ratings> GenerateRatings(const SyntheticOptions& synthetic, Shard shard,
                                                      const ReadOptions& options);

}  // namespace curtail::recommend
