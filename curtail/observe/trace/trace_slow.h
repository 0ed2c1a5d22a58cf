// SPDX-License-Identifier: Apache-2.0
//
// trace_slow.h - which tier makes slow requests slow, and which tiers only wait for it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "curtail/observe/trace/trace_forest.h"

namespace curtail::observe {

// So few requests say nothing.
constexpr size_t kFewestRequests = 20;

// Of the requests of one class, given by their root spans, those that took longer than `limit`. None if there are none.
std::optional<SlowRequests> FindCulprit(const TraceForest& forest, const std::vector<uint32_t>& roots,
                                        int64_t limit);

}  // namespace curtail::observe
