// SPDX-License-Identifier: Apache-2.0
//
// server_core.h - what all connections and calls of a server share: methods, counters, the executor, held
// output.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "curtail/exec/executor.h"
#include "curtail/exec/parker.h"
#include "curtail/rpc/client/response_receiver.h"
#include "curtail/rpc/server.h"
#include "curtail/rpc/server/adaptation.h"
#include "curtail/rpc/transport/connection.h"

namespace curtail {
class ServerCall;
}

namespace curtail::internal {

class ServerConnection;

// A ServerCore is the Receiver and Outbox of the server's executor. Thread-safe.
class ServerCore final : public Receiver, public Outbox {
 public:
  explicit ServerCore(ServerOptions options);
  ~ServerCore() override;

  // Before Run(): errors INVALID_ARGUMENT for a method named twice, and what Listen() reports. Services of one
  // name make one if each adds a kind of handler that was missing: a straight-line service first, then the
  // coroutine or continuation service for asynchronous models.
  absl::Status AddService(std::unique_ptr<Service> service);
  absl::Status Bind();
  // Starts the executor and begins to accept.
  absl::Status Run();

  // About the price of a send on a loopback socket, with the wake-up at the other end. Output that is held back so that
  // more can share its write may wait this long for each connection it goes to: longer costs more than it saves.
  static constexpr Nanos kPriceOfSend = std::chrono::microseconds(10);

  // A method served, and how long its handler took when last looked at.
  struct Method {
    // Immutable once Run() was called.
    MethodHandler handler;
    std::string_view path;  // "/package.Service/Method"
    void Took(Nanos time) {
      const Nanos before = took();
      if (time > before + before / 4 || time < before - before / 4) {
        took_.store(time.count(), std::memory_order_relaxed);
      }
    }
    Nanos took() const { return Nanos(took_.load(std::memory_order_relaxed)); }

   private:
    // Atomic, relaxed: a hint, in ns; roughly, so that it is seldom written. At first it counts as slow.
    std::atomic<int64_t> took_{1'000'000'000};
  };
  Method* FindMethod(std::string_view path);
  // Executor::SwitchTo(), for configs under which every method can run, unless a policy chooses them.
  absl::Status SwitchTo(const Config& config);
  const ServerOptions& options() const { return options_; }
  const std::vector<std::string>& addresses() const { return addresses_; }
  const std::vector<std::unique_ptr<Service>>& services() const { return services_; }
  const std::shared_ptr<Poller>& shared_poller() const { return poller_; }

  // A new connection has been accepted.
  void Accepted(UniqueFd fd);
  void Closed(ServerConnection* connection);

  // Counts a request accepted and not yet begun; false when there are too many already, in number or in
  // bytes.
  bool TryQueue(size_t bytes);
  void Dequeued(size_t bytes) {
    queued_.fetch_sub(1, std::memory_order_relaxed);
    queued_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  }
  // Calls whose stream is open.
  void CallOpened() { open_calls_.fetch_add(1, std::memory_order_relaxed); }
  void CallClosed() { open_calls_.fetch_sub(1, std::memory_order_relaxed); }

  // `connection` has output: sends it now, or lets it share a write with what this thread runs next.
  void Output(std::shared_ptr<ServerConnection> connection);
  // A handler of `method` is about to run: nothing is held back for one that may take long.
  void BeforeHandler(const Method& method, const WaitHint& hint);
  // Kicks a connection from a thread that is not handling events, and queues what became ready by it.
  void Kick(Connection& connection, uint32_t bits);

  Executor& executor() { return *executor_; }
  // What is to be told of requests; null when nobody wants to know.
  Adaptation* adaptation() const { return told_; }
  ServerStats Sample(bool process);

  // See Server::Drain().
  absl::Status Drain(Deadline deadline);

  // Receiver.
  Poller& poller() override { return *poller_; }
  void Await(Deadline deadline, SpinBudget* spin, std::vector<Poller::Ready>* events) override;
  void Handle(const std::vector<Poller::Ready>& events, TaskList* ready) override;
  void Wake() override { poller_->Wake(); }

  // Outbox.
  void Hold(uint32_t thread_index, std::shared_ptr<PollHandler> handler) override;
  void FlushIfDue(uint32_t thread_index) override;
  void Flush(uint32_t thread_index) override;

 private:
  class Listener;
  // What one pool thread holds back; owned by that thread.
  struct alignas(64) Held {
    std::vector<std::shared_ptr<PollHandler>> handlers;
    TimePoint since;    // when the first of them came
    uint64_t list = 0;  // their PollHandler::held_in
  };
  struct PathHash {
    using is_transparent = void;
    size_t operator()(std::string_view path) const { return std::hash<std::string_view>{}(path); }
  };

  // INVALID_ARGUMENT when a method cannot run under it.
  absl::Status CheckModel(const Config& config) const;
  std::vector<std::shared_ptr<ServerConnection>> Connections();
  bool WaitForConnections(Deadline deadline);

  // Immutable once Run() was called.
  const ServerOptions options_;
  std::vector<std::unique_ptr<Service>> services_;
  std::unordered_map<std::string, Method, PathHash, std::equal_to<>> methods_;
  std::vector<std::string> addresses_;
  std::vector<std::shared_ptr<Listener>> listeners_;
  std::vector<Held> held_;
  wire::SessionOptions session_options_;

  // Thread-safe by itself.
  const std::shared_ptr<Poller> poller_ = std::make_shared<Poller>();
  ResponseReceiver response_;
  std::unique_ptr<Adaptation> adaptation_;  // before the executor, whose threads use it; set by Run()
  Adaptation* told_ = nullptr;
  Parker drained_;  // notified when the last connection has gone
  std::unique_ptr<Executor> executor_;

  // Atomic counters; they order nothing.
  std::atomic<size_t> queued_{0};
  std::atomic<size_t> queued_bytes_{0};
  std::atomic<size_t> open_calls_{0};

  Mutex mu_;
  std::unordered_map<ServerConnection*, std::shared_ptr<ServerConnection>> connections_
      CURTAIL_GUARDED_BY(mu_);
  bool draining_ CURTAIL_GUARDED_BY(mu_) = false;
};

class ServerConnection final : public Connection {
 public:
  ServerConnection(ServerCore* core, const wire::SessionOptions& options, UniqueFd fd,
                   std::unique_ptr<TlsStream> tls, std::string peer);

  ServerCore& core() const { return *core_; }
  const std::string& peer() const { return peer_; }
  // A request has come, and the caller holds the strand. Tells who wants to know.
  Arrival Arrived() {
    Adaptation* const adaptation = core_->adaptation();
    return adaptation == nullptr ? Arrival() : adaptation->OnArrival(now());
  }

 private:
  using Metadata = wire::Metadata;
  void HandleOp(Op* op) override;
  void HandleGoodbye(uint32_t bits) override;
  void OnClosed(const absl::Status& why, bool connected) override;
  void* OnRequest(wire::StreamId id, wire::RequestHead&& head) override;
  void OnMessage(wire::StreamId id, void* tag, std::string&& message) override;
  void OnRequestEnd(wire::StreamId id, void* tag) override;
  void OnCallEnd(wire::StreamId id, void* tag, absl::Status&& status, Metadata&& trailing) override;
  void Queue(ServerCall& call);

  // Immutable after construction.
  ServerCore* const core_;
  const std::string peer_;
};

}  // namespace curtail::internal
