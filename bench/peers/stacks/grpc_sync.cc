// SPDX-License-Identifier: Apache-2.0
//
// grpc_sync.cc - grpc++'s synchronous server API. The mid-tier's handler blocks its thread; its leaf calls
// are begun together on a completion queue that only this handler waits on, since a sync stub could make but
// one at a time.

#include <mutex>

#include "bench/peers/stacks/grpc_common.h"

namespace curtail::bench {
namespace {

class LeafService final : public peer::Leaf::Service {
  grpc::Status Null(grpc::ServerContext*, const Blob* request, Blob* reply) override {
    *reply = *request;
    return grpc::Status::OK;
  }
};

// Completion queues for reuse: making one a request would cost more than the calls. Thread-safe.
class QueuePool {
 public:
  std::unique_ptr<grpc::CompletionQueue> Take() {
    std::lock_guard lock(mu_);
    if (free_.empty()) return std::make_unique<grpc::CompletionQueue>();
    std::unique_ptr<grpc::CompletionQueue> queue = std::move(free_.back());
    free_.pop_back();
    return queue;
  }
  void Return(std::unique_ptr<grpc::CompletionQueue> queue) {
    std::lock_guard lock(mu_);
    free_.push_back(std::move(queue));
  }

 private:
  std::mutex mu_;
  std::vector<std::unique_ptr<grpc::CompletionQueue>> free_;  // guarded by mu_
};

class MidService final : public peer::Mid::Service {
 public:
  explicit MidService(const std::vector<std::string>& leaves) : leaves_(ConnectLeaves(leaves)) {}

  grpc::Status Query(grpc::ServerContext*, const Blob* request, Blob* reply) override {
    struct Call {
      grpc::ClientContext context;
      Blob reply;
      grpc::Status status;
      std::unique_ptr<grpc::ClientAsyncResponseReader<Blob>> reader;
    };
    std::unique_ptr<grpc::CompletionQueue> queue = queues_.Take();
    std::vector<Call> calls(leaves_.size());
    for (size_t i = 0; i < calls.size(); ++i) {
      calls[i].reader = leaves_[i]->AsyncNull(&calls[i].context, *request, queue.get());
      calls[i].reader->Finish(&calls[i].reply, &calls[i].status, &calls[i]);
    }
    grpc::Status status;
    void* tag = nullptr;
    bool ok = false;
    for (size_t i = 0; i < calls.size() && queue->Next(&tag, &ok); ++i) {
      Merge(static_cast<Call*>(tag)->status, &status);
    }
    queues_.Return(std::move(queue));
    *reply = std::move(calls[0].reply);
    return status;
  }

 private:
  const std::vector<std::unique_ptr<LeafStub>> leaves_;
  QueuePool queues_;
};

class GrpcSync final : public Stack {
 public:
  absl::Status RunLeaf(const Ready& ready) override {
    LeafService service;
    grpc::ServerBuilder builder;
    builder.RegisterService(&service);
    return ServeForever(builder, ready);
  }
  absl::Status RunMid(const std::vector<std::string>& leaves, const Ready& ready) override {
    MidService service(leaves);
    grpc::ServerBuilder builder;
    builder.RegisterService(&service);
    return ServeForever(builder, ready);
  }
};

}  // namespace

std::unique_ptr<Stack> MakeGrpcSync() { return std::make_unique<GrpcSync>(); }

}  // namespace curtail::bench
