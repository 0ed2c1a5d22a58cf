// SPDX-License-Identifier: Apache-2.0
#include "curtail/observe/http_admin_guard.h"

#include <algorithm>
#include <optional>

#include "curtail/base/strings.h"
#include "curtail/wire/http/http_host.h"

namespace curtail::observe {

bool SameSecret(std::string_view a, std::string_view b) {
  unsigned char differs = a.size() != b.size();
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    differs |= static_cast<unsigned char>(a[i] ^ b[i]);
  }
  return differs == 0;
}

std::string_view WhyRefused(const wire::HttpRequest& request, const HttpAdminAccess& access) {
  const std::optional<std::string_view> host = wire::OnlyValue(request, "host");
  if (!access.unix_socket && !wire::AsksFor(request, access.hosts)) {  // A1
    return "the Host header must be this machine's address or name";
  }
  if (request.headers.Find("origin")) {  // A2
    const std::optional<std::string_view> origin = wire::OnlyValue(request, "origin");
    if (!host || !origin || *origin != Join("http://", *host)) return "pages of other origins may not ask";
  }
  const std::string_view site = request.headers.Find("sec-fetch-site").value_or("none");
  if (site != "none" && site != "same-origin") return "pages of other sites may not ask";  // A3
  if (request.verb != "POST" || access.unix_socket) return "";                             // A4
  const std::optional<std::string_view> given = wire::OnlyValue(request, "authorization");
  const bool known = !access.token.empty() && given && SameSecret(*given, Join("Bearer ", access.token));
  return known ? "" : "only a Unix socket, or the token of the operator, may change something";
}

}  // namespace curtail::observe
