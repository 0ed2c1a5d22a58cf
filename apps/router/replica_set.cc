// SPDX-License-Identifier: Apache-2.0
#include "apps/router/replica_set.h"

#include <algorithm>
#include <utility>

#include "apps/router/recall.h"
#include "apps/router/versions.h"
#include "curtail/base/strings.h"
#include "router.curtail.h"

namespace curtail::router {
absl::StatusOr<std::unique_ptr<ReplicaSet>> ReplicaSet::Create(std::vector<Channel*> leaves,
                                                               ReplicaOptions options) {
  const auto replicas = static_cast<size_t>(std::max(options.replicas, 0));
  if (replicas < 1 || replicas > Targets::kMax) {
    return absl::InvalidArgumentError(
        Join("--replicas is ", options.replicas, "; want 1 to ", Targets::kMax));
  }
  if (leaves.empty() || leaves.size() % replicas != 0) {
    return absl::InvalidArgumentError(
        Join(leaves.size(), " leaves do not make shards of ", replicas,
             " replicas each; give --leaf ADDR for every replica, those of shard 0 "
             "first, then those of shard 1"));
  }
  return std::unique_ptr<ReplicaSet>(new ReplicaSet(std::move(leaves), options));
}

ReplicaSet::ReplicaSet(std::vector<Channel*> leaves, ReplicaOptions options)
    : options_(options),
      shards_(leaves.size() / static_cast<size_t>(options.replicas)),
      replicas_(leaves.size()),
      turns_(shards_),
      version_(VersionOfNow()) {
  for (size_t i = 0; i < leaves.size(); ++i) replicas_[i].channel = leaves[i];
  if (options_.replicas > 1) prober_ = std::thread([this] { ProbeLoop(); });
}

ReplicaSet::~ReplicaSet() {
  {
    const std::lock_guard<FiberMutex> lock(mu_);
    stop_ = true;
    changed_.notify_all();
  }
  if (prober_.joinable()) prober_.join();
}

Targets ReplicaSet::Admitted(size_t shard) const {
  const Targets targets = LookAtAdmitted(shard);
  if (targets.size() > 0) return targets;
  // One was admitted after it was looked at, and another one ejected before that.
  const std::lock_guard<FiberMutex> lock(mu_);
  return LookAtAdmitted(shard);
}

Targets ReplicaSet::LookAtAdmitted(size_t shard) const {
  Targets targets;
  for (size_t i = First(shard); i < First(shard + 1); ++i) {
    if (IsAdmitted(static_cast<uint32_t>(i))) {
      targets.Add(static_cast<uint32_t>(i), replicas_[i].channel);
    }
  }
  return targets;
}

Targets ReplicaSet::AdmittedForWrite(size_t shard, uint64_t* version) {
  const MutexLock lock(order_mu_);
  *version = NextVersion();
  return LookAtAdmitted(shard);
}

Targets ReplicaSet::InTurn(size_t shard) {
  const Targets admitted = Admitted(shard);
  if (admitted.size() <= 1) return admitted;
  Targets targets;
  const uint32_t turn = turns_[shard].next.fetch_add(1, std::memory_order_relaxed);
  for (size_t i = 0; i < admitted.size(); ++i) {
    const size_t at = (turn + i) % admitted.size();
    targets.Add(admitted.id(at), admitted.channel(at));
  }
  return targets;
}

void ReplicaSet::Succeeded(uint32_t replica) {
  std::atomic<int>& timeouts = replicas_[replica].timeouts_in_a_row;
  // Mostly 0: then the line stays shared among CPUs.
  if (timeouts.load(std::memory_order_relaxed) != 0) timeouts.store(0, std::memory_order_relaxed);
}

void ReplicaSet::GetFailed(uint32_t replica, const absl::Status& status, bool timed_out) {
  if (status.code() == absl::StatusCode::kUnavailable) Eject(replica, Message(status));
  if (status.code() != absl::StatusCode::kDeadlineExceeded || !timed_out) return;
  State& state = replicas_[replica];
  const int64_t now = Now().time_since_epoch().count();
  const int timeouts = state.timeouts_in_a_row.fetch_add(1, std::memory_order_relaxed) + 1;
  if (timeouts == 1) state.first_timeout_ns.store(now, std::memory_order_relaxed);
  const Nanos since(now - state.first_timeout_ns.load(std::memory_order_relaxed));
  if (timeouts < options_.timeouts || since < options_.write_timeout) return;
  Eject(replica, Join(timeouts, " gets in a row timed out"));
}

bool ReplicaSet::Eject(uint32_t replica, std::string_view reason) {
  const std::lock_guard<FiberMutex> lock(mu_);
  State& state = replicas_[replica];
  const auto admitted = LookAtAdmitted(replica / static_cast<size_t>(options_.replicas)).size();
  if (!state.admitted.load(std::memory_order_relaxed)) return true;
  if (admitted <= 1) return false;
  {
    const MutexLock order(order_mu_);
    state.admitted.store(false, std::memory_order_release);
  }
  state.reason = reason;
  ++state.ejections;
  if (++ejected_ == 1) changed_.notify_all();
  return true;
}

uint64_t ReplicaSet::Admit(std::span<const uint32_t> replicas) {
  const std::lock_guard<FiberMutex> lock(mu_);
  ejected_ -= replicas.size();
  changed_.notify_all();
  const MutexLock order(order_mu_);
  for (const uint32_t replica : replicas) {
    replicas_[replica].timeouts_in_a_row.store(0, std::memory_order_relaxed);
    replicas_[replica].admitted.store(true, std::memory_order_release);
  }
  return NextVersion();
}

uint64_t ReplicaSet::NextVersion() {
  const uint64_t now = VersionOfNow();
  uint64_t last = version_.load(std::memory_order_relaxed);
  while (!version_.compare_exchange_weak(last, std::max(last + 1, now), std::memory_order_acq_rel,
                                         std::memory_order_relaxed)) {
  }
  return std::max(last + 1, now);
}

void ReplicaSet::SawVersion(uint64_t version) {
  if (version > GreatestVersion()) return;
  uint64_t now = version_.load(std::memory_order_relaxed);
  while (now < version && !version_.compare_exchange_weak(now, version, std::memory_order_relaxed)) {
  }
}

void ReplicaSet::ProbeLoop() {
  std::unique_lock<FiberMutex> lock(mu_);
  while (!stop_) {
    if (ejected_ == 0) {
      changed_.wait(lock);
      continue;
    }
    lock.unlock();
    const Deadline next = Deadline::In(options_.probe_interval);
    Probe();
    lock.lock();
    while (!stop_ && ejected_ != 0 && changed_.wait_until(lock, next)) {
    }
  }
}

void ReplicaSet::Probe() {
  std::vector<uint32_t> ids;
  std::vector<Channel*> channels;
  for (uint32_t i = 0; i < replicas_.size(); ++i) {
    if (IsAdmitted(i)) continue;
    ids.push_back(i);
    channels.push_back(replicas_[i].channel);
  }
  // Writes that begin from here on have later versions and do not go there; what an earlier one may still
  // send there, the leaf refuses after the flush.
  StoreFlush request;
  request.set_version(NextVersion());
  Context ctx(Deadline::In(options_.write_timeout));
  const auto replies = ctx.Broadcast(channels, Store::kFlush, request);
  std::vector<uint32_t> flushed;
  std::vector<Channel*> flushed_channels;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (!replies[i].ok()) continue;
    if (replies[i]->late()) {
      SawVersion(replies[i]->newest());
      continue;
    }
    flushed.push_back(ids[i]);
    flushed_channels.push_back(channels[i]);
  }
  if (flushed.empty()) return;
  // Between the flush and this others were written to; that it lacks what they took is no reason to empty it again.
  request.set_version(Admit(flushed));
  request.set_done_before(true);
  const auto ignored = ctx.Broadcast(flushed_channels, Store::kFlush, request);
}

std::vector<std::string> ReplicaSet::Recall(Deadline deadline) {
  std::vector<std::string> lines;
  if (options_.replicas == 1) return lines;
  std::vector<std::optional<StoreHistory>> answers(replicas_.size());
  while (!AskForHistories(deadline, &answers)) {
    // Not sooner than a leaf that starts could be there.
    std::unique_lock<FiberMutex> lock(mu_);
    if (deadline.Expired()) break;
    changed_.wait_until(lock, std::min(deadline, Deadline::In(options_.probe_interval)));
  }
  std::vector<const StoreHistory*> histories(answers.size());
  std::ranges::transform(answers, histories.begin(),
                         [](const auto& answer) { return answer ? &*answer : nullptr; });
  for (size_t shard = 0; shard < shards_; ++shard) {
    const auto of_shard = std::span(histories).subspan(First(shard), static_cast<size_t>(options_.replicas));
    const std::vector<bool> may = MayTakePart(of_shard);
    if (std::ranges::none_of(of_shard, [](const StoreHistory* history) { return history != nullptr; })) {
      lines.push_back(Join("shard ", shard,
                           ": no leaf says which writes it has seen; its replicas are taken to be equal"));
      continue;
    }
    for (size_t i = 0; i < may.size(); ++i) {
      if (may[i]) continue;
      const auto replica = static_cast<uint32_t>(First(shard) + i);
      const std::string_view why = of_shard[i] == nullptr ? "did not say which writes it has seen"
                                                          : "missed writes under an earlier mid-tier";
      Eject(replica, why);
      lines.push_back(
          Join("leaf ", replicas_[replica].channel->target(), " ", why, "; takes part once it is emptied"));
    }
  }
  return lines;
}

bool ReplicaSet::AskForHistories(Deadline deadline, std::vector<std::optional<StoreHistory>>* histories) {
  std::vector<size_t> ids;
  std::vector<Channel*> channels;
  for (size_t i = 0; i < replicas_.size(); ++i) {
    if ((*histories)[i]) continue;
    ids.push_back(i);
    channels.push_back(replicas_[i].channel);
  }
  StoreRecall request;
  request.set_version(NextVersion());
  // A leaf waits for the writes that are under way.
  Context ctx(std::min(deadline, Deadline::In(2 * options_.write_timeout)));
  auto replies = ctx.Broadcast(channels, Store::kRecall, request);
  bool all = true;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (replies[i].ok() && replies[i]->late()) SawVersion(replies[i]->newest());
    if (replies[i].ok() && IsWhole(*replies[i])) {
      (*histories)[ids[i]] = *std::move(replies[i]);
    } else {
      all = false;
    }
  }
  return all;
}

void ReplicaSet::Describe(ReplicasReply* reply) const {
  const std::lock_guard<FiberMutex> lock(mu_);
  for (size_t i = 0; i < replicas_.size(); ++i) {
    Replica* const out = reply->add_replicas();
    out->set_shard(static_cast<uint32_t>(i / static_cast<size_t>(options_.replicas)));
    out->set_replica(static_cast<uint32_t>(i % static_cast<size_t>(options_.replicas)));
    out->set_leaf(replicas_[i].channel->target());
    out->set_admitted(replicas_[i].admitted.load(std::memory_order_relaxed));
    out->set_reason(replicas_[i].reason);
    out->set_ejections(replicas_[i].ejections);
    out->set_gets(replicas_[i].gets.load(std::memory_order_relaxed));
  }
}

bool ReplicaSet::WaitForAll(Deadline deadline) const {
  std::unique_lock<FiberMutex> lock(mu_);
  while (ejected_ != 0) {
    if (!changed_.wait_until(lock, deadline) && deadline.Expired()) return false;
  }
  return true;
}

}  // namespace curtail::router
