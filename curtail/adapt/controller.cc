// SPDX-License-Identifier: Apache-2.0
#include "curtail/adapt/controller.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "curtail/base/cpus.h"

namespace curtail {

Controller::Controller(std::unique_ptr<Policy> policy, Actuator* actuator, ControllerOptions options)
    : options_(std::move(options)),
      every_mask_(std::bit_ceil(static_cast<uint32_t>(std::clamp(options_.evaluate_every, 1, 1 << 20))) - 1),
      actuator_(actuator),
      load_(options_.sensor),
      policy_(std::move(policy)),
      current_(actuator->current()) {}

Controller::~Controller() = default;

void Controller::OnTimer(TimePoint now) {
  if (!busy_.TryAcquire()) return;  // C1
  current_ = actuator_->current();  // someone else may have switched; asking takes the actuator's lock
  if (!std::exchange(fresh_, false)) EvaluateAlone(now, Trigger::kTimer, load_.count());
  busy_.Release();
  if (again_.load()) OnBlocked(now, 0);  // C2
}

void Controller::OnBlocked(TimePoint now, int delta) {
  blocked_.fetch_add(delta);
  again_.store(true);  // C2
  while (again_.load()) {
    if (!busy_.TryAcquire()) return;
    again_.store(false);
    EvaluateAlone(now, Trigger::kBlocked, load_.count());
    busy_.Release();
  }
}

void Controller::EvaluateArrival(TimePoint now, uint64_t arrivals) {
  if (!busy_.TryAcquire()) return;  // C1
  fresh_ = true;
  EvaluateAlone(now, Trigger::kArrival, arrivals);
  busy_.Release();
  if (again_.load()) OnBlocked(now, 0);  // C2
}

void Controller::EvaluateHasty(TimePoint now, uint64_t arrivals) {
  if (!busy_.TryAcquire()) return;  // C1
  const uint64_t since = arrivals - std::min(arrivals, std::exchange(haste_at_, arrivals));
  haste_ = std::min(kMostHaste, haste_ + static_cast<double>(since) / kHastePer);
  if (haste_ >= 1) {
    haste_ -= 1;
    EvaluateAlone(now, Trigger::kArrival, arrivals);
  }
  busy_.Release();
  if (again_.load()) OnBlocked(now, 0);  // C2
}

void Controller::EvaluateAlone(TimePoint now, Trigger trigger, uint64_t arrivals) {
  if (trigger != Trigger::kBlocked) rates_ = load_.Update(now);  // too often to update unused rates
  Signals signals;
  signals.now = now;
  signals.trigger = trigger;
  signals.rates = rates_;
  signals.arrivals = arrivals;
  signals.current = current_;
  signals.blocked = blocked_.load(std::memory_order_relaxed);
  if (CloseWindow(now, arrivals)) signals.window = &window_;
  const Choice choice = policy_->Decide(signals);
  if (choice.config != current_) Switch(now, choice);
  // Statistics only: a thread that reads one may miss another.
  evaluations_.store(evaluations_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  slow_.store(rates_.slow, std::memory_order_relaxed);
  fast_.store(rates_.fast, std::memory_order_relaxed);
  paper_.store(rates_.paper, std::memory_order_relaxed);
}

void Controller::BeginWindow(TimePoint now, uint64_t arrivals) {
  for (std::atomic<uint32_t>& count : latencies_) count.store(0, std::memory_order_relaxed);
  window_start_ = now;
  window_arrivals_ = arrivals;
  window_cpu_ = ProcessCpuTime();
}

bool Controller::CloseWindow(TimePoint now, uint64_t arrivals) {
  if (options_.latency_window <= Nanos(0)) return false;
  if (window_start_ == TimePoint::min()) BeginWindow(now, arrivals);
  if (now - window_start_ < options_.latency_window) return false;
  const Nanos cpu = ProcessCpuTime();
  window_ = {.length = now - window_start_,
             .arrivals = arrivals - std::min(arrivals, window_arrivals_),
             .cpu = cpu - window_cpu_};
  for (size_t i = 0; i < latencies_.size(); ++i) {
    const uint32_t count = latencies_[i].exchange(0, std::memory_order_relaxed);
    if (count > 0) window_.latencies.AddBucket(i, count);
  }
  window_start_ = now;
  window_arrivals_ = arrivals;
  window_cpu_ = cpu;
  return true;
}

void Controller::Switch(TimePoint now, const Choice& choice) {
  const auto barred = barred_.find(choice.config.ToString());
  if (barred != barred_.end() && now < barred->second.until) return;
  const absl::Status status = actuator_->SwitchTo(choice.config);  // C3
  const TimePoint done = options_.clock == nullptr ? now : options_.clock->Now();
  if (status.ok()) {
    Note(done, choice, status);
    if (barred != barred_.end()) barred_.erase(barred);
    current_ = choice.config;
    epoch_.fetch_add(1, std::memory_order_release);  // pairs with OnArrival()
    BeginWindow(now, load_.count());
    return;
  }
  const bool first = barred == barred_.end();
  const Nanos wait =
      first ? options_.retry_after : std::min(barred->second.wait * 2, options_.retry_after * 64);
  barred_[choice.config.ToString()] = {now + wait, wait};
  Note(done, choice, status);
  if (first && options_.report) options_.report(status);
}

void Controller::Note(TimePoint now, const Choice& choice, const absl::Status& status) {
  MutexLock lock(mu_);
  if (!status.ok()) ++failures_, last_failure_ = status;
  if (options_.history == 0) return;
  if (history_.size() >= options_.history) history_.pop_front();
  history_.push_back({now, rates_.slow, current_, choice.config, choice.reason, status});
}

ControllerStats Controller::Stats() const {
  ControllerStats stats;
  stats.arrivals = load_.count();
  stats.evaluations = evaluations_.load(std::memory_order_relaxed);
  stats.switches = epoch_.load(std::memory_order_relaxed);
  stats.rates = {paper_.load(std::memory_order_relaxed), fast_.load(std::memory_order_relaxed),
                 slow_.load(std::memory_order_relaxed)};
  stats.current = actuator_->current();
  MutexLock lock(mu_);
  stats.failures = failures_;
  stats.last_failure = last_failure_;
  return stats;
}

std::vector<SwitchRecord> Controller::History(size_t most) const {
  std::vector<SwitchRecord> last;
  last.reserve(std::min(most, options_.history));  // not while others wait
  MutexLock lock(mu_);
  last.assign(history_.end() - static_cast<ptrdiff_t>(std::min(most, history_.size())), history_.end());
  return last;
}

}  // namespace curtail
