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

// A Study is what its parts share. Its references outlive it.
struct Study {
  const Results& results;
  const std::string& log_folder;
  const std::atomic<bool>& stop;
  std::function<void(const std::string&)> progress;  // hears a line before each run

  absl::StatusOr<std::unique_ptr<Tier>> Start(const Role& role) const {
    return Tier::Start(role, log_folder, stop);
  }
  // Measures all variants of a part in turns, all rounds: `measure` one of them, by its number. Errors: CANCELLED when
  // stopped; those of `measure`. What was measured is in `part`.
  absl::Status TakeTurns(
      Part* part, const std::function<absl::StatusOr<Cell>(size_t variant, uint64_t seed)>& measure) const;
};

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
