// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/server/adaptation/adaptation.h"

#include <algorithm>
#include <utility>

#include "curtail/adapt/policy_kind.h"
#include "curtail/adapt/profile.h"
#include "curtail/base/cpus.h"
#include "curtail/base/strings.h"

namespace curtail::internal {
namespace {

// Policies without a PolicyKind::tick are told of time this often, to notice silence. Each tick costs as much as an
// evaluated arrival.
constexpr Nanos kTick = std::chrono::milliseconds(20);
// Less often when there was no request for a while. By then the estimates of the load have faded.
constexpr Nanos kQuietAfter = std::chrono::seconds(2);
constexpr Nanos kQuietTick = std::chrono::milliseconds(250);
constexpr size_t kHistory = 4096;

ServiceStyle StyleOf(const ConfigFilter& runs) {
  const bool sync = runs({.model = {Waiting::kSync}});
  const bool async = runs({.model = {Waiting::kAsync}, .response = 1});
  if (sync && async) return ServiceStyle::kCoroutine;
  return async ? ServiceStyle::kContinuation : ServiceStyle::kStraightLine;
}

// A policy chooses among these when there is no profile: for each way to wait the in-line forms, which answer soonest,
// and dispatch to few and to many threads. The first config of the server is among them; FIB1 is not beside "auto".
std::vector<Config> ChoiceWithoutProfile(const Config& first) {
  std::vector<Config> configs = {first};
  const int cpus = std::max(2, UsableCpus());
  const std::string fibers = Join("FDB1-", std::min(cpus, kMaxPoolSize));
  for (const std::string_view text :
       {std::string_view("SIB1"), std::string_view("SIP1"), std::string_view("SDB1-4"),
        std::string_view("SDB1-16"), std::string_view("SDB1-50"), std::string_view("SDP1-16"),
        std::string_view("FIB1"), std::string_view("FIP1"), std::string_view(fibers),
        std::string_view("AIB1-1"), std::string_view("AIP1-1"), std::string_view("ADB1-4-4")}) {
    const Config config = *Config::Parse(text);
    const bool same = first.stand_ins && config.model == first.model && config.network == first.network;
    if (config != first && !same) configs.push_back(config);
  }
  return configs;
}

std::vector<Config> ConfigsOf(const Profile& profile) {
  std::vector<Config> configs;
  for (const ConfigSummary& summary : profile.configs) configs.push_back(summary.config);
  return configs;
}

// Says which configs the service could run under and this server cannot; empty if there are none.
std::string LeftOut(const Profile& profile, const ConfigFilter& runs, const ConfigFilter& allowed) {
  std::string left_out;
  for (const Config& config : ConfigsOf(profile)) {
    if (runs(config) && !allowed(config)) left_out += Join(left_out.empty() ? "" : ", ", config.ToString());
  }
  if (left_out.empty()) return {};
  return Join(
      "configs of the profile that are left out for lack of threads (--max-threads), or of CPUs to poll on: ",
      left_out);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Adaptation>> Adaptation::Make(const ServerOptions& options,
                                                             const Profile* profile,
                                                             const ConfigFilter& runs) {
  if (options.policy.empty()) return nullptr;
  if (options.slo <= Nanos(0)) return absl::InvalidArgumentError("the SLO of a policy is a time above zero");
  if (!(options.cpu_weight >= 0))
    return absl::InvalidArgumentError("the weight of CPU for a policy is zero or above");
  if (profile != nullptr && profile->cells.empty()) profile = nullptr;  // it has limits of path classes alone
  std::unique_ptr<Adaptation> made(new Adaptation);
  made->spec_ = options.policy;
  made->first_ = options.config;
  const absl::Status chosen = made->Choose(options, profile, runs);
  if (!chosen.ok()) return chosen;
  return made;
}

absl::Status Adaptation::Choose(const ServerOptions& options, const Profile* profile,
                                const ConfigFilter& runs) {
  const absl::StatusOr<PolicySpec> spec = ParsePolicy(spec_, options.policies);
  if (!spec.ok()) return spec.status();
  const PolicyKind& kind = *spec->kind;
  const bool fixed = !kind.switches;
  if (profile == nullptr && spec->NeedsProfile()) {
    note_ = Join("policy ", spec_, " has no profile, so the config stays ", first_.ToString(),
                 "; give the service's profile, or take the policy ", PolicyThatUses(ProfileUse::kOptional));
    return absl::OkStatus();
  }
  const int threads = std::max(options.max_threads, options.config.threads());
  PolicyOptions with{.cpus = UsableCpus(), .cpu_weight = options.cpu_weight, .slo = options.slo};
  with.allowed = [runs, threads, cpus = with.cpus](const Config& config) {
    const bool polls = config.model.reception == Reception::kPoll;
    return runs(config) && config.threads() <= threads && (cpus > 1 || !polls);
  };
  with.style = StyleOf(runs);
  const std::vector<Config> configs = profile ? ConfigsOf(*profile) : ChoiceWithoutProfile(options.config);
  if (profile == nullptr) with.configs = configs;
  if (profile != nullptr && !fixed) note_ = LeftOut(*profile, runs, with.allowed);
  if (fixed) {  // starts as many threads as it needs, and says itself what it cannot run under
    with.allowed = nullptr;
    with.style = ServiceStyle::kCoroutine;
  }
  absl::StatusOr<std::unique_ptr<Policy>> policy = MakePolicy(*spec, profile, with);
  if (!policy.ok()) {
    const std::string file = profile == nullptr ? "" : Join(" (profile ", options.profile, ")");
    return absl::InvalidArgumentError(Join(Message(policy.status()), file, note_.empty() ? "" : "; ", note_));
  }
  if (fixed) {
    first_ = (*policy)->Decide({}).config;
    return absl::OkStatus();
  }
  policy_ = *std::move(policy);
  Prepare(kind, configs, with.allowed);
  return absl::OkStatus();
}

void Adaptation::Prepare(const PolicyKind& kind, const std::vector<Config>& configs,
                         const ConfigFilter& allowed) {
  wants_latencies_ = kind.latencies;
  wants_blocked_ = kind.toggles_reception;
  tick_ = kind.tick;
  for (const Config& config : configs) {
    const bool chosen = allowed(config) && (kind.chooses == nullptr || kind.chooses(config));
    if (chosen && config.model.waiting == Waiting::kFiber) fibers_ = config;
  }
  options_.evaluate_every = kind.evaluate_every;
  options_.history = kHistory;
  options_.clock = &RealTime();
  if (!wants_latencies_) options_.latency_window = Nanos(0);
}

absl::Status Adaptation::Start(Executor* executor) {
  executor_ = executor;
  if (policy_ == nullptr) return absl::OkStatus();
  if (fibers_) {  // A2
    if (absl::Status prepared = executor->Prepare(*fibers_); !prepared.ok()) return prepared;
  }
  controller_ = std::make_unique<Controller>(std::move(policy_), static_cast<Actuator*>(this), options_);
  heard_ = Now();
  controller_->OnTimer(heard_);
  if (wants_blocked_) BeginToCount();
  return ticker_.Start("adapt", [this](TimePoint now) { return Tick(now); });
}

absl::Status Adaptation::SwitchTo(const Config& config) {
  if (counts_.load(std::memory_order_relaxed) == nullptr) return executor_->SwitchTo(config);
  executor_->SetReception(config.model.reception);  // A4; the policy changes nothing else from then on
  return absl::OkStatus();
}

void Adaptation::BeginToCount() {
  // The policy counts the threads of its config. The others sleep always, or, if they do not, are active too many.
  const int others = static_cast<int>(executor_->thread_count()) - executor_->config().threads();
  int blocked = 0;
  {
    MutexLock lock(mu_);
    blocked = early_ - others;
    counts_.store(controller_.get(), std::memory_order_release);
  }
  controller_->OnBlocked(Now(), blocked);
}

void Adaptation::OnBlocking(int delta) {
  Controller* told = counts_.load(std::memory_order_acquire);
  if (told == nullptr) {
    MutexLock lock(mu_);
    told = counts_.load(std::memory_order_relaxed);
    if (told == nullptr) {
      early_ += delta;
      return;
    }
  }
  told->OnBlocked(Now(), delta);
}

Nanos Adaptation::Tick(TimePoint now) {
  controller_->OnTimer(now);
  if (const uint64_t before = std::exchange(arrivals_, controller_->arrivals()); arrivals_ != before)
    heard_ = now;
  if (tick_ > Nanos(0)) return tick_;
  return now - heard_ < kQuietAfter ? kTick : kQuietTick;
}

PolicyStats Adaptation::Stats(size_t decisions) const {
  PolicyStats stats{.policy = spec_, .note = note_, .switches_by_itself = switches()};
  if (!switches()) return stats;
  const ControllerStats now = controller_->Stats();
  stats.rate_per_s = now.rates.slow;
  stats.fast_rate_per_s = now.rates.fast;
  stats.paper_rate_per_s = now.rates.paper;
  stats.arrivals = now.arrivals;
  stats.evaluations = now.evaluations;
  stats.switches = now.switches;
  stats.failures = now.failures;
  stats.last_failure = std::string(Message(now.last_failure));
  for (SwitchRecord& record : controller_->History(decisions)) {
    stats.decisions.push_back({.when = record.when,
                               .rate_per_s = record.rate_per_s,
                               .from = record.from,
                               .to = record.to,
                               .reason = std::string(record.reason),
                               .status = std::move(record.status)});
  }
  return stats;
}

}  // namespace curtail::internal
