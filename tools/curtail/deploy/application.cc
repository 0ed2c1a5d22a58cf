// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/deploy/application.h"

#include <algorithm>
#include <span>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "apps/hdsearch/workload.h"
#include "apps/recommend/workload.h"
#include "apps/router/workload.h"
#include "apps/setalgebra/workload.h"
#include "tools/curtail/cli/flags.h"
#include "tools/curtail/deploy/topologies.h"

namespace curtail::tool {
namespace {

constexpr size_t kMaxTopology = 1u << 20;

using MadeWorkload = absl::StatusOr<std::unique_ptr<Workload>>;

MadeWorkload HdSearchRequests(const RequestOptions& o) {
  hdsearch::WorkloadOptions options;
  options.data = o.data;
  options.queries = o.queries;
  options.count = o.count;
  options.k = o.k;
  options.judged = o.judged;
  options.quiet = o.quiet;
  return hdsearch::MakeWorkload(options);
}

MadeWorkload RouterRequests(const RequestOptions& o) {
  router::WorkloadOptions options;
  if (!o.queries.empty()) options.workload = o.queries;
  // A file says itself how many there are.
  if (options.workload.size() == 1) options.records = o.records;
  return router::MakeWorkload(options);
}

MadeWorkload SetAlgebraRequests(const RequestOptions& o) {
  setalgebra::WorkloadOptions options;
  options.data = o.data;
  options.count = o.count;
  options.judged = o.judged;
  options.quiet = o.quiet;
  return setalgebra::MakeWorkload(options);
}

MadeWorkload RecommendRequests(const RequestOptions& o) {
  recommend::WorkloadOptions options;
  options.data = o.data;
  options.count = o.count;
  options.leaves = static_cast<size_t>(o.leaves);
  options.judged = o.judged;
  options.quiet = o.quiet;
  return recommend::MakeWorkload(options);
}

struct Known {
  std::string_view name;
  std::string_view service;
  MadeWorkload (*requests)(const RequestOptions&);
};

constexpr Known kKnown[] = {
    {"hdsearch", "curtail.hdsearch.Search", HdSearchRequests},
    {"router", "curtail.router.Router", RouterRequests},
    {"setalgebra", "curtail.setalgebra.SetAlgebra", SetAlgebraRequests},
    {"recommend", "curtail.recommend.Recommend", RecommendRequests},
};

const Known* Find(std::string_view name) {
  const auto* found = std::find_if(std::begin(kKnown), std::end(kKnown),
                                   [name](const Known& known) { return known.name == name; });
  return found == std::end(kKnown) ? nullptr : found;
}

absl::Status NoSuch(std::string_view name) {
  return absl::NotFoundError(
      absl::StrCat("no application \"", std::string(name), "\"; there are ", ApplicationNames()));
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

// What the requests depend on and the topology knows.
RequestOptions Completed(RequestOptions options, const Topology& topology) {
  const auto data = topology.variables.find("data");
  if (options.data.empty() && data != topology.variables.end()) options.data = data->second;
  const ServiceSpec* leaf = topology.Find("leaf");
  if (options.leaves == 0 && leaf != nullptr) options.leaves = leaf->shards;
  const auto records = topology.variables.find("records");
  if (options.records == 0 && records != topology.variables.end()) {
    (void)absl::SimpleAtoi(records->second, &options.records);  // its own program refuses what is no number
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
  if (!requests.queries.empty()) absl::StrAppend(&text, "; ", requests.queries);
  return text;
}

}  // namespace

bool IsApplication(std::string_view name) { return Find(name) != nullptr; }

std::string ApplicationNames() {
  std::string names;
  for (const Known& known : kKnown)
    absl::StrAppend(&names, names.empty() ? "" : ", ", std::string(known.name));
  return names;
}

absl::StatusOr<Topology> LoadTopology(const std::string& name) {
  if (name.find('/') != std::string::npos || absl::EndsWith(name, ".yaml")) {
    const absl::StatusOr<std::string> text = ReadWholeFile(name, kMaxTopology);
    if (!text.ok()) return text.status();
    return Topology::Parse(*text, name);
  }
  for (const ShippedTopology& shipped : ShippedTopologies()) {
    if (shipped.name == name) return Topology::Parse(shipped.yaml, absl::StrCat(name, "'s topology.yaml"));
  }
  return absl::NotFoundError(
      absl::StrCat(NoSuch(name).message(), "; a topology of your own is given by its path, ./NAME.yaml"));
}

absl::StatusOr<std::shared_ptr<const Workload>> MakeRequests(
    std::string_view name, const RequestOptions& options,
    const std::map<std::string, std::string>& settings) {
  const Known* known = Find(name);
  if (known == nullptr) return NoSuch(name);
  absl::StatusOr<Topology> topology = LoadTopology(std::string(name));
  if (!topology.ok()) return topology.status();
  for (const auto& [setting, value] : settings) {
    topology->Set(setting, value)
        .IgnoreError();  // what only a topology of the user's own has says nothing here
  }
  return known->requests(Completed(options, *topology));
}

absl::StatusOr<std::unique_ptr<Application>> MakeApplication(std::string_view name,
                                                             const ApplicationOptions& options) {
  const Known* known = Find(name);
  if (known == nullptr) return NoSuch(name);
  absl::StatusOr<Topology> topology = LoadTopology(std::string(name));
  if (!topology.ok()) return topology.status();
  if (absl::Status reshaped = Reshape(options, &*topology); !reshaped.ok()) return reshaped;
  const RequestOptions requests = Completed(options, *topology);
  MadeWorkload workload = known->requests(requests);
  if (!workload.ok()) return workload.status();
  auto application = std::make_unique<Application>();
  application->name = known->name;
  application->service = known->service;
  application->description = Describe(*topology, requests);
  application->workload = *std::move(workload);
  application->topology = *std::move(topology);
  return application;
}

}  // namespace curtail::tool
