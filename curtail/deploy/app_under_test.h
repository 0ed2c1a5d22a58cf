// SPDX-License-Identifier: Apache-2.0
//
// app_under_test.h - an application in processes, for a test or benchmark that breaks parts of it.
//
//   absl::StatusOr<Topology> topology = ReadTopology("topology.yaml");
//   ...
//   auto app = AppUnderTest::Start(*std::move(topology));
//   (*app)->Kill("cart");
//
// The topology names the services and their calls, so a test lists neither. Each curtail service
// listens at a Unix socket, so no other process takes the address of one that was killed. All
// processes write to the standard error of this one.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "curtail/deploy/deployment.h"
#include "curtail/deploy/tiers.h"
#include "curtail/deploy/topology.h"

namespace curtail::deploy {

struct AppOptions {
  // The services to start; empty: all. The others have addresses and start with Restart().
  std::vector<std::string> only = {};
  std::vector<std::string> flags = {};  // more of each curtail service
  Launch launch = {};                   // of each process, until Restart() says otherwise
  bool admin = false;                   // AwaitQuiet() needs it
};

// An AppUnderTest ends its processes. Thread-compatible: AddressOf() may be called from any thread.
// Methods that take a service mean all of its instances, or the given one. REQUIRES: the topology
// has the service.
class AppUnderTest {
 public:
  static constexpr int kAll = Deployment::kAll;

  // Starts the services, callers last, and waits until they are ready. Errors: as
  // Deployment::Start().
  static absl::StatusOr<std::unique_ptr<AppUnderTest>> Start(Topology topology, AppOptions options = {});
  AppUnderTest(const AppUnderTest&) = delete;
  AppUnderTest& operator=(const AppUnderTest&) = delete;

  void Kill(const std::string& service, int instance = kAll) { deployment_->Kill(service, instance); }
  // Holds it up, as a machine does that swaps. All its threads have stopped when this returns.
  void Stall(const std::string& service, int instance = kAll) const;
  // Ends the stall.
  void GoOn(const std::string& service, int instance = kAll) const;
  // Starts it at its old address, drained before if it runs, and waits until it is ready. Errors:
  // as Deployment::Restart().
  absl::Status Restart(const std::string& service, int instance = kAll) {
    return Restart(service, launch_, instance);
  }
  // Restarts it with a full disk, or under another program.
  absl::Status Restart(const std::string& service, const Launch& launch, int instance = kAll);

  // Waits until no curtail service that runs has a call open. It does not see variants without an
  // admin port. Errors: DEADLINE_EXCEEDED, with the name of a service that has one; as a call.
  // REQUIRES: AppOptions::admin.
  absl::Status AwaitQuiet(Deadline deadline) const;
  // Drains and ends all, callers first. Errors: INTERNAL, of an instance that did not end well,
  // unless Kill() ended it.
  absl::Status Stop();

  std::string AddressOf(const std::string& service, int instance = 0) const;

 private:
  AppUnderTest(Topology topology, Launch launch)
      : topology_(std::move(topology)), launch_(std::move(launch)) {}

  // Immutable once started.
  const Topology topology_;
  const Launch launch_;
  const LogFolder folder_;
  const std::atomic<bool> stop_{false};  // stays: a start is bounded by its timeout

  std::unique_ptr<Deployment> deployment_;  // ends first
};

}  // namespace curtail::deploy
