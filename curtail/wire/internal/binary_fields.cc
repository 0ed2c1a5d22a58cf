// SPDX-License-Identifier: Apache-2.0
#include "curtail/wire/internal/binary_fields.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <string>

namespace curtail::wire::internal {
namespace {

constexpr size_t kMaxKnownBytes = 32u << 10;

std::string_view TrimSpace(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

}  // namespace

const BinaryFields::Values& BinaryFields::Decode(const HeaderField& field, size_t table_entries) {
  if (field.number == 0) {
    DecodeInto(field, &once_);
    return once_;
  }
  if (known_.size() < table_entries || known_bytes_ > kMaxKnownBytes) {
    known_.assign(std::bit_ceil(std::max(table_entries, known_.size())), {});
    known_bytes_ = 0;
  }
  Values& known = known_[field.number & (known_.size() - 1)];
  if (known.number != field.number) {
    DecodeInto(field, &known);
    known.number = field.number;
    known_bytes_ += known.entries.bytes();
  }
  return known;
}

void BinaryFields::DecodeInto(const HeaderField& field, Values* values) {
  std::string_view text = field.value;
  values->joined = static_cast<uint32_t>(std::count(text.begin(), text.end(), ','));
  values->malformed = false;
  values->entries.Clear();
  if (values->joined > kMaxJoined) return;
  for (bool more = true; more;) {
    const size_t comma = text.find(',');
    more = comma != std::string_view::npos;
    if (const std::optional<std::string> bytes = Base64Decode(TrimSpace(text.substr(0, comma)))) {
      values->entries.AddLowerCase(field.name, *bytes);
    } else {
      values->malformed = true;
    }
    if (more) text.remove_prefix(comma + 1);
  }
}

}  // namespace curtail::wire::internal
