// SPDX-License-Identifier: Apache-2.0
//
// The roles of threads, and how a switch changes them: rules S1 to S7 of executor.cc.
#include <algorithm>
#include <utility>

#include "curtail/base/strings.h"
#include "curtail/exec/executor.h"
#include "curtail/exec/internal/executor_thread.h"

namespace curtail {

absl::Status Executor::EnsureLoops() {
  {
    MutexLock lock(mu_);
    if (loops_) return absl::OkStatus();
  }
  std::vector<std::pair<std::unique_ptr<FiberLoop>, std::shared_ptr<ReceptionSignal>>> made;
  for (size_t i = 0; i < threads_.size(); ++i) {
    made.emplace_back(std::make_unique<FiberLoop>(options_.fiber), std::make_shared<ReceptionSignal>());
    FiberLoop& loop = *made.back().first;
    if (absl::Status status = loop.status(); !status.ok()) {
      return absl::ResourceExhaustedError(Join("fibers: ", Message(status)));
    }
  }
  MutexLock lock(mu_);
  if (loops_) return absl::OkStatus();  // another thread was faster
  for (size_t i = 0; i < threads_.size(); ++i) {
    Thread& thread = *threads_[i];
    thread.loop_owner = std::move(made[i].first);
    thread.signal = std::move(made[i].second);
    thread.loop.store(thread.loop_owner.get(), std::memory_order_release);
  }
  loops_ = true;
  return absl::OkStatus();
}

uint32_t Executor::TasksHold(const Config& config) {
  if (config.model.waiting != Waiting::kSync) return 0;
  const bool dispatch = config.model.execution == Execution::kDispatch;
  return static_cast<uint32_t>(dispatch ? config.workers : config.network);
}

void Executor::TellThreads(const Config& config) {
  const uint32_t held = TasksHold(config);
  const auto spare = static_cast<int>(threads_.size()) - config.threads();
  beside_ =
      held > 0 ? std::clamp(static_cast<int>(reception_.order->Beside(held)), 0, std::max(spare, 0)) : 0;
  reception_.order->SetThreads(held + static_cast<uint32_t>(beside_));
}

int Executor::Allowed(Role role) const {
  const Part& part = kParts[role];
  int threads = part.In(config_.model) ? config_.*part.pool : 0;
  if (threads > 0 && (role == kInline || role == kWorker)) threads += beside_;
  if (role == kFiberInline) threads += StandIns();
  if (role != kResponse) return threads;
  return std::max(threads, async_live_.load(std::memory_order_seq_cst) > 0 ? 1 : 0);  // S6
}

void Executor::SetRole(Thread& self, Role role) {
  ++role_changes_;
  if (self.role != kNone) --holders_[self.role];
  if (role != kNone) ++holders_[role];
  self.role = role;
}

void Executor::VacateBusy() {
  const Model model = config_.model;
  const auto has_role = [model](const Thread& thread) {
    return thread.busy && thread.role != kNone && kParts[thread.role].In(model);
  };
  // Threads beyond what the config needs if busy ones keep their roles; those with fibers are not free for others.
  int spare = -(config_.threads() + beside_);
  for (const auto& thread : threads_) {
    const bool free = !thread->busy && !kParts[thread->role].fibers && thread->live_fibers == 0;
    spare += free || has_role(*thread);
  }
  for (const auto& thread : threads_) {
    if (spare <= 0) return;
    if (!has_role(*thread)) continue;
    SetRole(*thread, kNone);
    --spare;
  }
}

bool Executor::Settled(const Thread& self) const {
  // Settle() looks at config_ and holders_, counted by role_changes_, and, while not every response role is
  // held as the config says, async_live_ and the sleeping threads.
  return self.settled == role_changes_ && self.role != kNone && holders_[kResponse] == config_.response &&
         (config_.response > 0 || async_live_.load(std::memory_order_seq_cst) == 0);
}

void Executor::Settle(Thread& self) {
  if (self.role != kNone && holders_[self.role] > Allowed(self.role)) SetRole(self, kNone);
  const bool fibers = self.fibers() > 0;
  // S6: with no thread to spare, replies come before new requests.
  if (self.role != kNone && self.role != kResponse && !fibers && holders_[kResponse] == 0 &&
      Vacant(kResponse) && seats_[kSleepers].empty()) {
    SetRole(self, kNone);
  }
  if (self.role != kNone) {
    self.settled = role_changes_;
    return;
  }
  for (int next = kNone + 1; next < kRoles; ++next) {
    const Role role = static_cast<Role>(next);
    if (fibers && !kParts[role].fibers) continue;  // S5
    if (Vacant(role)) {
      SetRole(self, role);
      break;
    }
  }
  self.settled = role_changes_;
}

absl::Status Executor::Check(const Config& config) const {
  const bool dispatch = config.model.execution == Execution::kDispatch;
  const bool async = config.model.waiting == Waiting::kAsync;
  if (config.network < 1 || (dispatch && config.workers < 1) || (async && config.response < 1)) {
    return absl::InvalidArgumentError(Join("config ", config.ToString(), ": a pool is empty"));
  }
  if (async && response_source_ == nullptr) {
    return absl::InvalidArgumentError(
        Join("config ", config.ToString(), ": this server has no asynchronous models"));
  }
  const int needed = config.threads();
  if (static_cast<size_t>(needed) > threads_.size()) {
    return absl::InvalidArgumentError(Join("config ", config.ToString(), " needs ", needed,
                                           " threads; this server was started with ", threads_.size(),
                                           ": start it with --max-threads ", needed));
  }
  return absl::OkStatus();
}

absl::Status Executor::Prepare(const Config& config) {
  if (absl::Status checked = Check(config); !checked.ok()) return checked;
  if (config.model.waiting != Waiting::kFiber) return absl::OkStatus();
  if (absl::Status made = EnsureLoops(); !made.ok()) return made;
  return config.stand_ins ? StartGuard() : absl::OkStatus();
}

absl::Status Executor::SwitchTo(const Config& config) {
  if (absl::Status prepared = Prepare(config); !prepared.ok()) return prepared;
  bool wake_reception = false;
  bool wake_response = false;
  bool wake_guard = false;
  {
    MutexLock lock(mu_);
    PutInForce(config);
    TaskList none;
    TellThreads(config);
    reception_.order->Append(none);
    ++role_changes_;
    VacateBusy();
    for (const Seat seat : {kRunners, kResponders, kReceivers}) UnparkAll(seat);  // S1
    for (int i = 0; i < config.threads() + beside_; ++i) UnparkLast(kSleepers);
    wake_reception = reception_.leading;
    wake_response = response_.leading;
    wake_guard = GuardSleeps();  // G5 of stand_ins.cc
  }
  if (wake_reception) reception_source_->Wake();  // S2
  if (wake_response) response_source_->Wake();
  if (wake_guard) WakeGuard();
  return absl::OkStatus();
}

// S7: pollers that are to block stop. The others look when they wait the next time.
void Executor::PutInForce(const Config& config) {
  config_ = config;
  spin_budget_.SetOpen(config.model.reception == Reception::kPoll);
}

void Executor::SetReception(Reception reception) {
  MutexLock lock(mu_);
  Config config = config_;
  config.model.reception = reception;
  PutInForce(config);
}

Config Executor::config() const {
  MutexLock lock(mu_);
  return config_;
}

void Executor::WakeForOthers(Thread& self) {  // S4
  const bool at_reception = self.role != kResponse;
  const bool receives = at_reception && kParts[self.role].receives;
  const bool runs = at_reception && kParts[self.role].runs;
  if (!reception_.leading && !receives) UnparkLast(dispatch() ? kReceivers : kRunners);
  if (reception_.order->ready() > 0 && !runs) UnparkLast(kRunners);
  if (at_reception && (response_.order->ready() > 0 || !response_.leading)) UnparkLast(kResponders);
}

size_t Executor::Spare() const {
  return threads_.size() - static_cast<size_t>(config_.threads() + beside_ + StandIns());
}

void Executor::AsyncBegun() {  // S6
  if (async_live_.fetch_add(1, std::memory_order_seq_cst) > 0) return;
  MutexLock lock(mu_);
  if (Vacant(kResponse)) UnparkLast(kSleepers);
}

void Executor::AsyncEnded() {  // S6
  if (async_live_.fetch_sub(1, std::memory_order_seq_cst) > 1) return;
  bool wake = false;
  {
    MutexLock lock(mu_);
    if (config_.model.waiting != Waiting::kAsync || stopping_) {
      UnparkAll(kResponders);
      wake = response_.leading;
    }
  }
  if (wake) response_source_->Wake();
}

ExecutorStats Executor::Sample() {
  MutexLock lock(mu_);
  ExecutorStats stats{.config = config_,
                      .pools = {{"network"}, {"workers"}, {"response"}},
                      .spinning = spin_budget_.used(),
                      .queued = reception_.order->size() + response_.order->size() + aside_.size(),
                      .begun = begun_,
                      .queue_wait = queue_wait_,
                      .max_queue_wait = std::exchange(max_queue_wait_, Nanos::zero())};
  for (const auto& thread : threads_) {
    stats.fibers += thread->live_fibers;
    const bool parked = thread->parked;
    if (thread->role == kNone) {
      stats.asleep += parked;
      continue;
    }
    const auto size = kParts[thread->role].pool;
    ExecutorStats::Pool& pool = stats.pools[size == &Config::response ? 2 : size == &Config::workers ? 1 : 0];
    ++pool.threads;
    ++(parked ? pool.parked : thread->waits.load(std::memory_order_relaxed) ? pool.waiting : pool.active);
  }
  const int wanted[] = {config_.network, config_.workers, config_.response};
  for (size_t i = stats.pools.size(); i-- > 0;) {
    if (wanted[i] == 0 && stats.pools[i].threads == 0)
      stats.pools.erase(stats.pools.begin() + static_cast<long>(i));
  }
  return stats;
}

}  // namespace curtail
