// SPDX-License-Identifier: Apache-2.0
//
// profile.h - the result of training: the latency of each config at each load, and where each
// saturates; the limits of path classes.
//
// Training fills `cells` and `loads`, calls Summarize() and stores ProfileJson(). A server reads it
// with ParseProfile(), asks CheckProfileFits(), and hands it to a policy. The caller handles files.
// curtail/adapt/profile.schema.json describes the format. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/adapt/machine.h"
#include "curtail/exec/config.h"

namespace curtail {

// The value of `schema_version`; raised when a key changes its meaning or goes away.
inline constexpr int kProfileSchemaVersion = 1;

// One measurement of a config at a load.
struct ProfileCell {
  Config config;
  double load_per_s = 0;  // offered
  int repeat = 0;         // from 0
  double p50_us = 0;
  double p99_us = 0;
  double mean_us = 0;
  double achieved_per_s = 0;
  double failed_share = 0;  // from 0 to 1
  bool saturated = false;   // the config did not keep up
  // CPUs that the server's process kept busy; absent: not measured
  std::optional<double> cpu_cores;
  friend bool operator==(const ProfileCell&, const ProfileCell&) = default;
};

// The repeats of a config at a load, together.
struct ProfilePoint {
  double load_per_s = 0;
  double p99_us = 0;  // the median of the repeats
  double spread_us =
      // 1.4826 x their median distance from it: the deviation, if they were normally distributed
      0;
  // The spread exceeds a quarter of the median, or the repeats disagree on saturation
  bool unstable = false;
  bool saturated = false;  // in at least half of the repeats
  friend bool operator==(const ProfilePoint&, const ProfilePoint&) = default;
};

struct ConfigSummary {
  Config config;
  // The highest trained load that the config sustained, if it did not sustain the next one it was
  // trained at; zero if it sustained none. Absent: it sustained all.
  std::optional<double> saturation_per_s;
  std::vector<ProfilePoint> points;  // by ascending load, without loads that were not measured
  friend bool operator==(const ConfigSummary&, const ConfigSummary&) = default;
};

// The limit of a path class (docs/design/fences.md), as the class alone under load shows it.
struct ProfileFence {
  std::vector<std::string> services;  // that its requests call, ascending
  uint32_t limit = 0;                 // the least concurrency with the full throughput
  double throughput_per_s = 0;        // the full one
  uint32_t tried = 0;                 // the greatest concurrency that was measured
  bool saturated = false;             // more concurrency than the limit brought no more
  Config config;                      // under which the server ran
  friend bool operator==(const ProfileFence&, const ProfileFence&) = default;
};

struct Profile {
  std::string service;  // its full gRPC name, "search.Search"
  std::string curtail_version;
  MachineFingerprint machine;
  uint64_t seed = 0;
  std::string created;        // "2026-11-22T08:30:00Z"
  std::vector<double> loads;  // trained, in requests a second, ascending
  std::vector<ProfileCell> cells;
  std::vector<ConfigSummary> configs;  // in the order in which they first appear in `cells`
  // The limits of path classes; no two of the same services. A profile has cells, limits or both.
  std::vector<ProfileFence> fences = {};
  friend bool operator==(const Profile&, const Profile&) = default;
};

// Makes `configs` from `cells`.
void Summarize(Profile& profile);

// One JSON object, ends with a newline; ParseProfile() gives back exactly the same profile.
// Errors: INVALID_ARGUMENT with the fault that ParseProfile() would find.
absl::StatusOr<std::string> ProfileJson(const Profile& profile);

// Takes any bytes.
// Errors: INVALID_ARGUMENT with the fault and its place. Faults: not JSON (line and column),
// another schema_version, a missing, unknown or ill-typed key, and an unknown config. Faults are
// also loads that do not ascend, numbers out of range, and a summary that does not follow from the
// cells.
absl::StatusOr<Profile> ParseProfile(std::string_view text);

// OK if the profile is of this service and this machine. `any_machine` leaves the machine out; an
// empty service, the service.
// Errors: FAILED_PRECONDITION that names every field that differs.
absl::Status CheckProfileFits(const Profile& profile, std::string_view service,
                              const MachineFingerprint& machine, bool any_machine = false);

}  // namespace curtail
