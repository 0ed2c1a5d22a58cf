// SPDX-License-Identifier: Apache-2.0
#include "apps/hdsearch/data/rows.h"

#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace curtail::hdsearch {
namespace {

// Branch-free over the block so that it vectorises; the slow search for the culprit runs only on bad data.
bool AllFinite(const std::byte* data, size_t values) {
  uint32_t bad = 0;
  for (size_t i = 0; i < values; ++i) {
    uint32_t bits;
    std::memcpy(&bits, data + 4 * i, 4);
    bad |= static_cast<uint32_t>((bits & 0x7f800000u) == 0x7f800000u);
  }
  return bad == 0;
}

}  // namespace

absl::Status RowReader::Read(size_t first, size_t count, std::byte* out) {
  if (first > shape_.rows || count > shape_.rows - first) {
    return absl::OutOfRangeError(absl::StrCat(name_, ": rows ", first, " to ", first + count,
                                              " asked for, but there are ", shape_.rows));
  }
  if (count == 0) return absl::OkStatus();
  if (absl::Status status = ReadRows(first, count, out); !status.ok()) return status;
  if (shape_.element != Element::kFloat32 || AllFinite(out, count * shape_.dimension))
    return absl::OkStatus();
  size_t value = 0;
  while (AllFinite(out + 4 * value, 1)) ++value;
  return absl::InvalidArgumentError(absl::StrCat(name_, ": row ", first + value / shape_.dimension,
                                                 ", column ", value % shape_.dimension,
                                                 " is not a finite number; clean the data or drop the row"));
}

}  // namespace curtail::hdsearch
