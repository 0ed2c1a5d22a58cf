// SPDX-License-Identifier: Apache-2.0
#include "bench/fences/traces.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "apps/shipped/application.h"
#include "curtail/deploy/deployment.h"
#include "curtail/load/drive/runner.h"
#include "curtail/load/drive/shape.h"

namespace curtail::fences {
namespace {

// Of Browse: the highest rate of a trace over what the applications answer at most.
constexpr double kPeakShare = 1.25;
constexpr double kReadPerS = 200;
constexpr int kPeakOutstanding = 32;
// A trace is so many phases long.
constexpr int kTracePhases = 3;
// Makes a prediction a matter of a millisecond, so that little load fills the CPU of Browse and none of the others.
constexpr char kRatings[] = "synthetic:users=20000,items=1682,ratings=400000,rank=4,noise=0.7,seed=1";
constexpr char kRecords[] = "1000";

struct Setting {
  const char* name;
  const char* value;
};

// Two leaves an application: enough for a fan-out, and few processes.
std::vector<Setting> SettingsOf(std::string_view application) {
  std::vector<Setting> settings = {{"leaf.shards", "2"}};
  if (application == "hdsearch") settings.push_back({"data", "synthetic:N=10000,D=64"});
  if (application == "recommend") settings.push_back({"data", kRatings});
  if (application == "setalgebra") settings.push_back({"data", "synthetic:N=10000"});
  if (application == "router") {
    for (const char* name : {"leaf.replicas", "store.replicas"}) settings.push_back({name, "1"});
    settings.insert(settings.end(), {{"store.shards", "2"}, {"records", kRecords}});
  }
  return settings;
}

int TraceCpu(bool browse, int cpus) { return browse ? std::min(1, cpus - 1) : 0; }

absl::StatusOr<deploy::Topology> TopologyOf(const char* application, int cpu) {
  absl::StatusOr<deploy::Topology> topology = apps::LoadTopology(application);
  if (!topology.ok()) return topology;
  absl::Status status;
  for (const Setting& setting : SettingsOf(application))
    status.Update(topology->Set(setting.name, setting.value));
  for (deploy::ServiceSpec& service : topology->services) service.cpus = {absl::StrCat(cpu)};
  if (status.ok()) status = topology->Check();
  if (!status.ok()) return status;
  return topology;
}

}  // namespace

struct TraceStudy::Stage {
  deploy::Topology topology;
  std::unique_ptr<deploy::Deployment> deployment;

  std::string entry() const { return deployment->addresses().at(topology.entry().name).front(); }
};

std::vector<Trace> Traces() {
  return {{"large", "large-variation"}, {"quick", "quick-variation"}, {"slow", "slow-variation"}};
}

TraceStudy::TraceStudy(const Study& study) : study_(study) {}
TraceStudy::~TraceStudy() = default;

absl::Status TraceStudy::StartApplications() {
  for (size_t i = 0; i < kApplications.size(); ++i) {
    study_.progress(absl::StrCat("starts ", kApplications[i]));
    auto stage = std::make_unique<Stage>();
    auto topology =
        TopologyOf(kApplications[i], TraceCpu(i < kBrowseApplications, study_.results.machine.cpus));
    if (!topology.ok()) return topology.status();
    stage->topology = *std::move(topology);
    deploy::DeploymentOptions options;
    options.folder = absl::StrCat(study_.log_folder, "/", kApplications[i]);
    std::error_code error;
    if (!std::filesystem::create_directory(options.folder, error)) {
      return absl::InternalError(absl::StrCat("cannot make ", options.folder));
    }
    auto deployment = deploy::Deployment::Start(stage->topology, options, study_.stop);
    if (!deployment.ok()) return deployment.status();
    stage->deployment = *std::move(deployment);
    absl::Status prepared = deploy::Prepare(stage->topology, stage->entry(), options.folder, study_.stop);
    if (!prepared.ok()) return prepared;
    stages_.push_back(std::move(stage));
  }
  return absl::OkStatus();
}

absl::Status TraceStudy::MakeWorkloads() {
  std::vector<Requests> requests;
  for (const auto& stage : stages_) {
    apps::RequestOptions options;
    if (stage->topology.application == "router") options.own["queries"] = "c";  // reads only
    absl::StatusOr<Requests> made =
        apps::MakeRequests(stage->topology.application, options, stage->topology.Settings());
    if (!made.ok()) return made.status();
    requests.push_back(*std::move(made));
  }
  absl::StatusOr<Requests> browse = MakeBrowse(requests[0], requests[1]);
  absl::StatusOr<Requests> read = MakeRead(requests[2], requests[3]);
  if (!browse.ok()) return browse.status();
  if (!read.ok()) return read.status();
  browse_ = *std::move(browse);
  read_ = *std::move(read);
  return absl::OkStatus();
}

absl::Status TraceStudy::StartFronts(const std::vector<Row>& variants) {
  for (const Row& row : variants) {
    Role role{.part = kFront, .variant = row.variant.name(), .addresses = {}};
    for (const auto& stage : stages_) role.addresses.push_back(stage->entry());
    if (study_.results.machine.cpus > 1) role.cpus = {0};
    auto front = study_.Start(role);
    if (!front.ok()) return front.status();
    fronts_.push_back(*std::move(front));
  }
  return absl::OkStatus();
}

// Under the first variant that holds no thread, or the baseline.
absl::Status TraceStudy::FindPeak(const std::vector<Row>& variants) {
  size_t at = 0;
  while (at + 1 < variants.size() && !variants[at].variant.holds_no_thread()) ++at;
  study_.progress("finds the peak of Browse");
  RunOptions options;
  options.targets = {fronts_[at]->address()};
  options.warmup = FromSeconds(study_.results.phase_s / 2);
  options.stop = &study_.stop;
  const auto result = RunClosedLoop(options, *browse_, kPeakOutstanding, FromSeconds(study_.results.phase_s));
  if (!result.ok()) return result.status();
  browse_peak_per_s_ = result->good_per_s;
  if (browse_peak_per_s_ > 0) return absl::OkStatus();
  return absl::InternalError("Browse answers nothing");
}

absl::Status TraceStudy::Start(const std::vector<Row>& variants) {
  absl::Status status = StartApplications();
  if (status.ok()) status = MakeWorkloads();
  if (status.ok()) status = StartFronts(variants);
  if (status.ok()) status = FindPeak(variants);
  return status;
}

absl::StatusOr<std::vector<ClassPlan>> TraceStudy::Plans(const Trace& trace) const {
  const Nanos warmup = FromSeconds(study_.results.phase_s / 4);
  const Nanos length = FromSeconds(kTracePhases * study_.results.phase_s);
  const std::string shape =
      absl::StrFormat("%s:%.0f", std::string(trace.shape), std::max(1.0, kPeakShare * browse_peak_per_s_));
  absl::StatusOr<RateCurve> curve = ParseShape(shape, {.length = length});
  if (curve.ok()) curve = curve->WithLeadIn(warmup);
  if (!curve.ok()) return curve.status();
  absl::StatusOr<RateCurve> level = RateCurve::Constant(kReadPerS, warmup + length);
  if (!level.ok()) return level.status();
  std::vector<ClassPlan> plans;
  plans.push_back({"Read", read_, *std::move(level)});
  plans.push_back({"Browse", browse_, *std::move(curve)});
  return plans;
}

absl::Status TraceStudy::Measure(const Trace& trace, Part* part) {
  part->rates_per_s = {kReadPerS, kPeakShare * browse_peak_per_s_};
  return study_.TakeTurns(part, [&](size_t variant, uint64_t seed) -> absl::StatusOr<Cell> {
    absl::StatusOr<std::vector<ClassPlan>> plans = Plans(trace);
    if (!plans.ok()) return plans.status();
    const auto mix = Mix::Make(*std::move(plans), seed);
    if (!mix.ok()) return mix.status();
    const Nanos warmup = FromSeconds(study_.results.phase_s / 4);
    return Drive({.target = fronts_[variant]->address(),
                  .phases = {.warmup = warmup, .phase = (*mix)->schedule().length() - warmup, .total = true},
                  .tiers = {fronts_[variant].get()},
                  .stop = &study_.stop},
                 **mix);
  });
}

}  // namespace curtail::fences
