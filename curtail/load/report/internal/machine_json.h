// SPDX-License-Identifier: Apache-2.0
//
// machine_json.h - the machine of a report as reports of all kinds write it. Pure function; any thread. nlohmann's header
// is heavy: for source files only.
#pragma once

#include <optional>

#include "curtail/load/report/report.h"
#include "nlohmann/json.hpp"

namespace curtail::internal {

inline nlohmann::ordered_json MachineJson(const std::optional<Machine>& m) {
  if (!m) return nullptr;
  return {{"cpus", m->cpus},
          {"cpu_model", m->cpu_model},
          {"kernel", m->kernel},
          {"load_average_before", m->load_average_before}};
}

}  // namespace curtail::internal
