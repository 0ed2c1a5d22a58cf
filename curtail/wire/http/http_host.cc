// SPDX-License-Identifier: Apache-2.0
#include "curtail/wire/http/http_host.h"

#include <arpa/inet.h>

#include <algorithm>

namespace curtail::wire {
namespace {

bool IsNumeric(const std::string& name) {
  in6_addr bytes;
  return inet_pton(AF_INET, name.c_str(), &bytes) == 1 || inet_pton(AF_INET6, name.c_str(), &bytes) == 1;
}

}  // namespace

std::optional<std::string_view> OnlyValue(const HttpRequest& request, std::string_view key) {
  std::optional<std::string_view> found;
  for (const auto& [name, value] : request.headers) {
    if (name != key) continue;
    if (found) return std::nullopt;
    found = value;
  }
  return found;
}

std::string HostName(std::string_view host) {
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

bool AsksFor(const HttpRequest& request, const std::vector<std::string>& names) {
  const std::optional<std::string_view> host = OnlyValue(request, "host");
  if (!host) return false;
  const std::string name = HostName(*host);
  return name == "localhost" || IsNumeric(name) ||
         (!name.empty() && std::find(names.begin(), names.end(), name) != names.end());
}

}  // namespace curtail::wire
