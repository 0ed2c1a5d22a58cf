// SPDX-License-Identifier: Apache-2.0
//
// provision_report.h - what provisioning came to: tables, JSON and an overlay of the topology. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "curtail/deploy/topology.h"
#include "curtail/load/report/report.h"
#include "tools/curtail/provision/provisioner.h"

namespace curtail::tool {

// The wishes of the user, and the outcome.
struct ProvisionReport {
  std::string application;
  std::string qos;  // "p99<50ms"
  ProvisionOptions options;
  Allocation start;
  Allocation kept;
  Allocation equal;
  std::vector<ProvisionRound> rounds;
  std::optional<double> highest_per_s;  // under `kept`
  std::optional<double> equal_per_s;
  ProvisionEnd end = ProvisionEnd::kRunning;
  std::string reason;                // of the end
  std::vector<TierLoad> at_highest;  // at the last turn under `kept` that met the QoS; may be empty
};

// A line about a round, and its verdict: "round 3: 120/s; front-end first (...); cpu 0.02 -> 0.04 helps".
std::string RoundText(const ProvisionReport& report, size_t round);
// The rounds as a table, the shares as a table, and the outcome. Ends with a newline.
std::string ProvisionText(const ProvisionReport& report);
// One JSON object, as provision.schema.json describes it; ends with a newline.
std::string ProvisionJson(const ProvisionReport& report, const ReportOrigin& origin);
// The file for `curtail up --overlay`: `kept`, as far as it differs from `topology`, under comments that say where it is from.
std::string OverlayYaml(const ProvisionReport& report, const deploy::Topology& topology,
                        const std::string& command);

}  // namespace curtail::tool
