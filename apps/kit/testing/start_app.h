// SPDX-License-Identifier: Apache-2.0
//
// start_app.h - starts the application of a topology for a test.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "curtail/deploy/app_under_test.h"

namespace curtail::apps {

struct Deployed {
  std::string config = {};            // of each curtail service; empty: as the topology has it
  bool monolith = false;              // one process
  bool polyglot = false;              // services in other languages, where they are built
  std::vector<std::string> set = {};  // variables of the topology: "users=3"
  deploy::AppOptions options = {};
};

// Throws if the application does not start, which GoogleTest counts as a failure of this test only.
std::unique_ptr<deploy::AppUnderTest> StartApp(const std::string& topology, Deployed how);

}  // namespace curtail::apps
