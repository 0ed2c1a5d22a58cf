// SPDX-License-Identifier: Apache-2.0
//
// curtail against grpc++ over TLS, both ways round; and what each of ours says when the other does not speak it.

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <iterator>
#include <thread>

#include "curtail/base/strings.h"
#include "curtail/rpc/transport/tls_testing.h"
#include "echo.grpc.pb.h"
#include "servers.h"

namespace curtail::interop {
namespace {

using testing::HasSubstr;

constexpr size_t kSizes[] = {0, 1, 16383, 16384, 16385, 70000, 4 << 20};

std::string Slurp(const std::string& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string Describe(const grpc::Status& status) {
  return std::to_string(status.error_code()) + ": " + status.error_message();
}

class GrpcEcho final : public peer::Echo::Service {
  grpc::Status Echo(grpc::ServerContext*, const EchoRequest* request, EchoReply* reply) override {
    reply->set_payload(request->payload());
    return grpc::Status::OK;
  }
};

// A grpc++ server on a free port.
class GrpcServer {
 public:
  explicit GrpcServer(const std::shared_ptr<grpc::ServerCredentials>& credentials) {
    int port = 0;
    grpc::ServerBuilder builder;
    builder.SetMaxReceiveMessageSize(-1);
    builder.AddListeningPort("127.0.0.1:0", credentials, &port);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    address_ = "127.0.0.1:" + std::to_string(port);
  }
  ~GrpcServer() { server_->Shutdown(std::chrono::system_clock::now()); }
  const std::string& address() const { return address_; }

 private:
  GrpcEcho service_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

class TlsInterop : public testing::TestWithParam<const char*> {
 protected:
  ~TlsInterop() override { gate_.Open(); }

  // A grpc++ server's credentials; with `mutual`, it asks clients for theirs.
  std::shared_ptr<grpc::ServerCredentials> GrpcServerTls(bool mutual) {
    grpc::SslServerCredentialsOptions options(mutual
                                                  ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                                                  : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
    options.pem_root_certs = Slurp(authority_.file());
    options.pem_key_cert_pairs.push_back({Slurp(leaf_.key_file()), Slurp(leaf_.file())});
    return grpc::SslServerCredentials(options);
  }
  std::shared_ptr<grpc::Channel> GrpcChannel(const std::string& address, const TestCertificate& trusted,
                                             bool with_certificate) {
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = Slurp(trusted.file());
    if (with_certificate) {
      options.pem_private_key = Slurp(leaf_.key_file());
      options.pem_cert_chain = Slurp(leaf_.file());
    }
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(address, grpc::SslCredentials(options), arguments);
  }
  std::unique_ptr<Server> OurServer(bool mutual) {
    ServerOptions options = OptionsFor(GetParam());
    auto tls = ServerTls::Load({.certificate_file = leaf_.file(),
                                .key_file = leaf_.key_file(),
                                .client_ca_file = mutual ? authority_.file() : ""});
    EXPECT_TRUE(tls.ok()) << tls.status();
    options.tls = *std::move(tls);
    return MustStart(std::move(options), MakeEchoService(&gate_));
  }
  std::shared_ptr<const ClientTls> OurTls(const TestCertificate& trusted, bool with_certificate) {
    TlsOptions options{.ca_file = trusted.file()};
    if (with_certificate) options.certificate_file = leaf_.file(), options.key_file = leaf_.key_file();
    auto tls = ClientTls::Load(options);
    EXPECT_TRUE(tls.ok()) << tls.status();
    return *std::move(tls);
  }
  static grpc::Status GrpcCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& payload,
                               std::string* answer = nullptr) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kMaxTestWait);
    EchoRequest request;
    request.set_payload(payload);
    EchoReply reply;
    const grpc::Status status = peer::Echo::NewStub(channel)->Echo(&context, request, &reply);
    if (answer != nullptr) *answer = reply.payload();
    return status;
  }
  static absl::Status OurCall(Channel& channel, const std::string& payload, std::string* answer = nullptr) {
    Context ctx(kMaxTestWait);
    EchoRequest request;
    request.set_payload(payload);
    EchoReply reply;
    const absl::Status status = channel.Call(ctx, Echo::kEcho.path, request, &reply);
    if (answer != nullptr) *answer = reply.payload();
    return status;
  }

  const TestCertificate authority_{{.common_name = "interop authority", .names = ""}};
  const TestCertificate leaf_{{.common_name = "interop"}, &authority_};
  const TestCertificate stranger_{{.common_name = "somebody else", .names = ""}};
  Gate gate_;
  Client client_;
};

// Our client does not depend on the model of a server: these run once.
class TlsInteropClient : public TlsInterop {};

TEST_P(TlsInterop, GrpcClientIsServed) {
  for (const bool mutual : {false, true}) {
    SCOPED_TRACE(mutual);
    const auto server = OurServer(mutual);
    const auto channel = GrpcChannel(server->addresses()[0], authority_, mutual);
    for (const size_t size : kSizes) {
      const std::string payload(size, 'p');
      std::string answer;
      const grpc::Status status = GrpcCall(channel, payload, &answer);
      ASSERT_TRUE(status.ok()) << size << " bytes: " << Describe(status);
      EXPECT_TRUE(answer == payload) << size;
    }
  }
}

TEST_P(TlsInterop, GrpcClientsCallAtOnceStress) {
  constexpr int kThreads = 4;
  constexpr int kCalls = 50;
  const auto server = OurServer(false);
  const auto channel = GrpcChannel(server->addresses()[0], authority_, false);
  std::atomic<int> answered{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kCalls; ++i) {
        const std::string payload(static_cast<size_t>(i) * 317, static_cast<char>('a' + t));
        std::string answer;
        answered += GrpcCall(channel, payload, &answer).ok() && answer == payload;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(answered, kThreads * kCalls);
}

TEST_P(TlsInterop, GrpcClientsThatShouldNotAreTurnedAway) {
  const auto server = OurServer(true);
  const std::string& address = server->addresses()[0];
  EXPECT_FALSE(GrpcCall(GrpcChannel(address, authority_, false), "").ok()) << "no certificate";
  EXPECT_FALSE(GrpcCall(GrpcChannel(address, stranger_, true), "").ok()) << "does not trust us";
  EXPECT_FALSE(GrpcCall(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()), "").ok())
      << "plain";
  const grpc::Status status = GrpcCall(GrpcChannel(address, authority_, true), "");
  EXPECT_TRUE(status.ok()) << Describe(status);
}

INSTANTIATE_TEST_SUITE_P(Models, TlsInterop, testing::ValuesIn(kConfigs),
                         [](const auto& info) { return TestName(info.param); });

TEST_P(TlsInteropClient, GrpcServerAnswers) {
  for (const bool mutual : {false, true}) {
    SCOPED_TRACE(mutual);
    GrpcServer server(GrpcServerTls(mutual));
    Channel channel(&client_, server.address(), {.tls = OurTls(authority_, mutual)});
    for (const size_t size : kSizes) {
      const std::string payload(size, 'p');
      std::string answer;
      const absl::Status status = OurCall(channel, payload, &answer);
      ASSERT_TRUE(status.ok()) << size << " bytes: " << status;
      EXPECT_TRUE(answer == payload) << size;
    }
  }
}

TEST_P(TlsInteropClient, SaysWhatIsWrongWithAGrpcServer) {
  GrpcServer tls_server(GrpcServerTls(false));
  GrpcServer mutual_server(GrpcServerTls(true));
  GrpcServer plain_server(grpc::InsecureServerCredentials());
  const auto message = [&](const GrpcServer& server, std::shared_ptr<const ClientTls> tls) {
    Client client;
    Channel channel(&client, server.address(), {.tls = std::move(tls)});
    const absl::Status status = OurCall(channel, "");
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    return std::string(Message(status));
  };
  EXPECT_THAT(message(tls_server, OurTls(stranger_, false)),
              HasSubstr("TLS: the server's certificate is not trusted"));
  EXPECT_THAT(message(mutual_server, OurTls(authority_, false)),
              HasSubstr("the server wants a client certificate"));
  EXPECT_THAT(message(plain_server, OurTls(authority_, false)), HasSubstr("does not speak TLS"));
  EXPECT_THAT(message(tls_server, nullptr), HasSubstr("TLS"));
}

INSTANTIATE_TEST_SUITE_P(Once, TlsInteropClient, testing::Values("SIB1"));

}  // namespace
}  // namespace curtail::interop
