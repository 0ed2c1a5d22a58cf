// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/message/metadata_template.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "curtail/base/strings.h"
#include "curtail/load/message/internal/placeholder.h"

namespace curtail {
namespace {

using internal::Placeholder;
using internal::TemplatePiece;

// A part of a value: text, or what a placeholder draws.
struct ValuePart {
  std::string text;
  std::optional<Placeholder> drawn;
};

absl::Status CannotBeSent(const std::string& line) {
  return absl::InvalidArgumentError(
      Join("'", line,
           "' cannot be sent; keys are of a-z, 0-9, '-', '_' and '.' and not reserved, values printable, and "
           "base64 for keys in -bin"));
}

// The words of {{pick}} and all text must be what metadata may hold.
bool IsPrintable(const Placeholder& placeholder) {
  return placeholder.kind() != Placeholder::Kind::kBytes &&
         std::all_of(placeholder.words().begin(), placeholder.words().end(),
                     [](const std::string& word) { return wire::IsTextValue(word); });
}

absl::StatusOr<std::vector<ValuePart>> ReadValue(const std::string& line, const std::string& value,
                                                 bool binary, uint64_t seed) {
  absl::StatusOr<std::vector<TemplatePiece>> pieces = internal::SplitTemplate(value);
  if (!pieces.ok()) return absl::InvalidArgumentError(Join("'", line, "': ", Message(pieces.status())));
  std::vector<ValuePart> parts;
  for (TemplatePiece& piece : *pieces) {
    ValuePart& part = parts.emplace_back();
    if (!piece.placeholder) {
      // Spaces at the ends are gone; between parts they may stand.
      const std::optional<std::string> text =
          binary ? wire::Base64Decode(piece.text) : std::optional<std::string>(std::move(piece.text));
      if (!text || (binary ? pieces->size() > 1 : !wire::IsTextValue(Join(".", *text, "."))))
        return CannotBeSent(line);
      part.text = *text;
      continue;
    }
    absl::StatusOr<Placeholder> drawn = Placeholder::Parse(piece.text, seed + parts.size());
    if (!drawn.ok()) return absl::InvalidArgumentError(Join("'", line, "': ", Message(drawn.status())));
    if (binary ? pieces->size() > 1 : !IsPrintable(*drawn)) return CannotBeSent(line);
    part.drawn = *std::move(drawn);
  }
  return parts;
}

}  // namespace

struct MetadataTemplate::Entry {
  std::string key;
  std::vector<ValuePart> parts;
};

absl::StatusOr<MetadataTemplate> MetadataTemplate::Parse(const std::vector<std::string>& lines,
                                                         uint64_t seed) {
  std::vector<Entry> entries;
  for (const std::string& line : lines) {
    const size_t colon = line.find(':', 1);
    if (colon == std::string::npos) {
      return absl::InvalidArgumentError(Join("'", line, "' has no colon; write 'authorization: Bearer abc'"));
    }
    std::string key = absl::AsciiStrToLower(absl::StripAsciiWhitespace(line.substr(0, colon)));
    if (!wire::IsCustomKey(key)) return CannotBeSent(line);
    const std::string value(absl::StripAsciiWhitespace(line.substr(colon + 1)));
    // Each line draws for itself.
    absl::StatusOr<std::vector<ValuePart>> parts =
        ReadValue(line, value, absl::EndsWith(key, "-bin"), seed + 1000 * (entries.size() + 1));
    if (!parts.ok()) return parts.status();
    entries.push_back({std::move(key), *std::move(parts)});
  }
  MetadataTemplate made;
  made.entries_ = std::make_shared<const std::vector<Entry>>(std::move(entries));
  return made;
}

wire::Metadata MetadataTemplate::Render(uint64_t request) const {
  wire::Metadata metadata;
  std::string value;
  for (const Entry& entry : *entries_) {
    value.clear();
    for (const ValuePart& part : entry.parts) {
      if (part.drawn) part.drawn->Append(request, &value);
      else value += part.text;
    }
    metadata.Add(entry.key, value);
  }
  return metadata;
}

bool MetadataTemplate::fixed() const {
  return std::all_of(entries_->begin(), entries_->end(), [](const Entry& entry) {
    return std::none_of(entry.parts.begin(), entry.parts.end(), [](const ValuePart& p) { return !!p.drawn; });
  });
}

}  // namespace curtail
