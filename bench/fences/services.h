// SPDX-License-Identifier: Apache-2.0
//
// services.h - the leaves, which sleep for their service time, and the service that all paths share.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "curtail/base/clock.h"
#include "curtail/rpc/channel.h"
#include "curtail/rpc/service.h"

namespace curtail::fences {

// The service time of a leaf, and by how much it grows while the leaf is slow.
inline constexpr Nanos kServiceTime = std::chrono::milliseconds(2);
inline constexpr int kSlowFactor = 20;

// LeafB where `b`, else LeafA.
std::unique_ptr<Service> MakeLeaf(bool b, Nanos service_time);

// The places to which the shared service passes its requests on.
struct NextHops {
  Channel* a = nullptr;
  Channel* b = nullptr;
  // They lead to another shared service instead of leaves.
  bool upper = false;
};
// A straight-line service and its counterpart with continuations, for asynchronous models. Channels outlive both.
std::vector<std::unique_ptr<Service>> MakeShared(const NextHops& next);

}  // namespace curtail::fences
