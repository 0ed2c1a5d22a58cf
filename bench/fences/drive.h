// SPDX-License-Identifier: Apache-2.0
//
// drive.h - one run of the load generator over all classes, and the CPU that everything takes meanwhile.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/fences/mix.h"
#include "bench/fences/results.h"
#include "bench/fences/serve.h"
#include "curtail/load/message/metadata_template.h"

namespace curtail::fences {

// The timeout of every request, which also bounds the wait for the last answers.
inline constexpr Nanos kTimeout = std::chrono::seconds(1);

struct DrivePlan {
  std::string target;
  PhaseOptions phases;
  Nanos timeout = kTimeout;
  bool credits = false;                              // ChannelOptions::credits
  std::shared_ptr<const MetadataTemplate> metadata;  // of each request; null: none
  std::vector<const Tier*> tiers;                    // whose CPU counts beside the generator's
  // Hears when the run began. May be empty.
  std::function<absl::Status(TimePoint start)> on_start;
  const std::atomic<bool>* stop = nullptr;
};

// Sends all requests of `mix` on a thread of its own and awaits them. Errors: CANCELLED when stopped; those of
// RunOpenLoop() and `on_start`.
absl::StatusOr<Cell> Drive(const DrivePlan& plan, const Mix& mix);

}  // namespace curtail::fences
