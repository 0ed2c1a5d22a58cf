// SPDX-License-Identifier: Apache-2.0
//
// gateway.h - a server of HTTP/1.1 and HTTP/2 in front of a gRPC server: browsers and curl may call
// its methods as JSON or as gRPC-Web.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "curtail/gateway/http_codec.h"
#include "curtail/gateway/static_files.h"
#include "curtail/load/message/catalog.h"
#include "curtail/rpc/channel.h"

namespace curtail::gateway {

// 256 MiB, and no more than half of what the process's control groups grant, as what is held takes
// more than its bytes. `root` as in base/memory.h.
size_t UsualHeldBytes(const std::string& root = "");

struct GatewayOptions {
  // Where to listen: "127.0.0.1:8080", port 0 for any, "unix:/path".
  std::string listen = "127.0.0.1:8080";
  // The keys for TLS; null: plain text. ALPN offers HTTP/2 and HTTP/1.1.
  std::shared_ptr<const ServerTls> tls;
  // The gRPC server, and how to connect to it.
  std::string target;
  ChannelOptions channel;
  // For calls whose client sends no grpc-timeout; longer ones are cut to it.
  Nanos timeout = std::chrono::seconds(30);
  // A call that ends with UNAVAILABLE is made again so often at most, if the catalog says that its
  // method is idempotent; retries.h. At most kMaxRetries.
  int retries = 0;
  // The same as `timeout` for methods that stream.
  Nanos stream_timeout = std::chrono::hours(1);
  // The headers of a request that its call carries as metadata; no others, credentials included.
  std::vector<std::string> forward_headers;
  // The names by which clients may ask, beside numeric addresses, "localhost", the machine's own name and
  // that in `listen`; "*" for all. Requests for others get 421: a web page may give its own name the
  // gateway's address. With TLS, or at a Unix socket, no page can, and all names are taken.
  std::vector<std::string> allowed_hosts;
  // The origins whose web pages may call: "https://app.example"; "*" for all. Pages of the gateway's
  // own origin always may.
  std::vector<std::string> allowed_origins;
  // Takes requests whose body is a form (application/x-www-form-urlencoded) by rules with body "*". A
  // page of any origin may send one, and browsers that name no origin then are not told apart.
  bool accept_forms = false;
  // The services whose methods are served, by their full names; empty: all of the catalog.
  std::vector<std::string> services;
  // Served beside the methods, each at its path.
  std::vector<StaticFile> files;

  // Limits. Beyond them connections are closed, requests are answered 503, or nothing is read.
  // docs/gateway.md has the table.
  HttpLimits http;
  size_t max_connections = 10'000;  // or as many as there are descriptors
  size_t max_requests = 10'000;     // in flight over all connections
  // Of these so many may stream: half of the calls that a connection to the target has at once, so
  // that others find room. Beyond it a client with fewer streams takes the place of one with more.
  size_t max_streams = 2048;
  // Calls that may begin a second, over all connections, and at once; more get 429 with Retry-After.
  // 0: no bound; max_burst 0: those of a second, at least one.
  double max_rate = 0;
  double max_burst = 0;
  // Over all connections, in two shares: half of it is for requests in flight.
  size_t max_held_bytes = UsualHeldBytes();
  // For a connection without a request, and for a reader that takes less than 64 KiB of what it is
  // owed.
  Nanos idle_timeout = std::chrono::seconds(60);
  Nanos request_timeout = std::chrono::seconds(10);  // from a request's first byte to its last
};

// Checks the names and addresses in `options`; connects to nothing. Errors: INVALID_ARGUMENT, which
// names the flag of curtail-gateway.
[[nodiscard]] absl::Status CheckOptions(const GatewayOptions& options);

struct GatewayStats {
  uint64_t connections = 0;  // open
  uint64_t requests = 0;     // taken
  uint64_t failed = 0;       // of these answered with a status of 500 and more, or in a stream with such
  uint64_t refused = 0;      // for a limit, a host or an origin; with answers that found no room
  uint64_t retried = 0;      // calls that were made again, each time
  uint64_t cancelled = 0;    // calls whose client left before the answer
  uint64_t timed_out = 0;    // connections and answers that were cut short for being slow or idle
  uint64_t evicted = 0;      // connections that were silent and made room for newcomers
  uint64_t held = 0;         // bytes of unfinished requests, and of answers, now
};

// A Gateway runs on a thread of its own. Thread-safe.
class Gateway {
 public:
  // Serves the methods of `catalog`, which the target has. A google.api.http rule that cannot be
  // mapped is left out, and named in the log.
  // Errors: those of CheckOptions() and Listen() (transport/socket.h); INVALID_ARGUMENT for a service
  // that is not in the catalog, or a file that is wrong or at a method's path.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Gateway>> Start(GatewayOptions options,
                                                                      Catalog catalog);
  // Stops at once, if Stop() was not called.
  ~Gateway();
  Gateway(const Gateway&) = delete;
  Gateway& operator=(const Gateway&) = delete;

  // The address that it listens at, with the real port.
  const std::string& address() const;
  size_t route_count() const;
  GatewayStats stats() const;
  // It serves as before, new connections too, and tells each client to come back on another one: by
  // "connection: close" with the next answer, or by GOAWAY. Give a balancer in front time to send
  // clients elsewhere before Stop(), and none fails. Does not block.
  void LastCall();
  // Takes no more requests and waits until those in flight are answered. Halfway to `deadline` streams
  // end with UNAVAILABLE. False if some were not answered by then: their connections are closed.
  bool Stop(Deadline deadline);

 private:
  class Impl;
  explicit Gateway(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace curtail::gateway
