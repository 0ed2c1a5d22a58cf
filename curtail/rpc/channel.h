// SPDX-License-Identifier: Apache-2.0
//
// channel.h - a named service as its callers see it, on one server or many, and the client runtime.
//
// Waiting threads move the bytes. In the synchronous models the thread that waits for a reply
// drives the connections (docs/design/lanes.md). Event-driven programs (the load generator) call
// Client::Poll() from a loop of their own. A Client starts a thread only when it is needed: one
// looks names up again, and one sends what threads outside of servers write to streams in bursts.
//
// Code: client/channel.cc, client/client.cc, client/event_driven.cc.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "curtail/rpc/context.h"
#include "curtail/rpc/resolver.h"
#include "curtail/rpc/tls.h"
#include "curtail/wire/encoding.h"
#include "curtail/wire/metadata.h"

namespace curtail {

class InProcess;
class Lane;
class Channel;
namespace internal {
class HeldMessages;
class StartedCall;
}  // namespace internal
class ClientInterceptor;  // curtail/rpc/interceptor.h

struct ClientOptions {
  // Independent sets of connections. Waiting threads share a lane's connections and take turns to
  // read them. One lane batches most; with a lane a thread no thread waits for another. Raise when
  // many threads contend on large messages.
  int lanes = 1;
  // The fan-out of muTune's ancestors, a baseline to measure against. A parked thread of the pool
  // makes each call of a fan-out, and the caller sleeps until the last has ended. Synchronous
  // models only; needs a lane a thread. Without spare threads (ServerOptions::max_threads) the
  // caller makes the calls itself.
  bool fork_join = false;
};

// A Client is the set of lanes over which its channels run. Thread-safe. Outlives its channels.
class Client {
 public:
  explicit Client(ClientOptions options = {});
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Event-driven use: moves bytes on lane 0 and runs completions, waiting at most until `deadline`
  // for the first event; an expired deadline polls. Returns the number of calls completed. A thread
  // that also makes blocking calls must not call it.
  size_t Poll(Deadline deadline);
  // Ends a Poll() in progress, or the next one. Any thread.
  void Wake();

  Lane& lane(size_t index);
  size_t lane_count() const;
  const ClientOptions& options() const;
  // Of streams that threads outside of servers write to.
  internal::HeldMessages& held_messages();

 private:
  friend class Channel;
  friend class internal::StartedCall;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

struct ChannelOptions {
  // The longest reply accepted.
  size_t max_message_bytes = 32u << 20;
  // The keys for TLS; null: plain text. Handshakes run on the thread that moves the bytes and take
  // some 20 KiB of its stack: mind small fiber stacks.
  std::shared_ptr<const ClientTls> tls;
  // The bytes of a stream that its server sends ahead of its reader. All calls of a connection have
  // 16 MiB together.
  uint32_t stream_window_bytes = 4u << 20;
  // The time of one attempt to connect, TLS handshake included.
  Nanos connect_timeout = std::chrono::seconds(5);
  // After a failed attempt calls fail at once with UNAVAILABLE until the next attempt is due. The
  // backoff is `initial`, times 1.6 each time, up to `max`, with 20 % jitter.
  Nanos initial_backoff = std::chrono::milliseconds(100);
  Nanos max_backoff = std::chrono::seconds(10);
  // Keepalive: a connection with calls that has heard nothing from its server for so long sends a
  // PING; zero: none. It is closed, and its calls end with UNAVAILABLE, if nothing comes within
  // `keepalive_timeout`. For paths that lose connections silently; mind servers that forbid it.
  Nanos keepalive_time{0};
  Nanos keepalive_timeout = std::chrono::seconds(20);
  // Compresses the requests of all calls of 128 bytes and more; the server answers in the same
  // encoding if it can. For slow networks: it takes more CPU than all the rest of a call.
  wire::Encoding encoding = wire::Encoding::kIdentity;
  // Connections to each server from each place that waits (a lane, a fiber thread, a response
  // pool), used in turn.
  int connections = 1;
  // Each call passes them (interceptor.h); they outlive the channel.
  std::vector<ClientInterceptor*> interceptors;
  // How calls spread over the servers, if there are several: "pick_first", "round_robin",
  // "least_request", "ring_hash" or "weighted_round_robin".
  std::string balancer = "pick_first";
  // ring_hash: the key of the metadata whose value decides. A call without it goes to any server.
  std::string hash_key;
  // gRPC's service config, in JSON: timeouts, retries, limits of size and the balancer, by method.
  // docs/channels.md lists the fields.
  std::string service_config;
  // Calls wait for a connection until their deadline instead of failing while there is none. The
  // service config may say otherwise of a method.
  bool wait_for_ready = false;
  // Calls wait for credits of servers that give them (AdmissionOptions), instead of being refused
  // there. One that gets none in half of its time ends with RESOURCE_EXHAUSTED. Other servers get
  // the calls as they come.
  bool credits = false;
  // The source of the servers' addresses, instead of the target, which then is their common name.
  std::shared_ptr<Resolver> resolver;
  // After a connection has failed the names are looked up again, but not more often than this.
  Nanos min_resolve_interval = std::chrono::seconds(30);
  // The kernel notes when replies arrive over TCP, and Completion::OnArrival() tells it.
  // It serves programs that measure latency.
  bool arrival_times = false;
};

// A Completion takes the result of an event-driven call. `reply` is the serialized message, empty
// unless `status` is OK. Its memory is reused if it is left there or swapped. The thread that
// drives the lane runs a Completion exactly once. It may start other calls, but not block.
class Completion {
 public:
  virtual ~Completion() = default;
  // The metadata that came with the reply, or with the error. Just before Done(), and only if there
  // is any.
  virtual void OnMetadata(ReplyMetadata&&) {}
  // The kernel had the last bytes of the reply then. Just before Done(), with
  // ChannelOptions::arrival_times; not of Unix sockets. Replies of one read share the last one's.
  virtual void OnArrival(TimePoint /*when*/) {}
  // An attempt that its server may have seen has failed, and a policy of the service config makes
  // another one. Once for each.
  virtual void OnRetry() {}
  virtual void Done(absl::Status&& status, std::string&& reply) = 0;
};

// A Channel is one named service: "127.0.0.1:8080", "[::1]:8080", "search.example:8080",
// "unix:/path", "dns:///search.example:8080" or "ipv4:10.0.0.1:8080,10.0.0.2:8080";
// docs/channels.md lists the forms. It connects on first use, and again with backoff after a lost
// connection. Thread-safe.
class Channel {
 public:
  // Never fails: with an unusable target or option every call ends with INVALID_ARGUMENT, which
  // names it. `client` outlives the channel.
  Channel(Client* client, std::string target, ChannelOptions options = {});
  // To a service of this process, which outlives the channel: see in_process.h. Of the options,
  // only the interceptors matter.
  Channel(Client* client, const InProcess* service, ChannelOptions options = {});
  // REQUIRES: no call is in flight.
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  const std::string& target() const;

  // One unary call; blocks until it is answered, fails, or ctx ends. `metadata`, unless it is null,
  // receives what came with the reply, or with the error.
  // Errors: the server's status, or UNAVAILABLE (not connected; the message has the reason),
  // DEADLINE_EXCEEDED, CANCELLED, RESOURCE_EXHAUSTED (reply too long), INTERNAL (reply not
  // parseable).
  [[nodiscard]] absl::Status Call(Context& ctx, std::string_view path,
                                  const google::protobuf::MessageLite& request,
                                  google::protobuf::MessageLite* reply, ReplyMetadata* metadata = nullptr);

  // Names an event-driven call until its Completion runs.
  using CallId = internal::StartedCall*;

  // Event-driven: begins a call on lane 0 and returns. Bytes move when the lane is polled, so calls
  // begun together share a write. `request` is the serialized message. `done` outlives the call.
  // Only the thread that polls the client may call it.
  CallId Start(std::string_view path, Deadline deadline, const Metadata& metadata, std::string_view request,
               Completion* done);
  // Ends such a call with CANCELLED, unless it ends before. Its Completion runs in a later
  // Client::Poll(). The same thread.
  void Cancel(CallId call);

  struct Impl;
  Impl& impl() const { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace curtail
