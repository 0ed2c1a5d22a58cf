// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/load/requests.h"

#include <charconv>

#include "absl/status/status.h"
#include "curtail/base/strings.h"

namespace curtail::apps {

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
  return absl::InvalidArgumentError(Join(name, " is '", text, "'; write a number"));
}

}  // namespace curtail::apps
