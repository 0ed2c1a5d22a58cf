// SPDX-License-Identifier: Apache-2.0
#include "apps/social/common/urls.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "curtail/base/strings.h"
#include "curtail/wire/http_url.h"

namespace curtail::social {
namespace {

// Part of a word, in any script.
bool IsWordByte(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c < 0; }

bool EndsUrl(char c) {
  return static_cast<unsigned char>(c) <= ' ' || c == 0x7f || c == '"' || c == '<' || c == '>';
}

// `url` without what belongs to the sentence around it.
std::string_view Trimmed(std::string_view url) {
  constexpr std::string_view kClosing = ")]}", kOpening = "([{";
  while (!url.empty()) {
    const char last = url.back();
    const size_t kind = kClosing.find(last);
    const bool unopened = kind != std::string_view::npos &&
                          std::ranges::count(url, kOpening[kind]) < std::ranges::count(url, last);
    if (!unopened && std::string_view(".,;:!?'*_~").find(last) == std::string_view::npos) break;
    url.remove_suffix(1);
  }
  return url;
}

}  // namespace

absl::Status CheckUrl(std::string_view url) {
  if (url.size() > kMostUrlBytes) {
    return absl::InvalidArgumentError(Join("a URL of ", url.size(), " bytes; at most ", kMostUrlBytes));
  }
  if (!HttpUrl::Is(url)) return absl::InvalidArgumentError("a URL begins with http:// or https://");
  // Letters of other scripts, which browsers encode, are no reason to refuse it.
  std::string ascii(url);
  std::ranges::replace_if(ascii, [](char c) { return c < 0; }, 'x');
  if (HttpUrl::Parse(ascii).ok()) return absl::OkStatus();
  return absl::InvalidArgumentError("a URL has a host, and neither spaces nor a user");
}

std::vector<TextSpan> FindUrls(std::string_view text) {
  std::vector<TextSpan> urls;
  for (size_t at = 0; at < text.size();) {
    if (HttpUrl::Is(text.substr(at))) {
      const auto end = std::find_if(text.begin() + static_cast<ptrdiff_t>(at), text.end(), EndsUrl);
      const std::string_view url = Trimmed({text.begin() + static_cast<ptrdiff_t>(at), end});
      if (CheckUrl(url).ok()) {
        urls.push_back({at, url.size()});
        at += url.size();
        continue;
      }
    }
    // A URL begins no word in its middle.
    if (!IsWordByte(text[at++])) continue;
    while (at < text.size() && IsWordByte(text[at])) ++at;
  }
  return urls;
}

}  // namespace curtail::social
