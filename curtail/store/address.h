// SPDX-License-Identifier: Apache-2.0
//
// address.h - where a store listens, as text and as socket addresses.
#pragma once

#include <sys/socket.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace curtail {

// A StoreAddress is a name and all the socket addresses that it stands for. A value type.
struct StoreAddress {
  struct Socket {
    sockaddr_storage address = {};
    socklen_t size = 0;
  };

  // "unix:PATH" or "HOST:PORT" ("[HOST]:PORT"). Looks a name up now, once, which may block, and
  // keeps all its addresses. Errors: INVALID_ARGUMENT.
  [[nodiscard]] static absl::StatusOr<StoreAddress> Parse(const std::string& text);

  std::string text;
  std::vector<Socket> sockets;  // at least one, unless default-constructed
};

}  // namespace curtail
