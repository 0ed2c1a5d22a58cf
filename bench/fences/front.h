// SPDX-License-Identifier: Apache-2.0
//
// front.h - the service in front of the four applications, and the requests to it.
#pragma once

#include <array>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/load/message/workload.h"
#include "curtail/rpc/channel.h"
#include "curtail/rpc/service.h"

namespace curtail::fences {

// In the order of the front's peers. Those of Browse come first.
inline constexpr std::array<const char*, 4> kApplications = {"hdsearch", "recommend", "router", "setalgebra"};
inline constexpr size_t kBrowseApplications = 2;

using ApplicationChannels = std::array<Channel*, kApplications.size()>;
// A straight-line service and its counterpart with coroutines, for asynchronous models. Channels outlive both.
std::vector<std::unique_ptr<Service>> MakeFront(const ApplicationChannels& channels);

// Requests whose parts are those of two applications' own workloads.
using Requests = std::shared_ptr<const Workload>;
// Errors: INTERNAL for requests of another type.
absl::StatusOr<Requests> MakeBrowse(const Requests& hdsearch, const Requests& recommend);
absl::StatusOr<Requests> MakeRead(const Requests& router, const Requests& setalgebra);

}  // namespace curtail::fences
