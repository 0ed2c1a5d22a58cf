// SPDX-License-Identifier: Apache-2.0
#include "curtail/base/internal/flag_error.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "curtail/base/internal/closest.h"
#include "curtail/base/strings.h"

namespace curtail::internal {
namespace {

using Text = std::string_view;

// The texts before and after `middle`; nothing where it is missing.
struct Halves {
  Text before, after;
};

std::optional<Halves> SplitAt(Text text, Text middle) {
  const size_t at = text.find(middle);
  if (at == Text::npos) return std::nullopt;
  return Halves{text.substr(0, at), text.substr(at + middle.size())};
}

// "0.001000" as "0.001".
std::string Short(double number) {
  if (number == std::floor(number) && std::abs(number) < 1e18) return Join(static_cast<int64_t>(number));
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, number).ptr};
}

std::string Shown(Text value) { return value.empty() ? "\"\"" : std::string(value); }

// `range` is "1 to 256" or "[1 - 256]".
std::string OutOfRange(Text flag, Text value, Text range) {
  if (range.starts_with('[')) range = range.substr(1, range.size() - 2);
  auto bounds = SplitAt(range, " to ");
  if (!bounds) bounds = SplitAt(range, " - ");
  const std::optional<double> least = bounds ? ParseNumber(bounds->before) : std::nullopt;
  const std::optional<double> most = bounds ? ParseNumber(bounds->after) : std::nullopt;
  if (!least || !most) return Join(flag, ": ", Shown(value), " is not in the range ", range);
  const std::string wanted = *most < 1e300 ? Join("from ", Short(*least), " to ", Short(*most))
                             : *least > 0  ? Join("of ", Short(*least), " or more")
                                           : std::string("above 0");
  const std::optional<double> number = ParseNumber(value);
  if (!number) return Join(flag, ": ", Shown(value), " is not a number ", wanted);
  const bool within = *number >= *least && *number <= *most && *most < 1e300;
  return Join(flag, ": ", value, within ? " is not a whole number " : " is not ", wanted);
}

std::string NotAMember(Text flag, Text value, Text members) {
  std::vector<std::string> names;
  while (!members.empty()) {
    const size_t comma = std::min(members.find(','), members.size());
    names.emplace_back(members.substr(0, comma));
    members.remove_prefix(std::min(comma + 1, members.size()));
  }
  return Join(flag, ": unknown value \"", value, "\"", WriteHint(value, names));
}

std::string NotConverted(Text flag, Text value) {
  const std::optional<double> number = ParseNumber(value);
  if (!number) return Join(flag, ": ", Shown(value), " is not a number");
  if (*number != std::floor(*number)) return Join(flag, ": ", value, " is not a whole number");
  return Join(flag, ": ", value, *number < 0 ? " is below 0" : " is too large");
}

// "--threads: Value 0 not in range 1 to 256" and the like; empty for other texts.
std::string PlainValueError(Text flag, Text rest) {
  if (const auto range = SplitAt(rest, " not in range "); range && range->before.starts_with("Value ")) {
    return OutOfRange(flag, range->before.substr(6), range->after);
  }
  if (const auto set = SplitAt(rest, " not in {"); set && set->after.ends_with('}')) {
    return NotAMember(flag, set->before, set->after.substr(0, set->after.size() - 1));
  }
  if (const auto most = SplitAt(rest, " required but received ");
      most && most->before.starts_with("At Most ")) {
    const Text count = most->before.substr(8);
    if (count != "1") return Join(flag, " takes at most ", count, " values, not ", most->after);
    return most->after == "2" ? Join(flag, " is given twice")
                              : Join(flag, " is given ", most->after, " times");
  }
  if (const auto missing = SplitAt(rest, " required "); missing && missing->after.ends_with(" missing")) {
    const Text type = missing->after;
    const bool number = type.starts_with("FLOAT") || type.starts_with("INT") || type.starts_with("UINT");
    return Join(flag, " needs a ", number ? "number" : "value");
  }
  return "";
}

}  // namespace

std::string PlainFlagError(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  constexpr Text kConvert = "Could not convert: ";
  if (text.starts_with(kConvert)) {
    if (const auto halves = SplitAt(text.substr(kConvert.size()), " = ")) {
      return NotConverted(halves->before, halves->after);
    }
  }
  if (const auto halves = SplitAt(text, ": ")) {
    const std::string plain = PlainValueError(halves->before, halves->after);
    return plain.empty() ? std::string(text) : plain;
  }
  if (text == "A subcommand is required") return "name a command";
  if (text.ends_with(" is required")) {
    return Join(text.substr(0, text.find(" is required")), " is missing");
  }
  if (text.ends_with(" was given a disallowed flag override")) {
    return Join(text.substr(0, text.find(' ')), " takes no value");
  }
  if (const auto halves = SplitAt(text, " excludes ")) {
    return Join(halves->before, " and ", halves->after, " cannot be combined");
  }
  if (const auto halves = SplitAt(text, " requires ")) {
    return Join(halves->before, " needs ", halves->after);
  }
  return std::string(text);
}

}  // namespace curtail::internal
