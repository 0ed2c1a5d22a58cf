// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/report/internal/palette.h"

#include <cmath>
#include <iterator>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace curtail::internal {
namespace {

// Some that are easy to tell apart, then hues at the golden angle, which never come again.
std::string Colour(size_t i) {
  constexpr std::string_view kFirst[] = {"#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd",
                                         "#8c564b", "#e377c2", "#bcbd22", "#17becf"};
  if (i < std::size(kFirst)) return std::string(kFirst[i]);
  return absl::StrFormat("hsl(%.1f 65%% %d%%)", std::fmod(137.508 * static_cast<double>(i), 360),
                         i % 2 == 0 ? 35 : 65);
}

}  // namespace

void Palette::Add(const std::string& name) {
  if (!name.empty()) colours_.try_emplace(name, colours_.size());
}

std::string Palette::ClassOf(const std::string& name) const {
  const auto at = colours_.find(name);
  return at == colours_.end() ? "unknown" : absl::StrCat("k", at->second);
}

std::string Palette::Swatch(const std::string& name) const {
  return absl::StrCat("<i class=\"swatch ", ClassOf(name), "\"></i>");
}

std::string Palette::Css() const {
  std::string css;
  for (size_t i = 0; i < colours_.size(); ++i)
    absl::StrAppend(&css, ".k", i, " { fill: ", Colour(i), "; background: ", Colour(i), "; }\n");
  return css;
}

}  // namespace curtail::internal
