// SPDX-License-Identifier: Apache-2.0
//
// dashboard.h - the dashboard of a whole application: one port, which reads the pages of its instances.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/deploy/topology.h"
#include "curtail/observe/dashboard.h"
#include "tools/curtail/deploy/run_folder.h"

namespace curtail::tool {

// A Dashboard serves until it is destroyed. It reads the instances once a second while a browser asks, and else never.
// Thread-safe.
class Dashboard {
 public:
  // `text` as of --http-admin: a port alone is open to this machine only. Errors: those of listening there.
  static absl::StatusOr<std::unique_ptr<Dashboard>> Start(const std::string& text, std::string application,
                                                          std::vector<observe::DashboardService> services);
  static absl::StatusOr<std::unique_ptr<Dashboard>> Start(const std::string& text,
                                                          const deploy::Topology& topology);
  ~Dashboard();
  Dashboard(const Dashboard&) = delete;
  Dashboard& operator=(const Dashboard&) = delete;

  // With the real port.
  const std::string& address() const;
  // The processes that there are from now on.
  void Update(const UpState& state);

 private:
  class Impl;
  explicit Dashboard(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace curtail::tool
