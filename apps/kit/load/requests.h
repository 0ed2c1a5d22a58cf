// SPDX-License-Identifier: Apache-2.0
//
// requests.h - what the tools send to an application: the part of its descriptor that topology.yaml cannot hold.
//
// Every application has a function Requests() in its namespace, beside its workload. CMake's curtail_app() collects
// them for the `curtail` command.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/load/message/workload.h"

namespace curtail::apps {

// Which requests a workload makes. Value type.
struct RequestOptions {
  std::string data;     // the application's --data; empty: the topology's
  size_t count = 2000;  // different requests at most
  int leaves = 0;       // how many instances hold the data; 0: the topology's
  // How many replies are judged, such as for recall. Judging takes CPU from the servers, which share it.
  size_t judged = 0;
  bool quiet = true;
  // By the names of AppRequests::options: as given, or a variable of that name in the topology.
  std::map<std::string, std::string, std::less<>> own;

  // An option of the application's own; `otherwise` when it was not given.
  std::string Text(std::string_view name, std::string_view otherwise = {}) const;
  // The same for a number. Errors: INVALID_ARGUMENT, naming the option.
  absl::StatusOr<uint64_t> Number(std::string_view name, uint64_t otherwise) const;
};

// Returns the error for a value of the flag `name` other than `names`, INVALID_ARGUMENT: "--mix: unknown mix \"mixd\"; did
// you mean \"mixed\"?".
absl::Status NoSuchValue(std::string_view name, std::string_view value,
                         const std::vector<std::string>& names);

// An option that only this application has: a flag of the commands, "--queries", or "-k" for a name of one letter.
struct AppOption {
  std::string name;
  std::string help;
};

struct AppRequests {
  std::string service;  // what clients call, by its full gRPC name: "curtail.hdsearch.Search"
  std::vector<AppOption> options;
  // Errors: INVALID_ARGUMENT and NOT_FOUND, of the options and the data.
  std::function<absl::StatusOr<std::unique_ptr<Workload>>(const RequestOptions& options)> make;
};

}  // namespace curtail::apps
