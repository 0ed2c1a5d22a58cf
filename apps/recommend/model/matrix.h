// SPDX-License-Identifier: Apache-2.0
//
// matrix.h - ratings as a sparse matrix, whose rows and columns are numbers from 0 instead of the data's ids.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "apps/recommend/data/ratings.h"

namespace curtail::recommend {

// One side of a sparse matrix: the entries of line i are those from begin[i] to begin[i + 1], by rising
// index.
struct Sparse {
  std::vector<uint64_t> begin;
  std::vector<uint32_t> index;  // in the other direction
  std::vector<float> value;

  size_t lines() const { return begin.size() - 1; }
  std::span<const uint32_t> Indices(size_t line) const {
    return {index.data() + begin[line], static_cast<size_t>(begin[line + 1] - begin[line])};
  }
  std::span<const float> Values(size_t line) const {
    return {value.data() + begin[line], static_cast<size_t>(begin[line + 1] - begin[line])};
  }
  friend bool operator==(const Sparse&, const Sparse&) = default;
};

struct Matrix {
  // Ids in rising order; an entry's place is its row or column. Each has at least one rating.
  std::vector<uint32_t> users, items;
  Sparse by_item;  // the users that rated the item, and their ratings
  float low = 0, high = 0;
};

// REQUIRES: what SortAndMerge() leaves.
Matrix MakeMatrix(const Ratings& ratings);

// The other side, of `others` lines.
Sparse Transpose(const Sparse& side, size_t others);

// The place of `id` in `ids`, which rise, or none.
std::optional<uint32_t> PlaceOf(std::span<const uint32_t> ids, uint32_t id);

}  // namespace curtail::recommend
