// SPDX-License-Identifier: Apache-2.0
//
// idle.h - connections to a mid-tier on which nothing happens.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/common/net.h"
#include "stack.h"

namespace curtail::bench {

// Opens `count` of them. Where `protocol` is gRPC each goes through the settings that open an HTTP/2 connection, so
// that the server holds all that a real caller would make it hold.
absl::StatusOr<std::vector<Fd>> OpenIdle(const std::string& address, Protocol protocol, int count);

}  // namespace curtail::bench
