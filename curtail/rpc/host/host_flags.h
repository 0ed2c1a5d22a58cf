// SPDX-License-Identifier: Apache-2.0
//
// host_flags.h - the command line of a service host, and the surroundings that it describes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "curtail/rpc/flags.h"
#include "curtail/rpc/host.h"
#include "curtail/rpc/server.h"
#include "curtail/rpc/tls.h"

namespace curtail::internal {

// The command line of the host itself.
struct HostFlags {
  std::vector<std::string> services;
  bool monolith = false;
  // True if services of the process call each other in it.
  bool together() const { return monolith || services.size() > 1; }
  std::vector<std::string> instances;  // "leaf=4"
  std::vector<std::string> outside;    // what others reach of a monolith or a group; empty: all
  bool memory = false;
  std::vector<std::string> listen;
  std::vector<std::string> peers, leaves, stores;
  std::string shard = "0/1";
  int lanes = 1;
  std::string balancer;  // empty: as the service says
  bool health_checks = false;
  double resolve_interval_s = 0;  // 0: as the service says
  int retries = 0;
  double hedge_after_ms = 0;  // 0: never
  std::string config = "auto";
  std::string policy, profile, admin, http_admin;
  std::string trace_to;
  double trace_sample = 0.001, trace_slow_ms = 0;
  std::string fence = "off";
  bool fence_learn = false;
  std::vector<std::string> fence_limits;  // a limiter's name; "a.Users+a.Posts=12"
  std::string shed = "off", queue = "fifo";
  std::string priorities = "off";
  std::string admission = "off";
  double admission_target_ms = 5;
  double shed_target_ms = 5, shed_interval_ms = 100;
  bool any_machine = false;
  double slo_ms = 10;
  double cpu_weight = 0.1;
  double drain_s = 10;
  double max_connection_idle_s = InSeconds(ServerOptions().idle_timeout);
  double max_connection_age_s = 0, max_connection_age_grace_s = 0;
  int max_threads = ServerOptions().max_threads;
  int max_message_bytes = static_cast<int>(ServerOptions().max_message_bytes);
  int fiber_stack_kib = static_cast<int>(ServerOptions().fiber_stack_bytes >> 10);
  std::vector<std::string> forward_metadata;
  ServerTlsOptions tls;
  TlsOptions peer_tls;  // of calls to other services; without a ca_file they are plain text
  std::vector<std::string> plain_peers;
  bool quiet = false;
  std::vector<std::string> words;
};

// Adds the flags of every serving process to `flags`, which set *f. The help names `policies` beside the library's.
void AddServingFlags(Flags& flags, HostFlags* f, const std::vector<const PolicyKind*>& policies);
// Adds the flags of an instance among others: its peers, its stores, its shard.
void AddInstanceFlags(Flags& flags, HostFlags* f);

// The options that the flags describe, with the admin token of the environment. Errors: INVALID_ARGUMENT that names the
// flag; those of ServerTls::Load().
absl::StatusOr<ServerOptions> ServerOptionsFrom(const HostFlags& flags);

// The service config of channels to other services whose maker names none; empty if the flags ask for nothing.
// `several`: the channel has more than one server, or may have.
std::string ServiceConfigFrom(const HostFlags& flags, bool several);

// The settings of calls to `service`, whose certificate must be for that name; null: plain text. Errors: INVALID_ARGUMENT that
// names the flag; as ClientTls::Load().
absl::StatusOr<std::shared_ptr<const ClientTls>> PeerTlsFrom(const HostFlags& flags,
                                                             std::string_view service);

using NamedAddresses = std::map<std::string, std::vector<std::string>, std::less<>>;

// Surroundings are the peers, the stores and the shard of a process, as its flags name them.
struct Surroundings {
  NamedAddresses peers;
  NamedAddresses stores;
  std::map<std::string, int, std::less<>> instances;  // monolith: of each service, where more than one
  Shard shard;

  // Errors: INVALID_ARGUMENT that names the flag.
  static absl::StatusOr<Surroundings> From(const HostFlags& flags);
};

}  // namespace curtail::internal
