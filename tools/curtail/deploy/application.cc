// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/deploy/application.h"

#include <algorithm>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tools/curtail/cli/flags.h"
#include "tools/curtail/cli/suggest.h"
#include "tools/curtail/deploy/shipped_applications.h"

namespace curtail::tool {
namespace {

constexpr size_t kMaxTopology = 1u << 20;
constexpr int kMostReplicas = 64;

const ShippedApplication* Find(std::string_view name) {
  const auto all = ShippedApplications();
  const auto found = std::find_if(all.begin(), all.end(), [name](const auto& a) { return a.name == name; });
  return found == all.end() ? nullptr : &*found;
}

// Everything but the service that clients call and its stores: what is sharded alike.
absl::Status Reshape(const ApplicationOptions& options, Topology* topology) {
  absl::Status status;
  if (!options.data.empty()) status.Update(topology->Set("data", options.data));
  if (options.leaves > 0) {
    for (const ServiceSpec& s : topology->services) {
      if (s.name != "leaf" && s.name != "store") continue;
      status.Update(topology->Set(absl::StrCat(s.name, ".shards"), absl::StrCat(options.leaves)));
    }
  }
  if (!options.leaf_config.empty()) status.Update(topology->Set("leaf.config", options.leaf_config));
  if (options.program.empty()) return status;
  for (ServiceSpec& s : topology->services) {
    if (s.run.front() == topology->application) s.run.front() = options.program;
  }
  return status;
}

// With the topology's word for what was not given.
RequestOptions Completed(RequestOptions options, const apps::AppRequests& requests,
                         const Topology& topology) {
  const auto data = topology.variables.find("data");
  if (options.data.empty() && data != topology.variables.end()) options.data = data->second;
  const ServiceSpec* leaf = topology.Find("leaf");
  if (options.leaves == 0 && leaf != nullptr) options.leaves = leaf->shards;
  for (const apps::AppOption& own : requests.options) {
    const auto variable = topology.variables.find(own.name);
    if (variable != topology.variables.end()) options.own.try_emplace(own.name, variable->second);
  }
  return options;
}

std::string Describe(const Topology& topology, const RequestOptions& requests) {
  std::string text = topology.title;
  for (const ServiceSpec& s : topology.services) {
    if (s.entry) continue;
    absl::StrAppend(&text, "; ", s.instances(), " x ", s.name,
                    s.config.empty() ? "" : absl::StrCat(" (", s.config, ")"));
  }
  if (!requests.data.empty()) absl::StrAppend(&text, "; ", requests.data);
  const std::string queries = requests.Text("queries");
  if (!queries.empty()) absl::StrAppend(&text, "; ", queries);
  return text;
}

}  // namespace

bool IsApplication(std::string_view name) { return Find(name) != nullptr; }

std::string ApplicationNames() {
  std::string names;
  for (const ShippedApplication& shipped : ShippedApplications())
    absl::StrAppend(&names, names.empty() ? "" : ", ", std::string(shipped.name));
  return names;
}

absl::Status NoApplication(std::string_view name) {
  std::vector<std::string> names;
  for (const ShippedApplication& shipped : ShippedApplications()) names.emplace_back(shipped.name);
  return absl::NotFoundError(absl::StrCat("no application \"", std::string(name), "\"; there are ",
                                          ApplicationNames(), DidYouMean(name, names)));
}

std::map<std::string, std::string> OwnOptions() {
  std::map<std::string, std::string> options;
  for (const ShippedApplication& shipped : ShippedApplications()) {
    for (const apps::AppOption& own : shipped.requests().options) {
      std::string& help = options[own.name];
      absl::StrAppend(&help, help.empty() ? "" : "; ", std::string(shipped.name), ": ", own.help);
    }
  }
  return options;
}

bool IsTopologyFile(std::string_view name) {
  return name.find('/') != std::string_view::npos || name.ends_with(".yaml");
}

absl::Status EnterFolderOf(const std::string& topology) {
  const std::string folder = std::filesystem::path(topology).parent_path().string();
  if (!IsTopologyFile(topology) || folder.empty()) return absl::OkStatus();
  std::error_code error;
  std::filesystem::current_path(folder, error);
  if (!error) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("cannot enter ", folder, ": ", error.message()));
}

absl::StatusOr<Topology> LoadTopology(const std::string& name) {
  if (IsTopologyFile(name)) {
    std::error_code error;
    const std::filesystem::file_status file = std::filesystem::status(name, error);
    if (std::filesystem::exists(file) && !std::filesystem::is_regular_file(file)) {
      return absl::InvalidArgumentError(absl::StrCat(name, " is no regular file, so it is no topology"));
    }
    const absl::StatusOr<std::string> text = ReadWholeFile(name, kMaxTopology);
    if (!text.ok()) return text.status();
    return Topology::Parse(*text, name);
  }
  if (const ShippedApplication* shipped = Find(name)) {
    return Topology::Parse(shipped->topology, absl::StrCat(name, "'s topology.yaml"));
  }
  return absl::NotFoundError(absl::StrCat(NoApplication(name).message(),
                                          "\na topology of your own is given by its path, ./NAME.yaml"));
}

namespace {

absl::Status Replicate(const TopologyChanges& changes, Topology* topology) {
  int count = 0;
  if (!absl::SimpleAtoi(changes.scale, &count) || count < 1 || count > kMostReplicas) {
    return absl::InvalidArgumentError(
        absl::StrCat("--scale ", changes.scale, ": write how many of each service that scales, 1 to ",
                     kMostReplicas, ", or --scale alone for the size that the paper used"));
  }
  if (changes.monolith) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--scale ", changes.scale, " does not go with --monolith, which has one of each service"));
  }
  return topology->Replicate(count);
}

}  // namespace

absl::StatusOr<Topology> LoadTopology(const std::string& name, const TopologyChanges& changes) {
  absl::StatusOr<Topology> topology = LoadTopology(name);
  if (!topology.ok()) return topology;
  absl::Status status;
  if (!changes.overlay.empty()) {
    const absl::StatusOr<std::string> text = ReadWholeFile(changes.overlay, kMaxTopology);
    status.Update(text.ok() ? topology->Overlay(*text, changes.overlay) : text.status());
  }
  if (changes.scale == kPaperScale) {
    status.Update(topology->Scale());
  } else if (!changes.scale.empty()) {
    status.Update(Replicate(changes, &*topology));
  }
  for (const std::string& store : changes.stores) status.Update(topology->BringIn(store));
  for (const std::string& text : changes.set) {
    const std::vector<std::string> parts = absl::StrSplit(text, absl::MaxSplits('=', 1));
    if (parts.size() != 2) {
      status.Update(absl::InvalidArgumentError(absl::StrCat("--set '", text, "': write NAME=VALUE")));
    } else {
      status.Update(topology->Set(parts[0], parts[1]));
    }
  }
  for (const std::string& text : changes.use) status.Update(topology->Use(text));
  if (status.ok()) status = topology->LeaveOutAbsent();
  if (status.ok() && changes.monolith) status = topology->MakeMonolith();
  if (!status.ok()) return status;
  return topology;
}

absl::StatusOr<std::shared_ptr<const Workload>> MakeRequests(
    std::string_view name, const RequestOptions& options,
    const std::map<std::string, std::string>& settings) {
  const ShippedApplication* known = Find(name);
  if (known == nullptr) return NoApplication(name);
  absl::StatusOr<Topology> topology = LoadTopology(std::string(name));
  if (!topology.ok()) return topology.status();
  for (const auto& [setting, value] : settings) {
    topology->Set(setting, value)
        .IgnoreError();  // what only a topology of the user's own has says nothing here
  }
  const apps::AppRequests requests = known->requests();
  return requests.make(Completed(options, requests, *topology));
}

absl::StatusOr<std::unique_ptr<Application>> MakeApplication(std::string_view name,
                                                             const ApplicationOptions& options) {
  const ShippedApplication* known = Find(name);
  if (known == nullptr) return NoApplication(name);
  absl::StatusOr<Topology> topology = LoadTopology(std::string(name));
  if (!topology.ok()) return topology.status();
  absl::Status shape = Reshape(options, &*topology);
  if (shape.ok()) shape = topology->LeaveOutAbsent();
  if (!shape.ok()) return shape;
  const apps::AppRequests described = known->requests();
  const RequestOptions requests = Completed(options, described, *topology);
  std::function<absl::StatusOr<std::shared_ptr<const Workload>>()> make =
      [described, requests]() -> absl::StatusOr<std::shared_ptr<const Workload>> {
    return described.make(requests);
  };
  const bool prepares = !topology->prepare.empty();
  absl::StatusOr<std::shared_ptr<const Workload>> made = make();
  // Data that is prepared may be missing so far; a wrong option is wrong at once.
  if (!made.ok() && !(prepares && absl::IsNotFound(made.status()))) return made.status();
  if (!prepares) make = [workload = *std::move(made)] { return workload; };
  auto application = std::make_unique<Application>();
  application->name = known->name;
  application->service = described.service;
  application->description = Describe(*topology, requests);
  application->requests = std::move(make);
  application->topology = *std::move(topology);
  return application;
}

}  // namespace curtail::tool
