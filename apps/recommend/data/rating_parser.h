// SPDX-License-Identifier: Apache-2.0
//
// rating_parser.h - the formats of rating files, a line at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apps/recommend/data/data_spec.h"

namespace curtail::recommend {

// Ids are the data's own. Value type.
struct Rating {
  uint32_t user = 0;
  uint32_t item = 0;
  float value = 0;
  friend bool operator==(const Rating&, const Rating&) = default;
};

// No rating is larger, nor smaller than the negative of it.
inline constexpr float kMaxRating = 1e6f;

// A RatingParser reads the lines of one file. Any bytes are an error or a rating. Value type, immutable: any
// thread.
class RatingParser {
 public:
  // The format of the file that begins with `line`, less its byte order mark, by the names of columns that
  // `spec` gives if it does. Errors: INVALID_ARGUMENT (no format fits, or a column is missing), without the
  // place.
  static absl::StatusOr<RatingParser> ForFirstLine(const DataSpec& spec, std::string_view line);

  // True if that first line names columns and holds no rating.
  bool header() const { return format_ == Format::kCsv; }
  // Errors: INVALID_ARGUMENT that says what was expected instead of what, without the place.
  absl::Status Parse(std::string_view line, Rating* rating) const;

 private:
  enum class Format { kTabs, kColons, kCsv };

  absl::Status ParseSeparated(std::string_view line, std::string_view separator, Rating* rating) const;
  absl::Status ParseCsv(std::string_view line, Rating* rating) const;

  Format format_ = Format::kTabs;
  // kCsv: how many columns, and which of them matter.
  size_t columns_ = 0, user_ = 0, item_ = 0, rating_ = 0;
};

}  // namespace curtail::recommend
