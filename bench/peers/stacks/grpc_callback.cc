// SPDX-License-Identifier: Apache-2.0
//
// grpc_callback.cc - grpc++'s callback API, which its performance guide favours: nothing blocks, the last
// leaf's callback finishes the caller's reactor.

#include <array>
#include <atomic>

#include "bench/peers/stacks/grpc_common.h"

namespace curtail::bench {
namespace {

class LeafService final : public peer::Leaf::CallbackService {
  grpc::ServerUnaryReactor* Null(grpc::CallbackServerContext* context, const Blob* request,
                                 Blob* reply) override {
    *reply = *request;
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
};

// One request of the mid-tier; deletes itself with the last reply.
class FanOut {
 public:
  FanOut(grpc::ServerUnaryReactor* reactor, Blob* reply, size_t leaves)
      : reactor_(reactor), reply_(reply), calls_(leaves), missing_(leaves) {}

  void Start(const std::vector<std::unique_ptr<LeafStub>>& leaves, const Blob& request) {
    for (size_t i = 0; i < leaves.size(); ++i) {
      Call& call = calls_[i];
      leaves[i]->async()->Null(&call.context, &request, &call.reply, [this, &call](grpc::Status status) {
        call.status = std::move(status);
        if (missing_.fetch_sub(1, std::memory_order_acq_rel) == 1) Finish();
      });
    }
  }

 private:
  struct Call {
    grpc::ClientContext context;
    Blob reply;
    grpc::Status status;
  };

  void Finish() {
    grpc::Status status;
    for (const Call& call : calls_) Merge(call.status, &status);
    *reply_ = std::move(calls_[0].reply);
    reactor_->Finish(status);
    delete this;
  }

  grpc::ServerUnaryReactor* const reactor_;
  Blob* const reply_;
  std::vector<Call> calls_;
  // Atomic: each callback's release pairs with the last one's acquire.
  std::atomic<size_t> missing_;
};

class MidService final : public peer::Mid::CallbackService {
 public:
  explicit MidService(const std::vector<std::string>& leaves) : leaves_(ConnectLeaves(leaves)) {}

  grpc::ServerUnaryReactor* Query(grpc::CallbackServerContext* context, const Blob* request,
                                  Blob* reply) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    (new FanOut(reactor, reply, leaves_.size()))->Start(leaves_, *request);
    return reactor;
  }

 private:
  const std::vector<std::unique_ptr<LeafStub>> leaves_;
};

class GrpcCallback final : public Stack {
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

std::unique_ptr<Stack> MakeGrpcCallback() { return std::make_unique<GrpcCallback>(); }

}  // namespace curtail::bench
