// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/term/validators.h"

#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "tools/curtail/term/flags.h"

namespace curtail::tool {

CLI::Validator Between(double low, double high) {
  return CLI::Validator(
      [low, high](std::string& text) {
        double number = 0;
        const bool good = CLI::detail::lexical_cast(text, number) && number >= low && number <= high;
        return good ? std::string() : absl::StrFormat("%s is not a number from %g to %g", text, low, high);
      },
      CLI::Range(low, high).get_description());
}

CLI::Validator Number() {
  return CLI::Validator(
      [](std::string& text) {
        const absl::StatusOr<double> number = ParseNumber(text);
        if (!number.ok()) return std::string(number.status().message());
        text = absl::StrFormat("%.17g", *number);
        return std::string();
      },
      "");
}

CLI::Validator Positive() {
  return CLI::Validator(
      [](std::string& text) {
        double number = 0;
        const bool good = CLI::detail::lexical_cast(text, number) && number > 0;
        return good ? std::string() : text + " is not above 0";
      },
      "");
}

CLI::Validator NotNegative() {
  return CLI::Validator(
      [](std::string& text) { return text.starts_with('-') ? text + " is below 0" : std::string(); }, "");
}

CLI::Validator Conditions() {
  return CLI::Validator(
      [](std::string& text) {
        if (text.find_first_not_of(' ') == text.npos) return "the condition is empty; write p99<5ms";
        return text.starts_with("--") ? "it needs a condition, such as 'p99<5ms'" : "";
      },
      "");
}

}  // namespace curtail::tool
