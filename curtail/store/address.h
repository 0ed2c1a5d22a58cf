// SPDX-License-Identifier: Apache-2.0
//
// address.h - where a store listens, as text and as socket addresses.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/exec/address.h"

namespace curtail {

// A StoreAddress is a name and all the socket addresses that it stands for. A value type.
struct StoreAddress {
  // "unix:PATH" or "HOST:PORT" ("[HOST]:PORT"). Looks a name up now, once, which may block, and
  // keeps all its addresses. Errors: INVALID_ARGUMENT.
  [[nodiscard]] static absl::StatusOr<StoreAddress> Parse(const std::string& text);

  std::string text;
  std::vector<Address> sockets;  // at least one, unless default-constructed
};

}  // namespace curtail
