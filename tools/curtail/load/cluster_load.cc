// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. kubectl makes the Job, waits until its pod runs, and follows what that writes: the result as JSON, once it has
// ended. An interrupt deletes the Job; curtail in the pod then ends early, as it does on a machine, and its partial result
// still comes. A Job that this command leaves behind, since it was killed, goes ten minutes after its end.
#include "tools/curtail/load/cluster_load.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "apps/shipped/application.h"
#include "curtail/base/internal/json_document.h"
#include "curtail/load/report/report.h"
#include "curtail/load/report/report_read.h"
#include "curtail/term/exit_code.h"
#include "curtail/term/interrupt.h"
#include "tools/curtail/load/kubectl.h"
#include "tools/curtail/load/load_checks.h"
#include "tools/curtail/load/load_results.h"
#include "tools/curtail/load/load_setup.h"
#include "tools/curtail/render/manifests.h"
#include "tools/curtail/render/markers.h"

namespace curtail::tool {
namespace {

using internal::Json;

constexpr Nanos kAnswer = std::chrono::seconds(30);  // of the cluster, to one command
constexpr Nanos kToStart = std::chrono::minutes(5);  // for the pod, its image and what fills its folder
constexpr Nanos kToEnd = std::chrono::seconds(40);   // for the pod, once it is told to
constexpr Nanos kBetweenLooks = std::chrono::seconds(1);
constexpr size_t kShownBytes = 2000;  // bytes of what a pod wrote

// OK if the flags name nothing that a pod cannot have or that this command does not offer there. Errors: INVALID_ARGUMENT naming the flag.
absl::Status CheckFlags(const LoadFlags& flags) {
  const bool file = flags.targets.size() == 1 && deploy::IsTopologyFile(flags.targets.front());
  if (flags.targets.size() != 1 || !(file || apps::IsApplication(flags.targets.front()))) {
    return absl::InvalidArgumentError(
        absl::StrCat("--kubernetes: name the application that the cluster runs: ", apps::ApplicationNames(),
                     ", or its topology file"));
  }
  if (file && flags.method.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(flags.targets.front(), ": say which method its requests are for: ",
                     "--method, with --data; only shipped applications have their own"));
  }
  const bool trace = flags.schedule.find('/') != std::string::npos || absl::EndsWith(flags.schedule, ".csv");
  const std::pair<const char*, bool> files[] = {
      {"--data", flags.data.starts_with('@')}, {"--data-binary", !flags.data_binary.empty()},
      {"--journey", !flags.journey.empty()},   {"--check", NamesCheckFile(flags)},
      {"--proto", !flags.protos.empty()},      {"--ca", !flags.ca.empty()},
      {"--cert", !flags.cert.empty()},         {"--schedule", trace}};
  for (const auto& [flag, given] : files) {
    if (given) {
      return absl::InvalidArgumentError(
          absl::StrCat(flag, ": a pod of the cluster has no file of this machine; leave --kubernetes out"));
    }
  }
  const std::pair<const char*, bool> others[] = {{"--raw", !flags.raw.empty()},
                                                 {"--admin", !flags.admin.empty()},
                                                 {"--share", !flags.share.empty()},
                                                 {"--start-at", !flags.start_at.empty()},
                                                 {"--find-max", !flags.find_max.empty()},
                                                 {"--list", flags.list},
                                                 {"--debug", flags.debug}};
  for (const auto& [flag, given] : others) {
    if (given)
      return absl::InvalidArgumentError(
          absl::StrCat(flag, " does not go with --kubernetes: leave one of them out"));
  }
  return absl::OkStatus();
}

// The flags of the generator in the pod: those that were given, but for what is done here.
std::vector<std::string> CommandOfPod(const LoadFlags& flags, const Plan& plan) {
  const ServicePlan& entry = *plan.Find(plan.topology.entry().name);
  std::vector<std::string> words = {"curtail", "load"};
  if (flags.method.empty()) words.push_back(plan.topology.application);
  words.push_back(absl::StrCat("dns:///", entry.workloads.front().name, ":", entry.port));
  bool balancer = false;
  for (const std::string& word : flags.given) {
    static constexpr std::string_view kHere[] = {"--kubernetes", "--namespace", "--json",
                                                 "--html",       "--hgrm",      "--csv",
                                                 "--junit",      "--fail-if",   "--dry-run"};
    const std::string_view name = std::string_view(word).substr(0, word.find('='));
    balancer |= name == "--balancer";
    if (std::find(std::begin(kHere), std::end(kHere), name) == std::end(kHere)) words.push_back(word);
  }
  if (!balancer) words.push_back("--balancer=round_robin");
  const auto data = plan.topology.variables.find("data");
  if (flags.method.empty() && flags.corpus.empty() && data != plan.topology.variables.end())
    words.push_back(absl::StrCat("--corpus=", data->second));
  words.insert(words.end(), {"--json=-", "--quiet"});
  return words;
}

std::string EntryOf(const Plan& plan) {
  const ServicePlan& entry = *plan.Find(plan.topology.entry().name);
  return absl::StrCat(entry.keeps_data() ? "statefulset/" : "deployment/", entry.workloads.front().name);
}

absl::StatusOr<Plan> PlanFor(const LoadFlags& flags, const RenderOptions& options) {
  absl::StatusOr<deploy::Topology> topology = apps::LoadTopology(flags.targets.front());
  if (!topology.ok()) return topology.status();
  return MakePlan(*std::move(topology), options);
}

// The image that the application's pods have, the secrets with which it is pulled, and that of TLS. Errors: NOT_FOUND, which
// says what is missing.
absl::StatusOr<RenderOptions> InstalledAs(const Kubectl& kubectl, const std::string& application,
                                          const std::string& entry, const std::atomic<bool>& stop) {
  // A line each.
  constexpr char kAsked[] = R"(--output=jsonpath={.spec.template.spec.containers[0].image}{"\n"})"
                            R"({.spec.template.spec.imagePullSecrets[*].name}{"\n"})"
                            R"({.spec.template.spec.volumes[?(@.name=="tls")].secret.secretName})";
  const absl::StatusOr<std::string> told = kubectl.Run({"get", entry, kAsked}, kAnswer, &stop);
  if (told.ok()) {
    std::vector<std::string> lines = absl::StrSplit(*told, '\n');
    lines.resize(3);
    return RenderOptions{.image = lines[0],
                         .image_pull_secrets = absl::StrSplit(lines[1], ' ', absl::SkipEmpty()),
                         .tls_secret = lines[2]};
  }
  if (!absl::IsNotFound(told.status())) return told.status();
  if (!kubectl.name_space().empty()) {
    const absl::Status there =
        kubectl.Run({"get", "namespace", kubectl.name_space(), "--output=name"}, kAnswer, &stop).status();
    if (absl::IsNotFound(there))
      return absl::NotFoundError(absl::StrCat("the cluster has no namespace ", kubectl.name_space()));
  }
  return absl::NotFoundError(absl::StrCat("the cluster has no ", entry, kubectl.Where(), ": ", application,
                                          " is not installed there; name its namespace with --namespace"));
}

// A ClusterJob is deleted with this object, and its pod.
class ClusterJob {
 public:
  ClusterJob(const Kubectl& kubectl, std::string name) : kubectl_(kubectl), name_(std::move(name)) {}
  ~ClusterJob() { (void)Delete(); }
  ClusterJob(const ClusterJob&) = delete;
  ClusterJob& operator=(const ClusterJob&) = delete;

  absl::Status Delete() {
    if (std::exchange(deleted_, true)) return absl::OkStatus();
    return kubectl_
        .Run({"delete", name_, "--wait=false", "--ignore-not-found", "--cascade=background"}, kAnswer,
             nullptr)
        .status();
  }
  // "hdsearch-load-x7k2p"
  std::string Name() const { return name_.substr(name_.find('/') + 1); }

 private:
  const Kubectl& kubectl_;
  const std::string name_;  // "job.batch/hdsearch-load-x7k2p"
  bool deleted_ = false;
};

// Where a pod is on its way.
struct PodState {
  std::string name;
  bool runs = false;     // or has run: its output can be read
  std::string hopeless;  // it will never run, and why
  std::string waits;     // for what it waits, as far as is known
};

// The state of one of its containers: what it waits for, or how it ended.
const Json* StateOf(const Json& pod, const char* list, const char* kind) {
  const auto status = pod.find("status");
  if (status == pod.end()) return nullptr;
  const auto containers = status->find(list);
  if (containers == status->end() || containers->empty()) return nullptr;
  const auto state = containers->front().find("state");
  if (state == containers->front().end()) return nullptr;
  const auto found = state->find(kind);
  return found == state->end() ? nullptr : &*found;
}

std::string TextOf(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::string Why(const Json& state) {
  const std::string reason = TextOf(state, "reason"), message = TextOf(state, "message");
  return message.empty() ? reason : absl::StrCat(reason, ": ", message);
}

PodState ReadPod(const Json& pod) {
  PodState read;
  if (const auto metadata = pod.find("metadata"); metadata != pod.end())
    read.name = TextOf(*metadata, "name");
  read.runs = StateOf(pod, "containerStatuses", "running") != nullptr ||
              StateOf(pod, "containerStatuses", "terminated") != nullptr;
  const auto status = pod.find("status");
  if (read.runs || status == pod.end()) return read;
  if (const Json* ended = StateOf(pod, "initContainerStatuses", "terminated");
      ended != nullptr && TextOf(*status, "phase") == "Failed") {
    read.hopeless = "what prepares it failed";
  }
  for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
    const Json* const waits = StateOf(pod, list, "waiting");
    if (waits == nullptr) continue;
    const std::string reason = TextOf(*waits, "reason");
    if (reason == "PodInitializing" || reason == "ContainerCreating") continue;
    if (reason == "InvalidImageName" || reason == "ErrImageNeverPull" ||
        absl::StartsWith(reason, "CreateContainer"))
      read.hopeless = Why(*waits);
    read.waits = Why(*waits);
  }
  const auto conditions = status->find("conditions");
  if (conditions == status->end()) return read;
  for (const Json& condition : *conditions) {
    if (TextOf(condition, "type") == "PodScheduled" && TextOf(condition, "status") == "False")
      read.waits = Why(condition);
  }
  return read;
}

// The name of the job's pod, once it runs. Errors: FAILED_PRECONDITION, why it does not.
absl::StatusOr<std::string> AwaitPod(const Kubectl& kubectl, const ClusterJob& job,
                                     const std::atomic<bool>& stop) {
  std::string waits;
  for (const Deadline deadline = Deadline::In(kToStart); !deadline.Expired();) {
    const absl::StatusOr<std::string> text = kubectl.Run(
        {"get", "pods", absl::StrCat("--selector=job-name=", job.Name()), "--output=json"}, kAnswer, &stop);
    if (!text.ok()) return text.status();
    const Json pods = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
    const auto items = pods.is_object() ? pods.find("items") : pods.end();
    if (items != pods.end() && items->is_array() && !items->empty()) {
      const PodState pod = ReadPod(items->front());
      if (pod.runs) return pod.name;
      if (!pod.hopeless.empty())
        return absl::FailedPreconditionError(
            absl::StrCat("the pod of the load does not run: ", pod.hopeless));
      waits = pod.waits;
    } else {
      // Of a job without a pod the events say why, such as a quota.
      const absl::StatusOr<std::string> events = kubectl.Run(
          {"get", "events", absl::StrCat("--field-selector=type=Warning,involvedObject.name=", job.Name()),
           "--output=jsonpath={.items[-1:].message}"},
          kAnswer, &stop);
      if (events.ok() && !events->empty()) waits = *events;
    }
    if (!WaitUntil(Now() + kBetweenLooks, stop)) return absl::CancelledError("interrupted");
  }
  return absl::FailedPreconditionError(absl::StrCat("the pod of the load has not begun within 5 minutes",
                                                    waits.empty() ? "" : absl::StrCat(": ", waits)));
}

// The text that the pod writes until it ends. An interrupt deletes the job, and then the pod ends.
absl::StatusOr<std::string> Follow(const Kubectl& kubectl, const std::string& pod, ClusterJob& job,
                                   const std::atomic<bool>& stop) {
  const absl::StatusOr<std::unique_ptr<deploy::Process>> logs =
      kubectl.Start({"logs", "--follow", "--container=load", pod});
  if (!logs.ok()) return logs.status();
  std::optional<Deadline> limit;
  while (true) {
    absl::StatusOr<std::string> text = (*logs)->ReadToEnd(Deadline::In(std::chrono::milliseconds(200)));
    if (text.ok()) return text;
    if (stop && !limit) {
      limit = Deadline::In(kToEnd);
      (void)job.Delete();
    }
    if (limit && limit->Expired()) return absl::CancelledError("interrupted; the pod did not end in time");
  }
}

// The result among the other lines that the pod wrote: its first line is "{", its last one "}".
std::string_view JsonIn(std::string_view text) {
  size_t begin = text.starts_with("{") ? 0 : text.find("\n{");
  if (begin == text.npos) return {};
  if (begin > 0) ++begin;
  const size_t end = text.rfind("\n}");
  return end == text.npos || end < begin ? std::string_view() : text.substr(begin, end + 2 - begin);
}

int Fail(Console& console, const absl::Status& status) {
  if (absl::IsCancelled(status)) {
    console.Print("INTERRUPTED   before anything was measured\n");
    return kInterrupted;
  }
  console.Error(std::string(status.message()),
                absl::IsInvalidArgument(status) ? "see curtail load --help" : "");
  return absl::IsInvalidArgument(status) || absl::IsNotFound(status) ? kBadConfig : kFailed;
}

// Prints, judges and writes what the pod measured. Returns the exit code.
int Conclude(const LoadFlags& flags, const std::vector<Threshold>& thresholds, std::string_view written,
             Console& console, const std::atomic<bool>& stop) {
  ReportOrigin origin;
  const std::string_view json = JsonIn(written);
  absl::StatusOr<LoadReport> report = ParseReport(json, &origin);
  if (!report.ok()) {
    if (stop) return Fail(console, absl::CancelledError(""));
    const std::string said(absl::StripAsciiWhitespace(std::string(written)));
    return Fail(console, absl::FailedPreconditionError(absl::StrCat(
                             "the load in the cluster has no result: ",
                             said.empty() ? std::string(report.status().message())
                                          : said.substr(said.size() - std::min(said.size(), kShownBytes)))));
  }
  origin.command = flags.command;
  console.Print(absl::StrCat(console.Bold("load"), " ", PlanText(report->runs.front().plan), "\n"));
  for (size_t i = 0; i < report->runs.size(); ++i) {
    if (report->runs.size() > 1) console.Print(console.Bold(absl::StrCat("run ", i + 1, "\n")));
    console.Print(SummaryText(report->runs[i]));
  }
  if (report->runs.size() > 1) console.Print(BetweenRunsText(*report));
  for (const Threshold& threshold : thresholds) report->thresholds.push_back(threshold.text);
  const int verdict = CheckThresholds(*report, console);
  if (absl::Status status = WriteResults(flags, *report, origin, console); !status.ok())
    return FailWriting(console, status);
  if (stop || report->interrupted()) return kInterrupted;
  return report->valid() ? verdict : kVoid;
}

}  // namespace

int RunClusterLoad(const LoadFlags& flags, Console& console, const std::atomic<bool>& stop) {
  if (absl::Status status = CheckFlags(flags); !status.ok()) return Fail(console, status);
  // Of it only the thresholds are used here; but what is wrong is better said before a pod finds out.
  absl::StatusOr<Plan> plan = PlanFor(flags, {});
  if (!plan.ok()) return Fail(console, plan.status());
  const std::string application = plan->topology.application;
  const absl::StatusOr<LoadSetup> setup = MakeSetup(flags, {.application = application});
  if (!setup.ok()) return Fail(console, setup.status());
  const std::vector<std::string> command = CommandOfPod(flags, *plan);
  for (const std::string& word : command) {
    if (HasMarkers(word))
      return Fail(console,
                  absl::InvalidArgumentError(absl::StrCat("'", word, "' has «, which a job cannot have")));
  }
  if (flags.dry_run) {
    console.Print(LoadJobManifest(*plan, command));
    return kOk;
  }
  if (absl::Status status = CheckOutputs(flags, console); !status.ok()) return Fail(console, status);
  const absl::StatusOr<Kubectl> kubectl = Kubectl::Find(flags.cluster_namespace);
  if (!kubectl.ok()) return Fail(console, kubectl.status());
  const absl::StatusOr<RenderOptions> installed = InstalledAs(*kubectl, application, EntryOf(*plan), stop);
  if (!installed.ok()) return Fail(console, installed.status());
  plan = PlanFor(flags, *installed);
  if (!plan.ok()) return Fail(console, plan.status());
  const ScratchFile manifest(LoadJobManifest(*plan, command));
  const absl::StatusOr<std::string> created =
      kubectl->Run({"create", "--filename", manifest.path(), "--output=name"}, kAnswer, nullptr);
  if (!created.ok()) return Fail(console, created.status());
  ClusterJob job(*kubectl, std::string(absl::StripAsciiWhitespace(*created)));
  const absl::StatusOr<std::string> pod = AwaitPod(*kubectl, job, stop);
  if (!pod.ok()) return Fail(console, pod.status());
  console.Note(absl::StrCat("the pod ", *pod, " makes the load"));
  const absl::StatusOr<std::string> written = Follow(*kubectl, *pod, job, stop);
  if (!written.ok()) return Fail(console, written.status());
  return Conclude(flags, setup->thresholds, *written, console, stop);
}

}  // namespace curtail::tool
