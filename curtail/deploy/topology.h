// SPDX-License-Identifier: Apache-2.0
//
// topology.h - topology.yaml: which processes make an application, how they find each other, and
// what they run under.
//
// A topology is a list of services. A service is one program with its flags, started once for each
// of its shards and replicas; it is told the addresses of those it calls. docs/topology.md explains
// every key.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace curtail::deploy {

// One way that a service learns of another: FLAG ADDRESS for each of its instances, in order.
struct Wiring {
  std::string service;
  std::string flag;
  // FLAG SERVICE=ADDRESS,ADDRESS instead: --peer and --store of a hosted service.
  bool named = false;
  // Only the instance of the caller's own number, such as the store beside a leaf.
  bool own = false;
  // The caller's name for the service, where that is another one; empty: its own.
  std::string as = {};

  const std::string& name() const { return as.empty() ? service : as; }
};

// Another implementation of a service, which takes its place: the rest of the service stays.
struct Variant {
  std::string name;
  std::vector<std::string> run;
  // The tools that it takes: names, looked up in PATH, or absolute paths.
  std::vector<std::string> needs;
  // The command that builds the program of `run`, for an error that it is missing. Empty: the
  // program is looked for when it starts.
  std::string build;
  // Absent: the service's own.
  std::optional<double> memory_mib;
  std::optional<bool> hosted;
};

struct ServiceSpec {
  std::string name;
  std::vector<std::string> run;  // the program and its flags, before ${...} is replaced
  int shards = 1;
  int replicas = 1;
  std::vector<Wiring> calls;
  // Under what a curtail service runs; at most one of config and policy is given.
  std::string config;
  std::string policy;
  std::string profile;
  // Where each instance listens; empty: a free port, or a socket in the run folder for other
  // protocols.
  std::vector<std::string> listen;
  // Sets of CPUs ("0-1,3"), used in turn by the instances; empty: all.
  std::vector<std::string> cpus;
  // The CPUs that an instance may use, enforced by a cgroup; 0: no limit.
  double cpu = 0;
  // "grpc" is ready once it answers health checks; anything else when it accepts connections.
  std::string protocol = "grpc";
  // As the file has it; see IsHosted().
  std::optional<bool> hosted;
  // `run` of a program that must listen at a port, as on other machines than its callers'; empty:
  // `run`.
  std::vector<std::string> run_at_port;
  // The command that makes another replica the primary, before ${...} is replaced, for `curtail
  // failover`; empty: no replica of it is another's standby.
  std::vector<std::string> failover;
  // The variable that names the folder in which it keeps its data; empty: it keeps none.
  std::string keeps;
  // True if several processes may share the requests of an instance, as they do where a cluster
  // scales it.
  bool scales = false;
  // Secrets that it shares with others, by the flag that takes the file of each: {"tokens",
  // "--secret"}. Where services share a folder they find it there, and are not told.
  std::map<std::string, std::string> secrets;
  // An instance holds at least that; a curtail service may report more. 0: unknown.
  double memory_mib = 0;
  // The one that clients call. Exactly one service is.
  bool entry = false;
  // Networks between it and services that it calls, on this machine: see link/link.h.
  std::map<std::string, std::string> links;
  // In the order of the file.
  std::vector<Variant> variants;
  // Addresses of instances that run already and are not started; empty: started.
  std::vector<std::string> external;
  // Not in the file: the variant that it runs as; empty: its own `run`.
  std::string variant;
  // Not in the file: a program and its flags to run each instance under, such as perf, before
  // ${...} is replaced.
  std::vector<std::string> wrapper;

  // Not in the file: what it may print before its address.
  std::vector<std::string_view> ready_prefixes = {"ready ", "listening on "};

  bool grpc() const { return protocol == "grpc"; }
  // True if it is a curtail service, which takes the common flags and says where it listens. Any
  // other program is told its address: as ${address}, or ${host} and ${port}, in `run`, or it knows
  // the one in `listen` by itself.
  bool IsHosted() const;
  // True if `run` has the flag, as "--flag" or "--flag=VALUE".
  bool Says(std::string_view flag) const;
  // True if it listens at a port, unless `listen` says otherwise; else at a Unix socket.
  bool TakesPort() const;
  int instances() const { return shards * replicas; }
  // True if instances may come and go while it serves.
  bool ScalesWhileServing() const;
};

inline constexpr std::string_view kAllStores = "servers";

// A Topology is one parsed file with its variables. Value type.
struct Topology {
  // Errors: INVALID_ARGUMENT with "ORIGIN:LINE: what is wrong".
  static absl::StatusOr<Topology> Parse(std::string_view yaml, std::string_view origin);

  // Puts the values of "scale" in force, the size that the paper used. Errors: FAILED_PRECONDITION
  // without any.
  absl::Status Scale();
  // So many replicas of each service that scales and has no shards. Errors: FAILED_PRECONDITION
  // without any.
  absl::Status Replicate(int count);
  // One replica of a store, if it has none; of kAllStores: of each store that has none. Errors:
  // INVALID_ARGUMENT, which lists the stores that there are.
  absl::Status BringIn(std::string_view store);
  // Has a service run as a variant of it: "cart=java". A variant that is not a curtail service
  // takes no config, policy or profile, and does not scale. Errors: INVALID_ARGUMENT, which lists
  // the variants; FAILED_PRECONDITION for a tool that is missing.
  absl::Status TakeVariant(std::string_view service_and_variant);
  // Has each service that TakeVariant() left alone run as its first variant whose tools are there.
  // Names variants that lack one in `left_out`. Errors: FAILED_PRECONDITION without any variant.
  absl::Status TakeVariants();
  // Changes a variable ("data") or a count of a service ("leaf.shards", "leaf.replicas",
  // "leaf.config", ...). Errors: INVALID_ARGUMENT, which lists what there is.
  absl::Status Set(std::string_view name, std::string_view value);
  // The meanings of ${...} in any command: variables, and the shards and replicas of services, by
  // the names of Set().
  std::map<std::string, std::string> Settings() const;
  // Has one process be all gRPC services, which keeps their flags; stores stay processes. Errors:
  // FAILED_PRECONDITION for services that are not all one program.
  absl::Status MakeMonolith();
  // Has one process be several curtail services of one program, "text,count", which call each other
  // in it. It is called text+count. Errors: INVALID_ARGUMENT, FAILED_PRECONDITION, which say which
  // service cannot be in it, and why.
  absl::Status Group(std::string_view services);
  // Gives each curtail service this --fence, unless its command has one. Errors: INVALID_ARGUMENT
  // for an unknown mode.
  absl::Status Fence(std::string_view mode);
  // The same with --trace-to. Errors: INVALID_ARGUMENT for a target that services would refuse.
  absl::Status TraceTo(std::string_view target);
  // Gives each curtail service the flag, unless its command has it.
  void Give(std::string_view flag, std::string_view value);
  // Takes instances that run already: "store=127.0.0.1:11211,unix:/run/m.sock". Errors:
  // INVALID_ARGUMENT (no such service, a wrong number of addresses).
  absl::Status Use(std::string_view service_and_addresses);

  // Runs the instances of a service under a program: "user=perf record -o /tmp/${instance}.data".
  // Errors: INVALID_ARGUMENT.
  absl::Status Wrap(std::string_view service_and_words);

  // Puts a network between a service and one that it calls: "user>post=delay=5ms,rate=10mbit".
  // Errors: INVALID_ARGUMENT.
  absl::Status Link(std::string_view caller_callee_and_link);
  // Makes services of the links: relays, which callers call in place of the service behind. Errors:
  // INVALID_ARGUMENT for a link to a service that the caller does not call.
  absl::Status InsertRelays();

  // Puts the keys of services that an overlay has in force, as `curtail provision` writes them.
  // Errors: INVALID_ARGUMENT with "ORIGIN:LINE: what is wrong".
  absl::Status Overlay(std::string_view yaml, std::string_view origin);

  // Takes services without an instance (replicas: 0) out, with the wiring of their callers.
  // Commands may still name their counts. Errors: INVALID_ARGUMENT if that is the entry.
  absl::Status LeaveOutAbsent();

  // Puts services before their callers. Of services that call each other in a circle the one that
  // is first so far goes first.
  void Order();
  // True if it still fits together after changes. Errors: INVALID_ARGUMENT.
  absl::Status Check() const;

  const ServiceSpec* Find(std::string_view name) const;
  // The error for the name of a service that there is not: INVALID_ARGUMENT with the names.
  absl::Status NoService(std::string_view name) const;
  ServiceSpec* Find(std::string_view name);
  const ServiceSpec& entry() const;

  std::string application;
  std::string title;
  std::map<std::string, std::string> variables;
  std::map<std::string, std::string> scale;  // what Scale() sets
  // Callees before their callers, as far as services do not call each other in
  // a circle.
  std::vector<ServiceSpec> services;
  // Services that are one process on one machine, as Group() takes them.
  std::vector<std::string> groups;
  // Not in the file: the counts of services that LeaveOutAbsent() took out, for Settings().
  std::map<std::string, std::string> left_out_counts;
  // Not in the file: a sentence for each variant that TakeVariants() could not take.
  std::vector<std::string> left_out;
  std::vector<std::string> prepare;  // run once all serve, such as to load data; empty: nothing
  // As ServiceSpec::secrets, of the program that `prepare` runs.
  std::map<std::string, std::string> prepare_secrets;
};

}  // namespace curtail::deploy
