// SPDX-License-Identifier: Apache-2.0
//
// connection.h - a socket, a wire::Session over it, and the strand by which threads take turns at both.
//
// Either role. Operations (begin a call, send a reply) are posted by any thread and carried out by the
// strand's holder, which then writes all frames that are ready with one send. See docs/design/connection.md.
// With a TlsStream, what is read and sent goes through that.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "curtail/exec/internal/recycler.h"
#include "curtail/exec/poller.h"
#include "curtail/rpc/transport/socket.h"
#include "curtail/rpc/transport/strand.h"
#include "curtail/rpc/transport/tls_stream.h"
#include "curtail/wire/session.h"

namespace curtail::internal {

// An Op is something to be done on a connection; it lies in the object that wants it done and is not copied.
// It stays alive until the connection's HandleOp() has been called with it, which always happens.
class Op {
 protected:
  ~Op() = default;

 private:
  friend class Connection;
  Op* next_ = nullptr;
};

// A Connection is one transport with a gRPC session on it. Post(), Kick() and OnEvents() are for any thread;
// the protected part is for the strand's holder.
class Connection : public PollHandler,
                   protected wire::Events,
                   public std::enable_shared_from_this<Connection> {
 public:
  // The work that a kick asks for.
  enum Bits : uint32_t {
    kPosted = 1,    // operations were posted
    kRead = 2,      // there may be input
    kHangup = 4,    // ... and its end
    kWrite = 8,     // the socket takes output again
    kNotice = 16,   // warn the peer that the end is near
    kDrain = 32,    // take no new streams, close after the last one
    kAbort = 64,    // close now
    kGiveUp = 128,  // close now, unless the transport stands
    kClock = 256,   // a time that the owner has set has come
    kShed = 512,    // end what waits for the peer: the process holds too much
    kEvict = 1024,  // close, if there is no call: another connection needs the place
  };

  // `tls` is null for plain text. Without it the transport stands once the socket is connected, with it once the
  // handshake is over.
  Connection(wire::Role role, const wire::SessionOptions& options, UniqueFd fd,
             std::shared_ptr<Poller> poller, bool connected, std::unique_ptr<TlsStream> tls);
  ~Connection() override;

  // Registers with the poller. Call once, before any other use.
  absl::Status Register();

  // Has the kernel note when bytes arrive. Does nothing to a Unix socket. Before Register().
  void NoteArrivals() { notes_arrivals_ = StampArrivals(fd_.get()); }

  // Queues `op` without acting on it: follow with Kick(kPosted), now or after more posts.
  void Post(Op* op);
  // Acts on what was posted and on `bits`, unless another thread is doing so: then that one takes it along.
  // Requests that become ready go to `ready` (clients pass null). Never blocks.
  void Kick(uint32_t bits, TaskList* ready);

  void OnEvents(uint32_t events, TaskList* ready) override;

  // When the messages of a stream last left at the wish of their writer. Any thread; a hint.
  TimePoint messages_left() const { return TimePoint(Nanos(messages_left_.load(std::memory_order_relaxed))); }
  void NoteMessagesLeft(TimePoint now) {
    messages_left_.store(now.time_since_epoch().count(), std::memory_order_relaxed);
  }

  // Server: whether its requests are refused for now, as it holds too much. Any thread.
  bool overloaded() const { return overloaded_.load(std::memory_order_relaxed); }
  // Server: whether a call has come since the last few looks. One thread at a time looks.
  bool TakeActive() {
    const uint8_t looks = active_.load(std::memory_order_relaxed);
    if (looks > 0) active_.store(looks - 1, std::memory_order_relaxed);
    return looks > 0;
  }

 protected:
  // An operation's turn has come; the transport may be gone (closed()).
  virtual void HandleOp(Op* op) = 0;
  // kNotice or kDrain was asked for.
  virtual void HandleGoodbye(uint32_t bits) = 0;
  // The transport stands now. Not called for one that stood from the start.
  virtual void OnConnected() {}
  // The transport is gone; streams still open have their OnCallEnd next. `connected` says whether it ever
  // stood.
  virtual void OnClosed(const absl::Status& why, bool connected) = 0;
  // True if peers at this target have answered before, so that its language is not in doubt.
  virtual bool PeerIsKnown() const { return false; }

  // kClock was asked for; of a server also kShed or kEvict.
  virtual void HandleClock(uint32_t /*bits*/) {}
  // Server: the end of a turn, and of each full read within one.
  virtual void Looked() {}

  // Closes at once. REQUIRES: not closed, and not within an event of the session.
  void Close(const absl::Status& why);
  // Server: whether to leave the peer's bytes where they are. The end of a pause reads what has come.
  void Pause(bool pause);
  bool paused() const { return paused_; }
  // Server: has a session that is stalled go on. It may close.
  void GoOn();
  void NoteActive() { active_.store(kLooks, std::memory_order_relaxed); }
  void SetOverloaded(bool overloaded) { overloaded_.store(overloaded, std::memory_order_relaxed); }
  // True if the socket takes no output for now, and the bytes that it took, and gave, so far.
  bool blocked() const { return blocked_; }
  uint64_t written() const { return written_; }
  uint64_t received() const { return received_; }
  // Bytes that go to the socket next.
  size_t outgoing() const { return out_ == nullptr ? 0 : out_->output.size - out_->sent; }

  // A new reference; null without TLS, or without a verified certificate.
  x509_st* PeerX509() const { return tls_ == nullptr ? nullptr : tls_->PeerX509(); }
  wire::Session& session() { return session_; }
  bool closed() const { return closed_; }
  bool standing() const { return connected_ && (tls_ == nullptr || tls_->standing()); }
  TaskList* ready() { return ready_; }
  // When the kernel had what was read last; zero without NoteArrivals(), or if it does not say.
  TimePoint arrived() const { return arrived_; }
  // The time, read once for all that came with one read.
  TimePoint now() final {
    if (now_ == TimePoint()) now_ = Now();
    return now_;
  }

 private:
  // Bytes that go to the socket, of which the first `sent` are gone.
  struct OutputBuffer {
    bool Recycle();
    // Writes what is left; returns what the system call does.
    ssize_t Send(int fd) const;
    wire::Output output;
    size_t sent = 0;
  };
  using Lease = Recycler<OutputBuffer>::Lease;
  static constexpr uint8_t kLooks = 3;
  enum Special : uint8_t {
    kSealed = 1,   // TLS
    kOpening = 2,  // a client's first bytes, which say what kind of server that is
  };

  inline void Turn(uint32_t bits);
  // Does the work that is rarely asked for. False: it has closed.
  bool TurnForRest(uint32_t bits);
  // Closes after an exception.
  void Break();
  void RunPosted();
  bool FinishConnect();
  void ReadAll(bool hangup);
  // One read, of a turn's `first` or later ones: long messages into their own memory, the rest into `buffer`. Sets `*n`
  // to what the system call returns, and `*emptied` if the socket has no more. Returns what the session says of the bytes.
  struct InputBuffer;
  inline absl::Status ReadSome(InputBuffer& buffer, bool first, ssize_t* n, bool* emptied);
  // False: WriteAll() would do nothing.
  bool MayWrite() const { return tls_ != nullptr || outgoing() > 0 || session_.HasOutput(); }
  void WriteAll();
  // Sends what the session has ready, where it is. False: WriteAll() has more to do, or is to find out what went wrong.
  bool WriteReady();
  absl::Status ReceiveSpecial(std::string_view bytes);
  bool PullSealed(wire::Output* output);
  void Fail(const absl::Status& status);
  absl::Status Ended(std::string_view how) const;
  void Lost(std::string_view how) { Close(Ended(how)); }
  void SayGoodbye();

  // Immutable after construction.
  const std::shared_ptr<Poller> poller_;
  const std::unique_ptr<TlsStream> tls_;  // the object is the holder's; null: plain text

  // Thread-safe by itself.
  Strand strand_;
  // Atomic: a stack of posted operations. Post() pushes (release), the holder takes all (acquire).
  std::atomic<Op*> inbox_{nullptr};
  // Atomic, relaxed: a hint that the holder gives.
  std::atomic<bool> overloaded_{false};
  std::atomic<uint8_t> active_{0};
  std::atomic<int64_t> messages_left_{0};

  // Owned by the strand's holder.
  wire::Session session_;
  UniqueFd fd_;
  bool connected_;  // the socket is
  bool closed_ = false;
  const bool client_;
  bool spoke_ = false;   // with TLS: the peer has, within it
  uint8_t special_;      // kSealed, kOpening: why input is more than bytes for the session; 0 mostly
  bool blocked_;         // the socket takes no output for now
  bool paused_ = false;  // input stays in the socket
  bool notes_arrivals_ = false;
  bool long_ = false;  // the peer has last sent a long message: the next may be one, too
  bool dear_ = false;  // what it has last sent took long to take in: a server reads it a little at a time
  uint64_t written_ = 0;
  uint64_t received_ = 0;
  TimePoint now_;        // zero: not read
  TimePoint arrived_;    // zero: not known
  Lease out_;            // bytes on their way out, if there are any
  Lease plain_;          // with TLS: frames that it has not taken yet
  std::string opening_;  // the first bytes a client has got
  absl::Status broken_;  // why the peer's bytes cannot be understood
  // Of itself, from Close() until the end of its turn: the poller's reference was the last that is sure.
  std::shared_ptr<Connection> closing_;
  TaskList* ready_ = nullptr;
};

}  // namespace curtail::internal
