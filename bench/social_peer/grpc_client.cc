// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. A call of a handler is a call within the process, to a service that passes it on. grpc++ gets the caller's
// messages themselves. A handler that suspends goes on in the callback, on a thread of grpc++. Deadline, metadata and
// cancellation are those of the caller's context.
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message_lite.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/client_unary_call.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/support/client_callback.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "bench/social_peer/stacks.h"
#include "curtail/base/strings.h"
#include "curtail/exec/wait.h"
#include "curtail/rpc/cancellable.h"

namespace curtail::bench {
namespace {

using google::protobuf::MessageLite;

// Of a call whose caller has no deadline.
constexpr Nanos kLongest = std::chrono::seconds(30);

// One call, which is cancelled with its caller's context.
class Call final : internal::Cancellable {
 public:
  explicit Call(Context& ctx) : ctx_(ctx) {
    const Deadline deadline = std::min(ctx.deadline(), Deadline::In(kLongest));
    context_.set_deadline(std::chrono::system_clock::now() + deadline.Remaining());
    for (const auto& [key, value] : ctx.metadata())
      context_.AddMetadata(std::string(key), std::string(value));
    ctx_.Attach(*this);
  }
  ~Call() { ctx_.Detach(*this); }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  grpc::ClientContext* context() { return &context_; }

 private:
  void OnCancel() override { context_.TryCancel(); }

  Context& ctx_;  // lives until the call has ended
  grpc::ClientContext context_;
};

absl::Status StatusOf(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

// One instance of a service elsewhere.
class GrpcRemote final : public Service {
 public:
  GrpcRemote(const google::protobuf::ServiceDescriptor& service, const std::string& address)
      : name_(service.full_name()),
        channel_(grpc::CreateChannel(address, grpc::InsecureChannelCredentials())) {
    for (int i = 0; i < service.method_count(); ++i) {
      methods_.emplace_back(service.method(i)->name(), name_, channel_);
    }
  }

  std::string_view FullName() const override { return name_; }

  std::vector<MethodHandler> Handlers() override {
    std::vector<MethodHandler> handlers;
    for (const Method& method : methods_) {
      MethodHandler& handler = handlers.emplace_back();
      handler.name = method.name;
      handler.handler = [](Context&, std::string_view, std::string*) {
        return absl::UnimplementedError("of another process");
      };
      handler.typed.accepts = [](const MessageLite&, const MessageLite&) { return true; };
      handler.typed.run = [this, &method](Context& ctx, const MessageLite& request, MessageLite* reply) {
        Call call(ctx);
        return StatusOf(grpc::internal::BlockingUnaryCall<MessageLite, MessageLite>(
            channel_.get(), method.rpc, call.context(), request, reply));
      };
      handler.typed.start = [this, &method](Context& ctx, const MessageLite& request, MessageLite* reply,
                                            void (*done)(void*, absl::Status), void* arg) {
        auto* const call = new Call(ctx);
        grpc::internal::CallbackUnaryCall<MessageLite, MessageLite>(
            channel_.get(), method.rpc, call->context(), &request, reply,
            [call, done, arg](grpc::Status status) {
              delete call;
              const WaitHint hint{.waiting = Waiting::kAsync};
              const ScopedWait wait(hint);
              done(arg, StatusOf(status));
            });
      };
    }
    return handlers;
  }

 private:
  struct Method {
    Method(std::string n, const std::string& service, const std::shared_ptr<grpc::Channel>& channel)
        : name(std::move(n)),
          path(Join("/", service, "/", name)),
          rpc(path.c_str(), grpc::internal::RpcMethod::NORMAL_RPC, channel) {}
    Method(const Method&) = delete;
    const std::string name, path;
    const grpc::internal::RpcMethod rpc;
  };

  const std::string name_;
  const std::shared_ptr<grpc::Channel> channel_;
  std::deque<Method> methods_;  // immutable after construction
};

}  // namespace

HostedService CalledByGrpc(std::string name, std::string proto, std::vector<std::string> addresses) {
  return {.name = std::move(name),
          .make = [proto = std::move(proto), addresses = std::move(addresses)](Env& env) -> MadeService {
            const auto* const service =
                google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(proto);
            if (service == nullptr) return absl::InvalidArgumentError(Join("no service ", proto));
            return std::make_unique<GrpcRemote>(*service, addresses[env.shard().index]);
          }};
}

}  // namespace curtail::bench
