// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/message/internal/text_template.h"

#include <algorithm>
#include <utility>

namespace curtail::internal {

absl::StatusOr<TextTemplate> TextTemplate::Parse(std::string_view text, uint64_t seed, ReplyFields* replies) {
  absl::StatusOr<std::vector<TemplatePiece>> pieces = SplitTemplate(text);
  if (!pieces.ok()) return pieces.status();
  TextTemplate made;
  for (TemplatePiece& piece : *pieces) {
    TextPart& part = made.parts_.emplace_back();
    if (!piece.placeholder) {
      part.text = std::move(piece.text);
      continue;
    }
    absl::StatusOr<Placeholder> drawn = Placeholder::Parse(piece.text, seed + made.parts_.size(), replies);
    if (!drawn.ok()) return drawn.status();
    part.drawn = *std::move(drawn);
  }
  return made;
}

TextTemplate TextTemplate::Literal(std::string text) {
  TextTemplate made;
  made.parts_.push_back({std::move(text), std::nullopt});
  return made;
}

void TextTemplate::Append(const Draw& draw, std::string* out) const {
  for (const TextPart& part : parts_) {
    if (part.drawn) part.drawn->Append(draw, out);
    else out->append(part.text);
  }
}

bool TextTemplate::fixed() const {
  return std::none_of(parts_.begin(), parts_.end(), [](const TextPart& part) { return !!part.drawn; });
}

}  // namespace curtail::internal
