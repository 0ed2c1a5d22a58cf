// SPDX-License-Identifier: Apache-2.0
//
// curtail's client against a grpc++ server: alone, and as the mid-tier of a fan-out under each synchronous
// model.

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <future>
#include <map>

#include "curtail/base/strings.h"
#include "curtail/rpc/status_details.h"
#include "echo.grpc.pb.h"
#include "google/protobuf/wrappers.pb.h"
#include "relay.h"
#include "servers.h"

namespace curtail::interop {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// By which a client says how many attempts at the call were made before.
constexpr char kAttempts[] = "grpc-previous-rpc-attempts";
constexpr char kOddMessage[] = "caf\xc3\xa9 100% %41 \xe2\x82\xac\n\ttail ";

// Does what echo.proto says, with grpc++.
class GrpcEcho final : public peer::Echo::Service {
 public:
  explicit GrpcEcho(Gate* gate) : gate_(gate) {}

  grpc::Status Echo(grpc::ServerContext* context, const EchoRequest* request, EchoReply* reply) override {
    const auto left = context->deadline() - std::chrono::system_clock::now();
    if (left < std::chrono::hours(24)) {
      reply->set_timeout_ms(std::chrono::duration_cast<milliseconds>(left).count());
    }
    for (const auto& [key, value] : context->client_metadata()) {
      if (!key.starts_with("x-") && key != "authorization" && key != kAttempts) continue;
      Field* field = reply->add_metadata();
      field->set_key(std::string(key.data(), key.size()));
      field->set_value(std::string(value.data(), value.size()));
      context->AddInitialMetadata("first-" + field->key(), field->value());
      context->AddTrailingMetadata(field->key(), field->value());
    }
    if (context->client_metadata().contains("x-compress"))
      context->set_compression_algorithm(GRPC_COMPRESS_GZIP);
    if (request->hang()) gate_->Pass([context] { return context->IsCancelled(); });
    if (request->code() != 0) {
      return {static_cast<grpc::StatusCode>(request->code()), request->message(),
              request->detail().empty() ? std::string()
                                        : RpcStatus(request->code(), request->message(), request->detail())};
    }
    reply->set_payload(request->reply_size() > 0
                           ? std::string(static_cast<size_t>(request->reply_size()), 'r')
                           : request->payload());
    return grpc::Status::OK;
  }

 private:
  Gate* const gate_;
};

// A grpc++ server that ends, cutting off what is under way, with the object.
class GrpcServer {
 public:
  GrpcServer(Gate* gate, const std::string& listen = "127.0.0.1:0", int max_receive = -1) : service_(gate) {
    int port = 0;
    grpc::ServerBuilder builder;
    builder.SetMaxReceiveMessageSize(max_receive);
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.AddListeningPort(listen, grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) return;
    address_ = listen.starts_with("unix:") ? listen : "127.0.0.1:" + std::to_string(port);
  }
  ~GrpcServer() {
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
  }
  // Empty when the server could not listen.
  const std::string& address() const { return address_; }

 private:
  GrpcEcho service_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

absl::Status Call(Channel& channel, const EchoRequest& request, EchoReply* reply,
                  Nanos timeout = kMaxTestWait) {
  Context ctx(timeout);
  return channel.Call(ctx, Echo::kEcho.path, request, reply);
}

std::map<std::string, std::string> MetadataOf(const EchoReply& reply) {
  std::map<std::string, std::string> fields;
  for (const Field& field : reply.metadata()) fields[field.key()] = field.value();
  return fields;
}

std::map<std::string, std::string> AsMap(const Metadata& metadata) {
  return {metadata.begin(), metadata.end()};
}

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
  Relay relay(server.address());
  Channel channel(&client_, relay.address());
  EchoRequest request;
  request.set_hang(true);
  std::future<absl::Status> result = std::async(std::launch::async, [&] {
    EchoReply reply;
    return Call(channel, request, &reply);
  });
  ASSERT_TRUE(gate_.AwaitArrivals(1));
  relay.Cut();
  const absl::Status status = result.get();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
}

// A mid-tier of curtail between a client of curtail and four leaves of grpc++.
class GrpcLeavesTest : public testing::TestWithParam<const char*> {
 protected:
  static constexpr int kLeaves = 4;

  // Leaf 0 stands behind a relay.
  GrpcLeavesTest() {
    for (int i = 0; i < kLeaves; ++i) servers_.push_back(std::make_unique<GrpcServer>(&gate_));
    relay_ = std::make_unique<Relay>(servers_[0]->address());
    std::vector<Channel*> leaves;
    for (int i = 0; i < kLeaves; ++i) {
      channels_.push_back(std::make_unique<Channel>(
          &leaf_client_, i == 0 ? relay_->address() : servers_[static_cast<size_t>(i)]->address()));
      leaves.push_back(channels_.back().get());
    }
    ServerOptions options = OptionsFor(GetParam());
    options.forward_metadata = {"x-path"};
    mid_ = MustStart(std::move(options), MakeForwardService(leaves));
    channel_ = std::make_unique<Channel>(&client_, mid_->addresses()[0]);
  }
  ~GrpcLeavesTest() override {
    gate_.Open();
    mid_.reset();
  }

  absl::Status Forward(const EchoRequest& request, EchoReply* reply, Nanos timeout = kMaxTestWait) {
    Context ctx(timeout);
    ctx.AddMetadata("x-path", "through");
    ctx.AddMetadata("authorization", "Bearer of the caller");
    return channel_->Call(ctx, Forward::kForward.path, request, reply);
  }

  Gate gate_;
  std::vector<std::unique_ptr<GrpcServer>> servers_;
  std::unique_ptr<Relay> relay_;
  Client leaf_client_;
  Client client_;
  std::vector<std::unique_ptr<Channel>> channels_;
  std::unique_ptr<Server> mid_;
  std::unique_ptr<Channel> channel_;
};

TEST_P(GrpcLeavesTest, FanOutCollectsAllReplies) {
  EchoRequest request;
  request.set_payload("leaf;");
  for (int i = 0; i < 20; ++i) {
    EchoReply reply;
    const absl::Status status = Forward(request, &reply);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(reply.payload(), "leaf;leaf;leaf;leaf;");
    EXPECT_EQ(reply.metadata_size(), kLeaves) << "each leaf sees what the server forwards";
  }
}

TEST_P(GrpcLeavesTest, LeafErrorBecomesTheAnswer) {
  EchoRequest request;
  request.set_code(5);
  request.set_message(kOddMessage);
  EchoReply reply;
  const absl::Status status = Forward(request, &reply);
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(std::string(status.message()), kOddMessage);
}

TEST_P(GrpcLeavesTest, LeafThatDiesMidCallIsUnavailable) {
  EchoRequest request;
  request.set_hang(true);
  std::future<absl::Status> result = std::async(std::launch::async, [&] {
    EchoReply reply;
    return Forward(request, &reply);
  });
  ASSERT_TRUE(gate_.AwaitArrivals(kLeaves));
  relay_->Cut();
  gate_.Open();
  const absl::Status status = result.get();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
}

TEST_P(GrpcLeavesTest, DeadlineEndsAFanOut) {
  EchoRequest request;
  request.set_hang(true);
  EchoReply reply;
  const absl::Status status = Forward(request, &reply, milliseconds(300));
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_TRUE(gate_.AwaitCancelled(kLeaves)) << "the leaves go on working for nobody";
  gate_.Open();
  EXPECT_TRUE(Forward(EchoRequest(), &reply).ok());
}

TEST_P(GrpcLeavesTest, ManyThreadsFanOutAtOnceStress) {
  constexpr int kThreads = 8;
  constexpr int kCalls = 50;
  std::vector<std::future<int>> rights;
  for (int t = 0; t < kThreads; ++t) {
    rights.push_back(std::async(std::launch::async, [&, t] {
      int right = 0;
      for (int i = 0; i < kCalls; ++i) {
        EchoRequest request;
        request.set_payload(std::to_string(t) + "/" + std::to_string(i) + ";");
        EchoReply reply;
        const std::string& one = request.payload();
        if (Forward(request, &reply).ok() && reply.payload() == one + one + one + one) ++right;
      }
      return right;
    }));
  }
  for (std::future<int>& right : rights) EXPECT_EQ(right.get(), kCalls);
}

INSTANTIATE_TEST_SUITE_P(Models, GrpcLeavesTest, testing::ValuesIn(kConfigs),
                         [](const auto& info) { return TestName(info.param); });

}  // namespace
}  // namespace curtail::interop
