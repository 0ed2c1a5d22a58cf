// SPDX-License-Identifier: Apache-2.0
#include "curtail/base/internal/flag_units.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/time/time.h"
#include "curtail/base/strings.h"

namespace curtail::internal {
namespace {

constexpr double kMostSize = 9e15;  // so that a double is exact

struct SizeUnit {
  std::string_view name;
  double bytes;
};
// "B" is the end of the others, so it is last.
constexpr SizeUnit kSizeUnits[] = {{"kB", 1e3},
                                   {"KB", 1e3},
                                   {"MB", 1e6},
                                   {"GB", 1e9},
                                   {"KiB", 1024},
                                   {"MiB", 1024 * 1024},
                                   {"GiB", 1024.0 * 1024 * 1024},
                                   {"B", 1}};

}  // namespace

std::string TimeToNumber(Nanos unit, std::string* text) {
  if (ParseNumber(*text)) return "";
  absl::Duration time;
  if (!absl::ParseDuration(*text, &time) || time == absl::InfiniteDuration() ||
      time == -absl::InfiniteDuration()) {
    return Join("\"", *text, "\" is not a time; write 10s or 500ms");
  }
  const double number = absl::ToDoubleNanoseconds(time) / static_cast<double>(unit.count());
  char digits[32];
  text->assign(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
  return "";
}

std::string SizeToNumber(std::string* text) {
  if (ParseNumber(*text)) return "";
  const std::string_view all = *text;
  for (const SizeUnit& unit : kSizeUnits) {
    if (!all.ends_with(unit.name)) continue;
    const std::optional<double> number = ParseNumber(all.substr(0, all.size() - unit.name.size()));
    const double bytes = number.value_or(-1) * unit.bytes;
    if (bytes < 0 || bytes > kMostSize) break;
    *text = Join(static_cast<int64_t>(std::llround(bytes)));
    return "";
  }
  return Join("\"", *text, "\" is not a number of bytes; write 4000000, 4MB or 4MiB");
}

}  // namespace curtail::internal
