// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. Each method is a unary method of grpc++'s callback API. It gets bytes and parses them as generated code does,
// because the types of its messages are known at run time only. Its reactor is finished by the thread that ends the
// handler: of grpc++, or of the database. It is the default one, whose end needs no other thread; so a request whose
// caller has gone runs on, to its deadline at most.
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/impl/codegen/server_callback_handlers.h>
#include <grpcpp/impl/service_type.h>

#include <chrono>
#include <deque>
#include <iostream>
#include <memory>
#include <utility>

#include "bench/social_peer/stacks.h"
#include "curtail/base/strings.h"
#include "curtail/exec/wait.h"

namespace curtail::bench {
namespace {

using google::protobuf::Message;
using google::protobuf::MessageLite;
using Traits = grpc::SerializationTraits<MessageLite>;

constexpr auto kDrain = std::chrono::seconds(5);

Deadline DeadlineOf(const grpc::CallbackServerContext& context) {
  if (context.raw_deadline().tv_sec == INT64_MAX) return Deadline::Infinite();
  return Deadline::In(
      std::chrono::duration_cast<Nanos>(context.deadline() - std::chrono::system_clock::now()));
}

struct Method {
  Method(MethodHandler h, const google::protobuf::MethodDescriptor& descriptor)
      : handler(std::move(h)),
        request(
            *google::protobuf::MessageFactory::generated_factory()->GetPrototype(descriptor.input_type())),
        reply(
            *google::protobuf::MessageFactory::generated_factory()->GetPrototype(descriptor.output_type())) {}

  const MethodHandler handler;
  const Message& request;  // prototypes
  const Message& reply;
};

// One request; deletes itself when it is answered.
class Request {
 public:
  Request(const Method& method, grpc::CallbackServerContext* context, grpc::ByteBuffer* out)
      : method_(method),
        reactor_(context->DefaultReactor()),
        out_(out),
        ctx_(DeadlineOf(*context)),
        request_(method.request.New()),
        reply_(method.reply.New()) {
    for (const auto& [key, value] : context->client_metadata()) {
      ctx_.mutable_metadata().Add({key.data(), key.size()}, {value.data(), value.size()});
    }
  }

  grpc::ServerUnaryReactor* Start(const grpc::ByteBuffer& bytes) {
    grpc::ServerUnaryReactor* const reactor = reactor_;
    grpc::ProtoBufferReader reader(const_cast<grpc::ByteBuffer*>(&bytes));  // which it does not change
    if (!reader.status().ok() || !request_->ParseFromZeroCopyStream(&reader)) {
      End(absl::InternalError("the request cannot be parsed"));
      return reactor;
    }
    const WaitHint hint{.waiting = Waiting::kAsync};
    const ScopedWait wait(hint);
    const auto& typed = method_.handler.typed;
    if (typed.start) {
      typed.start(
          ctx_, *request_, reply_.get(),
          [](void* self, absl::Status status) { static_cast<Request*>(self)->End(status); }, this);
    } else {
      End(typed.run(ctx_, *request_, reply_.get()));
    }
    return reactor;
  }

 private:
  void End(const absl::Status& status) {
    grpc::Status answer(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()));
    bool own = false;
    if (status.ok()) answer = Traits::Serialize(*reply_, out_, &own);
    grpc::ServerUnaryReactor* const reactor = reactor_;
    delete this;
    reactor->Finish(answer);
  }

  const Method& method_;
  grpc::ServerUnaryReactor* const reactor_;
  grpc::ByteBuffer* const out_;
  Context ctx_;
  const std::unique_ptr<MessageLite> request_, reply_;
};

// The unary methods of a service, by the callback API.
class Bridge final : public grpc::Service {
 public:
  Bridge(curtail::Service& service, const google::protobuf::ServiceDescriptor& descriptor) {
    using grpc::internal::RpcServiceMethod;
    for (MethodHandler& handler : service.Handlers()) {
      const auto* const described = descriptor.FindMethodByName(handler.name);
      if (described == nullptr || handler.typed.accepts == nullptr) continue;
      paths_.push_back(Join("/", service.FullName(), "/", handler.name));
      const Method& method = methods_.emplace_back(std::move(handler), *described);
      AddMethod(new RpcServiceMethod(paths_.back().c_str(), RpcServiceMethod::NORMAL_RPC, nullptr));
      MarkMethodRawCallback(static_cast<int>(methods_.size()) - 1,
                            new grpc::internal::CallbackUnaryHandler<grpc::ByteBuffer, grpc::ByteBuffer>(
                                [&method](grpc::CallbackServerContext* context,
                                          const grpc::ByteBuffer* request, grpc::ByteBuffer* reply) {
                                  return (new Request(method, context, reply))->Start(*request);
                                }));
    }
  }

 private:
  std::deque<std::string> paths_;
  std::deque<Method> methods_;
};

class BridgeServer {
 public:
  static absl::StatusOr<std::unique_ptr<BridgeServer>> Start(curtail::Service& service,
                                                             const std::string& listen) {
    const auto* const descriptor = google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(
        std::string(service.FullName()));
    if (descriptor == nullptr) return absl::InvalidArgumentError(Join("no proto of ", service.FullName()));
    std::unique_ptr<BridgeServer> server(new BridgeServer(service, *descriptor));
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort(listen, grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&server->bridge_);
    server->server_ = builder.BuildAndStart();
    if (server->server_ == nullptr || port == 0) {
      return absl::UnavailableError(Join("grpc++ cannot listen at ", listen));
    }
    const bool any = listen.ends_with(":0");
    std::cout << "ready " << (any ? Join(listen.substr(0, listen.size() - 1), port) : listen) << std::endl;
    return server;
  }

  void Stop() { server_->Shutdown(std::chrono::system_clock::now() + kDrain); }

 private:
  BridgeServer(curtail::Service& service, const google::protobuf::ServiceDescriptor& descriptor)
      : bridge_(service, descriptor) {}

  Bridge bridge_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace

HostedService ServedByGrpc(HostedService service, std::string listen) {
  auto make = std::move(service.make);
  service.make = [make = std::move(make), listen = std::move(listen)](Env& env) -> MadeService {
    MadeService made = make(env);
    if (!made.ok()) return made;
    absl::StatusOr<std::unique_ptr<BridgeServer>> server = BridgeServer::Start(**made, listen);
    if (!server.ok()) return server.status();
    BridgeServer& kept = env.Keep(*std::move(server));
    env.WhileServing([] {}, [&kept] { kept.Stop(); });
    return made;
  };
  return service;
}

}  // namespace curtail::bench
