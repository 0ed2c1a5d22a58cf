// SPDX-License-Identifier: Apache-2.0
#include "servers.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <iostream>

#include "curtail/base/strings.h"
#include "curtail/rpc/call/message_bytes.h"
#include "curtail/rpc/status_details.h"
#include "google/protobuf/wrappers.pb.h"

namespace curtail::interop {
namespace {

class EchoService final : public Echo::Service {
 public:
  explicit EchoService(Gate* gate) : gate_(gate) {}

  absl::Status Echo(Context& ctx, const EchoRequest& request, EchoReply* reply) override {
    if (!ctx.deadline().infinite()) {
      reply->set_timeout_ms(
          std::chrono::duration_cast<std::chrono::milliseconds>(ctx.deadline().Remaining()).count());
    }
    for (const auto& [key, value] : ctx.metadata()) {
      if (!key.starts_with("x-")) continue;
      Field* field = reply->add_metadata();
      field->set_key(std::string(key));
      field->set_value(std::string(value));
      ctx.AddInitialMetadata(Join("First-", key), value);
      ctx.AddTrailingMetadata(key, value);
    }
    if (request.hang()) gate_->Pass([&ctx] { return ctx.cancelled(); });
    if (request.code() != 0) {
      absl::Status status(static_cast<absl::StatusCode>(request.code()), request.message());
      google::protobuf::BytesValue detail;
      detail.set_value(request.detail());
      if (!request.detail().empty()) AddDetail(status, detail);
      return status;
    }
    if (request.reply_size() > 0) {
      reply->set_payload(std::string(static_cast<size_t>(request.reply_size()), 'r'));
    } else {
      reply->set_payload(request.payload());
    }
    return absl::OkStatus();
  }

 private:
  Gate* const gate_;
};

class ForwardService final : public Forward::Service {
 public:
  explicit ForwardService(std::vector<Channel*> leaves) : leaves_(std::move(leaves)) {}

  absl::Status Forward(Context& ctx, const EchoRequest& request, EchoReply* reply) override {
    const auto replies = ctx.FanOut(leaves_, Echo::kEcho, std::vector<EchoRequest>(leaves_.size(), request));
    for (const absl::StatusOr<EchoReply>& one : replies) {
      if (!one.ok()) return one.status();
      reply->mutable_payload()->append(one->payload());
      reply->mutable_metadata()->MergeFrom(one->metadata());
    }
    return absl::OkStatus();
  }

 private:
  const std::vector<Channel*> leaves_;
};

}  // namespace

std::string WithSpareThread(std::string_view config) {
  Config parsed = *Config::Parse(config);
  if (parsed.model.execution == Execution::kInline) ++parsed.network;
  return parsed.ToString();
}

std::string TestName(std::string_view config) {
  std::string name(config);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

std::unique_ptr<Service> MakeEchoService(Gate* gate) { return std::make_unique<EchoService>(gate); }

std::unique_ptr<Service> MakeForwardService(std::vector<Channel*> leaves) {
  return std::make_unique<ForwardService>(std::move(leaves));
}

ServerOptions OptionsFor(std::string_view config) {
  ServerOptions options;
  options.config = *Config::Parse(config);
  return options;
}

std::unique_ptr<Server> MustStart(ServerOptions options, std::unique_ptr<Service> service) {
  std::vector<std::unique_ptr<Service>> services;
  services.push_back(std::move(service));
  absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(std::move(options), std::move(services));
  if (!server.ok()) {
    std::cerr << "cannot start a server: " << server.status() << "\n";
    std::abort();
  }
  return *std::move(server);
}

std::unique_ptr<deploy::Relay> RelayTo(const std::string& server) {
  auto relay = deploy::Relay::Start({.to = server});
  if (relay.ok()) return *std::move(relay);
  ADD_FAILURE() << relay.status();
  std::abort();
}

int ConnectTo(const std::string& address) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in peer{};
  peer.sin_family = AF_INET;
  peer.sin_port = htons(static_cast<uint16_t>(std::atoi(address.c_str() + address.rfind(':') + 1)));
  peer.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&peer), sizeof(peer)) != 0) {
    close(fd);
    return -1;
  }
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  return fd;
}

std::string RpcStatus(int code, const std::string& message, const std::string& detail) {
  google::protobuf::BytesValue value;
  value.set_value(detail);
  internal::MessageWriter any;
  any.Bytes(1, "type.googleapis.com/google.protobuf.BytesValue");
  any.Bytes(2, value.SerializeAsString());
  internal::MessageWriter status;
  status.Int(1, code);
  status.Bytes(2, message);
  status.Bytes(3, any.Take());
  return status.Take();
}

std::string UnixAddress() {
  static std::atomic<int> count{0};
  return "unix:" + testing::TempDir() + "curtail_interop." + std::to_string(getpid()) + "." +
         std::to_string(++count);
}

}  // namespace curtail::interop
