// SPDX-License-Identifier: Apache-2.0
//
// server.h - a gRPC server whose threading model is a string.
//
// Code: host/server.cc; server/server_core.cc has what runs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "curtail/exec/config.h"
#include "curtail/exec/priority.h"
#include "curtail/exec/queue_options.h"
#include "curtail/fence/credit_pool.h"
#include "curtail/fence/fence.h"
#include "curtail/rpc/call_observer.h"
#include "curtail/rpc/server_stats.h"
#include "curtail/rpc/service.h"
#include "curtail/rpc/tls.h"
#include "curtail/rpc/trace_options.h"

namespace curtail {

struct PolicyKind;        // curtail/adapt/policy_kind.h
class ServerInterceptor;  // curtail/rpc/interceptor.h

struct ServerOptions {
  // "127.0.0.1:8080", "[::]:8080" or "unix:/path". Port 0 takes a free one; addresses() has its
  // number.
  std::vector<std::string> listen = {"127.0.0.1:0"};
  // The keys for TLS on all addresses; null: plain text. Handshakes run on the threads that
  // receive. An unfinished handshake counts among max_connections.
  std::shared_ptr<const ServerTls> tls;
  // The threading model and its pool sizes, at the start; SwitchTo() changes them. "auto" suits
  // handlers that are not known; for a service of continuation handlers alone it is AIB1-1.
  Config config = Config::Auto();
  // The policy that chooses the config from then on: "mutune", "online", or another of
  // LibraryPolicies(). Empty or "static:CONFIG": only SwitchTo() does. A policy chooses among
  // the configs of the profile under which all methods can run and that fit in max_threads. It
  // chooses polling ones only on more than one CPU. A policy that needs a profile and has none
  // leaves the config as it is, and PolicyStats::note says so. docs/design/adaptation.md compares
  // the policies.
  std::string policy;
  // The program's own policies, which `policy` may name like the library's.
  // docs/design/adaptation.md shows one.
  std::vector<const PolicyKind*> policies;
  // The file of the profile that training wrote for one of the services on this machine. Not
  // every policy needs one. With fences, path classes begin with the limits in it, unless
  // FenceOptions::limits has others.
  std::string profile;
  // Accepts a profile that was trained on another machine. Its loads and latencies are that
  // machine's.
  bool any_machine = false;
  // The p99 that a policy must not endanger by trying other configs.
  Nanos slo = std::chrono::milliseconds(10);
  // The share by which a policy may leave the p99 higher to save CPU, above all polling's;
  // zero: latency alone counts.
  double cpu_weight = 0.1;
  // Threads started, of which a config uses some and the rest sleep; never fewer than `config`
  // needs. Raise to switch to larger pools later.
  int max_threads = 64;
  // Fiber models: the size of a fiber's stack, and the requests that a thread may have begun and
  // not ended; more wait in the queue. Only touched pages of a stack cost memory.
  size_t fiber_stack_bytes = 256u << 10;
  size_t max_fibers = 1024;
  // The address of the admin interface ("127.0.0.1:9090", "unix:/path"), for `curtail switch`;
  // empty: none. Over TCP a client may look, and changes the config only with `admin_token`. Over a
  // Unix socket whoever may open that may change it. It speaks plain text only.
  std::string admin;
  // The secret of clients that may change the config over TCP: "authorization: Bearer TOKEN" in
  // their metadata. Empty: over TCP no client may.
  std::string admin_token;
  // The address of the HTTP admin port; empty: none. Metrics for Prometheus, health, status and
  // config (docs/observe.md). "127.0.0.1:9464", "unix:/path", or a port alone, which is on
  // 127.0.0.1. POST changes the config over a Unix socket or with `admin_token`. Each request then
  // takes some instructions more, and the port is one of the observers.
  std::string http_admin;
  // Spans of calls, and the collector that gets them (docs/observe.md). Off by default. With traces
  // on, child calls carry the trace with spans of their own; the tracer is one of the observers.
  TraceOptions trace;
  // The longest request accepted; longer ones end with RESOURCE_EXHAUSTED.
  size_t max_message_bytes = 32u << 20;
  // Connections held at once; further ones are closed on arrival. Each costs a file descriptor and
  // some 20 KiB. Start() raises the process's soft limit of descriptors to the hard one.
  int max_connections = 16384;
  // Requests accepted and not yet begun; beyond it a request is answered RESOURCE_EXHAUSTED.
  size_t max_queue = 16384;
  // ... and their bytes; one request always fits. Raise for services with large messages.
  size_t max_queue_bytes = 256u << 20;
  // Bytes held for all clients together: requests, parts of messages, replies not taken.
  // Beyond it, connections that hold more than 256 KiB are no longer read or have calls ended with
  // RESOURCE_EXHAUSTED, connections that hold most first.
  size_t max_held_bytes = 448u << 20;
  // The time from connecting to the end of TLS's and HTTP/2's handshake, and from the start of a
  // header block, or of a frame that belongs to no call, to its end.
  Nanos handshake_timeout = std::chrono::seconds(10);
  // A connection without calls for so long is told goodbye.
  Nanos idle_timeout = std::chrono::hours(1);
  // A connection of this age, give or take 10 %, is told goodbye, so that its client looks for
  // servers again; zero: at no age.
  Nanos max_connection_age{0};
  // The time for the calls in flight on such a connection, which then is closed; zero: as long as
  // they take.
  Nanos max_connection_age_grace{0};
  // A client that takes no byte for so long, while there are some for it, is cut off.
  Nanos write_timeout = std::chrono::seconds(60);
  // The timeout of a request without a deadline of its own, so that every wait is bounded.
  Nanos default_timeout = std::chrono::seconds(60);
  // Keys of the caller's metadata that the calls of its handler carry on: by default the trace
  // context (W3C and B3), which `trace` replaces. All others stay here, credentials first of all; a
  // handler that wants to pass one on says so with Context::AddMetadata(). Lower case.
  std::vector<std::string> forward_metadata = {"traceparent",  "tracestate",  "b3",
                                               "x-b3-traceid", "x-b3-spanid", "x-b3-parentspanid",
                                               "x-b3-sampled", "x-b3-flags"};
  // Keeps a service that stalls from taking the threads of requests that do not call it. Off: all
  // requests wait in one queue. docs/design/fences.md says when to use it.
  FenceOptions fence;
  // A queue of waiting requests may shed, or serve the newest first, while it stands. With fences
  // each class has its own. docs/design/overload.md says when to use it.
  QueueOptions queue;
  // Under overload, refuses the least important requests first, by the "curtail-priority" that they
  // bring. Calls of the handlers carry it on. docs/design/overload.md says when to use it.
  PriorityOptions priorities;
  // Credits: clients of this library hold back what the server cannot begin soon, and others are
  // refused. docs/design/overload.md says when to use it.
  AdmissionOptions admission;
  // Observers of each call, which outlive the server: four at most, with the policy, the HTTP admin
  // port and the tracer.
  std::vector<CallObserver*> observers;
  // Each call passes them before its handler (interceptor.h). They outlive the server.
  std::vector<ServerInterceptor*> interceptors;
  // Serve grpc.health.v1.Health and server reflection (v1 and v1alpha). Reflection is a stream
  // (stream.h); each version has 16 at once.
  bool health = true;
  bool reflection = true;
};

// A Server accepts connections and runs the handlers of its services. Thread-safe after Start().
class Server {
 public:
  // Binds, starts all threads, serves. Process-wide, it raises the limit of open files to the hard
  // limit, and has glibc's malloc keep up to 64 MiB of freed memory. A straight-line service may be
  // followed by a coroutine or continuation service of the same name, for the asynchronous models.
  // Errors: INVALID_ARGUMENT (address, config, a method named twice, policy, a profile that cannot
  // be read or is of another service or machine), ALREADY_EXISTS (port or socket in use),
  // PERMISSION_DENIED.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Server>> Start(
      ServerOptions options, std::vector<std::unique_ptr<Service>> services);
  // Drains with a second's grace if Drain() was not called before.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // The addresses bound, with real port numbers, in the order of ServerOptions::listen.
  const std::vector<std::string>& addresses() const;
  // The address of the admin interface, empty without one.
  std::string admin_address() const;
  // The address of the HTTP admin port, empty without one.
  std::string http_admin_address() const;

  // The config in force.
  Config config() const;
  // Puts another config in force at once. Requests that run finish as they began, later ones follow
  // the new config, and no request is lost, doubled or delayed. Any thread; does not wait for
  // requests.
  // Errors: INVALID_ARGUMENT for a model under which a method of the server cannot run, or pools
  // that exceed ServerOptions::max_threads; FAILED_PRECONDITION when a policy chooses the config.
  absl::Status SwitchTo(const Config& config);

  // Reads the keys and certificates again: see ServerTls::Reload().
  // FAILED_PRECONDITION without TLS.
  absl::Status ReloadTls();

  // The present activity. Takes some microseconds; `process` adds the process's threads and some
  // microseconds a thread.
  ServerStats Sample(bool process = false);

  // Stops accepting, tells clients (GOAWAY), lets requests in flight finish until `deadline`, then
  // cancels the rest and stops all threads. Blocks; call once, from a thread that runs no handler.
  // Returns OK, or:
  // - DEADLINE_EXCEEDED with the number of requests that were cut off;
  // - ABORTED if a handler ignores its cancellation until `deadline`, and for a second at least.
  //   Its thread runs on, and destroying the server would wait for it.
  absl::Status Drain(Deadline deadline);

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace curtail
