// SPDX-License-Identifier: Apache-2.0
//
// stack.h - one way to build the two servers of the fan-out: raw sockets, curtail, grpc++, Thrift, Cap'n Proto; or a program of
// its own, in another language.
//
// A Stack runs in a process of its own, as mid-tier or as leaf; `peers --role` starts it. Every stack answers a
// request with as many bytes as it got, and its mid-tier has all leaf calls under way before it waits for the first.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "curtail/base/clock.h"

namespace curtail::bench {

// How the load generator speaks to a mid-tier.
enum class Protocol {
  kRawConnections,     // one request at a time on each of many connections
  kRawPipelined,       // many requests on one connection
  kThriftConnections,  // framed binary protocol, one request at a time on each of many connections
  kCapnp,              // Cap'n Proto RPC, many requests on one connection
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
  std::string program;  // the executable of its servers; empty: this one
  std::string missing;  // why it cannot run, "not built: no cargo"; empty: it can
  bool polls = false;   // its mid-tier spins while it waits
  // How long its servers run under load before the first cell. Raise it where a runtime compiles code as it runs.
  Nanos warm_up = std::chrono::milliseconds(300);
};

// The stack of that name; INVALID_ARGUMENT lists the names there are. "curtail-" is followed by a config, and
// that by "+mutune" or another policy, if one is to watch the mid-tier: with a made-up profile by which that
// config is always the best, so that the same config runs and the policy's work is what is added. The leaves
// of curtail stacks run `leaf_config` ("SIB1").
absl::StatusOr<std::unique_ptr<Stack>> MakeStack(absl::string_view name, const std::string& leaf_config);
// Also of stacks that were not built.
absl::StatusOr<StackInfo> DescribeStack(absl::string_view name);
// The stacks measured when none is asked for, built or not.
std::vector<std::string> DefaultStacks();

std::unique_ptr<Stack> MakeRawThreads();
std::unique_ptr<Stack> MakeRawEpoll();
// `policy` is that of the mid-tier; empty: none.
absl::StatusOr<std::unique_ptr<Stack>> MakeCurtail(const std::string& config, const std::string& policy,
                                                   const std::string& leaf_config);
std::unique_ptr<Stack> MakeGrpcSync();
std::unique_ptr<Stack> MakeGrpcCallback();
// `dispatch`: received requests go to a pool of workers; otherwise the thread that received one begins its
// leaf calls.
std::unique_ptr<Stack> MakeGrpcQueue(bool dispatch);
std::unique_ptr<Stack> MakeThriftAsync();
std::unique_ptr<Stack> MakeThriftFiber();
std::unique_ptr<Stack> MakeCapnp();

}  // namespace curtail::bench
