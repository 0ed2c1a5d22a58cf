// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/up/up_reporter.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "curtail/base/strings.h"
#include "tools/curtail/observe/dashboard.h"

namespace curtail::tool {
namespace {

int64_t NowUnixMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

UpReporter::UpReporter(const deploy::Topology& topology, const RunFolder& folder, Console& console)
    : folder_(folder), console_(console) {
  state_.application = topology.application;
  state_.pid = getpid();
  state_.settings = topology.Settings();
  state_.started_unix_ms = NowUnixMs();
  for (const deploy::ServiceSpec& s : topology.services) total_ += s.instances();
}

void UpReporter::Changed(const deploy::Instance& instance) {
  ProcessState p;
  p.name = instance.name;
  p.service = instance.service->name;
  p.variant = instance.service->variant;
  p.state = deploy::StateName(instance.state);
  const bool lives = instance.state == deploy::Instance::State::kStarting ||
                     instance.state == deploy::Instance::State::kReady;
  p.pid = lives && instance.process != nullptr ? instance.process->pid() : 0;
  p.protocol = instance.service->protocol;
  p.address = instance.address;
  p.admin = instance.admin;
  p.http_admin = instance.http_admin;
  p.under = instance.service->policy.empty() ? instance.service->config : instance.service->policy;
  p.log = instance.log;
  p.failover = instance.failover;
  p.scales = instance.service->ScalesWhileServing();
  p.restarts = instance.restarts;
  p.problem = instance.problem;
  if (instance.state == deploy::Instance::State::kWaiting) p.problem_unix_ms = NowUnixMs();
  p.since_unix_ms = NowUnixMs();
  auto kept = std::ranges::find(state_.processes, p.name, &ProcessState::name);
  if (instance.left) {
    if (kept != state_.processes.end()) state_.processes.erase(kept);
  } else {
    if (kept == state_.processes.end()) kept = state_.processes.emplace(PlaceFor(p.service));
    if (p.problem_unix_ms == 0) p.problem_unix_ms = kept->problem_unix_ms;
    *kept = std::move(p);
  }
  Write();
  Tell(instance);
}

std::vector<ProcessState>::iterator UpReporter::PlaceFor(std::string_view service) {
  const auto like = std::find_if(state_.processes.rbegin(), state_.processes.rend(),
                                 [&](const ProcessState& p) { return p.service == service; });
  return like == state_.processes.rend() ? state_.processes.end() : like.base();
}

void UpReporter::Up(const std::string& entry) {
  state_.entry = entry;
  up_ = true;
  console_.Progress({});
  Write();
}

void UpReporter::Write() {
  if (dashboard_ != nullptr) dashboard_->Update(state_);
  const absl::Status written = folder_.Write(state_);
  if (!written.ok() && !complained_) console_.Error(std::string(Message(written)), "");
  complained_ = complained_ || !written.ok();
}

void UpReporter::Tell(const deploy::Instance& instance) {
  if (ending_) return;
  if (instance.state == deploy::Instance::State::kWaiting) {
    console_.Note(absl::StrCat(instance.name, " ", instance.problem, "\nit is started again"));
  } else if (up_ && instance.state == deploy::Instance::State::kReady) {
    console_.Note(absl::StrCat(instance.name, instance.restarts > 0 ? " is back at " : " serves at ",
                               instance.address));
  } else if (up_ && instance.left) {
    console_.Note(absl::StrCat(instance.name, " has left"));
  } else if (!up_) {
    const auto ready = std::count_if(state_.processes.begin(), state_.processes.end(), [](const auto& p) {
      return p.state == deploy::StateName(deploy::Instance::State::kReady) ||
             p.state == deploy::StateName(deploy::Instance::State::kExternal);
    });
    console_.Progress(absl::StrFormat("%d of %d are ready; %s is %s", ready, total_, instance.name,
                                      deploy::StateName(instance.state)));
  }
}

}  // namespace curtail::tool
