// SPDX-License-Identifier: Apache-2.0
//
// grpc_server_testing.h - a grpc++ server of echo.proto, for curtail's client.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <map>
#include <memory>
#include <string>

#include "echo.grpc.pb.h"
#include "servers.h"

namespace curtail::interop {

// By which a client says how many attempts at the call were made before.
inline constexpr char kAttempts[] = "grpc-previous-rpc-attempts";
// A text that must be escaped on the wire.
inline constexpr char kOddMessage[] = "caf\xc3\xa9 100% %41 \xe2\x82\xac\n\ttail ";

// Does what echo.proto says, with grpc++.
class GrpcEcho final : public peer::Echo::Service {
 public:
  explicit GrpcEcho(Gate* gate) : gate_(gate) {}

  grpc::Status Echo(grpc::ServerContext* context, const EchoRequest* request, EchoReply* reply) override {
    const auto left = context->deadline() - std::chrono::system_clock::now();
    if (left < std::chrono::hours(24)) {
      reply->set_timeout_ms(std::chrono::duration_cast<std::chrono::milliseconds>(left).count());
    }
    for (const auto& [key, value] : context->client_metadata()) {
      if (!key.starts_with("x-") && key != "authorization" && key != kAttempts) continue;
      Field* field = reply->add_metadata();
      field->set_key(std::string(key.data(), key.size()));
      field->set_value(std::string(value.data(), value.size()));
      context->AddInitialMetadata("first-" + field->key(), field->value());
      context->AddTrailingMetadata(field->key(), field->value());
    }
    if (context->client_metadata().contains("x-compress"))
      context->set_compression_algorithm(GRPC_COMPRESS_GZIP);
    if (request->hang()) gate_->Pass([context] { return context->IsCancelled(); });
    if (request->code() != 0) {
      return {static_cast<grpc::StatusCode>(request->code()), request->message(),
              request->detail().empty() ? std::string()
                                        : RpcStatus(request->code(), request->message(), request->detail())};
    }
    reply->set_payload(request->reply_size() > 0
                           ? std::string(static_cast<size_t>(request->reply_size()), 'r')
                           : request->payload());
    return grpc::Status::OK;
  }

 private:
  Gate* const gate_;
};

// A grpc++ server that ends, cutting off what is under way, with the object.
class GrpcServer {
 public:
  GrpcServer(Gate* gate, const std::string& listen = "127.0.0.1:0", int max_receive = -1) : service_(gate) {
    int port = 0;
    grpc::ServerBuilder builder;
    builder.SetMaxReceiveMessageSize(max_receive);
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.AddListeningPort(listen, grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) return;
    address_ = listen.starts_with("unix:") ? listen : "127.0.0.1:" + std::to_string(port);
  }
  ~GrpcServer() {
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
  }
  // Empty when the server could not listen.
  const std::string& address() const { return address_; }

 private:
  GrpcEcho service_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

inline absl::Status Call(Channel& channel, const EchoRequest& request, EchoReply* reply,
                         Nanos timeout = kMaxTestWait) {
  Context ctx(timeout);
  return channel.Call(ctx, Echo::kEcho.path, request, reply);
}

inline std::map<std::string, std::string> MetadataOf(const EchoReply& reply) {
  std::map<std::string, std::string> fields;
  for (const Field& field : reply.metadata()) fields[field.key()] = field.value();
  return fields;
}

inline std::map<std::string, std::string> AsMap(const Metadata& metadata) {
  return {metadata.begin(), metadata.end()};
}

}  // namespace curtail::interop
