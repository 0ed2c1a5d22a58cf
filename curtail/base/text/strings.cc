// SPDX-License-Identifier: Apache-2.0
#include "curtail/base/strings.h"

#include <cmath>

namespace curtail {

std::optional<double> ParseNumber(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

namespace internal {

std::string JoinPieces(std::initializer_list<const Piece*> pieces) {
  size_t size = 0;
  for (const Piece* piece : pieces) size += piece->text().size();
  std::string joined;
  joined.reserve(size);
  for (const Piece* piece : pieces) joined += piece->text();
  return joined;
}

}  // namespace internal
}  // namespace curtail
