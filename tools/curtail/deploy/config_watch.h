// SPDX-License-Identifier: Apache-2.0
//
// config_watch.h - asks a server's admin interface, while a run goes on, which threading config is in force.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "curtail/load/drive/live.h"
#include "curtail/load/report/result.h"

namespace curtail::tool {

// A ConfigWatch asks five times a second, on a thread and a connection of its own: a config that was in force for
// less may be missed. It does nothing without an address. Thread-safe.
class ConfigWatch {
 public:
  // `live` says how far the run is, and outlives this.
  ConfigWatch(std::string admin, const Live* live);
  ~ConfigWatch();
  ConfigWatch(const ConfigWatch&) = delete;
  ConfigWatch& operator=(const ConfigWatch&) = delete;

  // "SDB1-16, 2 switches"; why it is not known; or nothing without an address.
  std::string Text();
  // Says in `series` which config was in force at the end of each interval.
  void Fill(std::vector<LoadInterval>& series);

 private:
  struct Change {
    Nanos at;
    std::string config;
  };
  void Ask();

  const std::string admin_;
  const Live* const live_;

  std::mutex mu_;
  // Guarded by mu_.
  std::condition_variable changed_;
  bool done_ = false;
  std::vector<Change> changes_;
  std::string error_;

  std::thread thread_;
};

}  // namespace curtail::tool
