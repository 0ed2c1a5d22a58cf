// SPDX-License-Identifier: Apache-2.0
//
// setup.h - the shape of what is measured: how wide, how large, over how many connections.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace curtail::bench {

inline constexpr int kMaxLeaves = 64;
inline constexpr size_t kMaxPayloadBytes = 1u << 20;
inline constexpr int kMaxConnections = 16'000;

struct Setup {
  std::string label;  // "fanout=16" where setups are compared, otherwise empty
  int leaves = 4;
  size_t payload = 64;  // bytes each way, between all tiers
  // The generator's connections, used in turn. 0: as suits the stack, one where requests can share it, otherwise one
  // for each request under way.
  int connections = 0;
  int idle = 0;  // connections to the mid-tier that carry nothing
  // The most requests that a closed loop will keep under way.
  uint32_t outstanding = 64;
};

}  // namespace curtail::bench
