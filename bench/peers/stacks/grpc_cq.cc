// SPDX-License-Identifier: Apache-2.0
//
// grpc_cq.cc - grpc++'s completion-queue API, as its performance guide advises: as many threads as CPUs, two
// a queue, and enough requests registered ahead that no arrival waits for a registration.
//
// In-line: the queue that brings requests also brings leaf replies; whichever thread took an event goes on
// with it. Dispatch (the arrangement of muTune's mid-tiers): network threads hand requests to workers, which
// begin the leaf calls on a queue of their own, and response threads take the replies.

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "bench/peers/stacks/grpc_common.h"

namespace curtail::bench {
namespace {

constexpr int kRegisteredAhead = 256;

int Cpus() { return static_cast<int>(std::max(1u, std::thread::hardware_concurrency())); }

// The tag that a completion queue returns: the object to call. Lives in the request it belongs to.
struct Event {
  void (*run)(void* owner, bool ok);
  void* owner;
};

// Takes events until the queue is shut down.
void RunQueue(grpc::CompletionQueue* queue) {
  void* tag = nullptr;
  bool ok = false;
  while (queue->Next(&tag, &ok)) {
    const auto* event = static_cast<Event*>(tag);
    event->run(event->owner, ok);
  }
}

void StartThreads(std::vector<std::thread>* threads, grpc::CompletionQueue* queue, int count) {
  for (int i = 0; i < count; ++i) threads->emplace_back(RunQueue, queue);
}

std::vector<std::unique_ptr<grpc::ServerCompletionQueue>> AddQueues(grpc::ServerBuilder& builder) {
  std::vector<std::unique_ptr<grpc::ServerCompletionQueue>> queues;
  for (int i = 0; i < (Cpus() + 1) / 2; ++i) queues.push_back(builder.AddCompletionQueue());
  return queues;
}

// Threads that run functions in the order they were added. Thread-safe.
class Workers {
 public:
  explicit Workers(int count) {
    for (int i = 0; i < count; ++i) std::thread([this] { Run(); }).detach();
  }
  void Add(Event* work) {
    {
      std::lock_guard lock(mu_);
      work_.push_back(work);
    }
    ready_.notify_one();
  }

 private:
  void Run() {
    while (true) {
      std::unique_lock lock(mu_);
      ready_.wait(lock, [this] { return !work_.empty(); });
      Event* work = work_.front();
      work_.pop_front();
      lock.unlock();
      work->run(work->owner, true);
    }
  }

  std::mutex mu_;
  std::condition_variable ready_;
  std::deque<Event*> work_;  // guarded by mu_
};

// One request at a leaf: waits to arrive, is answered, makes room for the next.
class LeafRequest {
 public:
  LeafRequest(peer::Leaf::AsyncService* service, grpc::ServerCompletionQueue* queue)
      : service_(service), queue_(queue), responder_(&context_) {
    service->RequestNull(&context_, &request_, &responder_, queue, queue, &arrived_);
  }

 private:
  void Arrived(bool ok) {
    if (!ok) return delete this;
    new LeafRequest(service_, queue_);
    responder_.Finish(request_, grpc::Status::OK, &sent_);
  }

  peer::Leaf::AsyncService* const service_;
  grpc::ServerCompletionQueue* const queue_;
  grpc::ServerContext context_;
  Blob request_;
  grpc::ServerAsyncResponseWriter<Blob> responder_;
  Event arrived_{[](void* self, bool ok) { static_cast<LeafRequest*>(self)->Arrived(ok); }, this};
  Event sent_{[](void* self, bool) { delete static_cast<LeafRequest*>(self); }, this};
};

// The state that all requests of a mid-tier share. `workers` and `replies` are null when requests are run in-line.
struct MidShared {
  peer::Mid::AsyncService service;
  std::vector<std::unique_ptr<LeafStub>> leaves;
  std::unique_ptr<Workers> workers;
  std::unique_ptr<grpc::CompletionQueue> replies;
};

// One request at the mid-tier.
class MidRequest {
 public:
  MidRequest(MidShared* shared, grpc::ServerCompletionQueue* queue)
      : shared_(shared),
        queue_(queue),
        responder_(&context_),
        calls_(shared->leaves.size()),
        missing_(calls_.size()) {
    shared->service.RequestQuery(&context_, &request_, &responder_, queue, queue, &arrived_);
  }

 private:
  struct Call {
    grpc::ClientContext context;
    Blob reply;
    grpc::Status status;
    std::unique_ptr<grpc::ClientAsyncResponseReader<Blob>> reader;
  };

  void Arrived(bool ok) {
    if (!ok) return delete this;
    new MidRequest(shared_, queue_);
    if (shared_->workers != nullptr) {
      shared_->workers->Add(&begin_);
    } else {
      Begin(queue_);
    }
  }

  void Begin(grpc::CompletionQueue* replies) {
    for (size_t i = 0; i < calls_.size(); ++i) {
      Call& call = calls_[i];
      call.reader = shared_->leaves[i]->AsyncNull(&call.context, request_, replies);
    }
    // Separate, because the last reply may delete this request before the loop ends.
    const size_t count = calls_.size();
    Call* const calls = calls_.data();
    Event* const replied = &replied_;
    for (size_t i = 0; i < count; ++i) calls[i].reader->Finish(&calls[i].reply, &calls[i].status, replied);
  }

  void Replied() {
    if (missing_.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
    grpc::Status status;
    for (const Call& call : calls_) Merge(call.status, &status);
    if (status.ok()) {
      responder_.Finish(calls_[0].reply, status, &sent_);
    } else {
      responder_.FinishWithError(status, &sent_);
    }
  }

  MidShared* const shared_;
  grpc::ServerCompletionQueue* const queue_;
  grpc::ServerContext context_;
  Blob request_;
  grpc::ServerAsyncResponseWriter<Blob> responder_;
  std::vector<Call> calls_;
  // Atomic: each reply's release pairs with the last one's acquire.
  std::atomic<size_t> missing_;
  Event arrived_{[](void* self, bool ok) { static_cast<MidRequest*>(self)->Arrived(ok); }, this};
  Event begin_{[](void* self, bool) {
                 auto* request = static_cast<MidRequest*>(self);
                 request->Begin(request->shared_->replies.get());
               },
               this};
  Event replied_{[](void* self, bool) { static_cast<MidRequest*>(self)->Replied(); }, this};
  Event sent_{[](void* self, bool) { delete static_cast<MidRequest*>(self); }, this};
};

void Join(std::vector<std::thread>& threads) {
  for (std::thread& thread : threads) thread.join();
}

class GrpcQueue final : public Stack {
 public:
  explicit GrpcQueue(bool dispatch) : dispatch_(dispatch) {}

  absl::Status RunLeaf(const Ready& ready) override {
    peer::Leaf::AsyncService service;
    grpc::ServerBuilder builder;
    builder.RegisterService(&service);
    const auto queues = AddQueues(builder);
    absl::StatusOr<std::unique_ptr<grpc::Server>> server = StartServer(builder, ready);
    if (!server.ok()) return server.status();
    std::vector<std::thread> threads;
    for (const auto& queue : queues) {
      for (int i = 0; i < kRegisteredAhead; ++i) new LeafRequest(&service, queue.get());
      StartThreads(&threads, queue.get(), 2);
    }
    Join(threads);
    return absl::OkStatus();
  }

  absl::Status RunMid(const std::vector<std::string>& leaves, const Ready& ready) override {
    MidShared shared;
    shared.leaves = ConnectLeaves(leaves);
    grpc::ServerBuilder builder;
    builder.RegisterService(&shared.service);
    const auto queues = AddQueues(builder);
    if (dispatch_) {
      shared.workers = std::make_unique<Workers>(Cpus());
      shared.replies = std::make_unique<grpc::CompletionQueue>();
    }
    absl::StatusOr<std::unique_ptr<grpc::Server>> server = StartServer(builder, ready);
    if (!server.ok()) return server.status();
    std::vector<std::thread> threads;
    for (const auto& queue : queues) {
      for (int i = 0; i < kRegisteredAhead; ++i) new MidRequest(&shared, queue.get());
      StartThreads(&threads, queue.get(), dispatch_ ? 1 : 2);
    }
    if (dispatch_) StartThreads(&threads, shared.replies.get(), (Cpus() + 1) / 2);
    Join(threads);
    return absl::OkStatus();
  }

 private:
  const bool dispatch_;
};

}  // namespace

std::unique_ptr<Stack> MakeGrpcQueue(bool dispatch) { return std::make_unique<GrpcQueue>(dispatch); }

}  // namespace curtail::bench
