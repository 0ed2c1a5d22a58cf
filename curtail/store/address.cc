// SPDX-License-Identifier: Apache-2.0
#include "curtail/store/address.h"

#include <utility>

#include "absl/status/status.h"
#include "curtail/base/strings.h"

namespace curtail {

absl::StatusOr<StoreAddress> StoreAddress::Parse(const std::string& text) {
  absl::StatusOr<std::vector<Address>> sockets = Address::ResolveAll(text);
  if (!sockets.ok()) return absl::InvalidArgumentError(Join(Message(sockets.status())));
  if (sockets->front().family() != AF_UNIX && sockets->front().port() == 0) {
    return absl::InvalidArgumentError(Join("address \"", text, "\" has no port from 1 to 65535"));
  }
  return StoreAddress{.text = text, .sockets = *std::move(sockets)};
}

}  // namespace curtail
