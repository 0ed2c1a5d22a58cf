// SPDX-License-Identifier: Apache-2.0
//
// grpc_common.h - what the grpc++ stacks share: servers on a free port, a channel a leaf, the status of a
// fan-out.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <vector>

#include "bench/peers/stack.h"
#include "fanout.grpc.pb.h"

namespace curtail::bench {

using LeafStub = peer::Leaf::Stub;

// A channel, and so a connection, to each leaf.
std::vector<std::unique_ptr<LeafStub>> ConnectLeaves(const std::vector<std::string>& leaves);

// Builds and starts; calls `ready`. The caller keeps the server and then waits.
absl::StatusOr<std::unique_ptr<grpc::Server>> StartServer(grpc::ServerBuilder& builder, const Ready& ready);

// Serves until the process is ended.
absl::Status ServeForever(grpc::ServerBuilder& builder, const Ready& ready);

// The first call of a fan-out that failed decides.
inline void Merge(const grpc::Status& one, grpc::Status* all) {
  if (!one.ok() && all->ok()) *all = one;
}

}  // namespace curtail::bench
