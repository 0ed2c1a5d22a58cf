// SPDX-License-Identifier: Apache-2.0
//
// faults.h - what goes wrong while users act: processes die or stand still, disks are full, clocks are set.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "apps/kit/testing/actors.h"
#include "apps/kit/testing/preload.h"
#include "curtail/base/rng.h"
#include "curtail/deploy/app_under_test.h"
#include "curtail/store/store_testing.h"

namespace curtail::apps {

struct Fault {
  std::string name;
  std::function<void()> strike, mend;
  bool readable = false;  // reads are answered meanwhile
  bool refuses = false;   // some write fails meanwhile
};

// A fault of a service is one of all its instances, or of the one of a number. The test fails if a process does not start
// again. The objects outlive the faults.
Fault KillOf(deploy::AppUnderTest* app, const std::string& service,
             int instance = deploy::AppUnderTest::kAll);
Fault StallOf(deploy::AppUnderTest* app, const std::string& service,
              int instance = deploy::AppUnderTest::kAll);
// The service has room for little more than SQLite's shared index, and runs without AppOptions::launch meanwhile.
// `refuses`: a write of a user fails then.
Fault FullDiskOf(deploy::AppUnderTest* app, const std::string& service, bool refuses);
Fault ClockStep(const SetClock* clock, int seconds);
template <class Store>
Fault KillOf(const std::string& name, Store* store) {
  return {
      .name = name + " is killed", .strike = [store] { store->Kill(); }, .mend = [store] { store->Start(); }};
}
// `disk` is what the store was started with. A Redis ends when it is full; a PostgreSQL refuses to write, and answers reads.
Fault FullDiskOf(RedisProcess* redis, const FullDisk* disk);
Fault FullDiskOfPostgresql(const FullDisk* disk);

// A test's own part: before each fault, during each that is readable, and after each.
struct FaultHooks {
  std::function<void()> before = [] {}, during = [] {}, after = [] {};
};

// A FaultSchedule strikes one fault after the other while actors act. Thread-compatible.
class FaultSchedule {
 public:
  // `seed` chooses and orders faults. `actors` outlives this.
  FaultSchedule(uint64_t seed, Actors* actors) : rng_(seed), actors_(*actors) {}
  void Add(Fault fault) { faults_.push_back(std::move(fault)); }
  void AddOneOf(std::vector<Fault> faults) { Add(std::move(faults[rng_.Below(faults.size())])); }
  // Strikes and mends each fault once, in random order; actors act before, during and after each. Fails the test
  // if no write is acknowledged after a fault. Stops once the test has failed.
  void Run(const FaultHooks& hooks = {});

 private:
  void Endure(const Fault& fault, const FaultHooks& hooks);

  Rng rng_;
  Actors& actors_;
  std::vector<Fault> faults_;
};

}  // namespace curtail::apps
