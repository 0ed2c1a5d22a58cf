// SPDX-License-Identifier: Apache-2.0
//
// compose_service.h - the service under study: its handler calls four services beside each other, each through an
// `async`, and then a fifth.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/common/variant.h"
#include "curtail/rpc/channel.h"
#include "curtail/rpc/service.h"

namespace curtail::study {

// Calls of a request that run beside each other.
inline constexpr int kParallelCalls = 4;

// The same handler for either kind of async. `addresses` are those of the services in the order of kParts
// (parts.h); `client` outlives the service.
std::unique_ptr<Service> MakeComposer(bench::AsyncKind async, Client* client,
                                      const std::vector<std::string>& addresses);

}  // namespace curtail::study
