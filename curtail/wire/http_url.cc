// SPDX-License-Identifier: Apache-2.0
#include "curtail/wire/http_url.h"

#include <algorithm>
#include <charconv>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "curtail/base/strings.h"

namespace curtail {
namespace {

constexpr size_t kMaxUrlBytes = 8192;
constexpr size_t kMaxQuotedUrl = 200;

absl::Status BadUrl(std::string_view text, std::string_view why) {
  return absl::InvalidArgumentError(Join("\"", text.substr(0, kMaxQuotedUrl), "\" ", why,
                                         "; write http://HOST:PORT/PATH, as http://127.0.0.1:8080/search"));
}

// The port in `text`, or 0.
int ParsePort(std::string_view text) {
  int port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && port >= 1 && port <= 65535 ? port : 0;
}

}  // namespace

bool HttpUrl::Is(std::string_view text) {
  return absl::StartsWithIgnoreCase({text.data(), text.size()}, "http://") ||
         absl::StartsWithIgnoreCase({text.data(), text.size()}, "https://");
}

absl::StatusOr<HttpUrl> HttpUrl::Parse(std::string_view text) {
  if (!Is(text)) return BadUrl(text, "is not a URL of HTTP");
  if (text.size() > kMaxUrlBytes) return BadUrl(text, "is longer than 8192 bytes");
  const auto unfit = [](char c) { return c <= ' ' || c >= 0x7f; };
  if (std::any_of(text.begin(), text.end(), unfit)) {
    return BadUrl(text, "has characters that a URL cannot hold: write them as %20 and so on");
  }
  HttpUrl url;
  const size_t scheme = text.find("://");
  url.secure = scheme == 5;
  std::string_view rest = text.substr(scheme + 3);
  rest = rest.substr(0, rest.find('#'));
  const size_t end = rest.find_first_of("/?");
  std::string_view host = rest.substr(0, end);
  url.path = end == std::string_view::npos ? "/" : std::string(rest.substr(end));
  if (url.path[0] == '?') url.path.insert(0, 1, '/');
  if (host.find('@') != std::string_view::npos)
    return BadUrl(text, "has a user; send one with -H 'authorization: ...'");
  url.authority = internal::WithoutZone(host);
  url.port = url.secure ? 443 : 80;
  const size_t bracket = host.rfind(']');
  const size_t colon = host.rfind(':');
  if (colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket)) {
    url.port = ParsePort(host.substr(colon + 1));
    host = host.substr(0, colon);
  }
  if (url.port == 0) return BadUrl(text, "has no port from 1 to 65535");
  const bool brackets = host.size() >= 2 && host.front() == '[' && host.back() == ']';
  if (brackets) host = host.substr(1, host.size() - 2);
  if (host.empty()) return BadUrl(text, "has no host");
  if (!brackets && host.find(':') != std::string_view::npos)
    return BadUrl(text, "has an IPv6 host without brackets");
  url.host = host;
  // A zone begins with %, which a URL writes as %25.
  if (const size_t zone = url.host.find("%25"); brackets && zone != std::string::npos)
    url.host.erase(zone + 1, 2);
  return url;
}

std::string internal::WithoutZone(std::string_view authority) {
  const size_t zone = authority.find('%'), end = authority.find(']');
  if (!authority.starts_with('[') || zone == authority.npos || end == authority.npos || zone > end)
    return std::string(authority);
  return Join(authority.substr(0, zone), authority.substr(end));
}

std::string HttpUrl::Address() const {
  const bool ipv6 = host.find(':') != std::string::npos;
  return Join(ipv6 ? "[" : "", host, ipv6 ? "]:" : ":", port);
}

}  // namespace curtail
