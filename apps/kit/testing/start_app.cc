// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/testing/start_app.h"

#include <stdexcept>
#include <utility>

#include "curtail/deploy/topology_file.h"

namespace curtail::apps {

std::unique_ptr<deploy::AppUnderTest> StartApp(const std::string& topology, Deployed how) {
  absl::StatusOr<deploy::Topology> read = deploy::ReadTopology(topology);
  absl::Status status = read.status();
  if (status.ok())
    status = deploy::Change({.set = std::move(how.set), .polyglot = how.polyglot, .monolith = how.monolith},
                            &*read);
  if (status.ok()) {
    for (deploy::ServiceSpec& service : read->services) {
      if (!how.config.empty() && service.grpc()) service.config = how.config;
    }
    auto app = deploy::AppUnderTest::Start(*std::move(read), std::move(how.options));
    if (app.ok()) return *std::move(app);
    status = app.status();
  }
  throw std::runtime_error(status.ToString());
}

}  // namespace curtail::apps
