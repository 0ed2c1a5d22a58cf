// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/up/up_command.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "apps/shipped/application.h"
#include "curtail/adapt/policy_kind.h"
#include "curtail/base/strings.h"
#include "curtail/deploy/deployment.h"
#include "curtail/deploy/find_program.h"
#include "curtail/deploy/service_tls.h"
#include "curtail/deploy/topology.h"
#include "curtail/load/drive/runner.h"
#include "curtail/term/exit_code.h"
#include "tools/curtail/deploy/run_folder.h"
#include "tools/curtail/observe/dashboard.h"
#include "tools/curtail/term/flags.h"
#include "tools/curtail/up/up_checks.h"
#include "tools/curtail/up/up_reporter.h"

namespace curtail::tool {
namespace {

constexpr int kTendMs = 100;
constexpr Nanos kDrain = std::chrono::seconds(12);  // a little more than the services' own
constexpr Nanos kTryTimeout = std::chrono::seconds(20);
constexpr Nanos kMemoryTimeout = std::chrono::seconds(10);
constexpr double kMib = 1024.0 * 1024.0;

int CodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kFailedPrecondition:
      return kBadConfig;
    case absl::StatusCode::kCancelled:
      return kInterrupted;
    default:
      return kFailed;
  }
}

int FailUp(Console& console, const absl::Status& status, const std::string& hint = {}) {
  console.Error(std::string(Message(status)), hint);
  return CodeOf(status);
}

absl::StatusOr<deploy::Topology> Wanted(const UpFlags& flags) {
  absl::StatusOr<deploy::Topology> topology = apps::LoadTopology(flags.application, flags.changes);
  if (!topology.ok()) return topology;
  absl::Status status;
  if (!flags.fence.empty()) status.Update(topology->Fence(flags.fence));
  if (status.ok() && !flags.trace_to.empty()) status.Update(topology->TraceTo(flags.trace_to));
  if (!flags.trace_sample.empty()) topology->Give("--trace-sample", flags.trace_sample);
  if (!status.ok()) return status;
  const std::string entry = topology->entry().name;
  // Unlike what the topology names, a path of this command line begins where the caller is.
  const std::string profile = flags.profile.empty() ? "" : std::filesystem::absolute(flags.profile).string();
  for (const auto& [key, value] :
       {std::pair("config", &flags.config), {"policy", &flags.policy}, {"profile", &profile}}) {
    if (!value->empty()) status.Update(topology->Set(absl::StrCat(entry, ".", key), *value));
  }
  if (status.ok()) status = topology->Check();
  if (status.ok()) status = topology->InsertRelays();
  if (!status.ok()) return status;
  return topology;
}

// One request of each kind that `curtail load` sends, if the application is ours and its data is prepared: a service that is
// missing, or that has no data, is found now. Errors: as TryEachMethod().
absl::Status TryRequests(const deploy::Topology& topology, const std::string& entry,
                         const std::atomic<bool>& stop, Console& console) {
  if (topology.prepare.empty() || !apps::IsApplication(topology.application)) return absl::OkStatus();
  apps::RequestOptions data;
  data.count = 1;
  const absl::StatusOr<std::shared_ptr<const Workload>> workload =
      apps::MakeRequests(topology.application, data, topology.variables);
  if (!workload.ok()) {  // such as without users
    console.Note(Join("no request was tried: ", Message(workload.status())));
    return absl::OkStatus();
  }
  RunOptions options;
  options.targets = {entry};
  options.timeout = kTryTimeout;
  options.stop = &stop;
  return TryEachMethod(options, **workload);
}

// ----- memory --------------------------------------------------------------------------------------------------------

double AvailableMib() {
  std::ifstream in("/proc/meminfo");
  for (std::string key, unit; in >> key;) {
    double kib = 0;
    in >> kib;
    std::getline(in, unit);
    if (key == "MemAvailable:") return kib / 1024;
  }
  return 0;
}

// The memory that one instance of a service will take: what its program reports or, if that is more, its memory_mib.
// Nothing without either.
std::optional<double> MemoryMib(const deploy::Topology& topology, const deploy::ServiceSpec& service,
                                const std::string& log, Nanos timeout, const std::atomic<bool>& stop) {
  const std::optional<double> said =
      service.memory_mib > 0 ? std::optional<double>(service.memory_mib) : std::nullopt;
  if (!service.IsHosted()) return said;
  // Those that it calls do not stand yet; how many there are is all that it needs.
  deploy::Addresses some;
  for (const deploy::Wiring& call : service.calls) {
    some[call.service].assign(static_cast<size_t>(topology.Find(call.service)->instances()), "127.0.0.1:1");
  }
  deploy::InstanceSetup setup;
  setup.memory_only = true;
  absl::StatusOr<std::vector<std::string>> argv = deploy::CommandOf(topology, service, 0, some, setup);
  if (!argv.ok()) return said;
  const absl::StatusOr<std::string> program = deploy::FindProgram(argv->front());
  if (!program.ok()) return said;
  argv->front() = *program;
  auto process = deploy::Process::Spawn({.name = service.name, .argv = *argv, .log_path = log});
  if (!process.ok()) return said;
  // A program that does not know the flag may begin to serve.
  const auto line =
      (*process)->AwaitAnyLine({"memory ", "ready ", "listening on "}, Deadline::In(timeout), &stop);
  double bytes = 0;
  if (!line.ok() || !absl::SimpleAtod(*line, &bytes)) return said;
  return std::max(bytes / kMib, service.memory_mib);
}

std::string MibText(double mib) {
  if (mib < 1) return "less than 1 MiB";
  return mib < 1024 ? absl::StrFormat("%.0f MiB", mib) : absl::StrFormat("%.1f GiB", mib / 1024);
}

// Says how much memory the processes take together. Errors: RESOURCE_EXHAUSTED when there is not so much.
absl::Status CheckMemory(const deploy::Topology& topology, const UpFlags& flags, Nanos timeout,
                         const std::string& folder, Console& console, const std::atomic<bool>& stop) {
  double all = 0;
  std::vector<std::string> parts;
  for (const deploy::ServiceSpec& service : topology.services) {
    if (!service.external.empty()) continue;
    const std::optional<double> mib =
        MemoryMib(topology, service, absl::StrCat(folder, "/memory.log"), timeout, stop);
    if (stop.load(std::memory_order_relaxed)) return absl::CancelledError("interrupted");
    if (!mib) continue;
    all += *mib * service.instances();
    parts.push_back(service.instances() == 1
                        ? absl::StrCat(service.name, " ", MibText(*mib))
                        : absl::StrFormat("%s %d x %s", service.name, service.instances(), MibText(*mib)));
  }
  const double available = AvailableMib();
  if (all > 0) {
    console.Note(absl::StrFormat("memory: %s%s; %s are available", all < 1 ? "" : "about ", MibText(all),
                                 MibText(available)));
  }
  if (all <= 0.9 * available || flags.force) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("that does not fit into this machine's memory: ", absl::StrJoin(parts, ", ")));
}

// ----- while it is up ------------------------------------------------------------------------------------------------

const deploy::Instance& EntryOf(const std::deque<deploy::Instance>& instances) {
  return *std::find_if(instances.begin(), instances.end(),
                       [](const deploy::Instance& instance) { return instance.service->entry; });
}

bool LacksProfile(const deploy::ServiceSpec& service) {
  const PolicyKinds kinds = LibraryPolicies();
  return service.profile.empty() && std::any_of(kinds.begin(), kinds.end(), [&](const PolicyKind* kind) {
           return kind->name == service.policy && kind->profile == ProfileUse::kRequired;
         });
}

std::string Summary(const deploy::Topology& topology, const std::deque<deploy::Instance>& instances,
                    const std::string& dashboard, bool detached) {
  const deploy::Instance& entry = EntryOf(instances);
  const deploy::ServiceSpec& service = topology.entry();
  const std::string& under = service.policy.empty() ? service.config : service.policy;
  std::string text = absl::StrFormat("%s is up: %s at %s%s\n", topology.application, service.name,
                                     entry.address, under.empty() ? "" : " under " + under);
  if (LacksProfile(service)) {
    absl::StrAppendFormat(
        &text, "  note:  without a profile %s leaves the config as it is; curtail train writes one\n",
        service.policy);
  }
  if (apps::IsApplication(topology.application)) {
    absl::StrAppendFormat(&text, "  load:  curtail load %s --rps 500\n", topology.application);
  }
  for (const deploy::Instance& instance : instances) {
    if (instance.service->protocol == "http")
      absl::StrAppendFormat(&text, "  HTTP:  http://%s/    %s\n", instance.address, instance.name);
  }
  if (!entry.admin.empty()) {
    absl::StrAppendFormat(&text, "  admin: curtail switch %1$s SDB1-16    curtail status %1$s    at %2$s\n",
                          topology.application, entry.admin);
  }
  if (!dashboard.empty()) absl::StrAppendFormat(&text, "  see:   http://%s/\n", dashboard);
  absl::StrAppendFormat(&text, "  look:  curtail ps %1$s    curtail logs %1$s\n  end:   %2$s\n",
                        topology.application,
                        detached ? absl::StrCat("curtail down ", topology.application) : "Ctrl-C");
  return text;
}

// Which services speak TLS, and which do not.
std::string TellTls(const deploy::Topology& topology) {
  const auto secure = deploy::SecureServices(topology);
  std::vector<std::string> plain;
  for (const deploy::ServiceSpec& service : topology.services) {
    if (service.grpc() && service.instances() > 0 && !secure.contains(service.name))
      plain.push_back(service.name);
  }
  return absl::StrCat("TLS: ", secure.size(), " services; plain text: ", absl::StrJoin(plain, ", "),
                      ", which clients or other programs call");
}

// From the start to the end of the processes. `on_up` is called once all serve.
template <class OnUp>
int Supervise(const deploy::Topology& topology, const UpFlags& flags, Nanos start_timeout,
              const RunFolder& folder, Console& console, const std::atomic<bool>& stop, OnUp on_up) {
  absl::StatusOr<std::unique_ptr<Dashboard>> dashboard =
      flags.dashboard.empty() ? nullptr : Dashboard::Start(flags.dashboard, topology);
  if (!dashboard.ok())
    return FailUp(console, dashboard.status(), "--dashboard takes a PORT of this machine or HOST:PORT");
  UpReporter reporter(topology, folder, console);
  reporter.ShowAt(dashboard->get());
  reporter.Begin();
  if (flags.tls) console.Note(TellTls(topology));
  if (absl::Status memory =
          CheckMemory(topology, flags, std::min(start_timeout, kMemoryTimeout), folder.path(), console, stop);
      !memory.ok()) {
    return FailUp(
        console, memory,
        absl::IsResourceExhausted(memory) ? "make it smaller with --set, or insist with --force" : "");
  }
  deploy::DeploymentOptions options;
  options.folder = folder.path();
  options.admin = true;
  options.registry = true;
  options.tls = flags.tls;
  options.start_timeout = start_timeout;
  options.observer = [&reporter](const deploy::Instance& instance) { reporter.Changed(instance); };
  absl::StatusOr<std::unique_ptr<deploy::Deployment>> deployment =
      deploy::Deployment::Start(topology, options, stop);
  console.Progress({});
  if (!deployment.ok()) {
    // A curtail service that refuses its flags or its data says so by this code.
    const bool hosted =
        absl::StrContains(deployment.status().message(), absl::StrCat("ended with code ", kBadConfig));
    const bool foreign = deploy::IsTopologyFile(flags.application) && !hosted;
    const bool ran = hosted || CodeOf(deployment.status()) == kFailed;
    const int code = FailUp(
        console, deployment.status(),
        absl::StrCat(
            ran ? absl::StrCat("the logs are in ", folder.path()) : "",
            ran && foreign ? "; a program that is not a curtail service has the key hosted: false" : ""));
    return hosted ? kBadConfig : code;
  }
  const std::deque<deploy::Instance>& instances = (*deployment)->instances();
  const std::string entry = EntryOf(instances).address;
  if (!topology.prepare.empty()) console.Progress("all are ready; preparing");
  if (absl::Status prepared = deploy::Prepare(topology, entry, folder.path(), stop); !prepared.ok()) {
    console.Progress({});
    reporter.Ending();
    return FailUp(console, prepared, absl::StrCat("the logs are in ", folder.path()));
  }
  if (absl::Status tried = flags.force ? absl::OkStatus() : TryRequests(topology, entry, stop, console);
      !tried.ok()) {
    console.Progress({});
    reporter.Ending();
    return FailUp(console, tried, Join("insist with --force; the logs are in ", folder.path()));
  }
  if (absl::Status limited = (*deployment)->LimitCpu(); !limited.ok()) return FailUp(console, limited);
  reporter.Up(entry);
  on_up(instances, *dashboard == nullptr ? "" : (*dashboard)->address());
  while (!stop.load(std::memory_order_relaxed)) {
    for (const auto& [service, count] : folder.TakeScaleRequests()) {
      if (absl::Status scales = (*deployment)->Scale(service, count); !scales.ok())
        console.Error(std::string(Message(scales)), "");
    }
    (*deployment)->Tend();
    poll(nullptr, 0, kTendMs);  // a signal ends it
  }
  reporter.Ending();
  console.Note(absl::StrCat("ending ", topology.application));
  (*deployment)->Stop(kDrain);
  return kOk;
}

// ----- in the background ---------------------------------------------------------------------------------------------

// The background process: a session of its own, so that no terminal ends it; its words go to this terminal until the
// application is up and to a log after that. Tells its exit code through `report` as soon as there is one.
[[noreturn]] void BeBackground(const deploy::Topology& topology, const UpFlags& flags, Nanos start_timeout,
                               const RunFolder& folder, Console& console, const std::atomic<bool>& stop,
                               int report) {
  setsid();
  if (absl::Status keeper = folder.WritePid(); !keeper.ok()) console.Error(std::string(Message(keeper)), "");
  const auto tell = [&report](int code) {
    const auto byte = static_cast<unsigned char>(code);
    if (report >= 0) (void)!write(report, &byte, 1);
    if (report >= 0) close(report);
    report = -1;
  };
  const auto on_up = [&](const std::deque<deploy::Instance>& instances, const std::string& dashboard) {
    console.Print(Summary(topology, instances, dashboard, true));
    fflush(stdout);
    const std::string log = absl::StrCat(folder.path(), "/curtail-up.log");
    const int to = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(null, STDIN_FILENO);
    for (const int out : {STDOUT_FILENO, STDERR_FILENO}) {
      if (dup2(to >= 0 ? to : null, out) < 0) close(out);  // whoever reads it waits for its end
    }
    console = Console();  // which is no terminal any more
    tell(kOk);
  };
  const int code = Supervise(topology, flags, start_timeout, folder, console, stop, on_up);
  tell(code);
  std::exit(code);
}

int RunInBackground(const deploy::Topology& topology, const UpFlags& flags, Nanos start_timeout,
                    std::unique_ptr<RunFolder> folder, Console& console, const std::atomic<bool>& stop) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return FailUp(console,
                  absl::InternalError("no file descriptors are left: raise the limit with ulimit -n"));
  const pid_t pid = fork();  // a deploy::Process would end with this one
  if (pid < 0) return FailUp(console, absl::InternalError("cannot start a process"));
  if (pid == 0) {
    close(ends[0]);
    BeBackground(topology, flags, start_timeout, *folder, console, stop, ends[1]);
  }
  close(ends[1]);
  // Until it tells, which is bounded by its own timeouts, or ends.
  unsigned char code = kFailed;
  bool asked = false;
  pollfd told{ends[0], POLLIN, 0};
  while (poll(&told, 1, kTendMs) <= 0) {
    if (stop.load(std::memory_order_relaxed) && !asked) kill(pid, SIGTERM), asked = true;
  }
  const bool silent = read(ends[0], &code, 1) != 1;
  close(ends[0]);
  if (!asked && !silent) return code;
  // Asked to end, it does, even if it had just come up.
  waitpid(pid, nullptr, 0);
  if (asked) return kInterrupted;
  return FailUp(console, absl::AbortedError("the process in the background was killed"),
                absl::StrCat("curtail logs ", topology.application));
}

// Which services run as a variant, and which variants --polyglot had to leave out.
void NoteVariants(const deploy::Topology& topology, Console& console) {
  std::vector<std::string> taken;
  for (const deploy::ServiceSpec& s : topology.services) {
    if (!s.variant.empty()) taken.push_back(absl::StrCat(s.name, "=", s.variant));
  }
  if (!taken.empty()) console.Note(absl::StrCat("variants: ", absl::StrJoin(taken, ", ")));
  for (const std::string& left_out : topology.left_out) console.Note(left_out);
}

absl::Status PrintCommands(const deploy::Topology& topology, Console& console) {
  deploy::Addresses addresses;
  for (const deploy::ServiceSpec& service : topology.services) {
    addresses[service.name] = service.external;
    for (int i = 0; i < service.instances() && service.external.empty(); ++i)
      addresses[service.name].push_back(absl::StrCat("<", deploy::InstanceName(service, i), ">"));
  }
  for (const deploy::ServiceSpec& service : topology.services) {
    for (int i = 0; i < service.instances() && service.external.empty(); ++i) {
      const std::string name = deploy::InstanceName(service, i);
      deploy::InstanceSetup setup;
      setup.config = service.config, setup.policy = service.policy, setup.profile = service.profile;
      if (!service.IsHosted()) {
        setup.listen =
            service.listen.empty() ? absl::StrCat("<", name, ">") : service.listen[static_cast<size_t>(i)];
      }
      const absl::StatusOr<std::vector<std::string>> argv =
          deploy::CommandOf(topology, service, i, addresses, setup);
      if (!argv.ok()) return argv.status();
      absl::StatusOr<std::vector<std::string>> words = deploy::WrapperOf(service, i);
      if (!words.ok()) return words.status();
      words->insert(words->end(), argv->begin(), argv->end());
      console.Print(absl::StrCat(name, ": ", absl::StrJoin(*words, " "), "\n"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

int RunUp(const UpFlags& flags, Console& console, const std::atomic<bool>& stop) {
  const absl::StatusOr<Nanos> start_timeout =
      TimeLimitOf("--start-timeout", !flags.start_timeout.empty()                 ? flags.start_timeout
                                     : flags.changes.scale == deploy::kPaperScale ? "15m"
                                                                                  : "2m");
  if (!start_timeout.ok()) return FailUp(console, start_timeout.status());
  const absl::StatusOr<deploy::Topology> topology = Wanted(flags);
  if (!topology.ok()) return FailUp(console, topology.status());
  if (absl::Status fine = CheckDashboard(flags.dashboard); !fine.ok()) return FailUp(console, fine);
  if (absl::Status entered = deploy::EnterFolderOf(flags.application); !entered.ok())
    return FailUp(console, entered);
  if (absl::Status fine = CheckServices(*topology, apps::IsApplication(flags.application)); !fine.ok())
    return FailUp(console, fine);
  NoteVariants(*topology, console);
  if (flags.dry_run) {
    const absl::Status printed = PrintCommands(*topology, console);
    return printed.ok() ? kOk : FailUp(console, printed);
  }
  if (absl::Status found = CheckPrograms(*topology); !found.ok()) return FailUp(console, found);
  if (const std::string note = OtherRunFolder(); !note.empty()) console.Note(note);
  absl::StatusOr<std::unique_ptr<RunFolder>> folder = RunFolder::Take(topology->application);
  if (!folder.ok()) {
    const bool up = folder.status().code() == absl::StatusCode::kAlreadyExists;
    return FailUp(console, folder.status(),
                  up ? absl::StrCat("end it with: curtail down ", topology->application) : "");
  }
  if (flags.detach) {
    return RunInBackground(*topology, flags, *start_timeout, *std::move(folder), console, stop);
  }
  return Supervise(*topology, flags, *start_timeout, **folder, console, stop,
                   [&](const std::deque<deploy::Instance>& instances, const std::string& dashboard) {
                     console.Print(Summary(*topology, instances, dashboard, false));
                     fflush(stdout);
                   });
}

}  // namespace curtail::tool
