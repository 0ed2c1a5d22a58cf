// SPDX-License-Identifier: Apache-2.0
//
// The server that the conformance suite calls: unary calls, over plain text. It learns its limits from standard input,
// tells its port on standard output, and serves until it is ended.
#include <csignal>
#include <cstdio>
#include <memory>
#include <thread>

#include "compat.h"
#include "connectrpc/conformance/v1/server_compat.pb.h"
#include "connectrpc/conformance/v1/service.curtail.h"
#include "curtail/base/strings.h"
#include "curtail/rpc/server.h"
#include "curtail/rpc/status_details.h"

namespace curtail::conformance {
namespace {

class Suite final : public v1::ConformanceService::Service {
 public:
  absl::Status Unary(Context& ctx, const v1::UnaryRequest& request, v1::UnaryResponse* reply) override {
    const v1::UnaryResponseDefinition& wanted = request.response_definition();
    ForEachHeader(wanted.response_headers(), [&](const std::string& key, const std::string& value) {
      ctx.AddInitialMetadata(key, value);
    });
    ForEachHeader(wanted.response_trailers(), [&](const std::string& key, const std::string& value) {
      ctx.AddTrailingMetadata(key, value);
    });
    v1::ConformancePayload::RequestInfo info;
    AddHeaders(ctx.metadata(), info.mutable_request_headers());
    if (!ctx.deadline().infinite())
      info.set_timeout_ms(ctx.deadline().Remaining() / std::chrono::milliseconds(1));
    info.add_requests()->PackFrom(request);
    std::this_thread::sleep_for(std::chrono::milliseconds(wanted.response_delay_ms()));
    if (wanted.has_error()) {
      absl::Status status = ToStatus(wanted.error());
      AddDetail(status, info);
      return status;
    }
    *reply->mutable_payload()->mutable_request_info() = std::move(info);
    reply->mutable_payload()->set_data(wanted.response_data());
    return absl::OkStatus();
  }
};

int Main() {
  v1::ServerCompatRequest wanted;
  if (!Read(&wanted)) return 1;
  sigset_t end;
  sigemptyset(&end);
  sigaddset(&end, SIGTERM);
  sigaddset(&end, SIGINT);
  pthread_sigmask(SIG_BLOCK, &end, nullptr);
  ServerOptions options;
  options.config = *Config::Parse("SDB1-16");
  options.default_timeout = Nanos::max();
  if (wanted.message_receive_limit() > 0) options.max_message_bytes = wanted.message_receive_limit();
  std::vector<std::unique_ptr<Service>> services;
  services.push_back(std::make_unique<Suite>());
  auto server = Server::Start(std::move(options), std::move(services));
  if (!server.ok()) {
    std::fprintf(stderr, "%s\n", std::string(Message(server.status())).c_str());
    return 1;
  }
  const std::string& address = (*server)->addresses()[0];
  v1::ServerCompatResponse ready;
  ready.set_host("127.0.0.1");
  ready.set_port(static_cast<uint32_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  Write(ready);
  int signal = 0;
  sigwait(&end, &signal);
  return 0;
}

}  // namespace
}  // namespace curtail::conformance

int main() { return curtail::conformance::Main(); }
