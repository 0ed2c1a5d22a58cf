// SPDX-License-Identifier: Apache-2.0
//
// replica_set.h - which leaves hold which shard, and which of them take part now.
//
// A replica that misses a write is ejected before the write is acknowledged, so that no get reads an old value
// from it. A replica that cannot be reached, or lets several gets in a row time out, is ejected too. A thread
// then asks it at short intervals to forget everything; once it has, it takes part again, empty. The last
// replica of a shard that takes part is never ejected, because it holds the only copy. The set of replicas that
// take part is in memory only; a mid-tier that starts derives it from the leaves (recall.h).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apps/router/stripes.h"
#include "curtail/base/mutex.h"
#include "curtail/exec/sync.h"
#include "curtail/rpc/channel.h"
#include "router.pb.h"

namespace curtail::router {

struct ReplicaOptions {
  // Of each shard.
  int replicas = 1;
  // How long a replica may take over a get before another one is asked.
  Nanos get_timeout = std::chrono::milliseconds(250);
  // How long it may take over a write before it has missed it, and does not take part any more. Raise when
  // replicas are ejected that were only slow.
  Nanos write_timeout = std::chrono::seconds(1);
  // Gets in a row that time out before a replica is ejected; over `write_timeout` at least, so that a burst
  // of requests that wait for one thing is no reason.
  int timeouts = 3;
  // From one look at the ejected replicas to the next.
  Nanos probe_interval = std::chrono::milliseconds(500);
};

// A few replicas, by number and channel, without a heap.
class Targets {
 public:
  static constexpr size_t kMax = 16;
  void Add(uint32_t replica, Channel* channel) { ids_[size_] = replica, channels_[size_++] = channel; }
  size_t size() const { return size_; }
  uint32_t id(size_t i) const { return ids_[i]; }
  Channel* channel(size_t i) const { return channels_[i]; }
  std::span<Channel* const> channels() const { return {channels_.data(), size_}; }

 private:
  std::array<uint32_t, kMax> ids_;
  std::array<Channel*, kMax> channels_;
  size_t size_ = 0;
};

// Thread-safe; only Recall() and the destructor block.
class ReplicaSet {
 public:
  // `leaves` in shard-major order; they outlive this. Errors: INVALID_ARGUMENT when they do not make whole
  // shards.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<ReplicaSet>> Create(std::vector<Channel*> leaves,
                                                                          ReplicaOptions options);
  // Waits for the probe that is under way, which takes `write_timeout` at most.
  ~ReplicaSet();
  ReplicaSet(const ReplicaSet&) = delete;
  ReplicaSet& operator=(const ReplicaSet&) = delete;

  // To be called before the first request, if at all: asks all leaves which writes they have seen. Those that missed
  // some under an earlier mid-tier, or that did not answer before `deadline` although another of their shard did, are
  // ejected, and take part once they are emptied. Returns a line on each of them, and on each shard of which no leaf
  // answered: its replicas all take part.
  std::vector<std::string> Recall(Deadline deadline);

  const ReplicaOptions& options() const { return options_; }
  size_t shards() const { return shards_; }
  size_t ShardOfKey(std::string_view key) const { return ShardOf(HashOf(key), shards_); }

  // The replicas of a shard that take part now; at least one.
  Targets Admitted(size_t shard) const;
  // The same for a write, and its version: greater than what a replica that is ejected by now has been sent. One that
  // is ejected afterwards is emptied under a greater version, and refuses the write from then on.
  Targets AdmittedForWrite(size_t shard, uint64_t* version);
  // The same of one.
  bool IsAdmitted(uint32_t replica) const {
    return replicas_[replica].admitted.load(std::memory_order_acquire);
  }
  // The same, each of them first as often as the others.
  Targets InTurn(size_t shard);

  // A call to a replica went as it should.
  void Succeeded(uint32_t replica);
  // A get failed. `timed_out`: it had all the time that a replica has.
  void GetFailed(uint32_t replica, const absl::Status& status, bool timed_out);
  // Ejects a replica unless it is the last one of its shard. Returns whether it takes part no more.
  bool Eject(uint32_t replica, std::string_view reason);

  // Greater than all before, and than all before a restart unless the clock was set back.
  uint64_t NextVersion();
  // A leaf has seen this one: from now on NextVersion() is greater, unless it is more than a day ahead of the
  // clock, which is a mistake.
  void SawVersion(uint64_t version);

  void CountGet(uint32_t replica) { replicas_[replica].gets.fetch_add(1, std::memory_order_relaxed); }
  void Describe(ReplicasReply* reply) const;
  // Waits until every replica takes part, `deadline` at most; whether they do. For tests and tools.
  bool WaitForAll(Deadline deadline) const;

 private:
  struct State {
    Channel* channel = nullptr;  // immutable after construction
    // Atomic. Set under mu_ and order_mu_ (release), read by requests (acquire).
    std::atomic<bool> admitted{true};
    // Atomic; a heuristic, relaxed.
    std::atomic<int> timeouts_in_a_row{0};
    std::atomic<int64_t> first_timeout_ns{0};  // of those
    // Atomic; statistics, relaxed.
    std::atomic<uint64_t> gets{0};
    // Guarded by mu_.
    std::string reason;
    uint64_t ejections = 0;
  };
  struct alignas(64) Turn {
    std::atomic<uint32_t> next{0};  // relaxed: any order of turns will do
  };

  ReplicaSet(std::vector<Channel*> leaves, ReplicaOptions options);
  // Asks those leaves again that have not answered; whether all have.
  bool AskForHistories(Deadline deadline, std::vector<std::optional<StoreHistory>>* histories);
  // Numbers of a shard's replicas: First(shard) to First(shard + 1) - 1.
  size_t First(size_t shard) const { return shard * static_cast<size_t>(options_.replicas); }
  // As Admitted(), but may find none unless mu_ or order_mu_ is held.
  Targets LookAtAdmitted(size_t shard) const;
  void ProbeLoop();
  // Asks those that are ejected to forget everything, and admits those that did.
  void Probe();
  // From the version on that this returns.
  uint64_t Admit(std::span<const uint32_t> replicas);

  // Immutable after construction.
  const ReplicaOptions options_;
  const size_t shards_;

  std::vector<State> replicas_;
  std::vector<Turn> turns_;
  // Atomic. Drawn under order_mu_ for writes, so that versions are in the order of ejections. Refills draw theirs
  // without: NextVersion() pairs with itself, so if a refill's version is greater than that of a flush, it sees that the
  // replica was ejected before (acquire in the refill, release in Probe()).
  std::atomic<uint64_t> version_;

  // Held for some instructions, inside mu_ or alone: a write lists the replicas that take part, and draws its
  // version, under it.
  Mutex order_mu_;
  mutable FiberMutex mu_;
  mutable FiberCondition changed_;
  bool stop_ = false;   // guarded by mu_
  size_t ejected_ = 0;  // guarded by mu_: how many
  std::thread prober_;
};

}  // namespace curtail::router
