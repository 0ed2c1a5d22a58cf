// SPDX-License-Identifier: Apache-2.0
#include "curtail/exec/priority.h"

#include "curtail/base/strings.h"

namespace curtail {
namespace {

// A number of 0 to kLeast in its one form.
std::optional<uint8_t> ParseLevel(std::string_view text) {
  if (text.empty() || text.size() > 3 || (text.size() > 1 && text[0] == '0')) return std::nullopt;
  int value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = 10 * value + (c - '0');
  }
  if (value > Priority::kLeast) return std::nullopt;
  return static_cast<uint8_t>(value);
}

}  // namespace

std::optional<Priority> ParsePriority(std::string_view text) {
  const size_t dot = text.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const std::optional<uint8_t> business = ParseLevel(text.substr(0, dot));
  const std::optional<uint8_t> user = ParseLevel(text.substr(dot + 1));
  if (!business || !user) return std::nullopt;
  return Priority{*business, *user};
}

absl::Status PriorityOptions::Check() const {
  if (target <= Nanos::zero())
    return absl::InvalidArgumentError("the target of priorities is not above zero");
  if (window >= target) return absl::OkStatus();
  return absl::InvalidArgumentError("the window of priorities is shorter than their target");
}

std::string ToString(Priority priority) { return Join(priority.business, ".", priority.user); }

}  // namespace curtail
