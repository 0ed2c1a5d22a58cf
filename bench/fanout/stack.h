// SPDX-License-Identifier: Apache-2.0
//
// stack.h - one way to build the two servers of the fan-out: raw sockets, curtail, or one of grpc++'s APIs.
//
// A Stack runs in a process of its own, as mid-tier or as leaf; `fanout --role` starts it. Every stack
// answers a request with as many bytes as it got, and its mid-tier has all leaf calls under way before it
// waits for the first.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace curtail::bench {

inline constexpr size_t kPayloadBytes = 64;

// How the load generator speaks to a mid-tier.
enum class Protocol {
  kRawConnections,  // one request at a time on each of many connections
  kRawPipelined,    // many requests on one connection
  kGrpc,
};

// Called once with "127.0.0.1:port" when the server accepts connections.
using Ready = std::function<void(const std::string& address)>;

// A Stack serves until its process is ended; both functions return only when they cannot serve. Errors: why
// not.
class Stack {
 public:
  virtual ~Stack() = default;
  virtual absl::Status RunLeaf(const Ready& ready) = 0;
  virtual absl::Status RunMid(const std::vector<std::string>& leaves, const Ready& ready) = 0;
};

struct StackInfo {
  std::string name;  // "raw-epoll", "curtail-SIP1", "grpc-callback"
  Protocol protocol;
};

// The stack of that name; INVALID_ARGUMENT lists the names there are. "curtail-" is followed by a config. The
// leaves of curtail stacks run `leaf_config` ("SIB1").
absl::StatusOr<std::unique_ptr<Stack>> MakeStack(absl::string_view name, const std::string& leaf_config);
absl::StatusOr<StackInfo> DescribeStack(absl::string_view name);
// What is measured when nothing is asked for.
std::vector<std::string> DefaultStacks();

std::unique_ptr<Stack> MakeRawThreads();
std::unique_ptr<Stack> MakeRawEpoll();
absl::StatusOr<std::unique_ptr<Stack>> MakeCurtail(const std::string& config, const std::string& leaf_config);
std::unique_ptr<Stack> MakeGrpcSync();
std::unique_ptr<Stack> MakeGrpcCallback();
// `dispatch`: received requests go to a pool of workers; otherwise the thread that received one begins its
// leaf calls.
std::unique_ptr<Stack> MakeGrpcQueue(bool dispatch);

}  // namespace curtail::bench
