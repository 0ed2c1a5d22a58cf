// SPDX-License-Identifier: Apache-2.0
//
// curtail's client against a grpc++ server.

#include <gtest/gtest.h>

#include <future>
#include <map>

#include "curtail/base/strings.h"
#include "curtail/rpc/status_details.h"
#include "google/protobuf/wrappers.pb.h"
#include "grpc_server_testing.h"

namespace curtail::interop {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class GrpcServerTest : public testing::Test {
 protected:
  ~GrpcServerTest() override { gate_.Open(); }

  void ExpectServes(Channel& channel) {
    EchoRequest request;
    request.set_payload("still here");
    EchoReply reply;
    const absl::Status status = Call(channel, request, &reply);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(reply.payload(), "still here");
  }

  Gate gate_;
  Client client_;
};

TEST_F(GrpcServerTest, UnaryCallsAreAnswered) {
  GrpcServer server(&gate_);
  Channel channel(&client_, server.address());
  for (const size_t size : {0, 1, 63, 64, 16383, 16384, 16385, 70000, 1 << 20}) {
    EchoRequest request;
    request.set_payload(std::string(size, 'p'));
    EchoReply reply;
    const absl::Status status = Call(channel, request, &reply);
    ASSERT_TRUE(status.ok()) << size << " bytes: " << status;
    EXPECT_EQ(reply.payload(), request.payload()) << size;
  }
}

TEST_F(GrpcServerTest, EveryErrorCodeArrivesWithItsMessage) {
  GrpcServer server(&gate_);
  Channel channel(&client_, server.address());
  for (int code = 1; code <= 16; ++code) {
    for (const std::string& message : {std::string("plain"), std::string(kOddMessage)}) {
      EchoRequest request;
      request.set_code(code);
      request.set_message(message);
      EchoReply reply;
      const absl::Status status = Call(channel, request, &reply);
      EXPECT_EQ(static_cast<int>(status.code()), code);
      EXPECT_EQ(std::string(status.message()), message) << code;
    }
  }
}

TEST_F(GrpcServerTest, DetailsOfAnErrorArrive) {
  GrpcServer server(&gate_);
  Channel channel(&client_, server.address());
  EchoRequest request;
  request.set_code(9);
  request.set_message("why");
  request.set_detail(std::string("\0\xff detail", 9));
  EchoReply reply;
  const absl::Status status = Call(channel, request, &reply);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Message(status), "why");
  const auto detail = GetDetail<google::protobuf::BytesValue>(status);
  ASSERT_TRUE(detail);
  EXPECT_EQ(detail->value(), request.detail());
}

TEST_F(GrpcServerTest, MetadataArrives) {
  GrpcServer server(&gate_);
  Channel channel(&client_, server.address());
  std::string all_bytes;
  for (int i = 0; i < 256; ++i) all_bytes += static_cast<char>(i);
  Context ctx(kMaxTestWait);
  ctx.AddMetadata("x-text", "a value, with = and ;");
  ctx.AddMetadata("x-raw-bin", all_bytes);
  EchoReply reply;
  ReplyMetadata metadata;
  const absl::Status status = channel.Call(ctx, Echo::kEcho.path, EchoRequest(), &reply, &metadata);
  ASSERT_TRUE(status.ok()) << status;
  const std::map<std::string, std::string> sent = {{"x-text", "a value, with = and ;"},
                                                   {"x-raw-bin", all_bytes}};
  EXPECT_EQ(MetadataOf(reply), sent);
  EXPECT_EQ(AsMap(metadata.trailing), sent);
  EXPECT_EQ(metadata.initial.Find("first-x-text"), "a value, with = and ;");
  EXPECT_EQ(metadata.initial.Find("first-x-raw-bin"), all_bytes);
}

TEST_F(GrpcServerTest, CompressedCallsAreAnswered) {
  GrpcServer server(&gate_);
  for (const wire::Encoding encoding : {wire::Encoding::kGzip, wire::Encoding::kDeflate}) {
    Channel compresses(&client_, server.address(), {.encoding = encoding});
    Channel plain(&client_, server.address());
    for (Channel* channel : {&compresses, &plain}) {
      for (const size_t size : {0, 10, 1000, 100000, 5 << 20}) {
        Context ctx(kMaxTestWait);
        ctx.SetEncoding(encoding);
        ctx.AddMetadata("x-compress", "1");
        EchoRequest request;
        request.set_payload(std::string(size, 'c'));
        EchoReply reply;
        const absl::Status status = channel->Call(ctx, Echo::kEcho.path, request, &reply);
        ASSERT_TRUE(status.ok()) << size << ": " << status;
        EXPECT_EQ(reply.payload(), request.payload()) << size;
      }
    }
  }
}

TEST_F(GrpcServerTest, ServerSeesTheTimeout) {
  GrpcServer server(&gate_);
  Channel channel(&client_, server.address());
  EchoReply reply;
  const absl::Status status = Call(channel, EchoRequest(), &reply, seconds(20));
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_GT(reply.timeout_ms(), 5000);
  EXPECT_LE(reply.timeout_ms(), 20000);
}

TEST_F(GrpcServerTest, DeadlineEndsACallThatIsNeverAnswered) {
  GrpcServer server(&gate_);
  Channel channel(&client_, server.address());
  EchoRequest request;
  request.set_hang(true);
  EchoReply reply;
  EXPECT_EQ(Call(channel, request, &reply, milliseconds(200)).code(), absl::StatusCode::kDeadlineExceeded);
  ExpectServes(channel);
}

TEST_F(GrpcServerTest, CancellationReachesTheServer) {
  GrpcServer server(&gate_);
  Channel channel(&client_, server.address());
  Context ctx(kMaxTestWait);
  EchoRequest request;
  request.set_hang(true);
  std::future<absl::Status> result = std::async(std::launch::async, [&] {
    EchoReply reply;
    return channel.Call(ctx, Echo::kEcho.path, request, &reply);
  });
  ASSERT_TRUE(gate_.AwaitArrivals(1));
  ctx.Cancel();
  EXPECT_EQ(result.get().code(), absl::StatusCode::kCancelled);
  // The reset leaves with the next turn of the lane at the latest, which this call takes.
  ExpectServes(channel);
  EXPECT_TRUE(gate_.AwaitCancelled(1)) << "the server never saw the cancellation";
}

TEST_F(GrpcServerTest, UnknownNamesAreUnimplemented) {
  GrpcServer server(&gate_);
  Channel channel(&client_, server.address());
  for (const char* path :
       {"/curtail.interop.Echo/Nothing", "/no.such.Service/Echo", "/curtail.interop.Echo/Absent"}) {
    Context ctx(kMaxTestWait);
    EchoReply reply;
    EXPECT_EQ(channel.Call(ctx, path, EchoRequest(), &reply).code(), absl::StatusCode::kUnimplemented)
        << path;
  }
  ExpectServes(channel);
}

TEST_F(GrpcServerTest, SixteenMebibytesPassBothWays) {
  GrpcServer server(&gate_);
  Channel channel(&client_, server.address());
  EchoRequest request;
  request.set_payload(std::string(16 << 20, 'b'));
  EchoReply reply;
  const absl::Status status = Call(channel, request, &reply);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(reply.payload(), request.payload());
}

TEST_F(GrpcServerTest, TooLongMessagesAreResourceExhausted) {
  GrpcServer server(&gate_, "127.0.0.1:0", 1 << 20);
  Channel channel(&client_, server.address(), {.max_message_bytes = 1 << 20});
  EchoReply reply;
  EchoRequest up;
  up.set_payload(std::string(2 << 20, 'x'));
  const absl::Status too_long = Call(channel, up, &reply);
  EXPECT_EQ(too_long.code(), absl::StatusCode::kResourceExhausted) << too_long;
  EchoRequest down;
  down.set_reply_size(2 << 20);
  const absl::Status too_long_reply = Call(channel, down, &reply);
  EXPECT_EQ(too_long_reply.code(), absl::StatusCode::kResourceExhausted) << too_long_reply;
  ExpectServes(channel);
}

// Counts the replies of event-driven calls.
class CountReplies final : public Completion {
 public:
  void Done(absl::Status&& status, std::string&& reply) override {
    ++done;
    EchoReply parsed;
    if (status.ok() && parsed.ParseFromString(reply) && parsed.payload() == "event") ++right;
    first_error.Update(status);
  }
  int done = 0;
  int right = 0;
  absl::Status first_error;
};

TEST_F(GrpcServerTest, AThousandCallsAtOnceOnOneChannel) {
  constexpr int kCalls = 1000;
  GrpcServer server(&gate_);
  Channel channel(&client_, server.address());
  EchoRequest request;
  request.set_payload("event");
  CountReplies replies;
  for (int i = 0; i < kCalls; ++i) {
    channel.Start(Echo::kEcho.path, Deadline::In(kMaxTestWait), {}, request.SerializeAsString(), &replies);
  }
  const Deadline deadline = Deadline::In(2 * kMaxTestWait);
  while (replies.done < kCalls && !deadline.Expired()) client_.Poll(deadline);
  EXPECT_EQ(replies.right, kCalls) << replies.first_error;
}

// Of two servers one stalls. Property: the other answers all calls, and the one hears that its attempts are cancelled.
TEST_F(GrpcServerTest, HedgedCallsAreAnsweredByTheServerThatDoesNotStall) {
  constexpr int kCalls = 8;  // in each form; the balancer begins some of them at each server
  Gate passes;
  passes.Open();
  GrpcServer stalls(&gate_), serves(&passes);
  Channel channel(&client_, Join("ipv4:", stalls.address(), ",", serves.address()),
                  {.service_config = R"({"loadBalancingConfig":[{"round_robin":{}}],"methodConfig":[{
                       "name":[{"service":"curtail.interop.Echo","method":"Echo"}],
                       "hedgingPolicy":{"maxAttempts":2,"hedgingDelay":"0.05s"}}]})"});
  EchoRequest request;
  request.set_payload("event");
  request.set_hang(true);
  int hedged = 0;
  for (int i = 0; i < kCalls; ++i) {
    EchoReply reply;
    const absl::Status status = Call(channel, request, &reply, seconds(20));
    ASSERT_TRUE(status.ok()) << status;
    const std::map<std::string, std::string> fields = MetadataOf(reply);
    if (fields.empty()) continue;
    ++hedged;
    EXPECT_EQ(fields, (std::map<std::string, std::string>{{kAttempts, "1"}}));
    EXPECT_LE(reply.timeout_ms(), 20'000 - 50) << "what is left after the delay";
  }
  EXPECT_GT(hedged, 0);
  EXPECT_TRUE(gate_.AwaitCancelled(1));
  for (int i = 0; i < kCalls; ++i) {
    CountReplies replies;
    channel.Start(Echo::kEcho.path, Deadline::In(seconds(20)), {}, request.SerializeAsString(), &replies);
    while (replies.done == 0) client_.Poll(Deadline::In(kMaxTestWait));
    EXPECT_EQ(replies.right, 1) << replies.first_error;
  }
  EXPECT_TRUE(gate_.AwaitCancelled(hedged + 1)) << "of a call that was started";
}

TEST_F(GrpcServerTest, ChannelRecoversWhenTheServerIsBack) {
  auto server = std::make_unique<GrpcServer>(&gate_);
  const std::string address = server->address();
  Channel channel(&client_, address, {.initial_backoff = milliseconds(1), .max_backoff = milliseconds(10)});
  ExpectServes(channel);
  server.reset();
  EchoReply reply;
  const absl::Status gone = Call(channel, EchoRequest(), &reply);
  EXPECT_EQ(gone.code(), absl::StatusCode::kUnavailable) << gone;
  server = std::make_unique<GrpcServer>(&gate_, address);
  ASSERT_EQ(server->address(), address);
  const Deadline deadline = Deadline::In(kMaxTestWait);
  absl::Status back;
  do {
    back = Call(channel, EchoRequest(), &reply);
  } while (!back.ok() && !deadline.Expired());
  EXPECT_TRUE(back.ok()) << back;
}

TEST_F(GrpcServerTest, UnixSocketsWork) {
  GrpcServer server(&gate_, UnixAddress());
  Channel channel(&client_, server.address());
  ExpectServes(channel);
}

TEST_F(GrpcServerTest, LostConnectionMidCallIsUnavailable) {
  GrpcServer server(&gate_);
  const auto relay = RelayTo(server.address());
  Channel channel(&client_, relay->address());
  EchoRequest request;
  request.set_hang(true);
  std::future<absl::Status> result = std::async(std::launch::async, [&] {
    EchoReply reply;
    return Call(channel, request, &reply);
  });
  ASSERT_TRUE(gate_.AwaitArrivals(1));
  relay->Cut();
  const absl::Status status = result.get();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
}

}  // namespace
}  // namespace curtail::interop
