// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/host/host_flags.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "curtail/adapt/policy_kind.h"
#include "curtail/base/strings.h"
#include "curtail/fence/limiter/limiter.h"
#include "curtail/observe/trace/trace_exporter.h"
#include "curtail/rpc/client/balancer/balancer.h"
#include "curtail/rpc/client/resolver/target.h"
#include "curtail/rpc/retries.h"
#include "curtail/rpc/transport/socket.h"

namespace curtail::internal {
namespace {

constexpr double kMaxDrainSeconds = 86400;
constexpr double kMaxConnectionSeconds = 1e9;
constexpr int kMaxInstances = 1024;

// True if it is the target of a channel, or the address of a store. Errors: INVALID_ARGUMENT.
absl::Status CheckTarget(const std::string& target) { return ParseTarget(target).status(); }
absl::Status CheckAddress(const std::string& address) {
  absl::Status known = Address::ResolveAll(address).status();
  return absl::IsInvalidArgument(known) ? known : absl::OkStatus();
}

// Adds "NAME=ADDR,ADDR" to `named`.
absl::Status AddNamed(const std::string& flag, const std::string& text,
                      absl::Status (*check)(const std::string&), NamedAddresses* named) {
  const size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos || equals + 1 == text.size()) {
    return absl::InvalidArgumentError(Join(flag, " ", text, ": write NAME=ADDRESS,ADDRESS"));
  }
  std::vector<std::string>& addresses = (*named)[text.substr(0, equals)];
  for (size_t from = equals + 1; from <= text.size();) {
    const size_t comma = std::min(text.find(',', from), text.size());
    std::string address = text.substr(from, comma - from);
    if (absl::Status understood = check(address); !understood.ok()) {
      return absl::InvalidArgumentError(Join(flag, " ", text, ": ", Message(understood)));
    }
    addresses.push_back(std::move(address));
    from = comma + 1;
  }
  return absl::OkStatus();
}

absl::StatusOr<FenceOptions> FenceFrom(const HostFlags& flags) {
  const std::optional<FenceMode> mode = ParseFenceMode(flags.fence);
  if (!mode) {
    return absl::InvalidArgumentError(Join("--fence ", flags.fence, ": write off, on, dry-run or strict"));
  }
  FenceOptions options{.mode = *mode};
  options.learn = flags.fence_learn;
  bool named = false;
  for (const std::string& text : flags.fence_limits) {
    absl::Status wrong;
    if (text.find('=') == std::string::npos) {
      if (std::exchange(named, true)) wrong = absl::InvalidArgumentError("there is one limiter");
      options.limit = text;
    } else if (absl::StatusOr<ClassLimit> limit = ParseClassLimit(text); limit.ok()) {
      options.limits.push_back(*std::move(limit));
    } else {
      wrong = limit.status();
    }
    wrong.Update(options.Check());
    if (!wrong.ok()) return absl::InvalidArgumentError(Join("--fence-limit ", text, ": ", Message(wrong)));
  }
  return options;
}

absl::StatusOr<QueueOptions> QueueFrom(const HostFlags& flags) {
  const std::optional<ShedMode> shed = ParseShedMode(flags.shed);
  if (!shed) return absl::InvalidArgumentError(Join("--shed ", flags.shed, ": write off or codel"));
  const std::optional<QueueMode> mode = ParseQueueMode(flags.queue);
  if (!mode) return absl::InvalidArgumentError(Join("--queue ", flags.queue, ": write fifo or lifo"));
  const QueueOptions options{.shed = *shed,
                             .mode = *mode,
                             .target = FromMillis(flags.shed_target_ms),
                             .interval = FromMillis(flags.shed_interval_ms)};
  if (options.Check().ok()) return options;
  return absl::InvalidArgumentError(absl::StrCat("--shed-interval ", flags.shed_interval_ms,
                                                 " must be at least twice --shed-target ",
                                                 flags.shed_target_ms));
}

absl::StatusOr<AdmissionOptions> AdmissionFrom(const HostFlags& flags) {
  const std::optional<AdmissionMode> mode = ParseAdmissionMode(flags.admission);
  if (!mode)
    return absl::InvalidArgumentError(Join("--admission ", flags.admission, ": write off or credits"));
  return AdmissionOptions{.mode = *mode, .target = FromMillis(flags.admission_target_ms)};
}

absl::StatusOr<PriorityOptions> PrioritiesFrom(const HostFlags& flags) {
  PriorityOptions options;
  options.on = flags.priorities == "on";
  if (options.on || flags.priorities == "off") return options;
  return absl::InvalidArgumentError(Join("--priorities ", flags.priorities, ": write off or on"));
}

// Null: plain text.
absl::StatusOr<std::shared_ptr<const ServerTls>> TlsFrom(const HostFlags& flags) {
  const ServerTlsOptions& tls = flags.tls;
  if (tls.certificate_file.empty() && tls.key_file.empty() && tls.client_ca_file.empty()) return nullptr;
  return ServerTls::Load(tls);
}

void SetAdaptation(const HostFlags& flags, ServerOptions* options) {
  options->policy = flags.policy;
  options->profile = flags.profile;
  options->any_machine = flags.any_machine;
  options->slo = FromMillis(flags.slo_ms);
  options->cpu_weight = flags.cpu_weight;
}

void SetAdmin(const HostFlags& flags, ServerOptions* options) {
  options->admin = flags.admin;
  options->http_admin = flags.http_admin;
  if (const char* token = std::getenv("CURTAIL_ADMIN_TOKEN")) options->admin_token = token;
  options->trace.to = flags.trace_to;
  options->trace.sample = flags.trace_sample;
  options->trace.slow = FromMillis(flags.trace_slow_ms);
}

void SetLimits(const HostFlags& flags, ServerOptions* options) {
  options->max_threads = flags.max_threads;
  options->max_message_bytes = static_cast<size_t>(flags.max_message_bytes);
  options->idle_timeout = FromSeconds(flags.max_connection_idle_s);
  options->max_connection_age = FromSeconds(flags.max_connection_age_s);
  options->max_connection_age_grace = FromSeconds(flags.max_connection_age_grace_s);
  options->fiber_stack_bytes = static_cast<size_t>(flags.fiber_stack_kib) << 10;
}

}  // namespace

void AddServingFlags(Flags& flags, HostFlags* f, const std::vector<const PolicyKind*>& policies) {
  flags.Add("--listen", &f->listen, "HOST:PORT or unix:PATH; port 0 takes a free one [127.0.0.1:0]");
  flags.Add("--config", &f->config, "Threading model and pool sizes");
  flags.Add("--policy", &f->policy,
            "Changes the config by the load: " + PolicyNames(policies) + " (default: the config stays)");
  flags.Add("--profile", &f->profile,
            "What the policy goes by, and the limits of fences: a profile of this service and machine");
  flags.Add("--any-machine", &f->any_machine, "Take a profile of another machine, too");
  flags.Add("--slo", &f->slo_ms, "The p99 in ms that a policy must not endanger by trying other configs",
            {0.001, 3.6e6});
  flags.Add("--cpu-weight", &f->cpu_weight,
            "The share by which a policy may leave the p99 higher to save CPU; 0: never", {0, 100});
  flags.Add(
      "--admin", &f->admin,
      "Where `curtail status` looks, and over unix:PATH `curtail switch` changes the config; over TCP with "
      "CURTAIL_ADMIN_TOKEN (default: nowhere)");
  flags.Add(
      "--http-admin", &f->http_admin,
      "Where Prometheus finds /metrics, and a browser /status.json: HOST:PORT, unix:PATH, or PORT on this "
      "machine only (default: nowhere)");
  flags.Add(
      "--trace-to", &f->trace_to,
      "Where spans of requests go: zipkin=http://HOST:PORT, otlp=http://HOST:PORT, or memory, for /traces of "
      "--http-admin (default: no traces)");
  flags.Add("--trace-sample", &f->trace_sample,
            "The share of requests that become spans, besides those that fail or are slow", {0, 1});
  flags.Add("--trace-slow", &f->trace_slow_ms,
            "Requests that take longer, in ms, become spans; 0: those beyond the p99.9 of their method",
            {0, 3.6e6});
  flags.Add("--fence", &f->fence,
            "Keeps a service that stalls from taking the threads of requests that do not call it: off, on, "
            "dry-run or strict");
  flags.Add("--fence-learn", &f->fence_learn,
            "Learn which services each method calls, whatever it declares; `curtail status --json` tells");
  flags.Add("--fence-limit", &f->fence_limits,
            "How many requests of a path may run: fixed, or with a fence that is on or strict followed by " +
                LimiterNames().substr(kFixedLimit.size() + 2) +
                "; and SERVICE+SERVICE=N, with which the path that calls these services begins (default: as "
                "the profile says, else alike)");
  flags.Add("--shed", &f->shed, "Refuses requests that wait too long in a queue that stands: off or codel");
  flags.Add("--queue", &f->queue,
            "Which request is next: fifo, the connections in turn, or lifo, the newest first while the queue "
            "stands");
  flags.Add("--shed-target", &f->shed_target_ms,
            "A queue stands if the least wait of an interval exceeds so many ms", {0.001, 60e3});
  flags.Add("--shed-interval", &f->shed_interval_ms, "The interval in ms, at least twice the target",
            {0.002, 600e3});
  flags.Add(
      "--priorities", &f->priorities,
      "Under overload, refuses the least important requests first, by their curtail-priority: off or on");
  flags.Add(
      "--admission", &f->admission,
      "Gives clients credits by the wait of the queue, and waits for those of the services that this one "
      "calls: off or credits");
  flags.Add("--admission-target", &f->admission_target_ms, "The wait in ms that the credits aim at",
            {0.001, 60e3});
  flags.Add("--drain", &f->drain_s, "Seconds for requests in flight after SIGTERM", {0, kMaxDrainSeconds});
  flags.Add("--max-connection-idle", &f->max_connection_idle_s,
            "Seconds without a call after which a connection is told goodbye",
            {0.001, kMaxConnectionSeconds});
  flags.Add(
      "--max-connection-age", &f->max_connection_age_s,
      "Seconds after which a connection is told goodbye, so that its client looks for servers anew; 0: never",
      {0, kMaxConnectionSeconds});
  flags.Add("--max-connection-age-grace", &f->max_connection_age_grace_s,
            "Seconds for calls in flight then; 0: as long as they take", {0, kMaxConnectionSeconds});
  flags.Add("--max-message-bytes", &f->max_message_bytes,
            "The longest request; a longer one ends with RESOURCE_EXHAUSTED", {1, INT32_MAX});
  flags.Add("--max-threads", &f->max_threads,
            "Threads started, so that a switch may need so many; a --config that needs more raises it",
            {1, 3.0 * kMaxPoolSize});
  flags.Add("--fiber-stack", &f->fiber_stack_kib, "KiB of stack of each request in fiber models",
            {16, 65536});
  flags.Add("--forward-metadata", &f->forward_metadata,
            "KEY: calls to other services carry the caller's value on, as they do the trace context's");
  flags.Add("--tls-cert", &f->tls.certificate_file, "Speak TLS: the server's certificate (chain), PEM");
  flags.Add("--tls-key", &f->tls.key_file, "Its private key, PEM");
  flags.Add("--tls-client-ca", &f->tls.client_ca_file,
            "Serve only clients whose certificate these authorities vouch for");
  flags.Add("--peer-ca", &f->peer_tls.ca_file,
            "Speak TLS to the services that this one calls. These authorities vouch for them, each by the "
            "name that --peer has");
  flags.Add("--peer-cert", &f->peer_tls.certificate_file,
            "This process's certificate (chain) when it calls them, PEM");
  flags.Add("--peer-key", &f->peer_tls.key_file, "Its private key, PEM");
  flags.Add("--peer-plain", &f->plain_peers,
            "NAME: a service that --peer-ca is not for, called by plain text");
  flags.Add("--quiet", &f->quiet, "No progress on stderr");
}

void AddInstanceFlags(Flags& flags, HostFlags* f) {
  flags.Add(
      "--peer", &f->peers,
      "NAME=ADDR,ADDR: the instances of a service that this one calls; an address of several servers is "
      "dns:///HOST:PORT");
  flags.Add("--leaf", &f->leaves, "ADDR: the same as --peer leaf=ADDR; repeat in shard order");
  flags.Add("--store", &f->stores, "NAME=ADDR,ADDR: a store of this service");
  flags.Add("--shard", &f->shard, "INDEX/COUNT: which part of the data this instance holds");
  flags.Add("--balancer", &f->balancer,
            Join("Which server of an address of several a call goes to: ", BalancerNames(),
                 " (default: as the service says, else pick_first; of several instances least_request)"));
  flags.Add("--health-checks", &f->health_checks,
            "Ask servers for their health: of several, those get calls that say that they serve");
  flags.Add(
      "--resolve-interval", &f->resolve_interval_s,
      "Seconds that the servers of a name are known for at least, before a failure has it looked up again; "
      "0: as the service says, else 30",
      {0, 86400});
  flags.Add(
      "--retries", &f->retries,
      "How often a call to another service that ends with UNAVAILABLE is made again at most, if its method "
      "is declared idempotent",
      {0, kMaxRetries});
  flags.Add("--hedge-after", &f->hedge_after_ms,
            "Makes a call to a service of several instances that has no answer after so many ms at another "
            "one, too, "
            "if its method is declared idempotent; 0: never",
            {0, 3.6e6});
  flags.Add("--lanes", &f->lanes, "Sets of connections to the services that this one calls", {1, 256});
}

std::string ServiceConfigFrom(const HostFlags& flags, bool several) {
  const bool hedges = several && flags.hedge_after_ms > 0;
  const std::string again = hedges ? HedgeConfig(FromMillis(flags.hedge_after_ms), std::max(flags.retries, 1))
                                   : RetryConfig(flags.retries);
  if (!flags.health_checks) return again;
  const std::string fields = again.empty() ? "}" : "," + again.substr(1);
  return R"({"healthCheckConfig":{"serviceName":""})" + fields;
}

absl::StatusOr<std::shared_ptr<const ClientTls>> PeerTlsFrom(const HostFlags& flags,
                                                             std::string_view service) {
  TlsOptions tls = flags.peer_tls;
  if (tls.ca_file.empty()) {
    if (tls.certificate_file.empty() && tls.key_file.empty()) return nullptr;
    return absl::InvalidArgumentError("--peer-cert and --peer-key go with --peer-ca");
  }
  if (std::ranges::find(flags.plain_peers, service) != flags.plain_peers.end()) return nullptr;
  if (tls.certificate_file.empty() != tls.key_file.empty()) {
    return absl::InvalidArgumentError("--peer-cert and --peer-key need each other: give both");
  }
  tls.server_name = service;
  return ClientTls::Load(tls);
}

absl::StatusOr<ServerOptions> ServerOptionsFrom(const HostFlags& flags) {
  const auto config = Config::Parse(flags.config);
  if (!config.ok()) return config.status();
  auto fence = FenceFrom(flags);
  if (!fence.ok()) return fence.status();
  const auto queue = QueueFrom(flags);
  if (!queue.ok()) return queue.status();
  const auto priorities = PrioritiesFrom(flags);
  if (!priorities.ok()) return priorities.status();
  const auto admission = AdmissionFrom(flags);
  if (!admission.ok()) return admission.status();
  auto tls = TlsFrom(flags);
  if (!tls.ok()) return tls.status();
  for (const std::string& text : flags.listen) {
    const absl::Status known = CheckAddress(text);
    if (!known.ok()) return absl::InvalidArgumentError(Join("--listen: ", Message(known)));
  }
  if (!flags.trace_to.empty()) {
    const absl::Status target = observe::ParseTraceTarget(flags.trace_to).status();
    if (!target.ok()) return absl::InvalidArgumentError(Join("--trace-to: ", Message(target)));
  }

  ServerOptions options;
  if (!flags.listen.empty()) options.listen = flags.listen;
  options.config = *config;
  options.fence = *std::move(fence);
  options.queue = *queue;
  options.priorities = *priorities;
  options.admission = *admission;
  options.tls = *std::move(tls);
  options.forward_metadata.insert(options.forward_metadata.end(), flags.forward_metadata.begin(),
                                  flags.forward_metadata.end());
  SetAdaptation(flags, &options);
  SetAdmin(flags, &options);
  SetLimits(flags, &options);
  return options;
}

absl::StatusOr<Surroundings> Surroundings::From(const HostFlags& flags) {
  Surroundings around;
  absl::Status status;
  for (const std::string& text : flags.peers)
    status.Update(AddNamed("--peer", text, CheckTarget, &around.peers));
  for (const std::string& address : flags.leaves) {
    status.Update(AddNamed("--leaf", "leaf=" + address, CheckTarget, &around.peers));
  }
  for (const std::string& text : flags.stores)
    status.Update(AddNamed("--store", text, CheckAddress, &around.stores));
  for (const std::string& text : flags.instances) {
    const size_t equals = std::min(text.find('='), text.size());
    const std::optional<double> count =
        ParseNumber(std::string_view(text).substr(std::min(equals + 1, text.size())));
    if (!count || *count < 1 || *count > kMaxInstances || *count != static_cast<int>(*count)) {
      status.Update(absl::InvalidArgumentError(
          Join("--instances ", text, ": write SERVICE=COUNT, at most ", kMaxInstances)));
      continue;
    }
    around.instances[text.substr(0, equals)] = static_cast<int>(*count);
  }
  if (!flags.balancer.empty() && !IsBalancer(flags.balancer)) {
    const absl::Status unknown = MakeBalancer({.name = flags.balancer}, {}).status();
    status.Update(absl::InvalidArgumentError(Join("--balancer: ", Message(unknown))));
  }
  absl::StatusOr<Shard> shard = Shard::Parse(flags.shard);
  status.Update(shard.status());
  if (!status.ok()) return status;
  around.shard = *shard;
  return around;
}

}  // namespace curtail::internal
