// SPDX-License-Identifier: Apache-2.0
//
// context.h - the state that travels with a request besides its message: deadline, cancellation,
// metadata.
//
// A handler receives the Context of its request and passes it to the calls it makes. They end when
// the parent's deadline passes or its caller goes away. Of the caller's metadata, which may hold
// credentials, they carry only what the server was told to forward.
//
// Code: call/context.cc.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "curtail/base/clock.h"
#include "curtail/base/mutex.h"
#include "curtail/rpc/call_options.h"
#include "curtail/rpc/cancellable.h"
#include "curtail/rpc/fan_out.h"
#include "curtail/rpc/method.h"
#include "curtail/wire/encoding.h"
#include "curtail/wire/metadata.h"

namespace google::protobuf {
class MessageLite;
}

namespace curtail {

class Channel;
class ServerCall;
struct PeerCertificate;  // curtail/rpc/tls.h

namespace internal {

class ParsedCharge;
class ObservedCall;
class PeerIdentity;
class RefusalCounters;
class ServerFence;

// INTERNAL if the handler added to its answer what may not be sent; the message names it.
absl::Status CheckReplyMetadata(const Context& ctx);

}  // namespace internal

// A Context belongs to the thread that runs the request. Other threads may call Cancel() and
// cancelled() only.
//
// What it says of child calls (metadata, encoding, authority, limits) holds for all that begin
// later. A part says it of one call or one fan-out, at the price of its construction:
//
//   curtail::Context one(&ctx);
//   one.ShortenDeadline(curtail::Deadline::In(std::chrono::milliseconds(20)));
//   one.SetMaxReplyBytes(64 << 10);
//   absl::Status status = users.Find(one, request, &reply);
class Context {
 public:
  // A root context, for programs that call without being called. Calls end with DEADLINE_EXCEEDED
  // after `timeout`.
  explicit Context(Nanos timeout) : Context(Deadline::In(timeout)) {}
  explicit Context(Deadline deadline) : deadline_(deadline) {}
  // A part of the parent's request that runs beside it. It has the parent's deadline, metadata and
  // call options as they are now, and is cancelled with the parent. The parent outlives it. Only
  // the thread that runs the parent may make one.
  explicit Context(Context* parent);
  // A part that must not be left half done: it has `deadline` instead of the parent's, and goes on
  // when the parent is cancelled. The parent outlives it.
  Context(Context* parent, Deadline deadline);
  // The context of a call in the same process: a part as above, whose metadata() is what the call
  // carries.
  struct Call {};
  Context(Context* parent, Call);
  // The same, but no part: it may outlive `caller`, and hears of no cancellation.
  Context(Call, const Context& caller);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  Deadline deadline() const { return deadline_; }
  // Brings the deadline forward; a later one than the present has no effect.
  void ShortenDeadline(Deadline deadline) { deadline_ = std::min(deadline_, deadline); }

  // True if the caller no longer waits for the answer: it cancelled, or its connection is gone.
  // Long handlers test this now and then. Any thread.
  bool cancelled() const { return cancelled_.load(std::memory_order_acquire); }
  // Cancels this request and, at once, the calls it waits for. Any thread; never blocks.
  void Cancel();

  // The custom metadata that the caller sent; none in a root context. Child calls carry only those
  // keys that ServerOptions::forward_metadata names.
  const Metadata& metadata() const { return metadata_; }
  // For interceptors, which may change it before the handler runs.
  Metadata& mutable_metadata() { return metadata_; }
  // Facts about the caller that interceptors of the server have found ("jwt.subject"). No caller
  // can send them, and child calls do not carry them.
  const Metadata& properties() const { return properties_; }
  void AddProperty(std::string_view key, std::string_view value) { properties_.Add(key, value); }
  // Child calls carry this from now on, instead of a value that the caller sent for `key`. Keys are
  // put in lower case. A key of HTTP's or gRPC's own, or a value that is not printable ASCII for a
  // key that does not end in "-bin", ends each child call with an INVALID_ARGUMENT that names it.
  void AddMetadata(std::string_view key, std::string_view value) { added_.Add(key, value); }
  // Child calls compress their requests so from now on, whatever their channels say.
  void SetEncoding(wire::Encoding encoding) { options_.encoding = encoding; }
  std::optional<wire::Encoding> encoding() const { return options_.encoding; }
  // Child calls name this host (":authority") from now on; proxies choose by it. The connection and
  // its certificate stay the channel's.
  void SetAuthority(std::string_view authority) { options_.authority = authority; }
  // A child call whose serialized request is longer ends with RESOURCE_EXHAUSTED and is not sent.
  void SetMaxRequestBytes(size_t bytes) { options_.max_request_bytes = bytes; }
  // A child call whose reply is longer ends with RESOURCE_EXHAUSTED. The channel's limit holds,
  // too.
  void SetMaxReplyBytes(size_t bytes) { options_.max_reply_bytes = bytes; }
  // Child calls wait for a connection until their deadline, where they would fail with UNAVAILABLE
  // while their server cannot be reached.
  void SetWaitForReady(bool wait) { options_.wait_for_ready = wait; }
  const CallOptions& call_options() const { return options_; }
  // All metadata that a child call carries.
  Metadata ChildMetadata() const;
  // Sent to the caller ahead of the reply, as initial metadata, and after it, as trailing metadata.
  // The same rules: an entry that may not be sent turns the answer into an INTERNAL that names it.
  const Metadata& initial_metadata() const { return initial_; }
  void AddInitialMetadata(std::string_view key, std::string_view value) { initial_.Add(key, value); }
  const Metadata& trailing_metadata() const { return trailing_; }
  void AddTrailingMetadata(std::string_view key, std::string_view value) { trailing_.Add(key, value); }
  // How many contexts it is a part of.
  int depth() const { return depth_; }
  // The address of the caller ("127.0.0.1:51234"), empty for a root context.
  std::string_view peer() const { return peer_; }
  // The caller's certificate, which this server has verified: empty without mutual TLS, and in a
  // root context. Parsed when a handler of the connection first asks.
  const PeerCertificate& peer_certificate() const;

  // This request will call no other service any more: others of its path class may begin
  // (ServerOptions::fence). In a part, or without fences, it has no effect.
  void LeavePath() {
    if (permit_ != 0) ReturnPermit();
  }

  // The id of the end-to-end path that the caller sent as "curtail-path": which method of which
  // service it all began with (curtail/fence/path_id.h). Child calls carry it. 0: none, or the
  // server has no fences.
  uint32_t path() const { return path_; }

  // Tells observers of the calls that this request makes; null without such an observer. For the
  // runtime.
  const internal::ObservedCall* observed() const { return observed_; }
  // The number of the call within this process whose handler has this context; 0: of none. For the
  // runtime.
  uint32_t within() const { return within_; }
  void SetWithin(uint32_t ordinal) { within_ = ordinal; }
  // Hears of the same calls; null without fences. For the runtime.
  internal::ServerFence* fence() const { return fence_; }
  uint32_t method() const { return method_; }
  // Charges the memory of a request that is about to be parsed, until the next one of a stream or
  // the end of the call. RESOURCE_EXHAUSTED: the server has too little left. For the runtime.
  absl::Status ChargeParsed(std::string_view bytes, const google::protobuf::MessageLite& type) {
    if (charge_ == nullptr || (bytes.size() < kShortRequest && parsed_ == 0)) [[likely]]
      return absl::OkStatus();
    return ChargeLong(bytes, type);
  }
  // Counts the calls that this request does not make; null in a root context. For the runtime.
  internal::RefusalCounters* refusals() const { return refusals_; }
  // Adds the id to what a call carries. For the runtime. REQUIRES: path() is not 0.
  void AddPathTo(Metadata* carried) const;
  // Tells `part` of the cancellation, at once if it has happened, until Detach(). After Detach()
  // `part` hears of none. For the runtime. Any thread.
  void Attach(internal::Cancellable& part);
  void Detach(internal::Cancellable& part);

  // Calls `method` on every channel at once, requests[i] to channels[i]. Returns when each has
  // answered, failed, or run out of time; result i belongs to channel i. Waits as the threading
  // model in force waits. REQUIRES: as many requests as channels.
  // Errors: one status a call: DEADLINE_EXCEEDED, CANCELLED, UNAVAILABLE or the server's own.
  template <class Request, class Reply>
  Replies<Reply> FanOut(std::span<Channel* const> channels, const Method<Request, Reply>& method,
                        const std::vector<Request>& requests);
  // The same with one request for all.
  template <class Request, class Reply>
  Replies<Reply> Broadcast(std::span<Channel* const> channels, const Method<Request, Reply>& method,
                           const std::type_identity_t<Request>& request);

 private:
  friend class ServerCall;
  // Passes the parent's cancellation on.
  struct Link final : internal::Cancellable {
    explicit Link(Context* c) : child(c) {}
    void OnCancel() override { child->Cancel(); }
    Context* const child;
  };

  // Whatever shorter requests become is little, even if there are thousands.
  static constexpr size_t kShortRequest = 2u << 10;
  absl::Status ChargeLong(std::string_view bytes, const google::protobuf::MessageLite& type);
  void ReturnParsed();
  void ReturnPermit();
  // Makes it the context of another request. REQUIRES: nothing is attached.
  void Reset(Deadline deadline, std::string_view peer);

  // Owned by the thread that runs the request.
  Deadline deadline_;
  Metadata metadata_;
  Metadata added_;
  Metadata initial_;
  Metadata trailing_;
  Metadata properties_;
  CallOptions options_;
  // Of the server: the keys that child calls carry on; null: none.
  const std::vector<std::string>* forwarded_ = nullptr;
  internal::RefusalCounters* refusals_ = nullptr;     // of the server; null: of none
  std::string_view peer_;                             // the connection's
  const internal::PeerIdentity* identity_ = nullptr;  // likewise; null: without a certificate
  internal::ParsedCharge* charge_ = nullptr;          // of the connection; null: of none
  size_t parsed_ = 0;                                 // bytes charged to it
  Context* parent_ = nullptr;                         // whose cancellation is passed on; immutable
  const internal::ObservedCall* observed_ = nullptr;
  uint32_t within_ = 0;
  internal::ServerFence* fence_ = nullptr;  // of the server; null: off
  uint32_t method_ = 0;                     // the request's, for the fence
  uint32_t path_ = 0;                       // 0: none
  uint8_t permit_ = 0;                      // the request's permit: its path class; 0: none
  const int depth_ = 0;
  Link link_{this};

  // Atomic: set once by Cancel() (release), read by the request's thread (acquire).
  std::atomic<bool> cancelled_{false};
  Mutex mu_;
  internal::Cancellable* parts_ CURTAIL_GUARDED_BY(mu_) = nullptr;
};

template <class Request, class Reply>
Replies<Reply> Context::FanOut(std::span<Channel* const> channels, const Method<Request, Reply>& method,
                               const std::vector<Request>& requests) {
  internal::TypedBatch<Request, Reply> batch(channels, method.path, requests);
  if (!batch.wrong()) internal::CallAll(*this, batch.batch());
  return batch.Take();
}

template <class Request, class Reply>
Replies<Reply> Context::Broadcast(std::span<Channel* const> channels, const Method<Request, Reply>& method,
                                  const std::type_identity_t<Request>& request) {
  internal::TypedBatch<Request, Reply> batch(channels, method.path, request);
  internal::CallAll(*this, batch.batch());
  return batch.Take();
}

}  // namespace curtail
