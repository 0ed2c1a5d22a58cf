// SPDX-License-Identifier: Apache-2.0
//
// context.h - what travels with a request besides its message: deadline, cancellation, metadata.
//
// A handler receives the Context of its request and passes it to the calls it makes, which inherit all of it:
// they end when the parent's deadline passes or its caller goes away, and carry the parent's custom metadata
// on.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "curtail/base/mutex.h"
#include "curtail/exec/wait.h"
#include "curtail/rpc/method.h"
#include "curtail/wire/metadata.h"

namespace google::protobuf {
class MessageLite;
}

namespace curtail {

class Channel;
class Fanout;
class ServerCall;
using wire::Metadata;

// A Context belongs to the thread that runs the request; only Cancel() and cancelled() may be called from
// others.
class Context {
 public:
  // A root context, for programs that call without being called. Calls end with DEADLINE_EXCEEDED after
  // `timeout`.
  explicit Context(Nanos timeout) : Context(Deadline::In(timeout)) {}
  explicit Context(Deadline deadline);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  Deadline deadline() const { return deadline_; }
  // Brings the deadline forward; a later one than the present has no effect.
  void ShortenDeadline(Deadline deadline) { deadline_ = std::min(deadline_, deadline); }

  // Whether nobody waits for the answer any more: the caller cancelled, or its connection is gone. Long
  // handlers ask this now and then. Any thread.
  bool cancelled() const { return cancelled_.load(std::memory_order_acquire); }
  // Cancels this request and, at once, the calls it waits for. Any thread; never blocks.
  void Cancel();

  // Custom metadata of the request. Child calls carry it too.
  const Metadata& metadata() const { return metadata_; }
  void AddMetadata(std::string_view key, std::string_view value) { metadata_.Add(key, value); }
  // Sent to the caller after the reply, as trailing metadata.
  const Metadata& trailing_metadata() const { return trailing_; }
  void AddTrailingMetadata(std::string_view key, std::string_view value) { trailing_.Add(key, value); }
  // The address of the caller ("127.0.0.1:51234"), empty for a root context.
  std::string_view peer() const { return peer_; }

  // Calls `method` on every channel at once, requests[i] to channels[i], and returns when each has answered,
  // failed, or run out of time; result i belongs to channel i. REQUIRES: as many requests as channels. Waits
  // as the threading model in force waits. Errors: one status a call; DEADLINE_EXCEEDED, CANCELLED,
  // UNAVAILABLE or the server's own.
  template <class Request, class Reply>
  std::vector<absl::StatusOr<Reply>> FanOut(std::span<Channel* const> channels,
                                            const Method<Request, Reply>& method,
                                            const std::vector<Request>& requests);

 private:
  friend class Fanout;
  friend class ServerCall;

  // Owned by the thread that runs the request.
  Deadline deadline_;
  Metadata metadata_;
  Metadata trailing_;
  std::string peer_;
  WaitHint wait_hint_;

  // Atomic: set once by Cancel() (release), read by the request's thread (acquire).
  std::atomic<bool> cancelled_{false};
  Mutex mu_;
  // The fan-out this request waits in, if any.
  Fanout* waiting_ CURTAIL_GUARDED_BY(mu_) = nullptr;
};

namespace internal {
// The untyped fan-out behind Context::FanOut and generated stubs: one call a channel, all at once.
void CallAll(Context& ctx, std::span<Channel* const> channels, std::string_view path,
             std::span<const google::protobuf::MessageLite* const> requests,
             std::span<google::protobuf::MessageLite* const> replies, std::span<absl::Status> statuses);
}  // namespace internal

template <class Request, class Reply>
std::vector<absl::StatusOr<Reply>> Context::FanOut(std::span<Channel* const> channels,
                                                   const Method<Request, Reply>& method,
                                                   const std::vector<Request>& requests) {
  const size_t n = channels.size();
  if (requests.size() != n) {
    return std::vector<absl::StatusOr<Reply>>(
        n, absl::InvalidArgumentError("a fan-out needs a request a channel"));
  }
  std::vector<Reply> replies(n);
  std::vector<absl::Status> statuses(n);
  std::vector<const google::protobuf::MessageLite*> in(n);
  std::vector<google::protobuf::MessageLite*> out(n);
  for (size_t i = 0; i < n; ++i) in[i] = &requests[i], out[i] = &replies[i];
  internal::CallAll(*this, channels, method.path, in, out, statuses);
  std::vector<absl::StatusOr<Reply>> results;
  results.reserve(n);
  for (size_t i = 0; i < n; ++i) {
    if (statuses[i].ok()) {
      results.emplace_back(std::move(replies[i]));
    } else {
      results.emplace_back(std::move(statuses[i]));
    }
  }
  return results;
}

}  // namespace curtail
