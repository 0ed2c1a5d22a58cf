// SPDX-License-Identifier: Apache-2.0
//
// Connections that ask their server for a sign of life. Property: calls on one that is dead end with UNAVAILABLE, in
// every form; one that answers is kept, however long its calls take.
#include <gmock/gmock.h>

#include <algorithm>
#include <utility>

#include "curtail/rpc/transport/transport_testing.h"
#include "curtail/wire/session.h"

namespace curtail {
namespace {

using testing::HasSubstr;

const ChannelOptions kImpatient = {.keepalive_time = milliseconds(10), .keepalive_timeout = milliseconds(10)};

// An empty SETTINGS frame, and no word more.
std::string OnlySettings() { return std::string("\0\0\0\4\0\0\0\0\0", 9); }

// Answers a call with its message when it has heard three PINGs since.
class PingedServer {
 public:
  PingedServer() : listener_([this](internal::UniqueFd fd, int stop) { Serve(fd.get(), stop); }) {}
  const std::string& address() const { return listener_.address(); }

 private:
  struct Echo final : wire::Events {
    void* OnRequest(wire::StreamId, wire::RequestHead&&) override { return this; }
    void OnMessage(wire::StreamId id, void*, std::string&& message) override {
      stream = id;
      text = std::move(message);
    }
    void OnCallEnd(wire::StreamId, void*, absl::Status&&, wire::Metadata&&) override {}
    TimePoint now() override { return Now(); }
    wire::StreamId stream = 0;
    std::string text;
  };

  static int Pings(std::string& bytes) {
    int pings = 0;
    while (bytes.size() >= 9) {
      const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<uint8_t>(bytes[i])); };
      const size_t size = 9 + (byte(0) << 16 | byte(1) << 8 | byte(2));
      if (bytes.size() < size) break;
      pings += byte(3) == 6 && (byte(4) & 1) == 0;
      bytes.erase(0, size);
    }
    return pings;
  }

  void Serve(int fd, int stop) {
    Echo echo;
    wire::Session session(wire::Role::kServer, {}, &echo);
    std::string frames;
    int pings = 0;
    char bytes[65536];
    for (bool first = true; TestListener::Wait(fd, stop); first = false) {
      const ssize_t n = recv(fd, bytes, sizeof bytes, 0);
      if (n <= 0) return;
      const std::string_view heard(bytes, static_cast<size_t>(n));
      frames.append(first ? heard.substr(std::min<size_t>(24, heard.size())) : heard);  // behind the preface
      pings += Pings(frames);
      if (!session.Receive(heard).ok()) return;
      if (pings >= 3 && echo.stream != 0) {
        const wire::StreamId stream = std::exchange(echo.stream, 0);
        session.SendMessage(stream, std::move(echo.text));
        session.EndCall(stream, absl::OkStatus());
      }
      std::string said;
      while (session.Pull(&said)) continue;
      if (send(fd, said.data(), said.size(), MSG_NOSIGNAL) < 0) return;
    }
  }

  TestListener listener_;
};

absl::Status CallOnce(Channel& channel, std::string* answer = nullptr) {
  Context ctx(kMaxTestWait);
  StringValue reply;
  const absl::Status status = channel.Call(ctx, kEcho.path, Text("x"), &reply);
  if (answer != nullptr) *answer = reply.value();
  return status;
}

absl::Status StartOne(Client& client, Channel& channel) {
  struct Ended final : Completion {
    void Done(absl::Status&& s, std::string&&) override { status = std::move(s), done = true; }
    absl::Status status;
    bool done = false;
  } ended;
  channel.Start(kEcho.path, Deadline::In(kMaxTestWait), {}, Text("x").SerializeAsString(), &ended);
  for (const Deadline end = Deadline::In(kMaxTestWait); !ended.done && !end.Expired();) client.Poll(end);
  return ended.done ? ended.status : absl::InternalError("it never ended");
}

TEST(Keepalive, CallsToASilentServerEnd) {
  const ScriptedServer silent(OnlySettings(), ScriptedServer::kStay);
  Client client;
  Channel channel(&client, silent.address(), kImpatient);
  const absl::Status status = CallOnce(channel);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_THAT(std::string(Message(status)), HasSubstr("keepalive: the server is silent"));
}

TEST(Keepalive, EventDrivenCallsToASilentServerEnd) {
  const ScriptedServer silent(OnlySettings(), ScriptedServer::kStay);
  Client client;
  Channel channel(&client, silent.address(), kImpatient);
  EXPECT_EQ(StartOne(client, channel).code(), absl::StatusCode::kUnavailable);
}

TEST(Keepalive, AServerThatAnswersKeepsItsConnection) {
  PingedServer server;
  Client client;
  ChannelOptions options = kImpatient;
  options.keepalive_timeout = kMaxTestWait;
  Channel channel(&client, server.address(), options);
  std::string answer;
  const absl::Status status = CallOnce(channel, &answer);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(answer, "x");
}

TEST(Keepalive, EventDrivenCallsKeepTheirConnection) {
  PingedServer server;
  Client client;
  ChannelOptions options = kImpatient;
  options.keepalive_timeout = kMaxTestWait;
  Channel channel(&client, server.address(), options);
  const absl::Status status = StartOne(client, channel);
  EXPECT_TRUE(status.ok()) << status;
}

}  // namespace
}  // namespace curtail
