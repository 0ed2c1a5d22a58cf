// SPDX-License-Identifier: Apache-2.0
//
// stream_ends.h - the two ends that a stream may have under the model scheduler: a server's and a client's. Each is as
// thin as the sources allow that have them, so that the rules of releasing them are the real ones.
#pragma once

#include <atomic>
#include <cstddef>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "curtail/rpc/call/lane.h"
#include "curtail/rpc/stream/stream_pipe.h"
#include "tests/model/stream_world.h"

namespace curtail::model {

// The end of a server, as server/stream_call.cc has it: its handler, the session and each posted turn refer to it.
class ServerPipe final : public internal::StreamPipe, private Link::User {
 public:
  // Lies in memory of its own, which is overwritten at its end.
  static void* operator new(size_t bytes);
  static void operator delete(void* memory, size_t bytes);

  explicit ServerPipe(World& world);
  void Ref() { refs_.fetch_add(1); }
  void Unref();
  // The handler has returned.
  void End();
  using StreamEnd::CanSuspend;
  using StreamEnd::StopSuspending;
  using StreamEnd::Suspend;

 private:
  struct Turn final : Link::Work {
    explicit Turn(ServerPipe* p) : pipe(p) {}
    void Do(wire::Session& session) override {
      pipe->Carry(session, kStream, /*posted=*/true);
      pipe->Unref();
    }
    ServerPipe* const pipe;
  };

  Outlet outlet() override { return {*world_.link, world_.held}; }
  void PostTurn() override {
    Ref();
    world_.link->Post(&turn_);
  }
  void SendEnd(wire::Session& session, wire::StreamId id) override { session.EndCall(id, {}); }
  void Come(std::string&& message, wire::Session& session) override {
    OnMessage(std::move(message), session, kStream);
  }
  void PeerEnded() override { OnPeerEnd(); }
  void Room(wire::Session& session) override { Carry(session, kStream, /*posted=*/false); }
  void Over(absl::Status status) override;

  World& world_;
  Turn turn_{this};
  std::atomic<int> refs_{2};
};

// The end of a client, as client/client_stream.cc has it: its destructor waits until nothing refers to it.
class ClientPipe final : public internal::StreamPipe, private Link::User, private internal::Cancellable {
 public:
  ClientPipe(World& world, Lane* lane);
  ~ClientPipe();
  void Cancel();

 private:
  struct Turn final : Link::Work {
    explicit Turn(ClientPipe* p) : pipe(p) {}
    void Do(wire::Session& session) override { pipe->Carry(session, kStream, /*posted=*/true); }
    ClientPipe* const pipe;
  };
  struct Cancelling final : Link::Work {
    explicit Cancelling(ClientPipe* p) : pipe(p) {}
    void Do(wire::Session& session) override {
      session.Cancel(kStream);
      pipe->CancelHandled();
    }
    ClientPipe* const pipe;
  };

  bool Try(internal::StreamStep& step) override CURTAIL_REQUIRES(mu_);
  void WaitFor(Waiter& waiter, Deadline deadline) override;
  void CancelHandled();
  Outlet outlet() override { return {*world_.link, world_.held}; }
  void PostTurn() override { world_.link->Post(&turn_); }
  void SendEnd(wire::Session& session, wire::StreamId id) override { session.EndRequest(id); }
  void Come(std::string&& message, wire::Session& session) override {
    OnMessage(std::move(message), session, kStream);
  }
  void PeerEnded() override {}
  void Room(wire::Session& session) override { Carry(session, kStream, /*posted=*/false); }
  void Over(absl::Status status) override;
  void OnCancel() override { Cancel(); }

  World& world_;
  Turn turn_{this};
  Cancelling cancel_{this};
  bool ended_ CURTAIL_GUARDED_BY(mu_) = false;
  bool cancelling_ CURTAIL_GUARDED_BY(mu_) = false;
  bool cancel_handled_ CURTAIL_GUARDED_BY(mu_) = false;
};

}  // namespace curtail::model
