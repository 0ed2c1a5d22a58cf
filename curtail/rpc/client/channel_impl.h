// SPDX-License-Identifier: Apache-2.0
//
// channel_impl.h - the private parts of Channel and Client.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "curtail/base/timer_heap.h"
#include "curtail/rpc/channel.h"
#include "curtail/rpc/client/client_connection.h"
#include "curtail/rpc/client/lane.h"
#include "curtail/rpc/stream/held_messages.h"

namespace curtail {

namespace internal {

// An event-driven call. Kept in the Client's pool for ever. The timer is its deadline.
class StartedCall final : public ClientCall, public Timer {
 public:
  Client* client = nullptr;
  Channel* channel = nullptr;
  Completion* done = nullptr;
  std::shared_ptr<ClientConnection> connection;
  bool timed_out = false;
  int attempts = 1;

 private:
  void Finished() override;
  // Finished() has run by then, and may have put the object to use again: nothing is left to do.
  void CancelHandled() override {}
};

}  // namespace internal

// Lanes are for any thread; the rest is owned by the thread that polls.
struct Client::Impl {
  explicit Impl(const ClientOptions& o) : options(o) {}

  const ClientOptions options;
  std::vector<std::unique_ptr<Lane>> lanes;

  std::vector<std::unique_ptr<internal::StartedCall>> pool;
  std::vector<internal::StartedCall*> free_calls;
  std::vector<internal::StartedCall*> failed;   // to be finished by the next Poll()
  std::vector<internal::StartedCall*> refused;  // by servers that have not seen them: to be sent again
  std::vector<std::shared_ptr<internal::ClientConnection>> dirty;
  // Connections whose attempt to connect may run out of time.
  std::vector<std::shared_ptr<internal::ClientConnection>> connecting;
  // What those two held when Poll() began; empty outside of it.
  std::vector<internal::StartedCall*> failed_before;
  std::vector<internal::StartedCall*> refused_before;
  std::vector<std::shared_ptr<internal::ClientConnection>> dirty_before;
  TimerHeap timers;
  std::string reply;  // the memory for the next reply that nobody takes
  size_t completed = 0;

  // Thread-safe by itself. Last: its thread uses the connections of lanes.
  internal::HeldMessages held_messages{[](PollHandler& handler) { handler.OnEvents(0, nullptr); }};

  internal::StartedCall* NewCall();
  // Posts a call that is ready, on a connection of its channel; or has it finished by the next Poll().
  void Send(internal::StartedCall* call, TimePoint now);
  void SendRefusedAgain();
  void Finish(internal::StartedCall* call);
  void ExpireTimers();
  // Gives up attempts to connect whose time is over; returns when the next is.
  Deadline GiveUpConnecting();
};

namespace internal {

// The connections of a channel on one poller, used in turn.
struct SlotSet {
  std::vector<std::shared_ptr<Slot>> slots;
  std::atomic<uint32_t> next{0};  // a counter only
};

// A SlotTable finds the SlotSet for a poller's number, making it on first use. Thread-safe; a lookup takes no
// lock.
class SlotTable {
 public:
  explicit SlotTable(int connections) : connections_(connections) {}
  ~SlotTable();
  // Null when there are more pollers than the table has room for (kBlocks * kBlock).
  SlotSet* For(uint32_t id);
  // Calls visit(slot) for each slot there is.
  template <class Visit>
  void ForEach(Visit visit) {
    for (auto& block : blocks_) {
      Block* const b = block.load(std::memory_order_acquire);
      for (size_t i = 0; b != nullptr && i < kBlock; ++i) {
        SlotSet* const set = (*b)[i].load(std::memory_order_acquire);
        if (set == nullptr) continue;
        for (const auto& slot : set->slots) visit(*slot);
      }
    }
  }

 private:
  static constexpr size_t kBlocks = 64;
  static constexpr size_t kBlock = 64;
  using Block = std::array<std::atomic<SlotSet*>, kBlock>;

  const int connections_;
  // Atomic: filled in once (release), never changed (acquire).
  std::array<std::atomic<Block*>, kBlocks> blocks_{};
};

}  // namespace internal

struct Channel::Impl {
  Impl(Client* c, std::string t, ChannelOptions o);
  Impl(Client* c, const InProcess* service, ChannelOptions o);

  // A connection on `poller` that takes calls, connecting if need be. UNAVAILABLE during backoff.
  absl::StatusOr<std::shared_ptr<internal::ClientConnection>> Acquire(const std::shared_ptr<Poller>& poller,
                                                                      TimePoint now);

  Client* const client;
  const InProcess* const in_process = nullptr;  // null: by connections
  const std::string target;
  const ChannelOptions options;
  wire::SessionOptions session_options;
  std::string tls_host;  // with TLS: whom the certificate must name
  bool secure = false;   // see OutgoingCall
  internal::SlotTable slots;

 private:
  // The address for a slot's next attempt: each failed one moves on in the list of the target's addresses,
  // and a used-up list is looked up anew. May block on the name service; holds no lock meanwhile.
  absl::StatusOr<Address> NextAddress(internal::Slot& slot);
  absl::StatusOr<std::shared_ptr<internal::ClientConnection>> Connect(
      const std::shared_ptr<internal::Slot>& slot, const std::shared_ptr<Poller>& poller, TimePoint now);
};

}  // namespace curtail
