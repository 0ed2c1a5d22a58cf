// SPDX-License-Identifier: Apache-2.0
//
// workloads.h - a topology on more than one machine: its instances with names for addresses, and the values that can be
// changed without rendering anew.
//
// An instance of the topology, leaf-2, is a workload: a name that callers know, and pods behind it that are alike. How many
// pods is the cluster's business; how many instances, and which part of the data each has, is the topology's.
#pragma once

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/deploy/topology.h"
#include "tools/curtail/render/yaml.h"

namespace curtail::tool {

inline constexpr int kServicePort = 8080;
inline constexpr int kAdminPort = 9464;
inline constexpr int kDashboardPort = 9460;
inline constexpr int kLingerSeconds = 10;     // of a gateway: the cluster leaves it out meanwhile
inline constexpr int kAfterDrainSeconds = 5;  // for a process to end once it has drained
inline constexpr int kUser = 10001;
inline constexpr char kDashboard[] = "dashboard";  // the component; no service of the topology has the name
inline constexpr char kDataFolder[] = "/data";
inline constexpr char kSecretFolder[] = "/run/secrets/curtail";
inline constexpr char kTlsFolder[] = "/run/secrets/tls";

struct RenderOptions {
  std::string image;                                 // empty: APPLICATION:VERSION
  std::vector<std::string> image_pull_secrets = {};  // names
  std::string tls_secret = {};                       // of the entry; empty: it speaks no TLS
  // An image that has the program `curtail`, for the dashboard; empty: the application's, if `image_has_curtail`, else
  // the chart has the dashboard turned off.
  std::string dashboard_image = {};
  bool image_has_curtail = true;
};

// One instance. `command` has markers (markers.h) where a value belongs.
struct InstancePlan {
  std::string name;      // "hdsearch-leaf-2": a DNS label
  std::string instance;  // "leaf-2"
  std::vector<std::string> command;
};

// The instances of one service.
struct ServicePlan {
  const deploy::ServiceSpec* spec = nullptr;
  std::string name;   // "hdsearch-leaf"
  std::string value;  // "services.leaf": where its values lie
  int port = kServicePort;
  std::vector<InstancePlan> workloads = {};
  std::vector<std::string> callers = {};  // services
  std::vector<std::string> callees = {};

  // True of a program of another make that calls the entry, and so speaks TLS where the entry does.
  bool calls_entry = false;

  // Of a curtail-gateway: so long it serves on after SIGTERM, before it drains. So long a request may take from its first
  // byte to its answer, which it waits for.
  int linger_s = 0, call_s = 0;

  bool keeps_data() const { return !spec->keeps.empty(); }
};

// Moves; a copy would refer to the topology of the other.
struct Plan {
  deploy::Topology topology;
  std::vector<ServicePlan> services;   // those that are to be started, callees first
  std::vector<std::string> prepare;    // a command; empty: none
  std::vector<std::string> dashboard;  // likewise
  Yaml values = Yaml::Map();           // of the chart, with comments
  int drain_s = 0;                     // the longest of all services

  const ServicePlan* Find(const std::string& service) const;
  // The names of secrets that services, or `prepare`, need.
  std::set<std::string> Secrets() const;
  // The seconds from SIGTERM after which a process of it that has not ended may be killed.
  int GraceSeconds(const ServicePlan& service) const {
    return service.linger_s + std::max(drain_s, service.call_s) + kAfterDrainSeconds;
  }
  std::string dashboard_name() const { return topology.application + "-" + kDashboard; }
};

// Errors: INVALID_ARGUMENT (a name that is too long, a program that cannot listen at a port, what only one machine has).
absl::StatusOr<Plan> MakePlan(deploy::Topology topology, const RenderOptions& options);

}  // namespace curtail::tool
