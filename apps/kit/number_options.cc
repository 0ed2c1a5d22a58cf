// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/number_options.h"

#include <charconv>
#include <string>
#include <system_error>

#include "curtail/base/strings.h"

namespace curtail {
namespace {

// The whole of `text`, as a number of the option's type. Unchanged when it is none.
bool ReadValue(std::string_view text, const NumberOption& option) {
  return std::visit(
      [text](auto* value) {
        auto read = *value;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), read);
        if (error != std::errc() || end != text.data() + text.size()) return false;
        *value = read;
        return true;
      },
      option.value);
}

bool ReadField(std::string_view field, std::span<const NumberOption> options) {
  const size_t equals = field.find('=');
  if (equals == std::string_view::npos) return false;
  for (const NumberOption& option : options) {
    if (option.name == field.substr(0, equals)) return ReadValue(field.substr(equals + 1), option);
  }
  return false;
}

std::string Names(std::span<const NumberOption> options) {
  std::string names;
  for (const NumberOption& option : options) names += Join(names.empty() ? "" : ", ", option.name, "=");
  return names;
}

absl::Status CheckRange(const NumberOption& option) {
  const double value = std::visit([](auto* at) { return static_cast<double>(*at); }, option.value);
  if (value >= option.least && value <= option.most) return absl::OkStatus();  // false for NaN
  return absl::InvalidArgumentError(Join(option.name, " must be ", static_cast<uint64_t>(option.least),
                                         " to ", static_cast<uint64_t>(option.most)));
}

}  // namespace

absl::Status ReadNumberOptions(std::string_view text, std::span<const NumberOption> options) {
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view field = text.substr(0, comma);
    if (!ReadField(field, options)) {
      return absl::InvalidArgumentError(
          Join("'", field, "' is none of ", Names(options), " with a number that fits"));
    }
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
  for (const NumberOption& option : options) {
    if (absl::Status range = CheckRange(option); !range.ok()) return range;
  }
  return absl::OkStatus();
}

absl::Status BadData(std::string_view text, std::string_view why) {
  return absl::InvalidArgumentError(Join("data \"", text, "\": ", why));
}

}  // namespace curtail
