// SPDX-License-Identifier: Apache-2.0
//
// application.h - an application that the command knows: how its processes are started, and what is sent to it.
//
// The processes are its topology's (apps/APP/topology.yaml, a copy of which is in this program); the requests come from
// its workload library. A new application is its folder, which curtail_app() declares.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "apps/kit/load/requests.h"
#include "curtail/deploy/topology.h"
#include "curtail/deploy/topology_file.h"
#include "curtail/load/message/workload.h"

namespace curtail::apps {

struct ApplicationOptions : RequestOptions {
  std::string program;      // the executable of the tiers; empty: found, see FindProgram()
  std::string leaf_config;  // empty: the topology's
};

// The application that the measuring commands start and send load to. Immutable; any thread.
struct Application {
  std::string name;  // as the commands take it
  std::string
      service;  // the full gRPC name of what clients call, as profiles have it: "curtail.hdsearch.Search"
  std::string description;  // for reports: one sentence without a full stop
  // Makes what clients send. Requests may be of data that the topology prepares, such as users: call it when a mid-tier
  // serves. Errors: NOT_FOUND, INVALID_ARGUMENT.
  std::function<absl::StatusOr<std::shared_ptr<const Workload>>()> requests;
  deploy::Topology topology;
};

// The options that applications have of their own, by name, with "hdsearch: ...; router: ..." as their help.
std::map<std::string, std::string> OwnOptions();
// The applications that have each of them.
std::map<std::string, std::vector<std::string>> OwnersOfOptions();

// True if there is an application of this name, so that an address is not taken for one.
bool IsApplication(std::string_view name);
// "hdsearch, router, ...": for messages.
std::string ApplicationNames();
// NOT_FOUND: that there is no application of this name, which there are, and which was probably meant.
absl::Status NoApplication(std::string_view name);

// Errors: NOT_FOUND (the name, data that nothing prepares), INVALID_ARGUMENT (the same).
absl::StatusOr<std::unique_ptr<Application>> MakeApplication(std::string_view name,
                                                             const ApplicationOptions& options);
// The requests to one that runs already, with the settings of its topology; what it has no setting for is as in the
// topology that is shipped. Errors: as above.
absl::StatusOr<std::shared_ptr<const Workload>> MakeRequests(
    std::string_view name, const RequestOptions& options, const std::map<std::string, std::string>& settings);
// The topology of an application, or of a file. Errors: NOT_FOUND, INVALID_ARGUMENT (not a regular file), and those of
// deploy::Topology::Parse().
absl::StatusOr<deploy::Topology> LoadTopology(const std::string& name);
// LoadTopology() with these changes. Errors: its own, INVALID_ARGUMENT, FAILED_PRECONDITION.
absl::StatusOr<deploy::Topology> LoadTopology(const std::string& name,
                                              const deploy::TopologyChanges& changes);

}  // namespace curtail::apps
