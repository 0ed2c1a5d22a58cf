// SPDX-License-Identifier: Apache-2.0
#include "curtail/wire/internal/http_fields.h"

#include <charconv>
#include <optional>
#include <utility>

namespace curtail::wire::internal {
namespace {

// Digits that fit, or nothing.
std::optional<int64_t> ParseLength(std::string_view text) {
  constexpr size_t kMaxDigits = 32;  // with zeros in front
  if (text.size() > kMaxDigits) return std::nullopt;
  uint64_t value = 0;  // a signed one would take "-0"
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::in_range<int64_t>(value))
    return std::nullopt;
  return static_cast<int64_t>(value);
}

bool IsBlank(char c) { return c == ' ' || c == '\t'; }

}  // namespace

void HttpFields::OnContentLength(std::string_view value) {
  const std::optional<int64_t> length = ParseLength(value);
  if (!length || (has_length && content_length != *length)) bad_http = true;
  has_length = true;
  content_length = length.value_or(0);
}

bool HttpFields::Take(const HeaderField& field, uint32_t max_bytes) {
  if (!Count(field, max_bytes)) return false;
  const std::string_view value = field.value;
  if (field.name.front() != ':') past_pseudo = true;
  if (!value.empty() && (IsBlank(value.front()) || IsBlank(value.back()))) bad_http = true;
  switch (field.field) {
    case Field::kStatus:
      OnStatus(value);
      [[fallthrough]];
    case Field::kMethod:
    case Field::kScheme:
    case Field::kPath:
    case Field::kAuthority:
      CountPseudo(field.field);
      break;
    case Field::kTe:
      if (value != "trailers") bad_http = true;
      break;
    case Field::kContentLength:
      OnContentLength(value);
      break;
    case Field::kConnectionSpecific:
    case Field::kUnknownPseudo:
      bad_http = true;
      break;
    default:
      break;
  }
  return !bad_http;
}

}  // namespace curtail::wire::internal
