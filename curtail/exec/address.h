// SPDX-License-Identifier: Apache-2.0
//
// address.h - socket addresses in the form that the kernel takes.
#pragma once

#include <sys/socket.h>

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace curtail {

// An Address is where a socket listens or connects. A value type.
struct Address {
  sockaddr_storage storage = {};
  socklen_t size = 0;

  // All addresses of "HOST:PORT", "[HOST]:PORT", "unix:PATH" or "unix-abstract:NAME", at least one.
  // Looks up names other than numeric ones, which may block.
  // Errors: INVALID_ARGUMENT with the form expected; UNAVAILABLE when the name is not known.
  [[nodiscard]] static absl::StatusOr<std::vector<Address>> ResolveAll(std::string_view text);
  // ... the first of them.
  [[nodiscard]] static absl::StatusOr<Address> Resolve(std::string_view text);

  // True if `text` is a HOST:PORT whose host is a name, which ResolveAll() has to look up.
  static bool NeedsLookup(std::string_view text);

  std::string ToString() const;
  int family() const { return storage.ss_family; }
  // The port; 0 for Unix sockets.
  int port() const;
  const sockaddr* raw() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

}  // namespace curtail
