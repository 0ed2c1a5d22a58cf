// SPDX-License-Identifier: Apache-2.0
//
// limits.h - how much a profile, a checkpoint of its training and the plan of both may hold.
#pragma once

#include <cstddef>
#include <limits>

namespace curtail::internal {

inline constexpr size_t kMaxText = size_t{64} << 20;  // of a file, in bytes
inline constexpr size_t kMaxCells = 100'000;
inline constexpr size_t kMaxLoads = 512;
inline constexpr size_t kMaxConfigs = 256;
inline constexpr size_t kMaxString = 1024;
inline constexpr size_t kMaxFences = 61;         // FenceOptions::kMaxLimits
inline constexpr size_t kMaxFenceServices = 63;  // of one of them
inline constexpr int kMaxConcurrency = 1 << 20;
inline constexpr double kMaxUs = 1e13;  // four months
inline constexpr double kMaxCores = 1 << 20;
inline constexpr double kMinRate = 1e-6;
inline constexpr double kMaxRate = 1e12;  // a second
inline constexpr double kInfinite = std::numeric_limits<double>::infinity();

}  // namespace curtail::internal
