// SPDX-License-Identifier: Apache-2.0
//
// grpc_client.h - the LoadClient of gRPC's unary calls: a channel to each target.
#pragma once

#include "curtail/load/target/load_client.h"

namespace curtail::internal {

class GrpcClient : public LoadClient {
 public:
  explicit GrpcClient(const TargetOptions& options);
  ~GrpcClient() override;

  absl::Status Resolve() override;
  void Start(size_t target, std::string_view method, Deadline deadline, const Metadata& metadata,
             std::string_view message, LoadCompletion* done) override;
  size_t Poll(Deadline deadline) override;
  bool Answered(size_t target) const override;

 protected:
  Client& client() { return *client_; }
  Channel& channel(size_t target) { return *channels_[target]; }

 private:
  std::unique_ptr<Client> client_;
  std::vector<std::unique_ptr<Channel>> channels_;  // one a target; they go before their client
  size_t in_flight_ = 0;
};

}  // namespace curtail::internal
