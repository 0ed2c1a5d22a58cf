// SPDX-License-Identifier: Apache-2.0
//
// instance_command.h - the command line of an instance of a topology's service.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/deploy/topology.h"

namespace curtail::deploy {

// A flag of a curtail service that its starter decides.
struct ServiceFlag {
  std::string name;                       // "--fence"
  std::optional<std::string> value = {};  // absent: the flag is a switch
  std::string condition = {};             // text before the name, for templates; empty: none
};

// Under what an instance is started; what is empty is left to the program.
struct InstanceSetup {
  std::string config;
  std::string policy;
  std::string profile;
  std::string listen;
  std::string admin;
  std::string http_admin;
  std::string user;          // ${user}; empty: the one that this process runs as
  bool memory_only = false;  // say how much memory it takes, and end
  bool failover = false;     // ServiceSpec::failover in place of the program
  // Has a file NAME.addresses for each service that scales while serving; empty: there are none.
  std::string registry;
  std::vector<std::string> more_flags;  // of its own, written before `config`
  std::vector<ServiceFlag> flags;       // behind `http_admin`
  bool joined = false;                  // a flag and its value are one word, "--flag=value"
};

// The addresses of the instances of each service, shard by shard, and in a shard replica by
// replica.
using Addresses = std::map<std::string, std::vector<std::string>>;

// argv of an instance; argv[0] is the program's name as the file has it. `addresses` holds the
// addresses of all services that it calls. A curtail service gets the flags of `setup` that its
// `run` does not have. Errors: INVALID_ARGUMENT (a variable that is not there).
absl::StatusOr<std::vector<std::string>> CommandOf(const Topology& topology, const ServiceSpec& service,
                                                   int instance, const Addresses& addresses,
                                                   const InstanceSetup& setup);

// The words before argv: the wrapper of the service, which may have ${shard}, ${replica} and
// ${instance}. Errors: as CommandOf().
absl::StatusOr<std::vector<std::string>> WrapperOf(const ServiceSpec& service, int instance);

// argv of what is run once all serve, with ${entry} for the address that clients call.
absl::StatusOr<std::vector<std::string>> PrepareCommand(const Topology& topology, const std::string& entry);

// "leaf-0", "leaf-0.1" (shard and replica), or "mid-tier" where there is one only.
// The name of a replica which the topology does not have is one that it may get.
std::string InstanceName(const ServiceSpec& service, int instance);

// The file of a registry (InstanceSetup) that has the addresses of a service, one a line.
std::string RegisteredAt(const std::string& registry, const std::string& service);

}  // namespace curtail::deploy
