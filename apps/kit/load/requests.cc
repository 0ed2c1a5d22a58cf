// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/load/requests.h"

#include <charconv>

#include "absl/status/status.h"
#include "curtail/base/internal/closest.h"
#include "curtail/base/strings.h"

namespace curtail::apps {
namespace {

// "--mix"; "-k" for a name of one letter.
std::string FlagOf(std::string_view name) { return Join(name.size() == 1 ? "-" : "--", name); }

}  // namespace

absl::Status NoSuchValue(std::string_view name, std::string_view value,
                         const std::vector<std::string>& names) {
  return absl::InvalidArgumentError(
      Join(FlagOf(name), ": unknown ", name, " \"", value, "\"", internal::WriteHint(value, names)));
}

std::string RequestOptions::Text(std::string_view name, std::string_view otherwise) const {
  const auto found = own.find(name);
  return found == own.end() || found->second.empty() ? std::string(otherwise) : found->second;
}

absl::StatusOr<uint64_t> RequestOptions::Number(std::string_view name, uint64_t otherwise) const {
  const std::string text = Text(name);
  if (text.empty()) return otherwise;
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) return value;
  return absl::InvalidArgumentError(Join(FlagOf(name), ": \"", text, "\" is not a whole number from 0"));
}

}  // namespace curtail::apps
