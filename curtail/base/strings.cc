// SPDX-License-Identifier: Apache-2.0
#include "curtail/base/strings.h"

namespace curtail::internal {

std::string JoinPieces(std::initializer_list<const Piece*> pieces) {
  size_t size = 0;
  for (const Piece* piece : pieces) size += piece->text().size();
  std::string joined;
  joined.reserve(size);
  for (const Piece* piece : pieces) joined += piece->text();
  return joined;
}

}  // namespace curtail::internal
