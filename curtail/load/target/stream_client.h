// SPDX-License-Identifier: Apache-2.0
//
// stream_client.h - the LoadClient of gRPC methods that stream: see StreamOptions for what a request is.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "curtail/base/timer_heap.h"
#include "curtail/load/target/grpc_client.h"
#include "curtail/rpc/client/connection/client_connection.h"

namespace curtail::internal {

// All happens in Poll(), on the thread that calls it: messages leave, replies come, deadlines pass.
class StreamClient final : public GrpcClient {
 public:
  // REQUIRES: options.stream
  explicit StreamClient(const TargetOptions& options);
  ~StreamClient() override;

  void Start(size_t target, std::string_view method, Deadline deadline, const Metadata& metadata,
             std::string_view message, LoadCompletion* done) override;
  size_t Poll(Deadline deadline) override;
  bool Answered(size_t target) const override { return answered_[target] || GrpcClient::Answered(target); }

 private:
  class Stream;
  struct Failure {
    Completion* done;
    absl::Status status;
  };
  // Where messages of a target go: its streams, which are opened when they are needed.
  struct Slots {
    std::vector<Stream*> streams;
    size_t next = 0;
  };

  // Null, with `status`: there is no connection.
  Stream* Open(size_t target, std::string_view method, const Metadata& metadata, Deadline deadline,
               Stream** slot, absl::Status* status);
  Stream* Take();
  void Touch(const std::shared_ptr<ClientConnection>& connection);
  void KickTouched();
  Deadline GiveUpConnecting();
  void ExpireTimers();
  void Reap();
  void End(Completion* done, absl::Status status, std::string reply = {});

  // Immutable after construction.
  const StreamOptions options_;
  const wire::Encoding encoding_;

  std::vector<Slots> slots_;  // one a target; kBoth only
  std::deque<Stream> pool_;
  std::vector<Stream*> free_;
  std::vector<Stream*> over_;    // to be free once their connections have let go of them
  std::vector<Failure> failed_;  // to be told by the next Poll()
  std::vector<std::shared_ptr<ClientConnection>> touched_;  // with operations that no kick has followed
  std::vector<std::shared_ptr<ClientConnection>> connecting_;
  TimerHeap timers_;
  std::vector<bool> answered_;  // by target: a message has come
  size_t ended_ = 0;            // requests, in this Poll()
  bool dropping_ = false;       // it is being destroyed
};

}  // namespace curtail::internal
