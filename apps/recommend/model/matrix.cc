// SPDX-License-Identifier: Apache-2.0
#include "apps/recommend/model/matrix.h"

#include <algorithm>

namespace curtail::recommend {

Matrix MakeMatrix(const Ratings& ratings) {
  Matrix matrix;
  matrix.low = ratings.low, matrix.high = ratings.high;
  for (const Rating& rating : ratings.list) {
    if (matrix.users.empty() || matrix.users.back() != rating.user) matrix.users.push_back(rating.user);
    matrix.items.push_back(rating.item);
  }
  std::sort(matrix.items.begin(), matrix.items.end());
  matrix.items.erase(std::unique(matrix.items.begin(), matrix.items.end()), matrix.items.end());
  matrix.items.shrink_to_fit();

  Sparse by_user;
  by_user.begin.push_back(0);
  uint32_t user = 0;
  for (const Rating& rating : ratings.list) {
    if (rating.user != matrix.users[user]) ++user, by_user.begin.push_back(by_user.index.size());
    by_user.index.push_back(*PlaceOf(matrix.items, rating.item));
    by_user.value.push_back(rating.value);
  }
  by_user.begin.push_back(by_user.index.size());
  matrix.by_item = Transpose(by_user, matrix.items.size());
  return matrix;
}

Sparse Transpose(const Sparse& side, size_t others) {
  Sparse other;
  other.begin.assign(others + 1, 0);
  other.index.resize(side.index.size());
  other.value.resize(side.value.size());
  for (const uint32_t i : side.index) ++other.begin[i + 1];
  for (size_t i = 0; i < others; ++i) other.begin[i + 1] += other.begin[i];
  std::vector<uint64_t> next(other.begin.begin(), other.begin.end() - 1);
  for (size_t line = 0; line < side.lines(); ++line) {
    for (uint64_t entry = side.begin[line]; entry < side.begin[line + 1]; ++entry) {
      const uint64_t place = next[side.index[entry]]++;
      other.index[place] = static_cast<uint32_t>(line);
      other.value[place] = side.value[entry];
    }
  }
  return other;
}

std::optional<uint32_t> PlaceOf(std::span<const uint32_t> ids, uint32_t id) {
  const auto found = std::lower_bound(ids.begin(), ids.end(), id);
  if (found == ids.end() || *found != id) return std::nullopt;
  return static_cast<uint32_t>(found - ids.begin());
}

}  // namespace curtail::recommend
