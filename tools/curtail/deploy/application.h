// SPDX-License-Identifier: Apache-2.0
//
// application.h - an application that the command knows: how its processes are started, and what is sent to it.
//
// The processes are its topology's (apps/APP/topology.yaml, a copy of which is in this program); the requests come from
// its workload library. A new application is its folder and an entry in application.cc.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "curtail/load/message/workload.h"
#include "tools/curtail/deploy/topology.h"

namespace curtail::tool {

// Which requests an application's workload makes.
struct RequestOptions {
  std::string data;     // the corpus, or whatever its --data is; empty: the topology's
  std::string queries;  // hdsearch: another corpus's; router: the YCSB mix; empty: those of the data
  size_t count = 2000;  // different requests at most
  size_t k = 10;        // hdsearch: neighbours asked for
  int leaves = 0;       // recommend: how many average; 0: the topology's
  size_t records = 0;   // router: keys of a YCSB mix; 0: the topology's
  // How many replies are judged, such as for recall. Judging takes CPU from the servers, which share it.
  size_t judged = 0;
  bool quiet = true;
};

struct ApplicationOptions : RequestOptions {
  std::string program;      // the executable of the tiers; empty: found, see FindProgram()
  std::string leaf_config;  // empty: the topology's
};

// Under which config or policy a mid-tier serves.
struct MidTierSetup {
  std::string config = "SIB1";  // at the start
  // The rest empty: that config for good.
  std::string policy;
  std::string profile;  // a file
  bool any_machine = false;
  Nanos slo{0};                      // zero: the server's default
  std::string admin;                 // address; empty: none
  std::vector<std::string> wrapper;  // a program and its flags to run it under, such as valgrind; empty: none
};

// What the measuring commands start and send load to. Immutable; any thread.
struct Application {
  std::string name;  // as the commands take it
  std::string
      service;  // the full gRPC name of what clients call, as profiles have it: "curtail.hdsearch.Search"
  std::string description;  // for reports: one sentence without a full stop
  std::shared_ptr<const Workload> workload;
  Topology topology;
};

// Whether there is an application of this name, so that an address is not taken for one.
bool IsApplication(std::string_view name);
// "hdsearch, router, ...": for messages.
std::string ApplicationNames();

// Errors: NOT_FOUND (the name, the data), INVALID_ARGUMENT (the data).
absl::StatusOr<std::unique_ptr<Application>> MakeApplication(std::string_view name,
                                                             const ApplicationOptions& options);
// What is sent to one that runs already, with the settings of its topology; what it has no setting for is as in the
// topology that is shipped. Errors: as above.
absl::StatusOr<std::shared_ptr<const Workload>> MakeRequests(
    std::string_view name, const RequestOptions& options, const std::map<std::string, std::string>& settings);
// The topology of an application, or of a file if the name has a '/' or ends in .yaml. Errors: NOT_FOUND, and those of
// Topology::Parse().
absl::StatusOr<Topology> LoadTopology(const std::string& name);

}  // namespace curtail::tool
