// SPDX-License-Identifier: Apache-2.0
//
// http_url.h - "http://HOST:PORT/PATH" in its parts.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace curtail {

// An HttpUrl names a resource of a server. A value type.
struct HttpUrl {
  // True if `text` begins as a URL of HTTP does.
  static bool Is(std::string_view text);
  // Port and path may be missing; a fragment is dropped. Errors: INVALID_ARGUMENT.
  [[nodiscard]] static absl::StatusOr<HttpUrl> Parse(std::string_view text);

  // "HOST:PORT", as sockets want it.
  std::string Address() const;

  bool secure = false;    // https
  std::string host;       // an IPv6 address without its brackets, with its zone: "fe80::1%eth0"
  int port = 0;           // from 1 to 65535
  std::string authority;  // as the URL has it: without a port that is the default, or a zone
  std::string path;       // with the query; begins with '/'
};

namespace internal {

// "[fe80::1%eth0]:80" without the zone, which has a meaning on this machine only: servers are not
// told it (RFC 6874, 3).
std::string WithoutZone(std::string_view authority);

}  // namespace internal
}  // namespace curtail
