// SPDX-License-Identifier: Apache-2.0
#include "curtail/observe/http_admin_guard.h"

#include <arpa/inet.h>

#include <algorithm>
#include <optional>

#include "curtail/base/strings.h"

namespace curtail::observe {
namespace {

// "HOST:PORT", "HOST" or "[HOST]:PORT" without port and brackets, in lower case.
std::string NameIn(std::string_view host) {
  if (host.starts_with('[')) {
    const size_t end = host.find(']');
    if (end == std::string_view::npos) return "";
    host = host.substr(1, end - 1);
  } else {
    host = host.substr(0, host.find(':'));
  }
  std::string name(host);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  if (name.ends_with('.')) name.pop_back();
  return name;
}

bool IsNumeric(const std::string& name) {
  in6_addr bytes;
  return inet_pton(AF_INET, name.c_str(), &bytes) == 1 || inet_pton(AF_INET6, name.c_str(), &bytes) == 1;
}

bool KnownHost(std::string_view host, const HttpAdminAccess& access) {
  const std::string name = NameIn(host);
  return name == "localhost" || IsNumeric(name) ||
         std::find(access.hosts.begin(), access.hosts.end(), name) != access.hosts.end();
}

// The value of the header if it is there once.
std::optional<std::string_view> Only(const wire::HttpRequest& request, std::string_view key) {
  std::optional<std::string_view> found;
  for (const auto& [name, value] : request.headers) {
    if (name != key) continue;
    if (found) return std::nullopt;
    found = value;
  }
  return found;
}

}  // namespace

bool SameSecret(std::string_view a, std::string_view b) {
  unsigned char differs = a.size() != b.size();
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    differs |= static_cast<unsigned char>(a[i] ^ b[i]);
  }
  return differs == 0;
}

std::string_view WhyRefused(const wire::HttpRequest& request, const HttpAdminAccess& access) {
  const std::optional<std::string_view> host = Only(request, "host");
  if (!access.unix_socket && (!host || !KnownHost(*host, access))) {  // A1
    return "the Host header must be this machine's address or name";
  }
  if (request.headers.Find("origin")) {  // A2
    const std::optional<std::string_view> origin = Only(request, "origin");
    if (!host || !origin || *origin != Join("http://", *host)) return "pages of other origins may not ask";
  }
  const std::string_view site = request.headers.Find("sec-fetch-site").value_or("none");
  if (site != "none" && site != "same-origin") return "pages of other sites may not ask";  // A3
  if (request.verb != "POST" || access.unix_socket) return "";                             // A4
  const std::optional<std::string_view> given = Only(request, "authorization");
  const bool known = !access.token.empty() && given && SameSecret(*given, Join("Bearer ", access.token));
  return known ? "" : "only a Unix socket, or the token of the operator, may change something";
}

}  // namespace curtail::observe
