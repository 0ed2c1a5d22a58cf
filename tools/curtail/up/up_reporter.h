// SPDX-License-Identifier: Apache-2.0
//
// up_reporter.h - keeps state.json as an application is, so that other commands find it, and tells the user of changes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "curtail/deploy/deployment.h"
#include "curtail/deploy/topology.h"
#include "curtail/term/console.h"
#include "tools/curtail/deploy/run_folder.h"

namespace curtail::tool {

class Dashboard;

// Thread-compatible. What it is made with outlives it.
class UpReporter {
 public:
  UpReporter(const deploy::Topology& topology, const RunFolder& folder, Console& console);

  // That there is something, if nothing to see yet.
  void Begin() { Write(); }
  // A Deployment's observer.
  void Changed(const deploy::Instance& instance);
  // All serve, and clients call `entry`.
  void Up(const std::string& entry);
  // From now on ends of processes are no news.
  void Ending() { ending_ = true; }
  // Hears of each change from now on; outlives the reporter's use.
  void ShowAt(Dashboard* dashboard) { dashboard_ = dashboard; }

 private:
  // A disk that is full must not end the application: the state is then older than it could be, and said once.
  void Write();
  void Tell(const deploy::Instance& instance);
  // Behind those of the same service.
  std::vector<ProcessState>::iterator PlaceFor(std::string_view service);

  const RunFolder& folder_;
  Console& console_;
  UpState state_;
  int total_ = 0;
  bool up_ = false, ending_ = false, complained_ = false;
  Dashboard* dashboard_ = nullptr;
};

}  // namespace curtail::tool
