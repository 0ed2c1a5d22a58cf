// SPDX-License-Identifier: Apache-2.0
#include "curtail/deploy/deployment.h"

#include <sched.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "curtail/base/strings.h"
#include "curtail/deploy/find_program.h"
#include "curtail/deploy/internal/bounded_log.h"
#include "curtail/deploy/readiness.h"
#include "curtail/rpc/transport/socket.h"

namespace curtail::deploy {
namespace {

constexpr Nanos kHealthTimeout = std::chrono::seconds(1);
constexpr Nanos kTendLook = std::chrono::milliseconds(50);
constexpr Nanos kPrepareTimeout = std::chrono::minutes(30);
constexpr Nanos kRetry = std::chrono::milliseconds(20);
constexpr Nanos kGrace = std::chrono::seconds(3);
constexpr Nanos kLeastGrace = std::chrono::seconds(1);

// "0-1,4".
std::string CpuRanges(const cpu_set_t& set) {
  std::string text;
  for (size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &set)) continue;
    const size_t first = cpu;
    while (cpu + 1 < CPU_SETSIZE && CPU_ISSET(cpu + 1, &set)) ++cpu;
    absl::StrAppend(&text, text.empty() ? "" : ",", first, cpu > first ? absl::StrCat("-", cpu) : "");
  }
  return text;
}

}  // namespace

std::string_view StateName(Instance::State state) {
  switch (state) {
    case Instance::State::kExternal:
      return "external";
    case Instance::State::kStarting:
      return "starting";
    case Instance::State::kReady:
      return "ready";
    case Instance::State::kWaiting:
      return "waiting";
    case Instance::State::kLeaving:
      return "leaving";
    case Instance::State::kEnded:
      return "ended";
  }
  return "";
}

absl::StatusOr<std::vector<int>> ParseCpus(std::string_view text) {
  std::vector<int> cpus;
  const auto wrong = [text](const std::string& why) {
    return absl::InvalidArgumentError(absl::StrCat("cpus '", std::string(text), "': ", why));
  };
  const std::vector<std::string> parts = absl::StrSplit(std::string(text), ',');
  for (const std::string& part : parts) {
    const std::vector<std::string> ends = absl::StrSplit(part, '-');
    int first = 0, last = 0;
    if (ends.size() > 2 || !absl::SimpleAtoi(ends.front(), &first) || !absl::SimpleAtoi(ends.back(), &last) ||
        first < 0 || last < first || last >= CPU_SETSIZE) {
      return wrong("write numbers and ranges, such as 0-2,5");
    }
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
  }
  cpu_set_t usable;
  CPU_ZERO(&usable);
  sched_getaffinity(0, sizeof(usable), &usable);
  const bool some = std::any_of(cpus.begin(), cpus.end(),
                                [&](int cpu) { return CPU_ISSET(static_cast<size_t>(cpu), &usable); });
  if (!some) return wrong(absl::StrCat("this machine has CPUs ", CpuRanges(usable)));
  return cpus;
}

absl::Status Prepare(const Topology& topology, const std::string& entry, const std::string& folder,
                     const std::atomic<bool>& stop) {
  if (topology.prepare.empty()) return absl::OkStatus();
  absl::StatusOr<std::vector<std::string>> argv = PrepareCommand(topology, entry);
  if (!argv.ok()) return argv.status();
  absl::StatusOr<std::string> program = FindProgram(argv->front());
  if (!program.ok()) return program.status();
  argv->front() = *std::move(program);
  const auto process = Process::Spawn({.name = "prepare",
                                       .argv = *std::move(argv),
                                       .log_path = absl::StrCat(folder, "/prepare.log"),
                                       .out_to_log = true});
  if (!process.ok()) return process.status();
  const Deadline deadline = Deadline::In(kPrepareTimeout);
  while ((*process)->Running()) {
    if (deadline.Expired()) return absl::DeadlineExceededError("prepare takes more than 30 minutes");
    if (stop.load(std::memory_order_relaxed)) return absl::CancelledError("interrupted");
    usleep(std::chrono::duration_cast<std::chrono::microseconds>(kRetry).count());
  }
  const int how = (*process)->Terminate(Nanos(0));
  if (WIFEXITED(how) && WEXITSTATUS(how) == 0) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat("prepare ", (*process)->HowItEnded(), (*process)->LogTail()));
}

absl::StatusOr<std::unique_ptr<Deployment>> Deployment::Start(const Topology& topology,
                                                              DeploymentOptions options,
                                                              const std::atomic<bool>& stop) {
  if (absl::Status whole = topology.Check(); !whole.ok()) return whole;
  std::unique_ptr<Deployment> deployment(new Deployment(topology, std::move(options), stop));
  if (absl::Status started = deployment->StartAll(); !started.ok()) return started;
  return deployment;
}

Deployment::~Deployment() { Stop(kGrace); }

void Deployment::Enter(Instance& instance, Instance::State state) {
  instance.state = state;
  instance.since = Now();
  if (options_.observer) options_.observer(instance);
}

bool Deployment::NeedsEntry(const ServiceSpec& service) const {
  return service.entry || std::any_of(service.calls.begin(), service.calls.end(), [&](const Wiring& call) {
           return call.service == topology_.entry().name && !service.IsHosted();
         });
}

absl::Status Deployment::StartAll() {
  const bool limited = std::any_of(topology_.services.begin(), topology_.services.end(),
                                   [](const ServiceSpec& s) { return s.cpu > 0 && s.external.empty(); });
  if (limited || options_.cpu_groups) {
    absl::StatusOr<CpuGroups> groups = CpuGroups::Find();
    if (!groups.ok()) return groups.status();
    cpu_groups_ = *std::move(groups);
  }
  if (options_.tls) {
    absl::StatusOr<std::unique_ptr<ServiceTls>> tls = ServiceTls::Make(topology_, options_.folder);
    if (!tls.ok()) return tls.status();
    tls_ = *std::move(tls);
  }
  if (absl::Status reserved = ReserveAddresses(); !reserved.ok()) return reserved;
  for (const ServiceSpec& service : topology_.services) {
    if (options_.without_entry && NeedsEntry(service)) continue;
    if (absl::Status started = StartService(service); !started.ok()) return started;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Deployment::ListenOf(const ServiceSpec& service, int number) const {
  const auto index = static_cast<size_t>(number);
  const std::string given = index < service.listen.size() ? service.listen[index] : "";
  if (!given.empty() && (service.IsHosted() || !absl::EndsWith(given, ":0"))) return given;
  if (given.empty() && !service.TakesPort()) {
    return absl::StrCat("unix:", options_.folder, "/", InstanceName(service, number), ".sock");
  }
  const std::string any = given.empty() ? "127.0.0.1:0" : given;
  if (service.IsHosted()) return any;
  // A program that is told its port needs a number. Another process may take the port before it listens; then it ends.
  const absl::StatusOr<Address> address = Address::Resolve(any);
  if (!address.ok()) return address.status();
  const absl::StatusOr<internal::UniqueFd> listener = internal::Listen(*address);
  if (!listener.ok()) return listener.status();
  return internal::BoundAddress(listener->get());
}

absl::Status Deployment::ReserveAddresses() {
  std::set<std::string_view> started;
  std::set<std::string_view> early;  // called by a service that starts no later
  for (const ServiceSpec& caller : topology_.services) {
    for (const Wiring& call : caller.calls) {
      if (started.count(call.service) == 0) early.insert(call.service);
    }
    started.insert(caller.name);
  }
  for (const ServiceSpec& service : topology_.services) {
    if (early.count(service.name) == 0 && !options_.sockets) continue;
    std::vector<std::string>& addresses = addresses_[service.name];
    addresses = service.external.empty() ? service.listen : service.external;
    for (int i = static_cast<int>(addresses.size()); i < service.instances(); ++i) {
      absl::StatusOr<std::string> address =
          service.IsHosted() ? absl::StrCat("unix:", options_.folder, "/", InstanceName(service, i), ".sock")
                             : ListenOf(service, i);
      if (!address.ok()) return address.status();
      addresses.push_back(*std::move(address));
    }
    if (absl::Status written = WriteRegistered(service.name); !written.ok()) return written;
  }
  return absl::OkStatus();
}

Instance& Deployment::Add(const ServiceSpec& service, int number) {
  Instance& instance = instances_.emplace_back();
  instance.service = &service;
  instance.number = number;
  instance.name = InstanceName(service, number);
  return instance;
}

absl::Status Deployment::StartService(const ServiceSpec& service) {
  const bool reserved = addresses_.count(service.name) > 0;
  const bool later = options_.later.count(service.name) > 0;
  const size_t first = instances_.size();
  for (int i = 0; i < service.instances(); ++i) {
    Instance& instance = Add(service, i);
    if (later) {
      Enter(instance, Instance::State::kEnded);
    } else if (!service.external.empty()) {
      instance.address = service.external[static_cast<size_t>(i)];
      const absl::Status there = CheckReady(service, instance.address, kHealthTimeout);
      if (!there.ok()) {
        return absl::NotFoundError(absl::StrCat(instance.name, " does not serve at ", instance.address,
                                                ", which --use names: ", there.message()));
      }
      Enter(instance, Instance::State::kExternal);
    } else if (absl::Status spawned = Spawn(instance, options_.launch); !spawned.ok()) {
      return spawned;
    }
  }
  const Deadline deadline = Deadline::In(options_.start_timeout);
  for (size_t i = first; i < instances_.size(); ++i) {
    if (absl::Status ready = AwaitReady(instances_[i], deadline, kHealthTimeout); !ready.ok()) return ready;
    if (!reserved) addresses_[service.name].push_back(instances_[i].address);
  }
  return WriteRegistered(service.name);
}

absl::Status Deployment::Spawn(Instance& instance, const Launch& launch) {
  const ServiceSpec& service = *instance.service;
  const size_t number = static_cast<size_t>(instance.number);
  InstanceSetup setup;
  setup.config = service.config;
  setup.policy = service.policy;
  setup.profile = service.profile;
  setup.listen = instance.address;  // of its former life
  // Of a service that is called by one that started before it. Instances that came later are there in the order of their coming.
  const auto reserved = addresses_.find(service.name);
  if (setup.listen.empty() && reserved != addresses_.end() && reserved->second.size() > number &&
      instance.number < service.instances()) {
    setup.listen = reserved->second[number];
  }
  if (setup.listen.empty()) {
    absl::StatusOr<std::string> listen = ListenOf(service, instance.number);
    if (!listen.ok()) return listen.status();
    setup.listen = *std::move(listen);
  }
  if (setup.listen.size() >= sizeof(sockaddr_un::sun_path) + 5 && setup.listen.starts_with("unix:")) {
    return absl::InvalidArgumentError(absl::StrCat(
        setup.listen, " is too long for a socket; set XDG_RUNTIME_DIR or TMPDIR to a shorter folder"));
  }
  if (!service.IsHosted()) {
    instance.address = setup.listen;
    // Whoever is there already would be taken for ours.
    if (!setup.listen.starts_with("unix:") && Accepts(setup.listen, kHealthTimeout)) {
      return absl::AlreadyExistsError(
          absl::StrCat(instance.name, ": somebody listens at ", setup.listen, " already"));
    }
  }
  if (service.IsHosted() && options_.admin) {
    instance.admin = absl::StrCat("unix:", options_.folder, "/", instance.name, ".admin");
    setup.admin = instance.admin;
    instance.http_admin = absl::StrCat("unix:", options_.folder, "/", instance.name, ".http");
    setup.http_admin = instance.http_admin;
  }
  if (service.IsHosted()) setup.more_flags = options_.flags;
  if (tls_ != nullptr) {
    const std::vector<std::string> flags = tls_->FlagsOf(service);
    setup.more_flags.insert(setup.more_flags.end(), flags.begin(), flags.end());
  }
  if (options_.registry) setup.registry = options_.folder;
  absl::StatusOr<std::vector<std::string>> argv =
      CommandOf(topology_, service, instance.number, addresses_, setup);
  if (!argv.ok()) return argv.status();
  absl::StatusOr<std::string> program = FindProgram(argv->front());
  if (!program.ok()) return program.status();
  argv->front() = *std::move(program);
  argv->insert(argv->begin(), launch.wrapper.begin(), launch.wrapper.end());
  if (!service.failover.empty()) {
    setup.failover = true;
    absl::StatusOr<std::vector<std::string>> failover =
        CommandOf(topology_, service, instance.number, addresses_, setup);
    if (!failover.ok()) return failover.status();
    program = FindProgram(failover->front());
    if (!program.ok()) return program.status();
    failover->front() = *std::move(program);
    instance.failover = *std::move(failover);
  }
  absl::StatusOr<std::vector<std::string>> wrapper = WrapperOf(service, instance.number);
  if (!wrapper.ok()) return wrapper.status();
  if (!wrapper->empty()) {
    program = FindProgram(wrapper->front());
    if (!program.ok()) return program.status();
    wrapper->front() = *std::move(program);
    argv->insert(argv->begin(), wrapper->begin(), wrapper->end());
  }

  ProcessOptions process;
  process.name = instance.name;
  process.argv = *std::move(argv);
  if (!options_.to_stderr) process.log_path = absl::StrCat(options_.folder, "/", instance.name, ".log");
  process.max_file_bytes = launch.max_file_bytes;
  process.out_to_log = !service.IsHosted();
  instance.log = process.log_path;
  if (options_.cpu_groups || service.cpu > 0) {
    if (instance.cpu_group == nullptr) {
      absl::StatusOr<std::unique_ptr<CpuGroup>> group = cpu_groups_->Make(instance.name);
      if (!group.ok()) return group.status();
      instance.cpu_group = *std::move(group);
    }
    process.cgroup_procs = instance.cpu_group->procs();
  }
  if (!service.cpus.empty()) {
    absl::StatusOr<std::vector<int>> cpus = ParseCpus(service.cpus[number % service.cpus.size()]);
    if (!cpus.ok()) return cpus.status();
    process.cpus = *std::move(cpus);
  }
  // The log tells one life of the process from the next.
  if (!process.log_path.empty()) {
    std::ofstream(process.log_path, std::ios::app)
        << "--- " << absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", absl::Now(), absl::UTCTimeZone()) << " "
        << absl::StrJoin(process.argv, " ") << "\n";
  }
  absl::StatusOr<std::unique_ptr<Process>> spawned = Process::Spawn(std::move(process));
  if (!spawned.ok()) return spawned.status();
  instance.process = *std::move(spawned);
  instance.heard = false;
  Enter(instance, Instance::State::kStarting);
  return absl::OkStatus();
}

absl::Status Deployment::AwaitReady(Instance& instance, Deadline deadline, Nanos look) {
  if (instance.state != Instance::State::kStarting) return absl::OkStatus();
  const ServiceSpec& service = *instance.service;
  const auto late = [&](std::string_view why) {
    return absl::DeadlineExceededError(
        absl::StrCat(instance.name, " was not ready within ",
                     absl::FormatDuration(absl::FromChrono(options_.start_timeout)), ": ", std::string(why),
                     "; ", ReadyHint(service, instance.heard), instance.process->LogTail()));
  };
  if (service.IsHosted() && !instance.heard) {
    const absl::StatusOr<std::string> address =
        instance.process->AwaitAnyLine(service.ready_prefixes, deadline, &stop_);
    if (absl::IsDeadlineExceeded(address.status())) return late("it did not say where it listens");
    if (!address.ok()) return address.status();
    instance.address = *address;
    instance.heard = true;
    instance.process->DiscardOutput();
  }
  absl::StatusOr<std::shared_ptr<const ClientTls>> tls(nullptr);
  if (tls_ != nullptr) tls = TlsToCall(options_.folder, service.name);
  if (!tls.ok()) return tls.status();
  // It listens, or is about to. One look at least, however late it is.
  while (true) {
    const absl::Status ready = CheckReady(service, instance.address, look, *tls);
    if (!instance.process->Running()) {
      return absl::AbortedError(
          absl::StrCat(instance.name, " ", instance.process->HowItEnded(), instance.process->LogTail()));
    }
    if (ready.ok()) break;
    if (stop_.load(std::memory_order_relaxed)) return absl::CancelledError("interrupted");
    if (deadline.Expired()) return late(absl::StrCat("at ", instance.address, ", ", ready.message()));
    usleep(std::chrono::duration_cast<std::chrono::microseconds>(kRetry).count());
  }
  Enter(instance, Instance::State::kReady);
  return absl::OkStatus();
}

void Deployment::Lost(Instance& instance, std::string problem) {
  instance.pace.Ended(instance.state == Instance::State::kReady ? Now() - instance.since : Nanos(0));
  instance.process->Terminate(Nanos(0));
  RemoveSockets(instance);
  instance.problem = problem.empty()
                         ? absl::StrCat(instance.process->HowItEnded(), instance.process->LogTail())
                         : std::move(problem);
  Enter(instance, Instance::State::kWaiting);
}

void Deployment::Tend() {
  for (Instance& instance : instances_) {
    if (stop_.load(std::memory_order_relaxed)) return;
    if (Rescale(instance)) continue;
    if (instance.process != nullptr && instance.state == Instance::State::kReady) BoundLog(instance.log);
    const bool lives =
        instance.state == Instance::State::kStarting || instance.state == Instance::State::kReady;
    if (lives && !instance.process->Running()) {
      Lost(instance);
    } else if (instance.state == Instance::State::kStarting) {
      const absl::Status ready = AwaitReady(instance, Deadline::In(kRetry), kTendLook);
      if (absl::IsCancelled(ready)) return;
      const bool waits = absl::IsDeadlineExceeded(ready);
      const bool late = Now() - instance.since > options_.start_timeout;
      if (!ready.ok() && (late || !waits)) Lost(instance, waits ? std::string(Message(ready)) : "");
    } else if (instance.state == Instance::State::kWaiting &&
               Now() - instance.since >= instance.pace.wait()) {
      ++instance.restarts;
      if (absl::Status spawned = Spawn(instance, options_.launch); !spawned.ok()) {
        instance.problem = std::string(spawned.message());
        instance.pace.Failed();
        Enter(instance, Instance::State::kWaiting);
      }
    }
  }
}

void Deployment::Kill(const std::string& service, int number) {
  for (Instance& instance : instances_) {
    if (!instance.Is(service, number) || instance.process == nullptr) continue;
    instance.process->Kill();
    instance.process = nullptr;
    Enter(instance, Instance::State::kEnded);
  }
}

absl::Status Deployment::Restart(const std::string& service, const Launch& launch, Nanos grace, int number) {
  absl::Status status;
  for (Instance& instance : instances_) {
    if (!instance.Is(service, number)) continue;
    if (instance.process != nullptr) status.Update(instance.process->End(grace));
    status.Update(Spawn(instance, launch));
  }
  const Deadline deadline = Deadline::In(options_.start_timeout);
  for (Instance& instance : instances_) {
    if (!instance.Is(service, number) || !status.ok()) continue;
    status = AwaitReady(instance, deadline, kHealthTimeout);
  }
  return status;
}

absl::Status Deployment::Check() {
  for (Instance& instance : instances_) {
    if (instance.process == nullptr || instance.process->Running()) continue;
    return absl::AbortedError(
        absl::StrCat(instance.name, " ", instance.process->HowItEnded(), instance.process->LogTail()));
  }
  return absl::OkStatus();
}

absl::Status Deployment::LimitCpu() {
  absl::Status status;
  for (const ServiceSpec& service : topology_.services) {
    if (service.cpu > 0) status.Update(LimitCpu(service.name, service.cpu));
  }
  return status;
}

absl::Status Deployment::LimitCpu(const std::string& service, double cpus) {
  absl::Status status;
  for (const Instance& instance : instances_) {
    if (instance.service->name != service || instance.cpu_group == nullptr) continue;
    status.Update(instance.cpu_group->Limit(cpus));
  }
  return status;
}

void Deployment::RemoveSockets(const Instance& instance) const {
  const std::string folder = absl::StrCat("unix:", options_.folder, "/");
  for (const std::string& address : {instance.address, instance.admin, instance.http_admin}) {
    if (address.starts_with(folder)) unlink(address.c_str() + std::string_view("unix:").size());
  }
}

void Deployment::Stop(Nanos grace) {
  const Deadline all = Deadline::In(grace);
  // Those of one service at once.
  for (auto service = topology_.services.rbegin(); service != topology_.services.rend(); ++service) {
    LimitCpu(service->name, 0).IgnoreError();  // with little of it, a process would take long to end
    for (Instance& instance : instances_) {
      if (instance.service != &*service || instance.process == nullptr) continue;
      instance.process->BeginToEnd();
      // It looks for signals after an event, of which an idle one has one a second.
      if (service->protocol == "memcached") Accepts(instance.address, kHealthTimeout);
    }
    const Deadline deadline = Deadline::In(std::max(all.Remaining(), kLeastGrace));
    for (Instance& instance : instances_) {
      if (instance.service != &*service || instance.state == Instance::State::kEnded) continue;
      if (instance.process != nullptr) instance.process->Terminate(deadline.Remaining());
      if (instance.state == Instance::State::kExternal) continue;
      RemoveSockets(instance);
      Enter(instance, Instance::State::kEnded);
    }
  }
}

}  // namespace curtail::deploy
