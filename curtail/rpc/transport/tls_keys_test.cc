// SPDX-License-Identifier: Apache-2.0
//
// Keys that change while they are in use, sessions that are resumed, and the certificate of a caller.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <csignal>
#include <filesystem>
#include <thread>

#include "curtail/rpc/rpc_testing.h"
#include "curtail/rpc/server_main.h"
#include "curtail/rpc/transport/tls_stream.h"
#include "curtail/rpc/transport/tls_testing.h"
#include "curtail/rpc/transport/transport_testing.h"

namespace curtail {
namespace {

using internal::TlsStream;
using testing::HasSubstr;

// Has the two talk until both are silent.
void ConverseBoth(TlsStream& client, TlsStream& server) {
  char plain[4096];
  for (std::string out = "-"; !out.empty();) {
    std::string forth, back;
    client.TakeOutput(&forth);
    server.Feed(forth);
    while (server.Read(plain, sizeof plain) > 0) {
    }
    server.TakeOutput(&back);
    client.Feed(back);
    while (client.Read(plain, sizeof plain) > 0) {
    }
    out = forth + back;
  }
}

class TlsKeysTest : public testing::Test, protected TlsBase {
 protected:
  struct Pair {
    std::unique_ptr<TlsStream> client, server;
    bool standing() const { return client->standing() && server->standing(); }
  };
  static Pair Connect(const ClientTls& client, const ServerTls& server,
                      const std::string& host = "localhost") {
    Pair pair{TlsStream::Client(*client.context(), host, true), TlsStream::Server(*server.context())};
    ConverseBoth(*pair.client, *pair.server);
    return pair;
  }
  std::shared_ptr<const ServerTls> Serving(const ServerTlsOptions& options) {
    auto tls = ServerTls::Load(options);
    EXPECT_TRUE(tls.ok()) << tls.status();
    return *std::move(tls);
  }
  // The files that a server reads, which a test exchanges.
  ServerTlsOptions Files(Nanos interval = Nanos(1)) {
    Use(leaf_);
    return {.certificate_file = certificate_, .key_file = key_, .reload_interval = interval};
  }
  void Use(const TestCertificate& certificate) {
    UseCertificateOnly(certificate);
    Replace(certificate.key_file(), key_);
  }
  void UseCertificateOnly(const TestCertificate& certificate) { Replace(certificate.file(), certificate_); }
  ~TlsKeysTest() override {
    unlink(certificate_.c_str());
    unlink(key_.c_str());
  }

  const TestCertificate other_authority_{{.common_name = "other authority", .names = ""}};
  const TestCertificate other_{{.common_name = "other server"}, &other_authority_};

 private:
  // As an operator does: another file takes the name at once.
  static void Replace(const std::string& from, const std::string& to) {
    std::filesystem::copy_file(from, to + ".new", std::filesystem::copy_options::overwrite_existing);
    std::filesystem::rename(to + ".new", to);
  }

  const std::string certificate_ = TestFile("live.crt");
  const std::string key_ = TestFile("live.key");
};

TEST_F(TlsKeysTest, NewFilesServeNewConnections) {
  const auto server = Serving(Files());
  const auto trusting = Trust(authority_);
  const auto trusting_other = Trust(other_authority_);
  const Pair before = Connect(*trusting, *server);
  EXPECT_TRUE(before.standing());
  Use(other_);
  EXPECT_TRUE(Connect(*trusting_other, *server).standing());
  EXPECT_FALSE(Connect(*Trust(authority_), *server).standing());
  EXPECT_EQ(before.server->Write("x"), 1u);  // goes on as it began
}

TEST_F(TlsKeysTest, FilesThatDoNotFitLeaveTheKeysAsTheyWere) {
  const auto server = Serving(Files());
  UseCertificateOnly(other_);
  EXPECT_TRUE(Connect(*Trust(authority_), *server).standing());
  const absl::Status wrong = server->Reload();
  EXPECT_EQ(wrong.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(wrong)), HasSubstr("does not belong"));
  EXPECT_TRUE(Connect(*Trust(authority_), *server).standing());
  Use(other_);  // now its key, too
  EXPECT_TRUE(Connect(*Trust(other_authority_), *server).standing());
}

TEST_F(TlsKeysTest, AreReadWhenAskedForWithoutAnInterval) {
  const auto server = Serving(Files(Nanos::zero()));
  Use(other_);
  EXPECT_TRUE(Connect(*Trust(authority_), *server).standing());
  ASSERT_TRUE(server->Reload().ok());
  EXPECT_TRUE(Connect(*Trust(other_authority_), *server).standing());
}

TEST_F(TlsKeysTest, AServerReadsThemAgain) {
  ServerOptions options;
  options.tls = Serving(Files(Nanos::zero()));
  std::vector<std::unique_ptr<Service>> services;
  services.push_back(std::make_unique<EchoService>(&gate_, std::vector<Channel*>(), &cancelled_));
  auto server = Server::Start(options, std::move(services));
  ASSERT_TRUE(server.ok()) << server.status();
  Channel before(&client_, (*server)->addresses()[0], {.tls = Trust(authority_)});
  EXPECT_TRUE(Call(before, kEcho, "x").ok());
  Use(other_);
  ASSERT_TRUE((*server)->ReloadTls().ok());
  Channel after(&client_, (*server)->addresses()[0], {.tls = Trust(other_authority_)});
  EXPECT_TRUE(Call(after, kEcho, "x").ok());
  EXPECT_TRUE(Call(before, kEcho, "x").ok());
}

TEST_F(TlsKeysTest, AServingProcessReadsThemAgainOnSighup) {
  ServerOptions options;
  options.tls = Serving(Files(Nanos::zero()));
  auto server = Server::Start(options, {});
  ASSERT_TRUE(server.ok()) << server.status();
  BlockStopSignals();  // for the thread, too
  int code = -1;
  std::thread serving([&] { code = ServeUntilSignal(**server, seconds(1)); });
  Use(other_);
  pthread_kill(serving.native_handle(), SIGHUP);
  const Deadline deadline = Deadline::In(kMaxTestWait);
  while (!Connect(*Trust(other_authority_), *options.tls).standing() && !deadline.Expired()) {
    BetweenLooks();
  }
  EXPECT_FALSE(deadline.Expired());
  pthread_kill(serving.native_handle(), SIGTERM);
  serving.join();
  UnblockStopSignals();
  EXPECT_EQ(code, 0);
  auto plain = Server::Start({}, {});
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ((*plain)->ReloadTls().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(TlsKeysTest, AClientReadsThemAgain) {
  const auto server = Serving({.certificate_file = leaf_.file(),
                               .key_file = leaf_.key_file(),
                               .client_ca_file = other_authority_.file()});
  const ServerTlsOptions files = Files();
  const auto client = ClientTls::Load({.ca_file = authority_.file(),
                                       .certificate_file = files.certificate_file,
                                       .key_file = files.key_file,
                                       .reload_interval = Nanos(1)});
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_FALSE(Connect(**client, *server).server->standing());
  Use(other_);
  EXPECT_TRUE(Connect(**client, *server).standing());
}

TEST_F(TlsKeysTest, SessionsAreResumed) {
  const auto server = Serving(Files());
  const auto client = Trust(authority_);
  const Pair first = Connect(*client, *server);
  ASSERT_TRUE(first.standing());
  EXPECT_FALSE(first.server->resumed());
  for (int i = 0; i < 3; ++i) {
    const Pair next = Connect(*client, *server);
    ASSERT_TRUE(next.standing()) << next.client->status() << next.server->status();
    EXPECT_TRUE(next.server->resumed() && next.client->resumed());
  }
  // Neither for another host, nor by another client, nor with other keys.
  EXPECT_FALSE(Connect(*client, *server, "127.0.0.1").server->resumed());
  EXPECT_FALSE(Connect(*Trust(authority_), *server).server->resumed());
  const TestCertificate renewed({.common_name = "test server"}, &authority_);
  Use(renewed);
  const Pair after = Connect(*client, *server);
  EXPECT_TRUE(after.standing());
  EXPECT_FALSE(after.server->resumed());
}

TEST_F(TlsKeysTest, AServerMayInsistOnTheNamesOfItsCertificate) {
  const TestCertificate named({.common_name = "shop", .names = "DNS:shop.example,DNS:*.shop.example"},
                              &authority_);
  for (const bool check : {false, true}) {
    const auto server =
        Serving({.certificate_file = named.file(), .key_file = named.key_file(), .check_server_name = check});
    const auto client = Trust(authority_);
    EXPECT_TRUE(Connect(*client, *server, "shop.example").standing());
    EXPECT_TRUE(Connect(*client, *server, "eu.shop.example").standing());
    const Pair other = Connect(*client, *server, "other.example");
    EXPECT_FALSE(other.client->standing());
    EXPECT_THAT(std::string(Message(other.client->status())),
                HasSubstr(check ? "unrecognized name" : "not for other.example"));
  }
}

// Answers with the certificate of its caller, and calls of streams likewise.
class SubjectService final : public Service {
 public:
  std::string_view FullName() const override { return "test.Who"; }
  std::vector<MethodHandler> Handlers() override {
    return {{.name = "Am",
             .handler = internal::UnaryHandler<StringValue, StringValue>(
                 [](Context& ctx, const StringValue&, StringValue* out) {
                   Context part(&ctx);  // has it, too
                   const PeerCertificate& caller = part.peer_certificate();
                   std::string text = caller.subject;
                   for (const std::string& name : caller.dns_names) text += "|" + name;
                   for (const std::string& uri : caller.uris) text += "|" + uri;
                   out->set_value(caller.empty() ? "nobody" : text);
                   return absl::OkStatus();
                 })}};
  }
};

TEST_F(TlsKeysTest, HandlersSeeTheCertificateOfTheCaller) {
  constexpr Method<StringValue, StringValue> kAm{"/test.Who/Am"};
  const TestCertificate caller(
      {.common_name = "cart", .names = "DNS:cart.shop,URI:spiffe://shop.example/cart,IP:10.0.0.1,DNS:cart"},
      &authority_);
  for (const char* config : {"SIB1", "SDB1-2", "FIB1", "FDB1-2"}) {
    for (const bool mutual : {true, false}) {
      ServerOptions options;
      options.config = *Config::Parse(config);
      options.tls = Serving({.certificate_file = leaf_.file(),
                             .key_file = leaf_.key_file(),
                             .client_ca_file = mutual ? authority_.file() : ""});
      std::vector<std::unique_ptr<Service>> services;
      services.push_back(std::make_unique<SubjectService>());
      auto server = Server::Start(options, std::move(services));
      ASSERT_TRUE(server.ok()) << server.status();
      auto tls = ClientTls::Load(
          {.ca_file = authority_.file(), .certificate_file = caller.file(), .key_file = caller.key_file()});
      ASSERT_TRUE(tls.ok()) << tls.status();
      // The second connection resumes the session of the first.
      for (int i = 0; i < 2; ++i) {
        Channel channel(&client_, (*server)->addresses()[0], {.tls = *tls});
        std::string answer;
        EXPECT_TRUE(Call(channel, kAm, "", &answer).ok());
        EXPECT_EQ(answer, mutual ? "CN=cart|cart.shop|cart|spiffe://shop.example/cart" : "nobody");
      }
    }
  }
  auto plain = Server::Start({}, [] {
    std::vector<std::unique_ptr<Service>> services;
    services.push_back(std::make_unique<SubjectService>());
    return services;
  }());
  ASSERT_TRUE(plain.ok()) << plain.status();
  Channel channel(&client_, (*plain)->addresses()[0]);
  std::string answer;
  EXPECT_TRUE(Call(channel, kAm, "", &answer).ok());
  EXPECT_EQ(answer, "nobody");
  Context root(kMaxTestWait);
  EXPECT_TRUE(root.peer_certificate().empty());
}

}  // namespace
}  // namespace curtail
