// SPDX-License-Identifier: Apache-2.0
//
// target_options.h - where the requests of a run go, and how they travel there.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "curtail/rpc/channel.h"

namespace curtail {

// How requests travel to targets that are URLs.
struct HttpOptions {
  std::string verb = "GET";
  // HTTP/2, without TLS with prior knowledge; otherwise HTTP/1.1 with connections that are kept
  // alive, each with one request at a time.
  bool http2 = false;
};

// How requests travel to a gRPC method that streams, and what a request is there.
struct StreamOptions {
  enum class Kind {
    // Messages both ways: a message, until the next one comes back. Each stream answers in order.
    kBoth,
    // Messages of the client: a stream of them, until its reply.
    kRequests,
    // Messages of the server: one message, until the end of the stream.
    kReplies,
  };
  Kind kind = Kind::kBoth;
  // kBoth: streams to each target, which stay open and take requests in turn. kRequests: messages
  // of a stream, all alike.
  int count = 1;
};
// "a request is a message and its answer, on 4 streams in turn"
std::string Describe(const StreamOptions& options);

// The part of RunOptions (runner.h) that a client of one protocol needs.
struct TargetOptions {
  // "host:port" or "unix:/path" each; with `http` a URL each. Requests go to them in turn.
  std::vector<std::string> targets;
  // If set, requests speak HTTP: an answer with a status of 2xx is OK, another one has failed.
  // Requests are the workload's messages as bodies; metadata become header fields, ":path" the
  // path in place of the URL's.
  std::optional<HttpOptions> http;
  // If set, the workload's method streams.
  std::optional<StreamOptions> stream;
  // Connections to each target, TLS, the longest reply, the service config.
  ChannelOptions channel;
};

}  // namespace curtail
