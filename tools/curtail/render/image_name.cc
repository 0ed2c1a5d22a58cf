// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/render/image_name.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"

namespace curtail::tool {
namespace {

bool HasOnly(std::string_view text, std::string_view more, bool upper) {
  return !text.empty() && std::ranges::all_of(text, [&](unsigned char c) {
    return absl::ascii_islower(c) || absl::ascii_isdigit(c) || (upper && absl::ascii_isupper(c)) ||
           more.find(static_cast<char>(c)) != more.npos;
  });
}

}  // namespace

bool IsImageName(std::string_view text) {
  if (const size_t at = text.find('@'); at != text.npos) {
    if (!HasOnly(text.substr(at + 1), ":", false)) return false;
    text = text.substr(0, at);
  }
  const size_t colon = text.rfind(':');
  if (colon != text.npos && text.find('/', colon) == text.npos) {
    if (!HasOnly(text.substr(colon + 1), "._-", true)) return false;
    text = text.substr(0, colon);
  }
  const std::vector<std::string> parts = absl::StrSplit(std::string(text), '/');
  const bool registry = parts.size() > 1 && (parts.front().find_first_of(".:") != std::string::npos ||
                                             parts.front() == "localhost");
  if (registry && !HasOnly(parts.front(), ".-:[]", true)) return false;
  return std::all_of(parts.begin() + (registry ? 1 : 0), parts.end(),
                     [](const std::string& part) { return HasOnly(part, "._-", false); });
}

}  // namespace curtail::tool
