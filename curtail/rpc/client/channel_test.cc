// SPDX-License-Identifier: Apache-2.0
//
// A channel and a server whose other side is absent, silent or wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "curtail/rpc/client/channel_impl.h"
#include "curtail/rpc/rpc_testing.h"

namespace curtail {
namespace {

using testing::HasSubstr;

TEST(Channel, RefusesWhatIsNoAddress) {
  Client client;
  for (const char* target :
       {"", "nonsense", "127.0.0.1", "127.0.0.1:", "127.0.0.1:99999", ":80", "unix:", "::1:80"}) {
    Channel channel(&client, target);
    Context ctx(seconds(1));
    StringValue reply;
    EXPECT_EQ(channel.Call(ctx, "/a.B/C", Text(""), &reply).code(), absl::StatusCode::kInvalidArgument)
        << target;
  }
}

TEST(Channel, BacksOffAfterAFailedAttempt) {
  Client client;
  Channel channel(&client, "127.0.0.1:1", {.initial_backoff = seconds(30)});
  StringValue reply;
  Context first(seconds(5));
  EXPECT_EQ(channel.Call(first, "/a.B/C", Text(""), &reply).code(), absl::StatusCode::kUnavailable);
  Context second(seconds(5));
  const absl::Status status = channel.Call(second, "/a.B/C", Text(""), &reply);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("not tried again yet"));
}

TEST(Backoff, GrowsFromFailureToFailureUntilItIsReset) {
  internal::Backoff backoff;
  for (int twice = 0; twice < 2; ++twice) {
    for (const int expected : {100, 160, 256, 300, 300}) {
      const Nanos wait = backoff.Next(milliseconds(100), milliseconds(300), Now());
      EXPECT_GE(wait, milliseconds(expected) * 8 / 10);
      EXPECT_LT(wait, milliseconds(expected) * 12 / 10);
    }
    backoff.Reset();
  }
}

class ChannelBackoff : public RpcBase, public testing::Test {};

// Each server that goes was reached, so the next one is called at once, and the next failure waits no longer than the first.
TEST_F(ChannelBackoff, BeginsAgainAfterASuccess) {
  constexpr Nanos kInitial = std::chrono::minutes(10);
  Client client;
  std::unique_ptr<Server> server = StartServer("SDB1-2");
  const std::string address = server->addresses()[0];
  Channel channel(&client, address, {.initial_backoff = kInitial, .max_backoff = 10 * kInitial});
  for (int i = 0; i < 3; ++i) {
    absl::Status status = absl::UnavailableError("not called yet");
    for (const Deadline end = Deadline::In(kMaxTestWait); absl::IsUnavailable(status) && !end.Expired();)
      status = Call(channel, kEcho, "x");
    ASSERT_TRUE(status.ok()) << status;
    server.reset();
    if (i < 2) server = StartServer("SDB1-2", {}, address);
  }
  const std::shared_ptr<Poller>& poller = client.lane(0).poller();
  for (const Deadline end = Deadline::In(kMaxTestWait);
       channel.impl().NextAttempt(poller) == TimePoint() && !end.Expired();)
    EXPECT_TRUE(absl::IsUnavailable(Call(channel, kEcho, "x")));
  const Nanos wait = channel.impl().NextAttempt(poller) - Now();
  EXPECT_GT(wait, kInitial / 2);
  EXPECT_LT(wait, kInitial * 12 / 10);
}

TEST(Channel, AFailedCallThatIsBegunAgainDoesNotHoldThePoller) {
  Client client;
  Channel channel(&client, "unix:/nonexistent/socket");
  struct Again final : Completion {
    void Done(absl::Status&& status, std::string&&) override {
      ++failures;
      last = std::move(status);
      if (failures < 1'000'000) channel->Start("/a.B/C", Deadline::In(seconds(1)), {}, "", this);
    }
    Channel* channel;
    int failures = 0;
    absl::Status last;
  } again;
  again.channel = &channel;
  channel.Start("/a.B/C", Deadline::In(seconds(1)), {}, "", &again);
  client.Poll(Deadline::In(milliseconds(1)));
  EXPECT_EQ(again.failures, 1);
  EXPECT_EQ(again.last.code(), absl::StatusCode::kUnavailable);
  again.failures = 1'000'000;  // lets the one in flight be the last
  client.Poll(Deadline::In(milliseconds(1)));
}

TEST(Channel, APollCountsCallsThatEndedBeforeIt) {
  // The start of a call looks at a connection that was not used for a while, and reads the reply to another call.
  constexpr Nanos kUnused = milliseconds(150);
  ServerOptions options;
  options.config = *Config::Parse("SIB1");
  const auto server = Server::Start(options, {});
  ASSERT_TRUE(server.ok()) << server.status();
  Client client;
  Channel channel(&client, (*server)->addresses()[0]);
  struct Ended final : Completion {
    void Done(absl::Status&& status, std::string&&) override {
      EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
      ++times;
    }
    int times = 0;
  } ended;
  const Deadline deadline = Deadline::In(kMaxTestWait);
  channel.Start("/a.B/C", deadline, {}, "", &ended);
  size_t counted = client.Poll(Deadline::At(TimePoint()));
  for (const TimePoint end = Now() + kUnused; Now() < end;) {
  }
  channel.Start("/a.B/C", deadline, {}, "", &ended);
  while (ended.times < 2 && !deadline.Expired()) counted += client.Poll(deadline);
  EXPECT_EQ(ended.times, 2);
  EXPECT_EQ(counted, 2u);
}

TEST(Channel, GivesUpConnectingAfterItsTimeout) {
  // A socket that listens with a full backlog answers no further SYN: attempts hang.
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(listener, 0), 0);
  ASSERT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
  std::vector<int> fillers;
  for (int i = 0; i < 8; ++i) {
    fillers.push_back(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    connect(fillers.back(), reinterpret_cast<sockaddr*>(&address), size);
  }
  Client client;
  Channel channel(&client, Join("127.0.0.1:", ntohs(address.sin_port)),
                  {.connect_timeout = milliseconds(50)});
  Context ctx(kMaxTestWait);
  StringValue reply;
  const absl::Status status = channel.Call(ctx, "/a.B/C", Text(""), &reply);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_THAT(std::string(Message(status)), HasSubstr("timed out"));
  for (const int fd : fillers) close(fd);
  close(listener);
}

TEST(Server, ReportsAPortInUse) {
  ServerOptions options;
  options.config = *Config::Parse("SIB1");
  auto first = Server::Start(options, {});
  ASSERT_TRUE(first.ok());
  options.listen = (*first)->addresses();
  const auto second = Server::Start(options, {});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(Message(second.status())), HasSubstr("in use"));
}

TEST(Server, DrainsASilentConnectionAtOnce) {
  ServerOptions options;
  options.config = *Config::Parse("SIB1");
  auto server = Server::Start(options, {});
  ASSERT_TRUE(server.ok());
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const std::string& text = (*server)->addresses()[0];
  address.sin_port = htons(static_cast<uint16_t>(std::stoi(text.substr(text.rfind(':') + 1))));
  const int silent = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(connect(silent, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_TRUE((*server)->Drain(Deadline::In(kMaxTestWait)).ok());
  close(silent);
}

// Serves one method, with the handlers it is given.
class NamedDo final : public Service {
 public:
  explicit NamedDo(MethodHandler handler) : handler_(std::move(handler)) { handler_.name = "Do"; }
  std::string_view FullName() const override { return "test.One"; }
  std::vector<MethodHandler> Handlers() override { return {handler_}; }

 private:
  MethodHandler handler_;
};

absl::StatusOr<std::unique_ptr<Server>> StartWith(const char* config, MethodHandler handler) {
  ServerOptions options;
  options.config = *Config::Parse(config);
  std::vector<std::unique_ptr<Service>> services;
  services.push_back(std::make_unique<NamedDo>(std::move(handler)));
  return Server::Start(options, std::move(services));
}

TEST(Server, RefusesModelsThatAHandlerCannotRunUnder) {
  const Handler straight = [](Context&, std::string_view, std::string*) { return absl::OkStatus(); };
  const ContinuationHandler continuation = [](Context&, std::string_view, Responder responder) {
    responder.Finish(absl::OkStatus(), "");
  };
  const absl::Status sync_only = StartWith("AIB1-1", {.handler = straight}).status();
  EXPECT_EQ(sync_only.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(sync_only.message().find("/test.One/Do"), absl::string_view::npos) << sync_only;
  EXPECT_EQ(StartWith("FIB1", {.continuation = continuation}).status().code(),
            absl::StatusCode::kInvalidArgument);

  auto server = StartWith("AIB1-1", {.continuation = continuation});
  ASSERT_TRUE(server.ok()) << server.status();
  const absl::Status switched = (*server)->SwitchTo(*Config::Parse("SIB1"));
  EXPECT_EQ(switched.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(switched.message().find("continuation handler only"), absl::string_view::npos) << switched;
  EXPECT_TRUE((*server)->SwitchTo(*Config::Parse("ADP1-2-2")).ok());
}

}  // namespace
}  // namespace curtail
