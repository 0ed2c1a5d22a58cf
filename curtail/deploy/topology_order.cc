// SPDX-License-Identifier: Apache-2.0
//
// The services and settings of a topology by name, and in which order the services start.
#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "curtail/base/internal/closest.h"
#include "curtail/deploy/topology.h"

namespace curtail::deploy {

void Topology::Order() {
  std::vector<ServiceSpec> ordered;
  std::set<std::string> done;
  const auto take = [&](const ServiceSpec& s) {
    ordered.push_back(s);
    done.insert(s.name);
  };
  const auto waits = [&](const ServiceSpec& s) {
    return std::any_of(s.calls.begin(), s.calls.end(), [&](const Wiring& call) {
      return call.service != s.name && done.count(call.service) == 0;
    });
  };
  while (ordered.size() < services.size()) {
    const size_t before = ordered.size();
    for (const ServiceSpec& s : services) {
      if (done.count(s.name) == 0 && !waits(s)) take(s);
    }
    if (ordered.size() > before) continue;
    take(*std::find_if(services.begin(), services.end(),
                       [&](const auto& s) { return done.count(s.name) == 0; }));
  }
  services = std::move(ordered);
}

std::map<std::string, std::string> Topology::Settings() const {
  std::map<std::string, std::string> settings = variables;
  settings.insert(left_out_counts.begin(), left_out_counts.end());
  for (const ServiceSpec& s : services) {
    settings[absl::StrCat(s.name, ".shards")] = absl::StrCat(s.shards);
    settings[absl::StrCat(s.name, ".replicas")] = absl::StrCat(s.replicas);
  }
  return settings;
}

const ServiceSpec* Topology::Find(std::string_view name) const {
  const auto found =
      std::find_if(services.begin(), services.end(), [name](const auto& s) { return s.name == name; });
  return found == services.end() ? nullptr : &*found;
}

ServiceSpec* Topology::Find(std::string_view name) {
  return const_cast<ServiceSpec*>(static_cast<const Topology*>(this)->Find(name));
}

const ServiceSpec& Topology::entry() const {
  return *std::find_if(services.begin(), services.end(), [](const auto& s) { return s.entry; });
}

absl::Status Topology::NoService(std::string_view name) const {
  std::vector<std::string> names;
  for (const ServiceSpec& s : services) names.push_back(s.name);
  return absl::InvalidArgumentError(absl::StrCat(application, " has no service ", std::string(name),
                                                 curtail::internal::NamesHint(name, names)));
}

}  // namespace curtail::deploy
