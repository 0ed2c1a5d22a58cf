// SPDX-License-Identifier: Apache-2.0
//
// server_connection.h - the server's end of a connection: makes calls of its streams.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "curtail/exec/poller.h"
#include "curtail/rpc/server/server_parts.h"
#include "curtail/rpc/transport/connection.h"

namespace curtail {
class ServerCall;
}

namespace curtail::internal {

// A ServerConnection hands each request that has come whole to the executor, and sends the replies.
class ServerConnection final : public Connection {
 public:
  // `peer` is the client's address.
  ServerConnection(ServerParts& parts, UniqueFd fd, std::shared_ptr<Poller> poller,
                   std::unique_ptr<TlsStream> tls, std::string peer);

 private:
  using Metadata = wire::Metadata;
  void HandleOp(Op* op) override;
  void HandleGoodbye(uint32_t bits) override;
  void OnClosed(const absl::Status& why, bool connected) override;
  void* OnRequest(wire::StreamId id, wire::RequestHead&& head) override;
  void OnMessage(wire::StreamId id, void* tag, std::string&& message) override;
  void OnRequestEnd(wire::StreamId id, void* tag) override;
  void OnCallEnd(wire::StreamId id, void* tag, absl::Status&& status, Metadata&& trailing) override;
  void OnLimit(wire::Limit limit) override { parts_.limits.Reached(limit, peer_); }
  void Queue(ServerCall& call);
  // The time, if there are observers to be told that a request has come.
  TimePoint ArrivedAt() { return parts_.observers.empty() ? TimePoint() : now(); }

  // Immutable after construction.
  ServerParts& parts_;
  const std::string peer_;
};

}  // namespace curtail::internal
