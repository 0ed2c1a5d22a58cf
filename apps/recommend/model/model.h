// SPDX-License-Identifier: Apache-2.0
//
// model.h - what a leaf knows: the ratings of its shard and their factors; trained, or kept in a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apps/recommend/data/hash.h"
#include "apps/recommend/data/ratings.h"
#include "apps/recommend/model/factorization.h"
#include "apps/recommend/model/matrix.h"

namespace curtail::recommend {

// Everything in it is finite, and every rating between matrix.low and matrix.high. Value type.
struct Model {
  Shard shard;
  TrainOptions train;  // how it was made
  uint64_t data = 0;   // fingerprint of what it was made of; see Ratings
  Matrix matrix;
  Factors factors;
};

// REQUIRES: Check(options) is OK; there are ratings, as SortAndMerge() leaves them.
Model TrainModel(const Ratings& ratings, Shard shard, const TrainOptions& options, int threads, bool quiet);

// Reads the ratings of a shard and trains on them. Errors: those of ReadRatings() and Check().
[[nodiscard]] absl::StatusOr<Model> TrainModel(const DataSpec& spec, Shard shard, const TrainOptions& train,
                                               const ReadOptions& options);

// The file format, little-endian: a header of kHeaderBytes with its checksum, then arrays, each followed by
// its own, so that an error can say where the file is corrupt (docs/design/recommend.md).
inline constexpr uint32_t kModelVersion = 2;
inline constexpr size_t kModelHeaderBytes = 112;
std::string SerializeModel(const Model& model);
// Errors: DATA_LOSS (truncated, corrupt or contradictory, with the offset), INVALID_ARGUMENT (not a model,
// another version, another byte order).
[[nodiscard]] absl::StatusOr<Model> ParseModel(std::string_view bytes);

// The same through a file, which takes its name only when it is complete. Errors: also those of the file
// system, all with the path.
[[nodiscard]] absl::Status WriteModel(const Model& model, const std::string& path);
[[nodiscard]] absl::StatusOr<Model> ReadModel(const std::string& path);

}  // namespace curtail::recommend
