// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. A process goes through these steps:
//
//  H1  The two stop signals are blocked before any thread starts, so that they arrive in ServeUntilSignal() only.
//  H2  The command line is read whole; what is wrong in it ends the process before anything is loaded.
//  H3  Instances are made one after the other: one, those of a group, or as a monolith all. Channels connect on first
//      use, so services that call each other in a circle start in any order.
//  H4  The server starts, and says "ready ADDRESS".
//  H5  Works that no request does begin now, as all services of the process can be called.
//  H6  After the drain the works end in the opposite order, while what they call is there. Then the server goes, then
//      each instance: its service, what it keeps, its channels.
#include "curtail/rpc/host.h"

#include <algorithm>
#include <cstdio>
#include <deque>
#include <iostream>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_join.h"
#include "curtail/base/internal/closest.h"
#include "curtail/base/log.h"
#include "curtail/base/strings.h"
#include "curtail/rpc/client/resolver/target.h"
#include "curtail/rpc/host/host_command_line.h"
#include "curtail/rpc/host/host_flags.h"
#include "curtail/rpc/in_process.h"
#include "curtail/rpc/server_main.h"
#include "curtail/rpc/tls.h"

namespace curtail {

using internal::HostFlags;
using internal::Surroundings;

namespace {

constexpr int kFailed = 1, kBroken = 99;

// False if `target` is the address of one server.
bool MayBeSeveral(const absl::StatusOr<internal::Target>& target) {
  if (!target.ok() || target->resolver->Changes()) return true;
  const auto addresses = target->resolver->Resolve();  // looks nothing up: they do not change
  return addresses.ok() && addresses->size() > 1;
}

}  // namespace

// The TLS settings of calls, by service; null: plain text.
using PeerTls = std::map<std::string, std::shared_ptr<const ClientTls>, std::less<>>;

struct Env::Impl {
  struct Peer {
    std::deque<Channel> channels;
    std::vector<Channel*> pointers;
    ChannelOptions asked;  // of the first call for the name
  };

  const Surroundings* around = nullptr;
  const HostFlags* flags = nullptr;
  const PeerTls* tls = nullptr;
  // The services of this process, by name, if they call each other in it; else null.
  const std::map<std::string, std::vector<const InProcess*>, std::less<>>* here = nullptr;
  Shard shard;
  internal::NamedAddresses stores;
  std::unique_ptr<Client> client;
  std::map<std::string, Peer, std::less<>> peers;
  std::map<std::string, Channel, std::less<>> shared;  // by services of several instances
  // Of calls to the service at its addresses.
  ChannelOptions OptionsOf(std::string_view service, const ChannelOptions& asked, bool several) const;
  // Calls go to all instances, unless somebody has chosen a balancer.
  void Spread(ChannelOptions* options) const {
    if (options->balancer == ChannelOptions().balancer && flags->balancer.empty())
      options->balancer = "least_request";
  }
  std::vector<std::shared_ptr<void>> kept;
  struct Work {
    std::function<void()> start, stop;
  };
  std::vector<Work> works;                       // while it serves
  std::vector<std::string> addresses;            // once it serves
  std::vector<std::unique_ptr<Service>> beside;  // until the server has them
};

Env::Env(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Env::~Env() {
  while (!impl_->kept.empty()) impl_->kept.pop_back();
}

ChannelOptions Env::Impl::OptionsOf(std::string_view service, const ChannelOptions& asked,
                                    bool several) const {
  ChannelOptions options = asked;
  if (const auto found = tls->find(service); found != tls->end() && options.tls == nullptr)
    options.tls = found->second;
  options.credits |= flags->admission == "credits";
  if (!flags->balancer.empty() && options.balancer == ChannelOptions().balancer) {
    options.balancer = flags->balancer;
  }
  if (flags->resolve_interval_s > 0) options.min_resolve_interval = FromSeconds(flags->resolve_interval_s);
  if (options.service_config.empty()) options.service_config = internal::ServiceConfigFrom(*flags, several);
  return options;
}

Channel* Env::SharedChannel(std::string_view service) {
  const std::vector<Channel*>& channels = Channels(service);
  if (channels.empty()) return nullptr;  // the process ends before anything is called
  const bool here = impl_->here != nullptr && impl_->here->contains(service);
  if (channels.size() < 2 || here) return channels.front();
  if (const auto known = impl_->shared.find(service); known != impl_->shared.end()) return &known->second;
  std::vector<std::string> targets;
  for (const Channel* channel : channels) targets.push_back(channel->target());
  auto instances = internal::ParseTargets(targets);
  if (!instances.ok()) return channels.front();
  ChannelOptions options =
      impl_->OptionsOf(service, impl_->peers.find(service)->second.asked, /*several=*/true);
  impl_->Spread(&options);
  options.resolver = *std::move(instances);
  return &impl_->shared
              .try_emplace(std::string(service), impl_->client.get(), std::string(service),
                           std::move(options))
              .first->second;
}

const std::vector<Channel*>& Env::Channels(std::string_view service, const ChannelOptions& asked) {
  const auto known = impl_->peers.find(service);
  if (known != impl_->peers.end()) return known->second.pointers;
  Impl::Peer& peer = impl_->peers[std::string(service)];
  peer.asked = asked;
  if (impl_->client == nullptr) {
    impl_->client = std::make_unique<Client>(ClientOptions{.lanes = impl_->flags->lanes});
  }
  if (impl_->here != nullptr) {
    if (const auto here = impl_->here->find(service); here != impl_->here->end()) {
      for (const InProcess* target : here->second) {
        peer.pointers.push_back(&peer.channels.emplace_back(impl_->client.get(), target, asked));
      }
      return peer.pointers;
    }
  }
  if (const auto there = impl_->around->peers.find(service); there != impl_->around->peers.end()) {
    for (const std::string& address : there->second) {
      const absl::StatusOr<internal::Target> target = internal::ParseTarget(address);
      ChannelOptions options = impl_->OptionsOf(service, asked, MayBeSeveral(target));
      if (target.ok() && target->resolver->max_age() > Nanos::zero()) impl_->Spread(&options);
      peer.pointers.push_back(&peer.channels.emplace_back(impl_->client.get(), address, options));
    }
  }
  return peer.pointers;
}

size_t Env::Count(std::string_view service) const {
  if (impl_->here != nullptr) {
    if (const auto here = impl_->here->find(service); here != impl_->here->end()) return here->second.size();
  }
  const auto there = impl_->around->peers.find(service);
  return there == impl_->around->peers.end() ? 0 : there->second.size();
}

const std::vector<std::string>& Env::Store(std::string_view store) const {
  static const std::vector<std::string> kNone;
  const auto found = impl_->stores.find(store);
  return found == impl_->stores.end() ? kNone : found->second;
}

const std::vector<std::string>& Env::addresses() const { return impl_->addresses; }
Shard Env::shard() const { return impl_->shard; }
bool Env::quiet() const { return impl_->flags->quiet; }
const std::vector<std::string>& Env::words() const { return impl_->flags->words; }
void Env::WhileServing(std::function<void()> start, std::function<void()> stop) {
  impl_->works.push_back({std::move(start), std::move(stop)});
}
void Env::AlsoServe(std::unique_ptr<Service> service) { impl_->beside.push_back(std::move(service)); }
void Env::KeepAlive(std::shared_ptr<void> object) { impl_->kept.push_back(std::move(object)); }

// Builds the instances of a process, and serves them.
class HostBuilder {
 public:
  HostBuilder(const HostProgram& program, const HostFlags& flags, Surroundings around)
      : program_(program), flags_(flags), around_(std::move(around)) {}

  // Prints "memory BYTES".
  absl::Status PrintMemory() {
    uint64_t sum = kProcessBytes;
    absl::Status status = ForEachInstance(true, [&](const HostedService& service, Env& env) -> absl::Status {
      const absl::StatusOr<uint64_t> bytes = service.memory ? service.memory(env) : 0;
      if (bytes.ok()) sum += *bytes;
      return bytes.status();
    });
    if (status.ok()) std::cout << "memory " << sum << std::endl;
    return status;
  }

  absl::StatusOr<int> Serve() {
    const absl::StatusOr<ServerOptions> options = Options();
    if (!options.ok()) return options.status();
    if (absl::Status loaded = LoadPeerTls(); !loaded.ok()) return loaded;
    absl::Status made =
        ForEachInstance(false, [&](const HostedService& service, Env& env) { return Make(service, env); });
    if (made.ok()) made = CheckPeersOfGroup();
    if (!made.ok()) return made;
    absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(*options, std::move(served_));
    if (!server.ok()) return server.status();
    for (const std::string& address : (*server)->addresses()) {  // H4
      if (LogsJson()) {
        Log(Severity::kInfo, Join("ready ", address), {{"address", address}});
      } else {
        std::cout << "ready " << address << "\n";
      }
    }
    for (const Instance& instance : instances_) instance.env->impl_->addresses = (*server)->addresses();
    for (const Instance& instance : instances_) {
      for (const auto& work : instance.env->impl_->works) work.start();  // H5
    }
    const int code = internal::ServeAs(program_.name, **server, FromSeconds(flags_.drain_s));
    for (auto instance = instances_.rbegin(); instance != instances_.rend(); ++instance) {
      auto& works = instance->env->impl_->works;
      for (auto work = works.rbegin(); work != works.rend(); ++work) work->stop();  // H6
    }
    return code;
  }

 private:
  // Resident without any data: mostly the program's own pages, which its other processes share.
  static constexpr uint64_t kProcessBytes = 12u << 20;

  // A part of the process: one instance of a service. In this order, so that the Env outlives the service.
  struct Instance {
    std::unique_ptr<Env> env;
    std::vector<std::unique_ptr<Service>> inside = {};  // reached in the process only
    InProcess* target = nullptr;                        // of a monolith or a group
  };

  absl::StatusOr<ServerOptions> Options() const {
    absl::StatusOr<ServerOptions> options = internal::ServerOptionsFrom(flags_);
    if (!options.ok()) return options.status();
    options->trace.service = program_.name;
    if (!flags_.monolith && !flags_.services.empty())
      options->trace.service = absl::StrJoin(flags_.services, "+");
    options->policies = program_.policies;
    options->interceptors = program_.interceptors;
    return options;
  }

  absl::Status LoadPeerTls() {
    for (const auto& [service, addresses] : around_.peers) {
      auto tls = internal::PeerTlsFrom(flags_, service);
      if (!tls.ok()) return tls.status();
      tls_[service] = *std::move(tls);
    }
    for (const std::string& plain : flags_.plain_peers) {
      if (!tls_.contains(plain))
        return absl::InvalidArgumentError(Join("--peer-plain ", plain, ": no --peer has this name"));
    }
    return internal::PeerTlsFrom(flags_, /*service=*/"").status();  // also where nothing is called
  }

  // The services that this process is.
  absl::StatusOr<std::vector<const HostedService*>> Chosen() const {
    std::vector<const HostedService*> chosen;
    std::vector<std::string> names;
    for (const HostedService& service : program_.services) {
      const auto times = std::ranges::count(flags_.services, service.name);
      if (times > 1) return absl::InvalidArgumentError(Join("--service names ", service.name, " twice"));
      if (flags_.monolith || times == 1 || service.name.empty()) chosen.push_back(&service);
      names.push_back(service.name);
    }
    for (const auto& [name, count] : around_.instances) {
      if (!flags_.monolith) {
        return absl::InvalidArgumentError(Join("--instances ", name, "=", count, " needs --monolith"));
      }
      if (std::ranges::count(names, name) > 0) continue;
      return absl::InvalidArgumentError(Join("--instances ", name, "=", count, ": there is no service ", name,
                                             internal::NamesHint(name, names)));
    }
    if (!chosen.empty()) return chosen;
    return absl::InvalidArgumentError("nothing to do: say what to be with --service, or see --help");
  }

  // Checks that each name of --outside is of a service of this process, which is one of several.
  absl::Status CheckOutside(const std::vector<const HostedService*>& chosen) const {
    std::vector<std::string> names;
    for (const HostedService* service : chosen) names.push_back(service->name);
    for (const std::string& name : flags_.outside) {
      if (!flags_.together()) {
        return absl::InvalidArgumentError(
            Join("--outside ", name, " needs several services in one process: --monolith, or --service A,B"));
      }
      if (std::ranges::count(names, name) > 0) continue;
      return absl::InvalidArgumentError(
          Join("--outside: this process has no service ", name, internal::NamesHint(name, names)));
    }
    return absl::OkStatus();
  }

  int InstancesOf(const HostedService& service) const {
    const auto found = around_.instances.find(service.name);
    return found == around_.instances.end() ? 1 : found->second;
  }

  // Calls visit(service, env) for each instance. `estimate`: what is missing on the command line is no error.
  template <class Visit>
  absl::Status ForEachInstance(bool estimate, Visit visit) {
    const absl::StatusOr<std::vector<const HostedService*>> chosen = Chosen();
    if (!chosen.ok()) return chosen.status();
    if (absl::Status status = CheckOutside(*chosen); !status.ok()) return status;
    if (flags_.together()) Announce(*chosen);
    for (const HostedService* service : *chosen) {
      const int count = flags_.monolith ? InstancesOf(*service) : 1;
      for (int i = 0; i < count; ++i) {
        const Shard shard =
            flags_.monolith ? Shard{static_cast<uint32_t>(i), static_cast<uint32_t>(count)} : around_.shard;
        absl::StatusOr<std::unique_ptr<Env>> env = EnvOf(*service, i, count, shard, estimate);
        if (!env.ok()) return env.status();
        instances_.push_back({.env = *std::move(env)});
        if (flags_.together()) instances_.back().target = targets_[service->name][static_cast<size_t>(i)];
        if (absl::Status status = visit(*service, *instances_.back().env); !status.ok()) return status;
      }
    }
    return absl::OkStatus();
  }

  // Gives each instance of a monolith or a group its place, before any is made: channels lead there (H3).
  void Announce(const std::vector<const HostedService*>& services) {
    for (const HostedService* service : services) {
      const int count = InstancesOf(*service);
      for (int i = 0; i < count; ++i) {
        in_process_.emplace_back(count == 1 ? service->name : Join(service->name, "-", i),
                                 program_.interceptors);
        targets_[service->name].push_back(&in_process_.back());
        here_[service->name].push_back(&in_process_.back());
      }
    }
  }

  absl::StatusOr<std::unique_ptr<Env>> EnvOf(const HostedService& service, int index, int count, Shard shard,
                                             bool estimate) const {
    auto impl = std::make_unique<Env::Impl>();
    impl->around = &around_;
    impl->flags = &flags_;
    impl->tls = &tls_;
    if (flags_.together()) impl->here = &here_;
    impl->shard = shard;
    impl->stores = around_.stores;
    for (const std::string& own : service.own_stores) {
      std::vector<std::string>& addresses = impl->stores[own];
      if (addresses.empty() || estimate) continue;
      if (addresses.size() != static_cast<size_t>(count)) {
        return absl::InvalidArgumentError(Join("each ", service.name, " has a ", own,
                                               " of its own, but there are ", count, " and ",
                                               addresses.size()));
      }
      addresses = {addresses[static_cast<size_t>(index)]};
    }
    std::unique_ptr<Env> env(new Env(std::move(impl)));
    if (estimate) return env;
    for (const std::string& store : service.stores) {
      if (env->Store(store).empty()) {
        return absl::InvalidArgumentError(Join(service.name, " needs its store: --store ", store, "=ADDR"));
      }
    }
    return env;
  }

  // That the addresses given are those of the services that make() has asked for.
  absl::Status CheckCalls(const HostedService& hosted, const Env& env) const {
    const auto& asked = env.impl_->peers;
    std::vector<std::string> names;
    for (const auto& [callee, peer] : asked) names.push_back(callee);
    for (const auto& [name, addresses] : around_.peers) {
      if (flags_.together() || asked.contains(name)) continue;
      return absl::InvalidArgumentError(
          Join("--peer ", name, ": ", hosted.name, " does not call it", internal::DidYouMean(name, names)));
    }
    for (const auto& [callee, peer] : asked) {
      if (!peer.pointers.empty()) continue;
      const std::string example =
          callee == "leaf" ? "--leaf ADDR for each instance" : Join("--peer ", callee, "=ADDR,ADDR");
      return absl::InvalidArgumentError(Join(hosted.name, " calls ", callee, ": say where it is, ", example,
                                             "; in a topology add ", callee, " to its calls"));
    }
    return absl::OkStatus();
  }

  // A peer of a group is of one of its services at least, and is not one of them.
  absl::Status CheckPeersOfGroup() const {
    if (flags_.services.size() < 2 || flags_.monolith) return absl::OkStatus();
    for (const auto& [name, addresses] : around_.peers) {
      if (here_.contains(name))
        return absl::InvalidArgumentError(Join("--peer ", name, ": this process is ", name));
      const bool asked = std::ranges::any_of(
          instances_, [&](const Instance& instance) { return instance.env->impl_->peers.contains(name); });
      if (!asked) {
        return absl::InvalidArgumentError(
            Join("--peer ", name, ": none of ", absl::StrJoin(flags_.services, ", "), " calls it"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status Make(const HostedService& hosted, Env& env) {
    MadeService service = hosted.make(env);
    if (absl::Status calls = CheckCalls(hosted, env); !calls.ok()) return calls;
    if (!service.ok()) return service.status();
    Instance& instance = instances_.back();
    std::vector<std::unique_ptr<Service>> all = std::move(env.impl_->beside);
    all.push_back(*std::move(service));
    for (auto& each : all) {
      if (flags_.together()) {
        if (absl::Status added = instance.target->Serve(*each); !added.ok()) return added;
      }
      (IsOutside(hosted, *each) ? served_ : instance.inside).push_back(std::move(each));
    }
    return absl::OkStatus();
  }

  // True if the server has the service, too: `hosted`, which brings it, has one instance, and --outside does not name others only.
  bool IsOutside(const HostedService& hosted, const Service& service) const {
    if (!flags_.together()) return true;
    if (InstancesOf(hosted) > 1) return false;
    if (flags_.outside.empty()) return true;
    return std::ranges::count(flags_.outside, hosted.name) > 0 &&
           (hosted.outside.empty() || std::ranges::count(hosted.outside, service.FullName()) > 0);
  }

  const HostProgram& program_;
  const HostFlags& flags_;
  const Surroundings around_;
  PeerTls tls_;
  // Of a monolith or a group: where each instance is reached. Outlive the channels of instances_.
  std::deque<InProcess> in_process_;
  std::map<std::string, std::vector<InProcess*>, std::less<>> targets_;
  std::map<std::string, std::vector<const InProcess*>, std::less<>> here_;
  std::deque<Instance> instances_;
  std::vector<std::unique_ptr<Service>> served_;  // until the server has them
};

namespace {

int RunHost(int argc, char** argv, const HostProgram& program, bool words) {
  BlockStopSignals();  // H1
  HostFlags flags;
  internal::HostCommandLine line(program);
  line.AddHostFlags(&flags, words);
  line.AddCommands();
  if (const std::optional<int> code = line.Parse(argc, argv)) return *code;
  if (const HostCommand* command = line.command()) {
    UnblockStopSignals();
    const absl::Status status = command->run();
    if (status.ok()) return 0;
    const int code = internal::RefuseStart(program.name, status);
    if (absl::IsDataLoss(status)) return kBroken;
    return absl::IsDeadlineExceeded(status) || absl::IsUnavailable(status) ? kFailed : code;
  }
  absl::StatusOr<Surroundings> around = Surroundings::From(flags);
  if (!around.ok()) return internal::RefuseStart(program.name, around.status());
  HostBuilder builder(program, flags, *std::move(around));
  if (flags.memory) {
    const absl::Status status = builder.PrintMemory();
    return status.ok() ? 0 : internal::RefuseStart(program.name, status);
  }
  const absl::StatusOr<int> code = builder.Serve();
  return code.ok() ? *code : internal::RefuseStart(program.name, code.status());
}

}  // namespace

int HostMain(int argc, char** argv, const HostProgram& program) {
  return RunHost(argc, argv, program, /*words=*/false);
}

int internal::ServeOne(int argc, char** argv, bool words, std::function<MadeService(Env&)> make,
                       std::vector<const PolicyKind*> policies,
                       std::vector<ServerInterceptor*> interceptors) {
  const std::string_view path = argc > 0 ? argv[0] : "server";
  const std::string name(path.substr(path.rfind('/') + 1));
  HostProgram program{.name = name,
                      .title = "A gRPC service.",
                      .examples = Join("Examples:\n  ", name, " --listen 0.0.0.0:8080 --config SDB1-16\n  ",
                                       name, " --listen 0.0.0.0:8080 --policy online --slo 5"),
                      .services = {},
                      .commands = {},
                      .policies = std::move(policies),
                      .interceptors = std::move(interceptors)};
  program.services.push_back({.name = "", .make = std::move(make)});
  return RunHost(argc, argv, program, words);
}

}  // namespace curtail
