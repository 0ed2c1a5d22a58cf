// SPDX-License-Identifier: Apache-2.0
//
// clients.h - the connections of a gateway's clients: which come, which of them go, and whose turn it is.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "curtail/base/clock.h"
#include "curtail/gateway/gateway.h"
#include "curtail/gateway/internal/http_connection.h"
#include "curtail/rpc/transport/socket.h"

namespace curtail::gateway::internal {

// Clients holds the connections within their bounds: in number, in bytes and in time. Bytes for clients are half of
// GatewayOptions::max_held_bytes (G4 of gateway.cc). Thread-compatible: the gateway's thread owns it, but for Count().
class Clients final : private HttpConnection::Owner {
 public:
  class Owner {
   public:
    virtual void OnRequest(const std::shared_ptr<HttpConnection>& connection, HttpRequest request) = 0;

   protected:
    ~Owner() = default;
  };

  // `options` and `owner` outlive it.
  Clients(const GatewayOptions& options, curtail::internal::UniqueFd listener, std::shared_ptr<Poller> poller,
          Owner* owner);

  // Clients are accepted from then on.
  absl::Status Begin() { return poller_->Add(listener_->fd.get(), listener_); }
  // Where it listens, with the real port.
  const std::string& address() const { return address_; }

  // A connection waits for a turn, or for one with a long request.
  bool want_turns() const { return !dirty_.empty(); }
  bool want_long_turns() const { return !long_turns_.empty(); }
  // A round: each connection with output, or with unread input, has a turn.
  void GiveTurns();
  // The connection that has waited longest with a long request has its turn.
  void GiveLongTurn();
  // The connection has output: its turn comes.
  void OnOutput(const std::shared_ptr<HttpConnection>& connection);
  // Ends what makes no progress. False: it has looked a moment ago.
  bool Look(TimePoint now);

  // As Gateway has it.
  void LastCall();
  // Accepts nobody, and takes no more requests.
  void Drain();
  void CloseAll();
  bool empty() const { return connections_.empty(); }

  // The bytes that are held for clients have become more, or fewer.
  void OnHeld(ptrdiff_t change) override;
  // There is room to read requests, for streams that lag to grow, for an answer of `size` bytes to one connection.
  bool MayRead() const override { return held() < share() / 4 * 3; }
  bool MayStream() const { return held() < share() / 2; }
  bool MayAnswer(const HttpConnection& connection, size_t size) const {
    return connection.held() + size <= HttpConnection::kLittle || held() == 0 || held() + size <= share();
  }
  void OnRefused(uint64_t requests) override { refused_.fetch_add(requests, std::memory_order_relaxed); }
  // A client was late with its part of a request, or of an answer.
  void OnLate(size_t times = 1) { timed_out_.fetch_add(times, std::memory_order_relaxed); }

  // Sets what is counted here. Any thread.
  void Count(GatewayStats* stats) const;

 private:
  struct Listener final : PollHandler {
    Listener(Clients* c, curtail::internal::UniqueFd f) : clients(c), fd(std::move(f)) {}
    void OnEvents(uint32_t, TaskList*) override { clients->Accept(); }
    Clients* const clients;
    curtail::internal::UniqueFd fd;
  };
  using Connections = std::vector<std::shared_ptr<HttpConnection>>;

  size_t share() const { return options_.max_held_bytes / 2; }
  size_t held() const { return held_bytes_.load(std::memory_order_relaxed); }
  Connections All() const { return {connections_.begin(), connections_.end()}; }
  void Accept();
  // Closes the connection that has been silent longest. False: none is.
  bool Evict();
  void Open(curtail::internal::UniqueFd fd);
  void MakeRoom(TimePoint now);
  void CloseLate(HttpConnection& connection);

  void OnRequest(const std::shared_ptr<HttpConnection>& connection, HttpRequest request) override {
    owner_.OnRequest(connection, std::move(request));
  }
  void OnClosed(HttpConnection& connection) override;
  Nanos OnTurn() override;
  bool MayShakeHands() override;
  void OnTurnOver(const std::shared_ptr<HttpConnection>& connection) override { OnOutput(connection); }
  void OnLongRequest(const std::shared_ptr<HttpConnection>& one) override { long_turns_.push_back(one); }

  // Immutable after construction.
  const GatewayOptions& options_;
  Owner& owner_;
  const std::shared_ptr<Poller> poller_;
  const std::string address_;
  const size_t most_connections_;

  const std::shared_ptr<Listener> listener_;
  std::unordered_set<std::shared_ptr<HttpConnection>> connections_;
  curtail::internal::SilentList<HttpConnection> silent_;
  Connections dirty_;
  std::deque<std::shared_ptr<HttpConnection>> long_turns_;  // these await one
  size_t turns_ = 0;                                        // in this round
  size_t turns_before_ = 1;                                 // in the last one
  int shaken_ = 0;                                          // handshakes that went on in this round
  bool paused_ = false;        // connections may have input that they did not read
  bool accept_later_ = false;  // there was no descriptor for a connection
  bool last_call_ = false;
  TimePoint next_look_;
  TimePoint full_since_ = TimePoint::max();  // the first look at which too much was held; never: not now

  // Atomic: bytes of unfinished requests, and of answers; counters, and the number of connections. Relaxed.
  std::atomic<size_t> held_bytes_{0};
  std::atomic<uint64_t> open_{0}, refused_{0}, timed_out_{0}, evicted_{0};
};

}  // namespace curtail::gateway::internal
