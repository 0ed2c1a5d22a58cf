// SPDX-License-Identifier: Apache-2.0
//
// path_template.h - the paths of google.api.http rules: "/v1/{name=shelves/*}/books:archive".
//
// The grammar is that of google/api/http.proto. A value type; thread-compatible.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace curtail::gateway {

// A field of the request ("book.name") and its value, decoded.
using Binding = std::pair<std::string, std::string>;

// Replaces %XX. With `keep_slashes`, %2F and %2f stay: the value has several segments.
std::string DecodePath(std::string_view text, bool keep_slashes);

class PathTemplate {
 public:
  // Errors: INVALID_ARGUMENT with the place.
  [[nodiscard]] static absl::StatusOr<PathTemplate> Parse(std::string_view text);

  // True if `path`, which has no query, has this form; appends its variables to `bindings` then.
  // Takes time linear in the path.
  bool Match(std::string_view path, std::vector<Binding>* bindings) const;

  // True if of two templates that match a path this one says more of it: it has a verb, or a literal where the other
  // has a variable, or "*" where the other has "**". A strict weak order.
  bool IsMoreSpecificThan(const PathTemplate& other) const;

  const std::string& text() const { return text_; }
  // The fields of its variables, in order.
  std::vector<std::string_view> fields() const;

 private:
  enum class Kind : unsigned char { kLiteral, kOne, kRest };  // "shelves", "*", "**"; the most specific first
  struct Segment {
    Kind kind;
    std::string literal;
  };
  struct Variable {
    std::string field;
    size_t first;  // of segments_
    size_t end;
  };
  class Parser;

  std::string text_;
  std::vector<Segment> segments_;
  std::vector<Variable> variables_;
  std::string verb_;  // "archive"
};

}  // namespace curtail::gateway
