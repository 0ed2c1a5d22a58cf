// SPDX-License-Identifier: Apache-2.0
#include "bench/peers/stacks/grpc_common.h"

#include "absl/strings/str_cat.h"

namespace curtail::bench {

std::vector<std::unique_ptr<LeafStub>> ConnectLeaves(const std::vector<std::string>& leaves) {
  std::vector<std::unique_ptr<LeafStub>> stubs;
  for (const std::string& leaf : leaves) {
    stubs.push_back(peer::Leaf::NewStub(grpc::CreateChannel(leaf, grpc::InsecureChannelCredentials())));
  }
  return stubs;
}

absl::StatusOr<std::unique_ptr<grpc::Server>> StartServer(grpc::ServerBuilder& builder, const Ready& ready) {
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || port == 0) return absl::UnavailableError("grpc++ cannot listen on 127.0.0.1");
  ready(absl::StrCat("127.0.0.1:", port));
  return server;
}

absl::Status ServeForever(grpc::ServerBuilder& builder, const Ready& ready) {
  absl::StatusOr<std::unique_ptr<grpc::Server>> server = StartServer(builder, ready);
  if (!server.ok()) return server.status();
  (*server)->Wait();
  return absl::OkStatus();
}

}  // namespace curtail::bench
