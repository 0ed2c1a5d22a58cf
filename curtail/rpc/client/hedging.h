// SPDX-License-Identifier: Apache-2.0
//
// hedging.h - several attempts at once at one call, of which the first that is answered counts.
//
// The rules are gRPC's: https://github.com/grpc/proposal/blob/master/A6-client-retries.md
// The protocol is at the top of hedging.cc.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "curtail/base/mutex.h"
#include "curtail/rpc/channel.h"
#include "curtail/rpc/client/attempts.h"
#include "curtail/rpc/client/connection/client_call.h"

namespace curtail::internal {

// An Attempt is one attempt at a call. A call without a hedging policy has one at a time.
struct Attempt : ClientCall {
  std::shared_ptr<ClientConnection> connection;
  // Atomic: the thread that sets it posts the cancellation.
  std::atomic<bool> cancelled{false};
  TimePoint answered;  // for observers; zero without

 protected:
  ~Attempt() = default;
};

// A HedgedCall sends further attempts at a call beside the first, which is the call's own object. In the end the first
// has the outcome of the attempt that counts. One object serves several rounds, one after the other. Thread-safe, but
// for Begin().
class HedgedCall {
 public:
  // All of these outlive it. REQUIRES: the method has a hedging policy.
  HedgedCall(Attempt& first, Attempts& attempts, Channel::Impl& channel);
  virtual ~HedgedCall();
  HedgedCall(const HedgedCall&) = delete;
  HedgedCall& operator=(const HedgedCall&) = delete;

  // A round begins: the first attempt is about to be sent. The others go out on connections of `poller`. Each has the
  // time that remains until `deadline`.
  void Begin(std::shared_ptr<Poller> poller, Deadline deadline, TimePoint now);
  // The first attempt was sent: others may be.
  void Sent();
  // Sends the attempts that are due. Returns when the next one will be.
  Deadline SendDue();
  // Sends no more, and cancels those that are open.
  void Cancel() { Stop(nullptr); }

  // For the first attempt: it has ended, or its cancellation was handled.
  void Ended(Attempt& attempt);
  void CancelHandled() { Release(); }

 protected:
  // The owner's part; called without the mutex.
  // Writes the request of one more attempt. False: there will be none.
  virtual bool WriteRequest(std::string* bytes) = 0;
  // Makes `connection` act on what was posted.
  virtual void Kick(const std::shared_ptr<ClientConnection>& connection) = 0;
  // The next attempt is due at `next`. An owner that calls SendDue() on its own needs no plan.
  virtual void Plan(Deadline /*next*/) {}
  // All attempts of the round have ended, `hedges` beside the first. The object may be gone when this returns.
  virtual void Over(int hedges) = 0;

 private:
  struct Extra;

  // Takes an attempt that is due; false: none is, and `*next` is when to look again.
  bool TakeDue(TimePoint now, Deadline* next);
  // Sends one that was taken, if there is a connection.
  void Send(TimePoint now);
  // A connection for an attempt, to a server that has none if possible; null: there is none.
  std::shared_ptr<ClientConnection> Connect(const Metadata& metadata, TimePoint now);
  // Sends no more, and cancels those that are open, but for `winner`.
  void Stop(const Attempt* winner);
  // Gives up one of waits_; the last ends the round.
  void Release();
  // Gives the first attempt the outcome of the one that counts.
  void Settle() CURTAIL_REQUIRES(mu_);

  // Immutable after construction.
  Attempt& first_;
  Attempts& attempts_;
  Channel::Impl& channel_;
  const HedgingPolicy& policy_;

  // Of the round; immutable after Begin().
  std::shared_ptr<Poller> poller_;
  Deadline deadline_ = Deadline::Infinite();

  Mutex mu_;
  bool sending_ CURTAIL_GUARDED_BY(mu_) = false;  // the first attempt was sent
  bool over_ CURTAIL_GUARDED_BY(mu_) = true;      // no more attempts: one decided, or the call was cancelled
  bool stop_ CURTAIL_GUARDED_BY(mu_) = false;     // a server wants no more
  int left_ CURTAIL_GUARDED_BY(mu_) = 0;          // attempts that may still be made
  int waits_ CURTAIL_GUARDED_BY(mu_) = 0;         // attempts, cancellations and threads that have not ended
  TimePoint next_ CURTAIL_GUARDED_BY(mu_);        // when another is due, if there are some left
  std::vector<std::unique_ptr<Extra>> sent_ CURTAIL_GUARDED_BY(mu_);  // beside the first
  Attempt* winner_ CURTAIL_GUARDED_BY(mu_) = nullptr;                 // decides the call
  Attempt* last_ CURTAIL_GUARDED_BY(mu_) = nullptr;                   // ... if there is no winner
};

}  // namespace curtail::internal
