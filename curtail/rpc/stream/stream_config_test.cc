// SPDX-License-Identifier: Apache-2.0
//
// Streams under a service config, and streams that wait for their server.
#include <gmock/gmock.h>

#include <thread>

#include "curtail/rpc/client/servers/many_servers_testing.h"
#include "curtail/rpc/stream/async_stream_testing.h"

namespace curtail {
namespace {

using internal::OpenStream;

std::string MethodConfigOf(const std::string& fields) {
  return R"({"methodConfig": [{"name": [{"service": "test.Streams"}], )" + fields + "}]}";
}

// No server listens there, nor will one of another test: the address is of this process.
std::string FreeAddress() {
  AsyncSeen seen;
  ServerOptions options;
  options.listen = {OwnLoopback()};
  std::vector<std::unique_ptr<Service>> services;
  services.push_back(std::make_unique<AsyncStreamService>(&seen, nullptr));
  auto server = Server::Start(std::move(options), std::move(services));
  EXPECT_TRUE(server.ok()) << server.status();
  return (*server)->addresses()[0];
}

// The handlers of a mid-tier call a leaf over a channel with a config.
class StreamConfigTest : public StreamMidTier {
 protected:
  ~StreamConfigTest() override { server_.reset(); }

  void ServeTo(const std::string& leaf, ChannelOptions options) {
    options.initial_backoff = milliseconds(1);
    options.max_backoff = milliseconds(5);
    to_leaf_ = std::make_unique<Channel>(&client_, leaf, std::move(options));
    ServeWith(to_leaf_.get());
  }
  // Starts the leaf once a handler waits for it.
  std::thread StartLater(const std::string& address) {
    return std::thread([this, address] {
      ServerOptions options;
      options.listen = {address};
      std::vector<std::unique_ptr<Service>> services;
      services.push_back(std::make_unique<AsyncStreamService>(&leaf_seen_, nullptr));
      auto server = Server::Start(std::move(options), std::move(services));
      EXPECT_TRUE(server.ok()) << server.status();
      if (server.ok()) late_leaf_ = *std::move(server);
    });
  }

  std::unique_ptr<Server> late_leaf_;
  Client client_;
  std::unique_ptr<Channel> to_leaf_;
};
INSTANTIATE_TEST_SUITE_P(Models, StreamConfigTest,
                         testing::Values("SIB1", "SDB1-2", "FIB1", "FDB1-2", "AIB1-1", "ADB1-2-2"),
                         AsyncModel);

TEST_P(StreamConfigTest, AStreamHasTheTimeoutOfItsMethod) {
  late_leaf_ = StartServer("FIB1", &leaf_seen_, nullptr);
  ServeTo(late_leaf_->addresses()[0], {.service_config = MethodConfigOf(R"("timeout": "0.1s")")});
  Context ctx(kMaxTestWait);
  Stream stream = Open(ctx, "Relay");
  StringValue reply;
  while (stream.Write(Text("x")) && stream.Read(&reply)) continue;
  const absl::Status status = stream.Finish();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
}

TEST_P(StreamConfigTest, TheLimitsOfItsMethodHold) {
  late_leaf_ = StartServer("FIB1", &leaf_seen_, nullptr);
  for (const char* field : {"maxRequestMessageBytes", "maxResponseMessageBytes"}) {
    server_.reset();
    ServeTo(late_leaf_->addresses()[0], {.service_config = MethodConfigOf(Join("\"", field, "\": 100"))});
    Context ctx(kMaxTestWait);
    Stream stream = Open(ctx, "Relay");
    Exchange(stream, 1);
    stream.Write(Text(std::string(200, 'x')));
    const absl::Status status = stream.Finish();
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  }
}

TEST_P(StreamConfigTest, AStreamWaitsForAServerThatStartsLater) {
  const std::string address = FreeAddress();
  ServeTo(address, {.service_config = MethodConfigOf(R"("waitForReady": true)")});
  Context ctx(kMaxTestWait);
  Stream stream = Open(ctx, "Relay");
  ASSERT_TRUE(stream.Write(Text("x")));
  std::thread starts = StartLater(address);
  StringValue reply;
  EXPECT_TRUE(stream.Read(&reply));
  EXPECT_EQ(reply.value(), "x");
  const absl::Status status = stream.Finish();
  EXPECT_TRUE(status.ok()) << status;
  starts.join();
}

TEST_P(StreamConfigTest, ItWaitsUntilItsDeadlineOrItsCancellation) {
  ServeTo(FreeAddress(), {.wait_for_ready = true});
  Context late(milliseconds(100));
  Stream stream(OpenStream(late, *channel_, "/test.Streams/Relay"));
  stream.Write(Text("x"));
  StringValue reply;
  EXPECT_FALSE(stream.Read(&reply));
  EXPECT_TRUE(absl::IsDeadlineExceeded(stream.Finish()));
  Context ctx(kMaxTestWait);
  Stream other = Open(ctx, "Relay");
  other.Write(Text("x"));
  ctx.Cancel();
  EXPECT_TRUE(absl::IsCancelled(other.Finish()));
  // Nothing is in flight any more.
  EXPECT_TRUE(server_->Drain(Deadline::In(seconds(5))).ok());
}

TEST_P(StreamConfigTest, OneThatDoesNotWaitIsUnavailable) {
  ServeTo(FreeAddress(), {});
  Context ctx(kMaxTestWait);
  Stream stream = Open(ctx, "Relay");
  stream.Write(Text("x"));
  const absl::Status status = stream.Finish();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
}

}  // namespace
}  // namespace curtail
