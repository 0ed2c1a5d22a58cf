// SPDX-License-Identifier: Apache-2.0
//
// Servers behind a relay, as their callers see them. Times have lower bounds only: a busy machine is late.
#include "curtail/deploy/link/relay.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <memory>
#include <string>

#include "curtail/base/temp_dir_testing.h"
#include "curtail/rpc/rpc_testing.h"
#include "curtail/rpc/transport/socket.h"

namespace curtail::deploy {
namespace {

using internal::UniqueFd;

std::unique_ptr<Relay> RelayTo(const std::string& server, const LinkShape& shape,
                               const std::string& listen = "127.0.0.1:0") {
  auto relay = Relay::Start({.listen = listen, .to = server, .shape = shape});
  EXPECT_TRUE(relay.ok()) << relay.status();
  return relay.ok() ? *std::move(relay) : nullptr;
}

// An echo service, and what a caller of it through a relay gets.
class RelayedServer : public testing::Test {
 protected:
  RelayedServer() {
    std::vector<std::unique_ptr<Service>> services;
    services.push_back(std::make_unique<EchoService>(&gate_, std::vector<Channel*>{}, nullptr));
    auto server = Server::Start(ServerOptions(), std::move(services));
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  // The reply, and how long it took.
  std::string Echo(const Relay& relay, const std::string& text, Nanos* took) {
    Channel channel(&client_, relay.address());
    StringValue request, reply;
    request.set_value(text);
    Context ctx(kMaxTestWait);
    const TimePoint begun = Now();
    const absl::Status status = channel.Call(ctx, kEcho.path, request, &reply);
    *took = Now() - begun;
    EXPECT_TRUE(status.ok()) << status;
    return reply.value();
  }

  Gate gate_;
  Client client_;
  std::unique_ptr<Server> server_;
  TempDir dir_;
};

TEST_F(RelayedServer, CallsTakeTheDelayOfBothWays) {
  const auto relay =
      RelayTo(server_->addresses()[0], {.delay = milliseconds(20)}, "unix:" + dir_.File("relay"));
  Nanos took{};
  EXPECT_EQ(Echo(*relay, "hello", &took), "hello");
  EXPECT_GE(took, milliseconds(40));
}

TEST_F(RelayedServer, LargeMessagesTakeTheTimeOfTheRate) {
  const auto relay = RelayTo(server_->addresses()[0], {.bytes_per_s = 20e6});
  const std::string text(1'000'000, 'x');
  Nanos took{};
  EXPECT_EQ(Echo(*relay, text, &took), text);
  EXPECT_GE(took, milliseconds(100)) << "50 ms each way";
}

TEST_F(RelayedServer, LossAndJitterChangeNothingButTimes) {
  const auto relay =
      RelayTo(server_->addresses()[0], {.delay = milliseconds(1), .jitter = milliseconds(1), .loss = 0.01});
  const std::string text(300'000, 'x');
  Nanos took{};
  EXPECT_EQ(Echo(*relay, text, &took), text);
}

TEST_F(RelayedServer, ACutRelayIsUnavailable) {
  const auto relay = RelayTo(server_->addresses()[0], {});
  Nanos took{};
  EXPECT_EQ(Echo(*relay, "hello", &took), "hello");
  relay->Cut();
  Channel channel(&client_, relay->address());
  StringValue request, reply;
  Context ctx(kMaxTestWait);
  EXPECT_TRUE(absl::IsUnavailable(channel.Call(ctx, kEcho.path, request, &reply)));
}

// Raw sockets: all that comes until the stream ends.
std::string ReadToEnd(int fd) {
  std::string all;
  char buffer[256];
  while (true) {
    pollfd readable{fd, POLLIN, 0};
    if (poll(&readable, 1, 60'000) != 1) break;
    const ssize_t n = recv(fd, buffer, sizeof buffer, 0);
    if (n <= 0) return n == 0 ? all : all + " and an error";
    all.append(buffer, static_cast<size_t>(n));
  }
  return all + " and no end";
}

UniqueFd ConnectTo(const std::string& address) {
  bool connected = false;
  UniqueFd fd = *internal::StartConnect(*Address::Resolve(address), &connected);
  pollfd writable{fd.get(), POLLOUT, 0};
  EXPECT_EQ(poll(&writable, 1, 60'000), 1);
  return fd;
}

TEST(Relay, TheEndOfAStreamTravelsBehindItsBytes) {
  const UniqueFd listener = *internal::Listen(*Address::Resolve("127.0.0.1:0"));
  const auto relay = RelayTo(internal::BoundAddress(listener.get()), {.delay = milliseconds(5)});
  const UniqueFd caller = ConnectTo(relay->address());
  pollfd waits{listener.get(), POLLIN, 0};
  ASSERT_EQ(poll(&waits, 1, 60'000), 1);
  UniqueFd server(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  ASSERT_EQ(send(caller.get(), "hello", 5, 0), 5);
  shutdown(caller.get(), SHUT_WR);
  EXPECT_EQ(ReadToEnd(server.get()), "hello");
  ASSERT_EQ(send(server.get(), "bye", 3, 0), 3);
  server.Reset();
  EXPECT_EQ(ReadToEnd(caller.get()), "bye");
}

TEST(Relay, AServerThatIsNotThereEndsTheConnection) {
  const std::string address = "127.0.0.1:1";  // a port that was free a moment ago may be the relay's own
  const auto relay = RelayTo(address, {});
  EXPECT_EQ(ReadToEnd(ConnectTo(relay->address()).get()), "");
  EXPECT_FALSE(Relay::Start({.to = "nonsense"}).ok());
  EXPECT_FALSE(Relay::Start({.listen = relay->address(), .to = address}).ok()) << "the port is taken";
}

}  // namespace
}  // namespace curtail::deploy
