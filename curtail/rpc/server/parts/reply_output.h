// SPDX-License-Identifier: Apache-2.0
//
// reply_output.h - output that threads of a server hold back for a moment, so that more of it shares a write.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "curtail/base/clock.h"
#include "curtail/exec/executor.h"
#include "curtail/exec/receiver.h"
#include "curtail/rpc/stream/held_messages.h"
#include "curtail/rpc/transport/connection.h"

namespace curtail::internal {

// A ReplyOutput is the Outbox of a server's executor. Thread-safe: each thread of the pools holds output of its own.
class ReplyOutput final : public Outbox {
 public:
  // About the price of a send on a loopback socket, with the wake-up at the other end. Held output may wait this long
  // for each connection that it goes to: longer costs more than it saves.
  static constexpr Nanos kPriceOfSend = std::chrono::microseconds(10);

  ReplyOutput() = default;
  ReplyOutput(const ReplyOutput&) = delete;
  ReplyOutput& operator=(const ReplyOutput&) = delete;

  // Requests that become ready while output is sent go to `executor`. Before any connection is accepted.
  void SubmitTo(Executor* executor) { executor_ = executor; }

  // `connection` has output: sends it now, or lets it share a write with what this thread runs next.
  void Output(std::shared_ptr<Connection> connection);
  // A handler that takes about `time` will run on the thread of `hint`: sends first what need not wait so long.
  void BeforeHandler(Nanos time, const WaitHint& hint) {
    const size_t held = held_[hint.thread_index].handlers.size();
    if (time >= held * kPriceOfSend) Flush(hint.thread_index);
  }
  // Kicks a connection from a thread that is not handling events, and submits the requests that this makes ready.
  void Kick(Connection& connection, uint32_t bits);
  // For threads outside of the pools that write to streams.
  HeldMessages& messages() { return messages_; }
  // Nothing is held briefly any more. Before the executor stops, as what is sent may make requests ready.
  void StopMessages() { messages_.Stop(); }
  // REQUIRES: no thread of the pools runs any more.
  void FlushAll();

  // Outbox.
  void Prepare(size_t threads) override { held_ = std::vector<Held>(threads); }
  void Hold(uint32_t thread_index, std::shared_ptr<PollHandler> handler) override;
  bool HoldBriefly(uint32_t thread_index, std::shared_ptr<PollHandler> handler, TimePoint now) override;
  void FlushIfDue(uint32_t thread_index) override;
  void Flush(uint32_t thread_index) override;
  size_t Holds(uint32_t thread_index) const override { return held_[thread_index].handlers.size(); }

 private:
  // Owned by one thread of the pools.
  struct alignas(64) Held {
    std::vector<std::shared_ptr<PollHandler>> handlers;
    TimePoint since;    // when somebody first asked whether they are due; zero: nobody has
    uint64_t list = 0;  // their PollHandler::held_in
  };

  // Has `handler` send what was posted to it.
  void Send(PollHandler& handler);

  // Immutable once the server runs; each entry is its thread's.
  std::vector<Held> held_;
  Executor* executor_ = nullptr;

  // Thread-safe by itself.
  HeldMessages messages_{[this](PollHandler& handler) { Send(handler); }};
};

}  // namespace curtail::internal
