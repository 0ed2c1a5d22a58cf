// SPDX-License-Identifier: Apache-2.0
//
// The server that the conformance suite calls: calls of all kinds, over plain text or TLS. It learns its limits from standard input,
// tells its port on standard output, and serves until it is ended.
#include <csignal>
#include <cstdio>
#include <memory>
#include <thread>
#include <utility>

#include "compat.h"
#include "connectrpc/conformance/v1/server_compat.pb.h"
#include "connectrpc/conformance/v1/service.curtail.h"
#include "curtail/base/strings.h"
#include "curtail/rpc/server.h"
#include "curtail/rpc/status_details.h"

namespace curtail::conformance {
namespace {

using Info = v1::ConformancePayload::RequestInfo;

template <class Definition>
void AddMetadata(Context& ctx, const Definition& wanted) {
  ForEachHeader(wanted.response_headers(), [&](const std::string& key, const std::string& value) {
    ctx.AddInitialMetadata(key, value);
  });
  ForEachHeader(wanted.response_trailers(), [&](const std::string& key, const std::string& value) {
    ctx.AddTrailingMetadata(key, value);
  });
}

Info InfoOf(Context& ctx) {
  Info info;
  AddHeaders(ctx.metadata(), info.mutable_request_headers());
  if (!ctx.deadline().infinite())
    info.set_timeout_ms(ctx.deadline().Remaining() / std::chrono::milliseconds(1));
  return info;
}

// The end of a call: the error that the suite wants, with what was asked where no reply has said it.
absl::Status EndOf(const v1::Error& error, const Info* info) {
  absl::Status status = ToStatus(error);
  if (info != nullptr) AddDetail(status, *info);
  return status;
}

void Wait(uint32_t ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

class Suite final : public v1::ConformanceService::Service {
 public:
  absl::Status Unary(Context& ctx, const v1::UnaryRequest& request, v1::UnaryResponse* reply) override {
    Info info = InfoOf(ctx);
    info.add_requests()->PackFrom(request);
    return Answer(ctx, request.response_definition(), std::move(info), reply->mutable_payload());
  }

  absl::Status ClientStream(Context& ctx, StreamReader<v1::ClientStreamRequest>& requests,
                            v1::ClientStreamResponse* reply) override {
    Info info = InfoOf(ctx);
    v1::UnaryResponseDefinition wanted;
    for (v1::ClientStreamRequest request; requests.Read(&request);) {
      if (info.requests().empty()) wanted = request.response_definition();
      info.add_requests()->PackFrom(request);
    }
    if (!requests.status().ok()) return requests.status();
    return Answer(ctx, wanted, std::move(info), reply->mutable_payload());
  }

  absl::Status ServerStream(Context& ctx, const v1::ServerStreamRequest& request,
                            StreamWriter<v1::ServerStreamResponse>& replies) override {
    Info info = InfoOf(ctx);
    info.add_requests()->PackFrom(request);
    const v1::StreamResponseDefinition& wanted = request.response_definition();
    AddMetadata(ctx, wanted);
    if (request.has_response_definition()) replies.SendInitialMetadata();
    for (int i = 0; i < wanted.response_data_size(); ++i) {
      v1::ServerStreamResponse reply;
      reply.mutable_payload()->set_data(wanted.response_data(i));
      if (i == 0) *reply.mutable_payload()->mutable_request_info() = info;
      Wait(wanted.response_delay_ms());
      if (!replies.Write(reply)) return replies.status();
    }
    if (!wanted.has_error()) return absl::OkStatus();
    return EndOf(wanted.error(), wanted.response_data().empty() ? &info : nullptr);
  }

  absl::Status BidiStream(
      Context& ctx, curtail::ServerStream<v1::BidiStreamRequest, v1::BidiStreamResponse>& stream) override {
    v1::StreamResponseDefinition wanted;
    Info info = InfoOf(ctx);
    int sent = 0;
    const auto send = [&](bool with_info) {
      v1::BidiStreamResponse reply;
      reply.mutable_payload()->set_data(wanted.response_data(sent++));
      if (with_info) *reply.mutable_payload()->mutable_request_info() = std::exchange(info, {});
      Wait(wanted.response_delay_ms());
      return stream.Write(reply);
    };
    bool first = true;
    bool full_duplex = false;
    for (v1::BidiStreamRequest request; stream.Read(&request);) {
      info.add_requests()->PackFrom(request);
      if (std::exchange(first, false)) {
        wanted = request.response_definition();
        full_duplex = request.full_duplex();
        AddMetadata(ctx, wanted);
        if (full_duplex && request.has_response_definition()) stream.SendInitialMetadata();
      }
      if (!full_duplex) continue;
      if (sent == wanted.response_data_size()) break;
      if (!send(true)) return stream.status();
    }
    if (!stream.status().ok()) return stream.status();
    while (sent < wanted.response_data_size()) {
      if (!send(sent == 0)) return stream.status();
    }
    if (!wanted.has_error()) return absl::OkStatus();
    return EndOf(wanted.error(), sent == 0 ? &info : nullptr);
  }

 private:
  static absl::Status Answer(Context& ctx, const v1::UnaryResponseDefinition& wanted, Info info,
                             v1::ConformancePayload* payload) {
    AddMetadata(ctx, wanted);
    Wait(wanted.response_delay_ms());
    if (wanted.has_error()) return EndOf(wanted.error(), &info);
    *payload->mutable_request_info() = std::move(info);
    payload->set_data(wanted.response_data());
    return absl::OkStatus();
  }
};

absl::StatusOr<std::shared_ptr<const ServerTls>> TlsOf(const v1::ServerCompatRequest& wanted) {
  const ScratchFile certificate(wanted.server_creds().cert());
  const ScratchFile key(wanted.server_creds().key());
  const ScratchFile client_ca(wanted.client_tls_cert());
  ServerTlsOptions options{.certificate_file = certificate.path(), .key_file = key.path()};
  if (!wanted.client_tls_cert().empty()) options.client_ca_file = client_ca.path();
  return ServerTls::Load(options);
}

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "%s\n", std::string(Message(status)).c_str());
  return 1;
}

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
  v1::ServerCompatResponse ready;
  if (wanted.use_tls()) {
    const auto tls = TlsOf(wanted);
    if (!tls.ok()) return Fail(tls.status());
    options.tls = *tls;
    ready.set_pem_cert(wanted.server_creds().cert());
  }
  if (wanted.message_receive_limit() > 0) options.max_message_bytes = wanted.message_receive_limit();
  std::vector<std::unique_ptr<Service>> services;
  services.push_back(std::make_unique<Suite>());
  auto server = Server::Start(std::move(options), std::move(services));
  if (!server.ok()) return Fail(server.status());
  const std::string& address = (*server)->addresses()[0];
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
