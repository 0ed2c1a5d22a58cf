// SPDX-License-Identifier: Apache-2.0
//
// Peers that break the protocol, stall or come in thousands, against curtail's server. Whatever one of them
// does, the server refuses it in bounded time and goes on serving the others.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <random>

#include "curtail/base/testing.h"
#include "curtail/deploy/process/process.h"
#include "servers.h"

namespace curtail::interop {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

constexpr char kPreface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

enum FrameType : uint8_t {
  kData = 0,
  kHeaders = 1,
  kReset = 3,
  kSettings = 4,
  kGoaway = 7,
  kWindowUpdate = 8,
  kContinuation = 9
};
constexpr uint8_t kEndStream = 1;
constexpr uint8_t kEndHeaders = 4;

std::string Frame(uint8_t type, uint8_t flags, uint32_t stream, const std::string& payload) {
  std::string out;
  for (const int shift : {16, 8, 0}) out += static_cast<char>(payload.size() >> shift);
  out += static_cast<char>(type);
  out += static_cast<char>(flags);
  for (const int shift : {24, 16, 8, 0}) out += static_cast<char>(stream >> shift);
  return out + payload;
}

// An HPACK integer with a prefix of 7 bits, the eighth 0: the length of a plain string (RFC 7541, 5.1).
std::string HpackLength(size_t value) {
  if (value < 127) return std::string(1, static_cast<char>(value));
  std::string out(1, 127);
  for (value -= 127; value >= 128; value /= 128) out += static_cast<char>(value % 128 + 128);
  return out + static_cast<char>(value);
}

// A header field, literal and not indexed.
std::string Field(const std::string& name, const std::string& value) {
  std::string out(1, '\0');
  return out + HpackLength(name.size()) + name + HpackLength(value.size()) + value;
}

std::string RequestFields() {
  return Field(":method", "POST") + Field(":scheme", "http") + Field(":path", std::string(Echo::kEcho.path)) +
         Field(":authority", "localhost") + Field("te", "trailers") +
         Field("content-type", "application/grpc");
}

// The first bytes of a client.
std::string Hello() { return kPreface + Frame(kSettings, 0, 0, ""); }

// A gRPC message with its prefix.
std::string Message(const std::string& bytes) {
  std::string out(1, '\0');
  for (const int shift : {24, 16, 8, 0}) out += static_cast<char>(bytes.size() >> shift);
  return out + bytes;
}

std::string WholeRequest(uint32_t stream, const EchoRequest& request) {
  return Frame(kHeaders, kEndHeaders, stream, RequestFields()) +
         Frame(kData, kEndStream, stream, Message(request.SerializeAsString()));
}

// The grpc-status of a reply, as the server writes it.
std::string StatusField(const std::string& code) {
  return "grpc-status" + std::string(1, static_cast<char>(code.size())) + code;
}

// A socket to the server whose reads and writes are bounded.
class RawPeer {
 public:
  explicit RawPeer(const std::string& address) : fd_(ConnectTo(address)) {
    const timeval timeout{.tv_sec = kMaxTestWait.count(), .tv_usec = 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
    setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
  }
  ~RawPeer() {
    if (fd_ >= 0) close(fd_);
  }
  RawPeer(const RawPeer&) = delete;
  RawPeer& operator=(const RawPeer&) = delete;

  bool connected() const { return fd_ >= 0; }
  // The server may close in the middle of it.
  void Send(const std::string& bytes) { (void)send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL); }
  // The server's bytes until it closes; nothing when it does not close in time.
  std::optional<std::string> ReadUntilClosed() {
    std::string all;
    char buffer[4096];
    while (true) {
      const ssize_t n = recv(fd_, buffer, sizeof(buffer), 0);
      if (n == 0 || (n < 0 && errno == ECONNRESET)) return all;
      if (n < 0) return std::nullopt;
      all.append(buffer, static_cast<size_t>(n));
    }
  }
  // The payloads of the frames that AwaitEndOf() has read.
  const std::string& heard() const { return heard_; }
  // True if the server ends this stream, or the connection, in time.
  bool AwaitEndOf(uint32_t stream) {
    while (true) {
      std::string head;
      if (!ReadExactly(9, &head)) return closed_;
      const auto byte = [&head](size_t i) { return static_cast<uint32_t>(static_cast<uint8_t>(head[i])); };
      std::string payload;
      if (!ReadExactly(byte(0) << 16 | byte(1) << 8 | byte(2), &payload)) return closed_;
      const uint32_t id = byte(5) << 24 | byte(6) << 16 | byte(7) << 8 | byte(8);
      heard_ += payload;
      if (byte(3) == kGoaway || (id == stream && (byte(3) == kReset || (byte(4) & kEndStream) != 0)))
        return true;
    }
  }

 private:
  bool ReadExactly(size_t size, std::string* out) {
    out->resize(size);
    for (size_t at = 0; at < size;) {
      const ssize_t n = recv(fd_, out->data() + at, size - at, 0);
      closed_ = n == 0 || (n < 0 && errno == ECONNRESET);
      if (n <= 0) return false;
      at += static_cast<size_t>(n);
    }
    return true;
  }

  bool closed_ = false;
  std::string heard_;
  const int fd_;
};

class BadInputTest : public testing::TestWithParam<const char*> {
 protected:
  ~BadInputTest() override { gate_.Open(); }

  const std::string& address() const { return server_->addresses()[0]; }

  // That a well-behaved client is served, on a connection of its own.
  void ExpectServes() {
    Client client;
    Channel channel(&client, address());
    Context ctx(kMaxTestWait);
    EchoRequest request;
    request.set_payload("still here");
    EchoReply reply;
    const absl::Status status = channel.Call(ctx, Echo::kEcho.path, request, &reply);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(reply.payload(), "still here");
  }

  void ExpectCloses(const std::string& bytes) {
    RawPeer peer(address());
    peer.Send(bytes);
    EXPECT_TRUE(peer.ReadUntilClosed().has_value()) << "the server keeps a peer that makes no sense";
    ExpectServes();
  }

  Gate gate_;
  std::unique_ptr<Server> server_ = MustStart(OptionsFor(GetParam()), MakeEchoService(&gate_));
};

TEST_P(BadInputTest, WrongPreface) {
  ExpectCloses("PRI * HTTP/3.0\r\n\r\nSM\r\n\r\n");
  ExpectCloses("SSH-2.0-OpenSSH_9.2\r\n");
  ExpectCloses(std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11) +
               std::string(64, 'x'));  // TLS
}

TEST_P(BadInputTest, Http1Request) {
  RawPeer peer(address());
  peer.Send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const std::optional<std::string> answer = peer.ReadUntilClosed();
  ASSERT_TRUE(answer.has_value());
  EXPECT_TRUE(answer->starts_with("HTTP/1.1 400")) << *answer;
  ExpectServes();
}

TEST_P(BadInputTest, GarbageAfterThePreface) {
  constexpr uint64_t kSeed = 20240131;
  std::cout << "seed " << kSeed << "\n";
  std::mt19937_64 random(kSeed);
  for (int round = 0; round < 50; ++round) {
    std::string garbage = Hello();
    const size_t size = random() % 2000;
    for (size_t i = 0; i < size; ++i) garbage += static_cast<char>(random());
    RawPeer peer(address());
    peer.Send(garbage);  // may well end within a frame, so that nothing need be answered
  }
  ExpectServes();
}

TEST_P(BadInputTest, FramesThatBreakHttp2) {
  ExpectCloses(Hello() + Frame(kData, 0, 0, "data on stream 0"));
  ExpectCloses(Hello() + Frame(kSettings, 0, 0, "five!"));
  ExpectCloses(Hello() + Frame(kHeaders, kEndHeaders, 2, RequestFields()));  // an even stream
  ExpectCloses(Hello() + Frame(kHeaders, kEndHeaders, 1, "\xff\xff\xff\xff\xff\xff\xff\xff"));
  ExpectCloses(Hello() + Frame(kContinuation, kEndHeaders, 1, RequestFields()));
  ExpectCloses(Hello() + Frame(kWindowUpdate, 0, 0, std::string(4, '\0')));
  std::string oversized = Frame(kHeaders, 0, 1, "");
  oversized[0] = '\x7f';  // eight megabytes
  ExpectCloses(Hello() + oversized);
}

TEST_P(BadInputTest, TruncatedAnywhere) {
  EchoRequest request;
  request.set_payload("never whole");
  const std::string whole = Hello() + WholeRequest(1, request);
  for (size_t size = 1; size < whole.size(); size += 7) {
    RawPeer peer(address());
    peer.Send(whole.substr(0, size));
  }
  ExpectServes();
}

TEST_P(BadInputTest, OversizedHeaders) {
  std::string fields = RequestFields() + Field("x-long", std::string(100'000, 'h'));
  constexpr size_t kFrame = 16384;
  std::string bytes = Hello() + Frame(kHeaders, 0, 1, fields.substr(0, kFrame));
  for (size_t at = kFrame; at < fields.size(); at += kFrame) {
    const bool last = at + kFrame >= fields.size();
    bytes += Frame(kContinuation, last ? kEndHeaders : 0, 1, fields.substr(at, kFrame));
  }
  RawPeer peer(address());
  peer.Send(bytes + WholeRequest(3, EchoRequest()));
  EXPECT_TRUE(peer.AwaitEndOf(1));
  EXPECT_THAT(peer.heard(), HasSubstr(StatusField("8")));
  EXPECT_TRUE(peer.AwaitEndOf(3));
  EXPECT_THAT(peer.heard(), EndsWith(std::string("\x01") + "0")) << "one call took the connection down";
  ExpectServes();
}

TEST_P(BadInputTest, UnaryCallsOfNoneOrTwoMessagesAreUnimplemented) {
  for (const std::string& body : {std::string(), Message("") + Message("")}) {
    RawPeer peer(address());
    peer.Send(Hello() + Frame(kHeaders, kEndHeaders, 1, RequestFields()) + Frame(kData, kEndStream, 1, body));
    EXPECT_TRUE(peer.AwaitEndOf(1));
    EXPECT_THAT(peer.heard(), HasSubstr(StatusField("12")));
  }
  ExpectServes();
}

TEST_P(BadInputTest, HeadersWithoutEnd) {
  std::string bytes = Hello() + Frame(kHeaders, 0, 1, RequestFields());
  for (int i = 0; i < 1000; ++i) bytes += Frame(kContinuation, 0, 1, Field("x-more", std::string(1000, 'm')));
  ExpectCloses(bytes);
}

TEST_P(BadInputTest, MessageLongerThanItsPrefixAllows) {
  std::string lies = Message("ten bytes.");
  lies[1] = '\x7f';  // two gigabytes
  RawPeer peer(address());
  peer.Send(Hello() + Frame(kHeaders, kEndHeaders, 1, RequestFields()) + Frame(kData, kEndStream, 1, lies));
  EXPECT_TRUE(peer.AwaitEndOf(1));
  ExpectServes();
}

TEST_P(BadInputTest, UndecodableProtobufIsInternal) {
  struct Last final : Completion {
    void Done(absl::Status&& s, std::string&&) override { status = std::move(s), done = true; }
    absl::Status status;
    bool done = false;
  } last;
  Client client;
  Channel channel(&client, address());
  channel.Start(Echo::kEcho.path, Deadline::In(kMaxTestWait), {}, "\xff\xff\xff\xff", &last);
  const Deadline deadline = Deadline::In(kMaxTestWait);
  while (!last.done && !deadline.Expired()) client.Poll(deadline);
  ASSERT_TRUE(last.done);
  EXPECT_EQ(last.status.code(), absl::StatusCode::kInternal) << last.status;
  ExpectServes();
}

TEST_P(BadInputTest, PeersThatStallDoNotHoldOthersUp) {
  RawPeer silent(address());
  RawPeer half_preface(address());
  half_preface.Send("PRI * HT");
  RawPeer half_request(address());
  half_request.Send(Hello() + Frame(kHeaders, kEndHeaders, 1, RequestFields()));
  // Asks for a lot and never reads it.
  EchoRequest big;
  big.set_reply_size(16 << 20);
  RawPeer reads_nothing(address());
  std::string bytes = Hello() + Frame(kWindowUpdate, 0, 0, std::string("\x3f\xff\xff\xff"));
  for (uint32_t stream = 1; stream < 16; stream += 2) {
    bytes += WholeRequest(stream, big) + Frame(kWindowUpdate, 0, stream, std::string("\x3f\xff\xff\xff"));
  }
  reads_nothing.Send(bytes);
  for (int i = 0; i < 20; ++i) ExpectServes();
}

TEST_P(BadInputTest, ResetsInAStorm) {
  // "Rapid reset": requests that are cancelled at once, in numbers.
  EchoRequest request;
  std::string bytes = Hello();
  for (uint32_t stream = 1; stream < 4000; stream += 2) {
    bytes += WholeRequest(stream, request) + Frame(kReset, 0, stream, std::string("\0\0\0\x08", 4));
  }
  RawPeer peer(address());
  peer.Send(bytes);
  ExpectServes();
}

// Raises the limit on descriptors as far as it needs to.
bool AllowDescriptors(size_t count) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur >= count) return true;
  limit.rlim_cur = count;
  limit.rlim_max = std::max<rlim_t>(limit.rlim_max, count);  // beyond the present one only as root
  return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

// A Crowd is a process that holds idle connections, so that their two ends do not share one limit on
// descriptors.
class Crowd {
 public:
  Crowd(const std::string& address, size_t count) {
    const std::string hello = Hello();
    auto process = deploy::Process::Spawn({.name = "crowd", .run = [&] { Live(address, hello, count); }});
    if (!process.ok()) std::abort();
    process_ = *std::move(process);
  }

  // OK once all connections were made.
  absl::Status AwaitConnected() {
    return process_->AwaitLine("connected", Deadline::In(kMaxTestWait), nullptr).status();
  }

 private:
  // In the child of a program with threads: no allocation, no locks. Every other connection says hello.
  [[noreturn]] static void Live(const std::string& address, const std::string& hello, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      const int fd = ConnectTo(address);
      if (fd < 0) _exit(1);
      if (i % 2 == 0 && send(fd, hello.data(), hello.size(), MSG_NOSIGNAL) < 0) _exit(1);
    }
    if (write(STDOUT_FILENO, "connected\n", 10) != 10) _exit(1);
    for (;;) pause();
  }

  std::unique_ptr<deploy::Process> process_;
};

TEST_P(BadInputTest, IdleConnectionsCostNoService) {
  // More on demand: CURTAIL_IDLE_CONNECTIONS=10000.
  const char* wanted = std::getenv("CURTAIL_IDLE_CONNECTIONS");
  const size_t count = wanted == nullptr ? 2000 : static_cast<size_t>(std::atoi(wanted));
  ASSERT_TRUE(AllowDescriptors(count + 500))
      << "too few file descriptors for " << count << " connections; raise the hard limit (ulimit -Hn)";
  {
    Crowd crowd(address(), count);
    const absl::Status connected = crowd.AwaitConnected();
    ASSERT_TRUE(connected.ok()) << connected << "; not all of " << count << " connections were accepted";
    for (int i = 0; i < 20; ++i) ExpectServes();
  }
  ExpectServes();
}

INSTANTIATE_TEST_SUITE_P(Models, BadInputTest, testing::ValuesIn(kConfigs),
                         [](const auto& info) { return TestName(info.param); });

}  // namespace
}  // namespace curtail::interop
