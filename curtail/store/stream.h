// SPDX-License-Identifier: Apache-2.0
//
// stream.h - one connection to a store, on which a handler waits as its threading model waits.
//
// On a fiber the wait is the fiber's: the socket is registered with the poller of the fiber's
// thread, which runs other requests meanwhile. Elsewhere the thread sleeps in poll(2). Every wait
// ends at its deadline.
//
// Under asynchronous models a thread that waits holds up the pool. So coroutines call a store by
// `co_await Aside(...)` (curtail/exec/aside.h). Continuation handlers have no such way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "curtail/exec/poller.h"
#include "curtail/store/address.h"
#include "curtail/store/tls.h"

namespace curtail {

namespace internal {
struct TargetConnections;  // curtail/base/internal/connection_counts.h
}

// A Stream is for one request at a time. One with a poller is for fibers of that poller's thread.
// Errors of Send() and Receive(): DEADLINE_EXCEEDED; UNAVAILABLE if the store closed the connection
// or it broke. The stream is of no more use after an error, but for TryReceive().
class Stream {
 public:
  // Connects to one of the addresses, tried in their order. `store` names the store in messages.
  // `poller` null: for threads. REQUIRES: there is an address. Errors: UNAVAILABLE with the reason
  // of the last address, DEADLINE_EXCEEDED; FAILED_PRECONDITION over TLS, if its certificate is not
  // taken.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Stream>> Open(const StoreAddress& address,
                                                                    std::string_view store,
                                                                    std::shared_ptr<Poller> poller,
                                                                    Deadline deadline);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Sends the parts in as few system calls as go; at most kMaxParts. Forgets what was received.
  [[nodiscard]] absl::Status Send(std::initializer_list<std::string_view> parts, Deadline deadline);
  static constexpr size_t kMaxParts = 8;
  // Waits for bytes and appends them to received(), which has room for `wanted` bytes in all.
  [[nodiscard]] absl::Status Receive(size_t wanted, Deadline deadline);
  // The bytes since the last Send(). The view holds until the next call.
  std::string_view received() const { return {buffer_.get(), filled_}; }

  // The state of a stream on which no request waits.
  enum class State { kQuiet, kSpoke, kClosed };
  // Appends to received() the bytes that are there. If it has more than 64 KiB, it forgets them
  // before, and leaves the rest for another call after. Never blocks; on any thread.
  State TryReceive();

 private:
  struct Events;
  Stream(int fd, std::string peer, std::shared_ptr<Poller> poller, internal::TargetConnections* counts);

  absl::Status Connect(const Address& to, Deadline deadline);
  absl::Status Secure(const StoreAddress& address, Deadline deadline);
  absl::Status SendSecured(std::initializer_list<std::string_view> parts, Deadline deadline);
  // Waits for the event that TLS asks for. Errors: as Send() and Open().
  absl::Status AwaitStep(TlsChannel::Step step, uint32_t ticket, Deadline deadline);
  // Reads once; more than 0: bytes, 0: closed, -1: none now or an error (errno).
  ssize_t ReadSome();
  void Reserve(size_t bytes);
  // For Wait(): to be taken before looking at the socket.
  uint32_t Ticket() const;
  // Waits for POLL* `events`, or less; false at the deadline.
  bool Wait(short events, uint32_t ticket, Deadline deadline);
  // The error of a store that does not answer in time, or is gone; noted.
  absl::Status Late() const;
  absl::Status Closed(std::string_view reason) const;

  // Immutable after construction.
  const int fd_;
  const std::string peer_;
  const std::shared_ptr<Poller> poller_;
  const std::shared_ptr<Events> events_;
  internal::TargetConnections& counts_;  // thread-safe by itself

  // Owned by the request that uses it.
  std::unique_ptr<TlsChannel> tls_;  // null: plain text
  std::unique_ptr<char[]> buffer_;
  size_t capacity_ = 0;
  size_t filled_ = 0;
  uint32_t ticket_ = 0;  // taken before the last look at the socket
  bool stands_ = false;
  bool empty_ = true;  // the last look found no bytes, or none is expected yet
};

}  // namespace curtail
