// SPDX-License-Identifier: Apache-2.0
#include "curtail/store/address.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "curtail/base/strings.h"

namespace curtail {
namespace {

constexpr std::string_view kPlain = "redis://";
constexpr std::string_view kSecure = "rediss://";

absl::Status Wrong(std::string_view text, std::string_view why) {
  return absl::InvalidArgumentError(Join("address \"", text, "\" ", why,
                                         "; write rediss://HOST:PORT?user=NAME&password-file=FILE&ca=FILE"));
}

absl::Status ReadSetting(std::string_view text, std::string_view setting, bool secure, StoreAddress* address,
                         std::string* ca) {
  const size_t equals = setting.find('=');
  const std::string_view name = setting.substr(0, equals);
  const std::string value(equals == setting.npos ? "" : setting.substr(equals + 1));
  if (value.empty()) return Wrong(text, Join("has no value for ", name));
  if (name == "user") {
    address->user = value;
  } else if (name == "password-file") {
    address->password_file = value;
  } else if (name == "ca" && secure) {
    *ca = value;
  } else {
    return Wrong(text, name == "ca" ? "has an authority, but no TLS: begin it with rediss://"
                                    : Join("has a setting that is not known: ", name));
  }
  return absl::OkStatus();
}

absl::StatusOr<StoreAddress> ParseUrl(std::string_view url, bool secure) {
  const size_t query = std::min(url.find('?'), url.size());
  const std::string_view place = url.substr(0, query);
  std::string_view authority = place.substr((secure ? kSecure : kPlain).size());
  if (authority.ends_with('/')) authority.remove_suffix(1);
  if (authority.find('@') != authority.npos)
    return Wrong(authority.substr(authority.find('@') + 1),
                 "had a password: give it in a file or by REDIS_PASSWORD");
  absl::StatusOr<StoreAddress> address = StoreAddress::Parse(std::string(authority));
  if (!address.ok()) return address.status();
  address->text = place;
  const size_t colon = authority.rfind(':');
  address->host = authority.substr(0, colon);
  if (address->host.starts_with('[') && address->host.ends_with(']'))
    address->host = address->host.substr(1, address->host.size() - 2);
  std::string ca;
  for (std::string_view rest = url.substr(std::min(query + 1, url.size())); !rest.empty();) {
    const size_t end = std::min(rest.find('&'), rest.size());
    if (absl::Status read = ReadSetting(place, rest.substr(0, end), secure, &*address, &ca); !read.ok())
      return read;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (!secure) return address;
  absl::StatusOr<std::shared_ptr<const StoreTls>> tls = StoreTls::Load(ca);
  if (!tls.ok()) return absl::InvalidArgumentError(Join("address \"", place, "\": ", Message(tls.status())));
  address->tls = *std::move(tls);
  return address;
}

}  // namespace

absl::StatusOr<StoreAddress> StoreAddress::Parse(const std::string& text) {
  for (const std::string_view scheme : {kPlain, kSecure}) {
    if (text.starts_with(scheme)) return ParseUrl(text, scheme == kSecure);
  }
  absl::StatusOr<std::vector<Address>> sockets = Address::ResolveAll(text);
  if (!sockets.ok()) return absl::InvalidArgumentError(Join(Message(sockets.status())));
  if (sockets->front().family() != AF_UNIX && sockets->front().port() == 0) {
    return absl::InvalidArgumentError(Join("address \"", text, "\" has no port from 1 to 65535"));
  }
  StoreAddress address;
  address.text = text;
  address.sockets = *std::move(sockets);
  return address;
}

}  // namespace curtail
