// SPDX-License-Identifier: Apache-2.0
//
// In which order the services of a topology start.
#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

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

}  // namespace curtail::deploy
