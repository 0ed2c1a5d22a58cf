// SPDX-License-Identifier: Apache-2.0
//
// deployment.h - the processes of a topology on this machine: started in order, looked after, ended
// in order.
//
// Thread-compatible. All processes end with the object, and at the latest with the thread that made
// it (process.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "curtail/deploy/cpu_groups.h"
#include "curtail/deploy/instance_command.h"
#include "curtail/deploy/process/process.h"
#include "curtail/deploy/restart_pace.h"
#include "curtail/deploy/service_tls.h"
#include "curtail/deploy/topology.h"

namespace curtail::deploy {

// One instance of a service.
struct Instance {
  // kExternal: runs already and is somebody else's. kWaiting: has ended and is started again soon.
  // kLeaving: gets no new calls, and ends.
  enum class State { kExternal, kStarting, kReady, kWaiting, kLeaving, kEnded };

  const ServiceSpec* service = nullptr;
  int number = 0;
  std::string name;
  State state = State::kStarting;
  std::string address;
  std::string admin;                  // address; empty: none
  std::string http_admin;             // with /metrics; address, empty: none
  std::string log;                    // path
  std::vector<std::string> failover;  // argv that makes another replica the primary; empty: none
  int restarts = 0;
  std::string problem;                  // why it ended last, with the end of its log
  std::unique_ptr<CpuGroup> cpu_group;  // outlives its processes; null: none
  std::unique_ptr<Process> process;
  bool left = false;  // has ended, as Scale() wanted

  // True if it belongs to the service `of`, and has the number `one` unless that is negative.
  bool Is(const std::string& of, int one) const { return service->name == of && (one < 0 || number == one); }

 private:
  friend class Deployment;
  bool heard = false;       // where it listens
  bool registered = false;  // since Scale()
  TimePoint since;          // of its state
  RestartPace pace;
};

std::string_view StateName(Instance::State state);

// How the process of an instance is started.
struct Launch {
  // A write beyond fails with EFBIG, as if the disk were full; 0: no bound.
  uint64_t max_file_bytes = 0;
  // A program and its flags to run it under, such as valgrind, or env with LD_PRELOAD; empty: none.
  std::vector<std::string> wrapper = {};
};

struct DeploymentOptions {
  std::string folder;  // of logs and sockets; there already
  // Leave out the service that clients call, and programs that are not curtail services and call
  // it.
  bool without_entry = false;
  // The admin interfaces, gRPC and HTTP, of each curtail service: sockets in the folder.
  bool admin = false;
  bool cpu_groups = false;  // for every instance; else only for instances of services with a `cpu`
  // Writes the addresses of services that scale to files in the folder, where callers find changes.
  bool registry = false;
  // Services that Start() leaves to Restart(); the others get their addresses. REQUIRES: sockets.
  std::set<std::string> later;
  // Each curtail service listens at a socket in the folder, unless its `listen` says otherwise.
  bool sockets = false;
  bool tls = false;  // among the services, as service_tls.h says
  // The processes write to the standard error of this process, in place of logs in the folder.
  bool to_stderr = false;
  std::vector<std::string> flags;  // more of each curtail service
  Launch launch;
  Nanos start_timeout = std::chrono::seconds(120);
  // Hears of every change of an instance's state. May be empty.
  std::function<void(const Instance&)> observer;
};

class Deployment {
 public:
  static constexpr int kAll = -1;  // instances of a service

  // Starts service after service and waits until each is ready. `topology` and `stop` outlive the
  // object. Errors of Process and CommandOf; ABORTED (an instance ended, with the end of its
  // log); DEADLINE_EXCEEDED; CANCELLED when `stop` was set; errors of CpuGroups where a service has
  // a limit. What had been started is ended.
  static absl::StatusOr<std::unique_ptr<Deployment>> Start(const Topology& topology,
                                                           DeploymentOptions options,
                                                           const std::atomic<bool>& stop);
  // Ends what Stop() has not.
  ~Deployment();
  Deployment(const Deployment&) = delete;
  Deployment& operator=(const Deployment&) = delete;

  // Starts again what has ended, at its old address, after 0.1 s and then longer and longer up to 5
  // s. Hardly waits; call it some times a second.
  void Tend();
  // ABORTED when an instance has ended, for callers that do not want it back.
  absl::Status Check();
  // Kills the instances of a service (SIGKILL), or the one of a number. They are not started again
  // by themselves.
  void Kill(const std::string& service, int number = kAll);
  // Drains the instances of a service that run, for `grace` at most. Starts all of them, each at
  // its old address, and waits until they are ready. A number restricts it to one instance. Errors:
  // as Start() and Process::End().
  absl::Status Restart(const std::string& service, const Launch& launch, Nanos grace, int number = kAll);
  // Has a service run so many instances from now on: Tend() starts what is missing, and ends what
  // is too much once callers do not know it any more. Errors: INVALID_ARGUMENT, FAILED_PRECONDITION
  // (it does not scale while serving; says which do). REQUIRES: DeploymentOptions::registry.
  absl::Status Scale(const std::string& service, int count);
  // Puts the limits of CPU time in force that the topology has. A start without them is not slow:
  // call it once all serve.
  absl::Status LimitCpu();
  // Gives each instance of a service, which has groups, so many CPUs; 0: no limit. Errors:
  // INTERNAL.
  absl::Status LimitCpu(const std::string& service, double cpus);
  // Ends all, callers before those they call. Together they have `grace` to drain, each service a
  // second at least; what is left then is killed.
  void Stop(Nanos grace);

  const std::deque<Instance>& instances() const { return instances_; }
  const Addresses& addresses() const { return addresses_; }

 private:
  Deployment(const Topology& topology, DeploymentOptions options, const std::atomic<bool>& stop)
      : topology_(topology), options_(std::move(options)), stop_(stop) {}
  absl::Status StartAll();
  // Gives addresses to services that are called by one that starts before them, as in a circle of
  // calls.
  absl::Status ReserveAddresses();
  // True if it is what `without_entry` leaves out.
  bool NeedsEntry(const ServiceSpec& service) const;
  absl::Status StartService(const ServiceSpec& service);
  absl::Status Spawn(Instance& instance, const Launch& launch);
  // True if it is ready, waiting for that until `deadline`. Errors: as Start().
  // A single look takes `look` at most.
  absl::Status AwaitReady(Instance& instance, Deadline deadline, Nanos look);
  // Where an instance of it listens if nothing else says so.
  absl::StatusOr<std::string> ListenOf(const ServiceSpec& service, int number) const;
  void Enter(Instance& instance, Instance::State state);
  // Sockets in the folder, which a program that does not remove its own leaves behind.
  void RemoveSockets(const Instance& instance) const;
  // An instance that the topology, or Scale(), has made.
  Instance& Add(const ServiceSpec& service, int number);
  // Does what Scale() wants of the instance; true if nothing else is to be done about it.
  bool Rescale(Instance& instance);
  // Its callers know of it from now on, or no more. Errors: INTERNAL.
  absl::Status Register(const Instance& instance, bool there);
  absl::Status WriteRegistered(const std::string& service) const;
  // Ends what is left of it and has it started again; `problem` says why, unless it ended by
  // itself.
  void Lost(Instance& instance, std::string problem = {});

  const Topology& topology_;
  const DeploymentOptions options_;
  const std::atomic<bool>& stop_;
  std::unique_ptr<ServiceTls> tls_;      // null: plain text
  std::optional<CpuGroups> cpu_groups_;  // where a service needs one
  std::deque<Instance> instances_;       // in the order of the topology, then as Scale() adds them
  std::map<std::string, int> wanted_;    // by Scale()
  Addresses addresses_;
};

// Runs what the topology wants done once all serve, such as loading data, and waits for it; its
// words go to FOLDER/prepare.log. Errors: ABORTED when it failed, with the end of that log;
// CANCELLED when `stop` was set.
absl::Status Prepare(const Topology& topology, const std::string& entry, const std::string& folder,
                     const std::atomic<bool>& stop);

// "0-2,5" -> {0, 1, 2, 5}. Errors: INVALID_ARGUMENT.
absl::StatusOr<std::vector<int>> ParseCpus(std::string_view text);

}  // namespace curtail::deploy
