// SPDX-License-Identifier: Apache-2.0
#include "apps/shipped/application.h"

#include <algorithm>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "apps/shipped/shipped_applications.h"
#include "curtail/base/internal/closest.h"

namespace curtail::apps {
namespace {

using deploy::ServiceSpec;
using deploy::Topology;

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
RequestOptions Completed(RequestOptions options, const AppRequests& requests, const Topology& topology) {
  const auto data = topology.variables.find("data");
  if (options.data.empty() && data != topology.variables.end()) options.data = data->second;
  const ServiceSpec* leaf = topology.Find("leaf");
  if (options.leaves == 0 && leaf != nullptr) options.leaves = leaf->shards;
  for (const AppOption& own : requests.options) {
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
  const std::string meant = internal::DidYouMean(name, names);
  return absl::NotFoundError(
      absl::StrCat("unknown application \"", std::string(name), "\"",
                   meant.empty() ? absl::StrCat("; there are ", ApplicationNames()) : meant));
}

std::map<std::string, std::string> OwnOptions() {
  std::map<std::string, std::string> options;
  for (const ShippedApplication& shipped : ShippedApplications()) {
    for (const AppOption& own : shipped.requests().options) {
      std::string& help = options[own.name];
      absl::StrAppend(&help, help.empty() ? "" : "; ", std::string(shipped.name), ": ", own.help);
    }
  }
  return options;
}

std::map<std::string, std::vector<std::string>> OwnersOfOptions() {
  std::map<std::string, std::vector<std::string>> owners;
  for (const ShippedApplication& shipped : ShippedApplications()) {
    for (const AppOption& own : shipped.requests().options) owners[own.name].emplace_back(shipped.name);
  }
  return owners;
}

absl::StatusOr<Topology> LoadTopology(const std::string& name) {
  if (deploy::IsTopologyFile(name)) return deploy::ReadTopology(name);
  if (const ShippedApplication* shipped = Find(name)) {
    return Topology::Parse(shipped->topology, absl::StrCat(name, "'s topology.yaml"));
  }
  std::error_code unreadable;
  const bool here = std::filesystem::exists("topology.yaml", unreadable);
  return absl::NotFoundError(absl::StrCat(NoApplication(name).message(),
                                          "\n  hint: give the path of your own topology, ./",
                                          here ? "topology.yaml" : "NAME.yaml"));
}

absl::StatusOr<Topology> LoadTopology(const std::string& name, const deploy::TopologyChanges& changes) {
  absl::StatusOr<Topology> topology = LoadTopology(name);
  if (!topology.ok()) return topology;
  if (absl::Status changed = deploy::Change(changes, &*topology); !changed.ok()) return changed;
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
  const AppRequests requests = known->requests();
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
  const AppRequests described = known->requests();
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

}  // namespace curtail::apps
