// SPDX-License-Identifier: Apache-2.0
//
// text_template.h - text with placeholders (placeholder.h), rendered for each request.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/load/message/internal/placeholder.h"

namespace curtail::internal {

// A part of a text: literal, or what a placeholder draws.
struct TextPart {
  std::string text;
  std::optional<Placeholder> drawn;
};

// A TextTemplate gives a text for each request: a pure function of its own text, the seed and the request's number.
// Thread-compatible: const methods are for any thread.
class TextTemplate {
 public:
  // With the `replies` of a journey so far, or null. Errors: INVALID_ARGUMENT, without a position.
  [[nodiscard]] static absl::StatusOr<TextTemplate> Parse(std::string_view text, uint64_t seed,
                                                          ReplyFields* replies = nullptr);
  // Text as it is.
  static TextTemplate Literal(std::string text);

  // A value that is absent from a reply is left out, and in draw.error.
  void Append(const Draw& draw, std::string* out) const;
  // True if there are no placeholders.
  bool fixed() const;
  std::vector<TextPart>& parts() { return parts_; }

 private:
  std::vector<TextPart> parts_;
};

}  // namespace curtail::internal
