// SPDX-License-Identifier: Apache-2.0
//
// TLS between channel and server: that calls work over it whatever the network does to its bytes, that nobody gets in
// who should not, and that each failure says what is wrong. Transports that fail are in transport_error_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "curtail/base/rng.h"
#include "curtail/rpc/client/servers/many_servers_testing.h"
#include "curtail/rpc/rpc_testing.h"
#include "curtail/rpc/transport/tls_stream.h"
#include "curtail/rpc/transport/tls_testing.h"
#include "curtail/rpc/transport/transport_testing.h"

namespace curtail {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kConfigs[] = {"SIB1", "SIP1", "SDB1-4", "FIB1", "FDP1-2"};

class Tls : public testing::Test, protected TlsBase {};

TEST_F(Tls, CallsAreAnsweredUnderEachModel) {
  for (const char* config : kConfigs) {
    SCOPED_TRACE(config);
    auto server = StartTls({.certificate = &leaf_}, config);
    Channel channel(&client_, server->addresses()[0], {.tls = Trust(authority_)});
    for (const size_t size : {0, 1, 5, 16383, 16384, 16385, 70000, 1 << 20}) {
      const std::string text(size, 'x');
      std::string answer;
      const absl::Status status = Call(channel, kEcho, text, &answer);
      ASSERT_TRUE(status.ok()) << size << " bytes: " << status;
      EXPECT_EQ(answer == text, true) << size;
    }
    EXPECT_EQ(Call(channel, kEcho, "fail").code(), absl::StatusCode::kNotFound);
  }
}

// The mid-tier's own calls, from each kind of waiting.
TEST_F(Tls, AServerFansOutOverIt) {
  auto leaf = StartTls({.certificate = &leaf_}, "SIB1");
  Channel to_leaf(&client_, leaf->addresses()[0], {.tls = Trust(authority_)});
  Channel to_leaf_too(&client_, leaf->addresses()[0], {.tls = Trust(authority_)});
  for (const char* config : kConfigs) {
    SCOPED_TRACE(config);
    auto middle = StartTls({.certificate = &leaf_, .leaves = {&to_leaf, &to_leaf_too}}, config);
    Client caller;
    Channel channel(&caller, middle->addresses()[0], {.tls = Trust(authority_)});
    std::string answer;
    const absl::Status status = Call(channel, kForward, "hello", &answer);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(answer, "hello;hello;");
  }
}

TEST_F(Tls, NamesAreTakenFromTargetOrOptions) {
  auto server = StartTls({.certificate = &leaf_});
  const std::string port = server->addresses()[0].substr(server->addresses()[0].rfind(':'));
  Channel by_name(&client_, "localhost" + port, {.tls = Trust(authority_)});
  EXPECT_TRUE(Call(by_name, kEcho, "").ok());

  TestCertificate other({.common_name = "other", .names = "DNS:other.example"}, &authority_);
  auto renamed = StartTls({.certificate = &other});
  auto tls = ClientTls::Load({.ca_file = authority_.file(), .server_name = "other.example"});
  ASSERT_TRUE(tls.ok()) << tls.status();
  Channel overridden(&client_, renamed->addresses()[0], {.tls = *tls});
  const absl::Status status = Call(overridden, kEcho, "");
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(Tls, WholeNamesEndWithoutTheirDot) {
  TestCertificate other({.common_name = "other", .names = "DNS:other.example"}, &authority_);
  auto server = StartTls({.certificate = &other});
  auto tls = ClientTls::Load({.ca_file = authority_.file(), .server_name = "other.example."});
  ASSERT_TRUE(tls.ok()) << tls.status();
  Channel channel(&client_, server->addresses()[0], {.tls = *tls});
  const absl::Status status = Call(channel, kEcho, "");
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(Tls, UnixSocketsAreLocalhost) {
  auto server = StartTls({.certificate = &leaf_, .listen = "unix:" + TestFile("sock")});
  Channel channel(&client_, server->addresses()[0], {.tls = Trust(authority_)});
  const absl::Status status = Call(channel, kEcho, "");
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(Tls, RefusesServersThatItShouldNotTrust) {
  const TestCertificate stranger({.common_name = "a stranger", .names = ""});
  const TestCertificate by_stranger({.common_name = "unknown"}, &stranger);
  const TestCertificate self({.common_name = "self-made"});
  const TestCertificate expired({.common_name = "old", .valid_from_s = -7200, .valid_until_s = -3600},
                                &authority_);
  const TestCertificate early({.common_name = "new", .valid_from_s = 3600, .valid_until_s = 7200},
                              &authority_);
  const TestCertificate elsewhere({.common_name = "elsewhere", .names = "DNS:a.example,IP:10.1.2.3"},
                                  &authority_);
  const struct {
    const TestCertificate* certificate;
    std::vector<std::string> words;
  } cases[] = {
      {&by_stranger, {"the server's certificate is not trusted: unable to get local issuer", "CN=unknown"}},
      {&self, {"is not trusted: self", "CN=self-made"}},
      {&expired, {"has expired: CN=old was valid until", "GMT; renew the server's certificate"}},
      {&early, {"is not yet valid: CN=new is valid from"}},
      {&elsewhere, {"is for DNS:a.example, IP Address:10.1.2.3, not for 127.0.0.1"}},
  };
  for (const auto& each : cases) {
    auto server = StartTls({.certificate = each.certificate});
    Channel channel(&client_, server->addresses()[0], {.tls = Trust(authority_)});
    absl::Status status = Call(channel, kEcho, "");
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(Message(status)), HasSubstr(server->addresses()[0]));
    for (const std::string& word : each.words) EXPECT_THAT(std::string(Message(status)), HasSubstr(word));
    // A call during the backoff hears the same.
    status = Call(channel, kEcho, "");
    EXPECT_THAT(std::string(Message(status)), HasSubstr(each.words[0]));

    auto careless = ClientTls::Load({.insecure_skip_verify = true});
    ASSERT_TRUE(careless.ok()) << careless.status();
    Channel any(&client_, server->addresses()[0], {.tls = *careless});
    status = Call(any, kEcho, "");
    EXPECT_TRUE(status.ok()) << status;
  }
  // Nobody made this authority known to the system.
  auto system = ClientTls::Load({});
  ASSERT_TRUE(system.ok()) << system.status();
  auto server = StartTls({.certificate = &leaf_});
  Channel channel(&client_, server->addresses()[0], {.tls = *system});
  EXPECT_THAT(std::string(Message(Call(channel, kEcho, ""))), HasSubstr("is not trusted"));
}

TEST_F(Tls, RefusesServersWhoseNameItDoesNotKnow) {
  gate_.Open();
  auto server = StartTls({.certificate = &leaf_});
  const auto resolver = std::make_shared<ListResolver>();
  resolver->Set({server->addresses()[0]});
  Channel channel(&client_, "", {.tls = Trust(authority_), .resolver = resolver});
  const absl::Status status = Call(channel, kHang, "");
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("set server_name"));
  EXPECT_EQ(gate_.arrived(), 0);
}

TEST_F(Tls, MutualServesOnlyThoseItKnows) {
  const TestCertificate caller({.common_name = "caller"}, &authority_);
  const TestCertificate stranger({.common_name = "a stranger"});
  auto server = StartTls({.certificate = &leaf_, .clients = &authority_});
  const auto as = [&](const TestCertificate* who) {
    TlsOptions options{.ca_file = authority_.file()};
    if (who != nullptr) options.certificate_file = who->file(), options.key_file = who->key_file();
    auto tls = ClientTls::Load(options);
    EXPECT_TRUE(tls.ok()) << tls.status();
    Channel channel(&client_, server->addresses()[0], {.tls = *tls});
    return Call(channel, kEcho, "");
  };
  EXPECT_TRUE(as(&caller).ok()) << as(&caller);
  EXPECT_THAT(std::string(Message(as(nullptr))), HasSubstr("TLS: the server wants a client certificate"));
  EXPECT_THAT(std::string(Message(as(&stranger))),
              HasSubstr("TLS: the server does not trust this certificate"));
  EXPECT_TRUE(as(&caller).ok());
}

// The property: whatever the pieces in which bytes arrive and leave, messages come through whole. Tiny buffers make
// every write partial; single bytes cut every record.
TEST_F(Tls, LargeMessagesPassThroughTinyBuffers) {
  auto server = StartTls({.certificate = &leaf_}, "SDB1-4");
  SlowRelay relay(server->addresses()[0], {.chunk = 3000, .buffer = 4096});
  Channel channel(&client_, relay.address(), {.tls = Trust(authority_)});
  std::string text(4 << 20, '\0');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>('a' + i * i % 23);
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      std::string answer;
      const absl::Status status = Call(channel, kEcho, text, &answer);
      EXPECT_TRUE(status.ok()) << status;
      EXPECT_TRUE(answer == text);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(Tls, BytesMayComeOneByOne) {
  auto server = StartTls({.certificate = &leaf_});
  SlowRelay relay(server->addresses()[0], {.chunk = 1});
  Channel channel(&client_, relay.address(), {.tls = Trust(authority_)});
  std::string answer;
  const absl::Status status = Call(channel, kEcho, std::string(2000, 'y'), &answer);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(answer, std::string(2000, 'y'));
}

TEST_F(Tls, ConcurrentCallsStress) {
  constexpr int kThreads = 4;
  constexpr int kCalls = 150;
  auto server = StartTls({.certificate = &leaf_}, "SDB2-4");
  Channel channel(&client_, server->addresses()[0], {.tls = Trust(authority_), .connections = 2});
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kCalls; ++i) {
        const std::string text(static_cast<size_t>(i * 131 % 40000), static_cast<char>('a' + t));
        std::string answer;
        const absl::Status status = Call(channel, kEcho, text, &answer);
        ASSERT_TRUE(status.ok()) << status;
        ASSERT_TRUE(answer == text);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(Tls, EventDrivenCallsShareRecords) {
  constexpr int kCalls = 500;
  struct Count final : Completion {
    void Done(absl::Status&& status, std::string&& reply) override {
      ++done;
      if (!status.ok()) last = std::move(status);
      bytes += reply.size();
    }
    int done = 0;
    size_t bytes = 0;
    absl::Status last;
  } count;
  auto server = StartTls({.certificate = &leaf_});
  Channel channel(&client_, server->addresses()[0], {.tls = Trust(authority_)});
  const std::string request = Text(std::string(300, 'z')).SerializeAsString();
  for (int i = 0; i < kCalls; ++i) channel.Start(kEcho.path, Deadline::In(kMaxTestWait), {}, request, &count);
  const Deadline deadline = Deadline::In(kMaxTestWait);
  while (count.done < kCalls && !deadline.Expired()) client_.Poll(deadline);
  EXPECT_EQ(count.done, kCalls);
  EXPECT_TRUE(count.last.ok()) << count.last;
  EXPECT_EQ(count.bytes, kCalls * request.size());
}

// Whatever byte of the handshake is the last, the call ends, and the server serves others.
TEST_F(Tls, CutDuringTheHandshakeEndsTheCall) {
  auto server = StartTls({.certificate = &leaf_});
  for (const size_t last : {1, 4, 5, 6, 90, 130, 300, 600}) {
    SCOPED_TRACE(last);
    SlowRelay relay(server->addresses()[0], {.chunk = 64, .cut_after = last});
    Channel channel(&client_, relay.address(), {.tls = Trust(authority_)});
    const absl::Status status = Call(channel, kEcho, "");
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_THAT(std::string(Message(status)), HasSubstr("during the TLS handshake"));
  }
  Channel channel(&client_, server->addresses()[0], {.tls = Trust(authority_)});
  EXPECT_TRUE(Call(channel, kEcho, "").ok());
}

TEST_F(Tls, SilentPeersHoldNeitherThreadsNorADrain) {
  auto server = StartTls({.certificate = &leaf_}, "SIB1");
  std::vector<internal::UniqueFd> silent;
  for (int i = 0; i < 8; ++i) {
    silent.push_back(Dial(server->addresses()[0]));
    if (i % 2 == 0) {
      ASSERT_EQ(send(silent.back().get(), "\x16\x03\x01", 3, MSG_NOSIGNAL), 3);
    }
  }
  {
    Channel channel(&client_, server->addresses()[0], {.tls = Trust(authority_)});
    EXPECT_TRUE(Call(channel, kEcho, "").ok());
  }
  EXPECT_TRUE(server->Drain(Deadline::In(kMaxTestWait)).ok());
}

TEST(TlsFiles, ErrorsNameTheFile) {
  const TestCertificate one({.common_name = "one"});
  const TestCertificate two({.common_name = "two"});
  const std::string text = TestFile("txt");
  std::ofstream(text) << "no certificate\n";
  const auto server = [](std::string certificate, std::string key, std::string clients = "") {
    return std::string(Message(ServerTls::Load({certificate, key, clients}).status()));
  };
  EXPECT_EQ(server(one.file(), one.key_file()), "");
  EXPECT_THAT(server("/no/such.crt", one.key_file()),
              HasSubstr("certificate \"/no/such.crt\": No such file"));
  EXPECT_THAT(server(text, one.key_file()), AllOf(HasSubstr(text), HasSubstr("PEM")));
  EXPECT_THAT(server(one.file(), "/no/such.key"), HasSubstr("private key \"/no/such.key\": No such file"));
  EXPECT_THAT(server(one.file(), one.file()),
              HasSubstr("\"" + one.file() + "\" has no private key in PEM format"));
  EXPECT_THAT(server(one.file(), two.key_file()), HasSubstr("does not belong to certificate"));
  EXPECT_THAT(server(one.file(), one.key_file(), text),
              HasSubstr("\"" + text + "\" has no certificate authorities in PEM format"));
  EXPECT_THAT(server(one.file(), "/"), HasSubstr("\"/\" has no private key in PEM format"));
  EXPECT_THAT(server("", one.key_file()), HasSubstr("(--tls-key): give both"));
  const auto client = [](const TlsOptions& options) {
    return std::string(Message(ClientTls::Load(options).status()));
  };
  EXPECT_THAT(client({.ca_file = "/no/ca"}), HasSubstr("certificate authorities \"/no/ca\": No such file"));
  EXPECT_THAT(client({.certificate_file = one.file()}), HasSubstr("give both"));
  unlink(text.c_str());
}

TEST(TlsFiles, AServerWarnsOfACertificateThatIsNotValidNow) {
  const TestCertificate old({.common_name = "old", .valid_from_s = -7200, .valid_until_s = -3600});
  testing::internal::CaptureStderr();
  EXPECT_TRUE(ServerTls::Load({old.file(), old.key_file(), ""}).ok());
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr(old.file() + "\" has expired: CN=old was valid until"), HasSubstr("renew it")));
}

// ----- the state machine, without sockets -----------------------------------------------------------------

// A peer that is OpenSSL itself, with memory for a network.
class RawTls {
 public:
  RawTls(SSL_CTX* context, bool server)
      : ssl_(SSL_new(context)), in_(BIO_new(BIO_s_mem())), out_(BIO_new(BIO_s_mem())) {
    SSL_CTX_free(context);
    SSL_set_bio(ssl_, in_, out_);
    server ? SSL_set_accept_state(ssl_) : SSL_set_connect_state(ssl_);
  }
  ~RawTls() { SSL_free(ssl_); }
  SSL* ssl() { return ssl_; }
  void Feed(std::string_view bytes) { BIO_write(in_, bytes.data(), static_cast<int>(bytes.size())); }
  std::string TakeOutput() {
    char* data = nullptr;
    std::string bytes(static_cast<size_t>(BIO_get_mem_data(out_, &data)), '\0');
    BIO_read(out_, bytes.data(), static_cast<int>(bytes.size()));
    return bytes;
  }
  std::string Read() {
    std::string text;
    char buffer[1000];
    for (int n; (n = SSL_read(ssl_, buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<size_t>(n));
    return text;
  }

 private:
  SSL* const ssl_;
  BIO* const in_;
  BIO* const out_;
};

// Feeds all bytes in pieces of `piece`; returns the plain text.
std::string FeedPieces(internal::TlsStream& stream, std::string_view bytes, size_t piece) {
  std::string text;
  char buffer[5000];
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) {
    stream.Feed(bytes.substr(0, piece));
    while (const size_t n = stream.Read(buffer, sizeof buffer)) text.append(buffer, n);
  }
  return text;
}

// Lets the two talk until both are silent; returns what `stream` decrypted.
std::string Converse(internal::TlsStream& stream, RawTls& peer, size_t piece) {
  std::string text;
  while (true) {
    std::string out;
    stream.TakeOutput(&out);
    peer.Feed(out);
    SSL_do_handshake(peer.ssl());
    const std::string in = peer.TakeOutput();
    text += FeedPieces(stream, in, piece);
    if (out.empty() && in.empty()) return text;
  }
}

class TlsStreamTest : public Tls {
 protected:
  std::unique_ptr<internal::TlsStream> NewClient() {
    return internal::TlsStream::Client(*Trust(authority_)->context(), "localhost", true);
  }
  // A server that is OpenSSL itself, which agrees to the protocol `alpn` (a static string) if that is offered.
  SSL_CTX* ServerContext(const char* alpn) {
    SSL_CTX* context = SSL_CTX_new(TLS_server_method());
    EXPECT_EQ(SSL_CTX_use_certificate_file(context, leaf_.file().c_str(), SSL_FILETYPE_PEM), 1);
    EXPECT_EQ(SSL_CTX_use_PrivateKey_file(context, leaf_.key_file().c_str(), SSL_FILETYPE_PEM), 1);
    if (alpn != nullptr) SSL_CTX_set_alpn_select_cb(context, &Choose, const_cast<char*>(alpn));
    return context;
  }

 private:
  static int Choose(SSL*, const unsigned char** out, unsigned char* size, const unsigned char* in,
                    unsigned in_size, void* alpn) {
    const auto* wanted = static_cast<const unsigned char*>(alpn);
    unsigned char* chosen = nullptr;
    if (SSL_select_next_proto(&chosen, size, wanted, wanted[0] + 1u, in, in_size) != OPENSSL_NPN_NEGOTIATED) {
      return SSL_TLSEXT_ERR_ALERT_FATAL;
    }
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
  }
};

TEST_F(TlsStreamTest, KeyUpdatesAndRecordsInPieces) {
  const uint64_t seed = 20240;
  Rng rng(seed);
  for (int round = 0; round < 30; ++round) {
    const size_t piece = 1 + rng.Below(round % 3 == 0 ? 8 : 20000);
    SCOPED_TRACE(Join("seed ", seed, ", round ", round, ", pieces of ", piece));
    auto stream = NewClient();
    EXPECT_EQ(stream->Write("too early"), 0u);
    RawTls peer(ServerContext("\x02h2"), true);
    EXPECT_EQ(Converse(*stream, peer, piece), "");
    ASSERT_TRUE(stream->standing()) << stream->status();
    const std::string text(rng.Below(60000), 'q');
    ASSERT_EQ(SSL_key_update(peer.ssl(), SSL_KEY_UPDATE_REQUESTED), 1);
    if (!text.empty()) {
      ASSERT_EQ(SSL_write(peer.ssl(), text.data(), static_cast<int>(text.size())),
                static_cast<int>(text.size()));
    }
    EXPECT_EQ(Converse(*stream, peer, piece), text);
    EXPECT_EQ(stream->Write("answer"), 6u);
    std::string out;
    stream->TakeOutput(&out);
    peer.Feed(out);
    EXPECT_EQ(peer.Read(), "answer");
    SSL_shutdown(peer.ssl());
    EXPECT_EQ(FeedPieces(*stream, peer.TakeOutput(), piece), "");
    EXPECT_EQ(std::string(Message(stream->status())), "connection closed by the peer");
    stream->Shutdown();
    out.clear();
    stream->TakeOutput(&out);
    peer.Feed(out);
    EXPECT_EQ(peer.Read(), "");
    EXPECT_NE(SSL_get_shutdown(peer.ssl()) & SSL_RECEIVED_SHUTDOWN, 0);
  }
}

TEST_F(TlsStreamTest, AnswersThatNobodyTakesEndIt) {
  auto stream = NewClient();
  RawTls peer(ServerContext("\x02h2"), true);
  Converse(*stream, peer, 1000);
  ASSERT_TRUE(stream->standing());
  int updates = 0;
  for (; stream->status().ok() && updates < 1'000'000; ++updates) {
    ASSERT_EQ(SSL_key_update(peer.ssl(), SSL_KEY_UPDATE_REQUESTED), 1);
    ASSERT_EQ(SSL_do_handshake(peer.ssl()), 1);
    FeedPieces(*stream, peer.TakeOutput(), 1000);
  }
  EXPECT_THAT(std::string(Message(stream->status())), HasSubstr("more than it takes")) << updates;
}

TEST_F(TlsStreamTest, SpeaksTls12ButNothingOlder) {
  auto stream = NewClient();
  SSL_CTX* context = ServerContext("\x02h2");
  SSL_CTX_set_max_proto_version(context, TLS1_2_VERSION);
  RawTls peer(context, true);
  Converse(*stream, peer, 100);
  EXPECT_TRUE(stream->standing()) << stream->status();

  auto modern = NewClient();
  SSL_CTX* old = ServerContext("\x02h2");
  SSL_CTX_set_security_level(old, 0);
  SSL_CTX_set_min_proto_version(old, TLS1_VERSION);
  SSL_CTX_set_max_proto_version(old, TLS1_1_VERSION);
  RawTls old_peer(old, true);
  Converse(*modern, old_peer, 100);
  EXPECT_FALSE(modern->standing());
  EXPECT_THAT(std::string(Message(modern->status())), HasSubstr("TLS handshake failed: "));
}

TEST_F(TlsStreamTest, InsistsOnHttp2) {
  for (const char* alpn : {"\x08http/1.1", static_cast<const char*>(nullptr)}) {
    auto stream = NewClient();
    RawTls peer(ServerContext(alpn), true);
    Converse(*stream, peer, 100);
    EXPECT_FALSE(stream->standing());
    EXPECT_THAT(std::string(Message(stream->status())), AllOf(HasSubstr("HTTP/2"), HasSubstr("ALPN")));
  }
  // A client that offers nothing, or something else.
  for (const bool offers : {false, true}) {
    auto tls = ServerTls::Load({leaf_.file(), leaf_.key_file(), ""});
    auto stream = internal::TlsStream::Server(*(*tls)->context());
    RawTls peer(SSL_CTX_new(TLS_client_method()), false);
    if (offers) SSL_set_alpn_protos(peer.ssl(), reinterpret_cast<const unsigned char*>("\x08http/1.1"), 9);
    Converse(*stream, peer, 100);
    EXPECT_FALSE(stream->standing());
    EXPECT_THAT(std::string(Message(stream->status())), HasSubstr("ALPN"));
  }
}

TEST_F(TlsStreamTest, AChangedByteEndsIt) {
  auto stream = NewClient();
  RawTls peer(ServerContext("\x02h2"), true);
  Converse(*stream, peer, 1000);
  ASSERT_TRUE(stream->standing());
  ASSERT_EQ(SSL_write(peer.ssl(), "secret", 6), 6);
  std::string record = peer.TakeOutput();
  record.back() = static_cast<char>(record.back() ^ 1);
  EXPECT_EQ(FeedPieces(*stream, record, 1000), "");
  EXPECT_THAT(std::string(Message(stream->status())), HasSubstr("TLS: "));
  EXPECT_EQ(stream->Write("more"), 0u);
}

}  // namespace
}  // namespace curtail
