// SPDX-License-Identifier: Apache-2.0
#include "curtail/gateway/internal/request_rules.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "curtail/base/strings.h"
#include "curtail/exec/address.h"
#include "curtail/rpc/client/balancer/balancer.h"
#include "curtail/rpc/client/resolver/target.h"
#include "curtail/rpc/transport/socket.h"
#include "curtail/wire/http/http_host.h"
#include "curtail/wire/metadata.h"

namespace curtail::gateway::internal {

namespace {

constexpr char kKeyChars[] = "abcdefghijklmnopqrstuvwxyz0123456789-_.";

// "https://app.example" for "app.example" and "https://app.example/path".
absl::Status CheckAllowedOrigin(std::string_view origin) {
  if (origin == "*" || origin == "null") return absl::OkStatus();
  const size_t scheme = origin.find("://");
  const size_t host = scheme == std::string_view::npos ? 0 : scheme + 3;
  const size_t end = std::min(origin.find_first_of("/?# ", host), origin.size());
  if (scheme != std::string_view::npos && scheme > 0 && end == origin.size() && end > host)
    return absl::OkStatus();
  const std::string_view meant = end > host ? origin.substr(0, end) : "app.example";
  return absl::InvalidArgumentError(Join("--allow-origin: \"", origin, "\" is not an origin; write ",
                                         meant.find("://") == std::string_view::npos ? "https://" : "",
                                         meant));
}

absl::Status CheckAllowedHost(std::string_view host) {
  constexpr char kHostChars[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.:[]%";  // with a port, or of IPv6
  if (host == "*" || (!host.empty() && host.find_first_not_of(kHostChars) == std::string_view::npos)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      Join("--allow-host: \"", host, "\" is not the name of a host; write app.example"));
}

}  // namespace

std::string_view HeaderOf(const HttpRequest& request, std::string_view key) {
  return request.headers.Find(key).value_or("");
}

std::pair<std::string_view, std::string_view> SplitTarget(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!target.starts_with(scheme)) continue;
    target.remove_prefix(std::min(target.find_first_of("/?", scheme.size()), target.size()));
    if (!target.starts_with('/')) return {"/", target.substr(std::min<size_t>(1, target.size()))};
  }
  const size_t mark = std::min(target.find('?'), target.size());
  return {target.substr(0, mark), target.substr(std::min(mark + 1, target.size()))};
}

Hosts HostsOf(const GatewayOptions& options) {
  std::vector<std::string> hosts = curtail::internal::OwnNames(options.listen);
  for (const std::string& host : options.allowed_hosts) hosts.push_back(wire::HostName(host));
  const bool all = std::find(hosts.begin(), hosts.end(), "*") != hosts.end();
  if (all || options.tls != nullptr || options.listen.starts_with("unix")) return std::nullopt;
  return hosts;
}

bool MayAsk(const HttpRequest& request, const Hosts& hosts) {
  return !hosts || !request.headers.Find("host") || wire::AsksFor(request, *hosts);
}

absl::StatusOr<std::string> CheckOrigin(const HttpRequest& request, const std::vector<std::string>& allowed) {
  const std::string_view origin = HeaderOf(request, "origin");
  if (origin.empty()) return std::string();
  const std::string_view host = HeaderOf(request, "host");
  if (!host.empty() && (origin == Join("http://", host) || origin == Join("https://", host))) {
    return std::string();
  }
  const bool may = std::any_of(allowed.begin(), allowed.end(),
                               [&](const std::string& one) { return one == "*" || one == origin; });
  if (may) return std::string(origin);
  return absl::PermissionDeniedError("web pages of this origin may not call: see --allow-origin");
}

bool IsPreflight(const HttpRequest& request) {
  return request.verb == "OPTIONS" && !HeaderOf(request, "access-control-request-method").empty();
}

HttpReply PreflightReply(const std::vector<std::string>& headers) {
  HttpReply reply;
  reply.status = 204;
  std::string allowed = "content-type, grpc-timeout, x-grpc-web, x-user-agent";
  for (const std::string& header : headers) allowed += Join(", ", header);
  reply.headers = {{"access-control-allow-methods", "GET, POST, PUT, PATCH, DELETE"},
                   {"access-control-allow-headers", allowed},
                   {"access-control-max-age", "600"}};
  return reply;
}

absl::Status MakeKeys(std::vector<std::string>* headers) {
  for (std::string& header : *headers) {
    std::transform(header.begin(), header.end(), header.begin(),
                   [](unsigned char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    if (header.empty() || header.find_first_not_of(kKeyChars) != std::string::npos) {
      return absl::InvalidArgumentError(
          Join("--forward-header: \"", header,
               "\" is not the name of a header; names have letters, digits, -, _ "
               "and ."));
    }
    if (!wire::IsCustomKey(header)) {
      return absl::InvalidArgumentError(
          Join("--forward-header: ", header, " is HTTP's or gRPC's own; leave it out"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Metadata> MetadataOf(const HttpRequest& request, const std::vector<std::string>& keys,
                                    const std::string& client) {
  constexpr char kForwardedFor[] = "x-forwarded-for";
  Metadata metadata;
  for (const std::string& key : keys) {
    for (const auto& [name, value] : request.headers) {
      if (name != key) continue;
      if (!key.ends_with("-bin")) {
        metadata.Add(key, value);
      } else if (const std::optional<std::string> bytes = wire::Base64Decode(value)) {
        metadata.Add(key, *bytes);
      } else {
        return absl::InvalidArgumentError(Join("header ", key, " is not base64"));
      }
    }
  }
  if (absl::Status status = wire::CheckMetadata(metadata); !status.ok()) return status;
  if (!client.empty() && !metadata.Find(kForwardedFor)) metadata.AddLowerCase(kForwardedFor, client);
  return metadata;
}

absl::StatusOr<Deadline> DeadlineOf(const HttpRequest& request, Nanos limit) {
  const std::optional<std::string_view> text = request.headers.Find("grpc-timeout");
  if (!text) return Deadline::In(limit);
  const std::optional<Nanos> asked = wire::ParseTimeout(*text);
  if (asked) return Deadline::In(std::min(*asked, limit));
  return absl::InvalidArgumentError(
      "grpc-timeout must be 1 to 8 digits and a unit, one of H, M, S, m, u and n: 500m is half a second");
}

}  // namespace curtail::gateway::internal

namespace curtail::gateway {

absl::Status CheckOptions(const GatewayOptions& options) {
  const std::string& balancer = options.channel.balancer;
  if (!curtail::internal::IsBalancer(balancer)) {
    const absl::Status unknown = curtail::internal::MakeBalancer({.name = balancer}, {}).status();
    return absl::InvalidArgumentError(Join("--balancer: ", Message(unknown)));
  }
  absl::Status status = curtail::internal::ParseTarget(options.target).status();
  if (const absl::Status listen = Address::Resolve(options.listen).status(); !listen.ok()) {
    status.Update(absl::InvalidArgumentError(Join("--listen: ", Message(listen))));
  }
  for (const std::string& origin : options.allowed_origins)
    status.Update(internal::CheckAllowedOrigin(origin));
  for (const std::string& host : options.allowed_hosts) status.Update(internal::CheckAllowedHost(host));
  std::vector<std::string> headers = options.forward_headers;
  status.Update(internal::MakeKeys(&headers));
  return status;
}

}  // namespace curtail::gateway
