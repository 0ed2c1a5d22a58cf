// SPDX-License-Identifier: Apache-2.0
//
// A grpc++ client against curtail's server, under each synchronous threading model.

#include <google/protobuf/descriptor.pb.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <condition_variable>
#include <future>
#include <map>
#include <mutex>
#include <set>

#include "echo.grpc.pb.h"
#include "health.grpc.pb.h"
#include "reflection.grpc.pb.h"
#include "servers.h"

namespace curtail::interop {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using HealthRequest = grpc::health::v1::HealthCheckRequest;
using HealthReply = grpc::health::v1::HealthCheckResponse;

// Not ASCII, and everything that percent-encoding has to care for.
constexpr char kOddMessage[] = "caf\xc3\xa9 100% %41 \xe2\x82\xac\n\ttail ";

std::shared_ptr<grpc::Channel> ChannelTo(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 20);
  // How long an attempt may take. One that is refused is repeated after the other two.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, static_cast<int>(kMaxTestWait / milliseconds(1)));
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 100);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

// One grpc++ call: its context with a deadline, and what came of it.
struct Call {
  explicit Call(std::chrono::nanoseconds timeout = kMaxTestWait) {
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::duration_cast<milliseconds>(timeout));
  }
  grpc::Status Echo(const std::shared_ptr<grpc::Channel>& channel) {
    return peer::Echo::NewStub(channel)->Echo(&context, request, &reply);
  }
  grpc::ClientContext context;
  EchoRequest request;
  EchoReply reply;
};

std::string Describe(const grpc::Status& status) {
  return std::to_string(status.error_code()) + ": " + status.error_message();
}

// Calls any path, known to a stub or not.
grpc::Status CallPath(const std::shared_ptr<grpc::Channel>& channel, const std::string& path) {
  grpc::TemplatedGenericStub<EchoRequest, EchoReply> stub(channel);
  Call call;
  std::promise<grpc::Status> promise;
  stub.UnaryCall(&call.context, path, grpc::StubOptions(), &call.request, &call.reply,
                 [&promise](grpc::Status status) { promise.set_value(std::move(status)); });
  return promise.get_future().get();  // bounded by the call's deadline
}

class GrpcClientTest : public testing::TestWithParam<const char*> {
 protected:
  ~GrpcClientTest() override { gate_.Open(); }

  const std::string& Start(ServerOptions options) {
    server_ = MustStart(std::move(options), MakeEchoService(&gate_));
    return server_->addresses()[0];
  }
  std::shared_ptr<grpc::Channel> StartAndConnect() { return ChannelTo(Start(OptionsFor(GetParam()))); }
  std::shared_ptr<grpc::Channel> StartWithSpareThread() {
    return ChannelTo(Start(OptionsFor(WithSpareThread(GetParam()))));
  }
  void ExpectServes(const std::shared_ptr<grpc::Channel>& channel) {
    Call call;
    call.request.set_payload("still here");
    const grpc::Status status = call.Echo(channel);
    EXPECT_TRUE(status.ok()) << Describe(status);
    EXPECT_EQ(call.reply.payload(), "still here");
  }

  Gate gate_;
  std::unique_ptr<Server> server_;
};

TEST_P(GrpcClientTest, UnaryCallsAreAnswered) {
  const auto channel = StartAndConnect();
  const auto stub = peer::Echo::NewStub(channel);
  for (const size_t size : {0, 1, 63, 64, 16383, 16384, 16385, 70000, 1 << 20}) {
    Call call;
    call.request.set_payload(std::string(size, 'p'));
    const grpc::Status status = stub->Echo(&call.context, call.request, &call.reply);
    ASSERT_TRUE(status.ok()) << size << " bytes: " << Describe(status);
    EXPECT_EQ(call.reply.payload(), call.request.payload()) << size;
  }
}

TEST_P(GrpcClientTest, EveryErrorCodeArrivesWithItsMessage) {
  const auto channel = StartAndConnect();
  for (int code = 1; code <= 16; ++code) {
    for (const std::string& message : {std::string(), std::string("plain"), std::string(kOddMessage)}) {
      Call call;
      call.request.set_code(code);
      call.request.set_message(message);
      const grpc::Status status = call.Echo(channel);
      EXPECT_EQ(status.error_code(), code);
      EXPECT_EQ(status.error_message(), message) << code;
    }
  }
}

TEST_P(GrpcClientTest, MetadataTravelsBothWays) {
  const auto channel = StartAndConnect();
  std::string all_bytes;
  for (int i = 0; i < 256; ++i) all_bytes += static_cast<char>(i);
  Call call;
  call.context.AddMetadata("x-text", "a value, with = and ;");
  call.context.AddMetadata("x-raw-bin", all_bytes);
  call.context.AddMetadata("x-empty-bin", "");
  const grpc::Status status = call.Echo(channel);
  ASSERT_TRUE(status.ok()) << Describe(status);
  std::map<std::string, std::string> seen;
  for (const Field& field : call.reply.metadata()) seen[field.key()] = field.value();
  const std::map<std::string, std::string> sent = {
      {"x-text", "a value, with = and ;"}, {"x-raw-bin", all_bytes}, {"x-empty-bin", ""}};
  EXPECT_EQ(seen, sent);
  std::map<std::string, std::string> trailing;
  for (const auto& [key, value] : call.context.GetServerTrailingMetadata()) {
    trailing[std::string(key.data(), key.size())] = std::string(value.data(), value.size());
  }
  EXPECT_EQ(trailing, sent);
  std::map<std::string, std::string> initial;
  for (const auto& [key, value] : call.context.GetServerInitialMetadata()) {
    initial[std::string(key.data(), key.size())] = std::string(value.data(), value.size());
  }
  const std::map<std::string, std::string> first = {
      {"first-x-text", "a value, with = and ;"}, {"first-x-raw-bin", all_bytes}, {"first-x-empty-bin", ""}};
  EXPECT_EQ(initial, first);
}

TEST_P(GrpcClientTest, DetailsOfAnErrorArrive) {
  const auto channel = StartAndConnect();
  Call call;
  call.request.set_code(9);
  call.request.set_message("why");
  call.request.set_detail(std::string("\0\xff detail", 9));
  const grpc::Status status = call.Echo(channel);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(status.error_message(), "why");
  EXPECT_EQ(status.error_details(), RpcStatus(9, "why", call.request.detail()));
}

TEST_P(GrpcClientTest, TrailingMetadataComesWithErrorsToo) {
  const auto channel = StartAndConnect();
  Call call;
  call.context.AddMetadata("x-why", "because");
  call.request.set_code(9);
  EXPECT_EQ(call.Echo(channel).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  const auto& trailing = call.context.GetServerTrailingMetadata();
  const auto found = trailing.find("x-why");
  ASSERT_NE(found, trailing.end());
  EXPECT_EQ(std::string(found->second.data(), found->second.size()), "because");
}

TEST_P(GrpcClientTest, ServerSeesTheTimeout) {
  const auto channel = StartAndConnect();
  Call call(seconds(20));
  const grpc::Status status = call.Echo(channel);
  ASSERT_TRUE(status.ok()) << Describe(status);
  EXPECT_GT(call.reply.timeout_ms(), 5000);
  EXPECT_LE(call.reply.timeout_ms(), 21000);  // grpc++ rounds grpc-timeout up to a few digits
}

TEST_P(GrpcClientTest, DeadlineEndsACallThatIsNeverAnswered) {
  const auto channel = StartWithSpareThread();
  Call call(milliseconds(200));
  call.request.set_hang(true);
  EXPECT_EQ(call.Echo(channel).error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  ExpectServes(channel);
}

TEST_P(GrpcClientTest, CancellationReachesTheHandler) {
  const auto channel = StartWithSpareThread();
  Call call;
  call.request.set_hang(true);
  std::future<grpc::Status> result = std::async(std::launch::async, [&] { return call.Echo(channel); });
  ASSERT_TRUE(gate_.AwaitArrivals(1));
  call.context.TryCancel();
  EXPECT_EQ(result.get().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(gate_.AwaitCancelled(1)) << "the handler never saw ctx.cancelled()";
  ExpectServes(channel);
}

TEST_P(GrpcClientTest, UnknownNamesAreUnimplemented) {
  const auto channel = StartAndConnect();
  for (const char* path : {"/curtail.interop.Echo/Nothing", "/curtail.interop.Nothing/Echo", "/Echo", "/",
                           "/a/b/c", "/curtail.interop.Echo/", "/curtail.interop.Echo/Absent"}) {
    const grpc::Status status = CallPath(channel, path);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << path << " -> " << Describe(status);
  }
  ExpectServes(channel);
}

TEST_P(GrpcClientTest, SixteenMebibytesPassBothWays) {
  const auto channel = StartAndConnect();
  constexpr size_t kSize = 16 << 20;
  Call up;
  up.request.set_payload(std::string(kSize, 'u'));
  up.request.set_reply_size(1);
  grpc::Status status = up.Echo(channel);
  ASSERT_TRUE(status.ok()) << Describe(status);
  Call down;
  down.request.set_reply_size(kSize);
  status = down.Echo(channel);
  ASSERT_TRUE(status.ok()) << Describe(status);
  EXPECT_EQ(down.reply.payload().size(), kSize);
  Call both;
  both.request.set_payload(std::string(kSize, 'b'));
  status = both.Echo(channel);
  ASSERT_TRUE(status.ok()) << Describe(status);
  EXPECT_EQ(both.reply.payload(), both.request.payload());
}

TEST_P(GrpcClientTest, CompressedRequestsAreAnsweredCompressed) {
  const auto channel = StartAndConnect();
  for (const grpc_compression_algorithm algorithm : {GRPC_COMPRESS_GZIP, GRPC_COMPRESS_DEFLATE}) {
    for (const size_t size : {0, 10, 1000, 100000, 5 << 20}) {
      Call call;
      call.context.set_compression_algorithm(algorithm);
      call.request.set_payload(std::string(size, 'c'));
      const grpc::Status status = call.Echo(channel);
      ASSERT_TRUE(status.ok()) << Describe(status);
      EXPECT_EQ(call.reply.payload(), call.request.payload()) << size;
    }
  }
}

TEST_P(GrpcClientTest, RequestsThatInflateBeyondTheLimitAreResourceExhausted) {
  ServerOptions options = OptionsFor(GetParam());
  options.max_message_bytes = 1 << 20;
  const auto channel = ChannelTo(Start(std::move(options)));
  Call call;
  call.context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
  call.request.set_payload(std::string(20 << 20, 'x'));
  const grpc::Status status = call.Echo(channel);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << Describe(status);
  ExpectServes(channel);
}

TEST_P(GrpcClientTest, TooLongRequestIsResourceExhausted) {
  ServerOptions options = OptionsFor(GetParam());
  options.max_message_bytes = 1 << 20;
  const auto channel = ChannelTo(Start(std::move(options)));
  Call call;
  call.request.set_payload(std::string(2 << 20, 'x'));
  const grpc::Status status = call.Echo(channel);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << Describe(status);
  ExpectServes(channel);
}

TEST_P(GrpcClientTest, TooLongHeadersAreRefused) {
  const auto channel = StartAndConnect();
  Call call;
  call.context.AddMetadata("x-long", std::string(40000, 'h'));
  const grpc::Status status = call.Echo(channel);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << Describe(status);
  ExpectServes(channel);
}

TEST_P(GrpcClientTest, AThousandCallsAtOnceOnOneChannel) {
  constexpr int kCalls = 1000;
  const auto channel = StartAndConnect();
  const auto stub = peer::Echo::NewStub(channel);
  std::vector<std::unique_ptr<Call>> calls;
  std::mutex mu;
  std::condition_variable finished;
  int missing = kCalls;
  std::vector<std::string> wrong;
  for (int i = 0; i < kCalls; ++i) {
    Call* call = calls.emplace_back(std::make_unique<Call>()).get();
    call->request.set_payload("payload of call " + std::to_string(i));
    stub->async()->Echo(&call->context, &call->request, &call->reply, [&, call](grpc::Status status) {
      std::lock_guard lock(mu);
      if (!status.ok()) wrong.push_back(Describe(status));
      if (status.ok() && call->reply.payload() != call->request.payload())
        wrong.push_back("another call's reply");
      if (--missing == 0) finished.notify_one();
    });
  }
  std::unique_lock lock(mu);
  ASSERT_TRUE(finished.wait_for(lock, 2 * kMaxTestWait, [&] { return missing == 0; }))
      << missing << " unanswered";
  EXPECT_TRUE(wrong.empty()) << wrong.size() << " wrong, first: " << wrong[0];
}

TEST_P(GrpcClientTest, HealthAnswers) {
  const auto channel = StartAndConnect();
  const auto stub = grpc::health::v1::peer::Health::NewStub(channel);
  const auto check = [&stub](const std::string& service, HealthReply* reply) {
    Call call;
    HealthRequest request;
    request.set_service(service);
    return stub->Check(&call.context, request, reply);
  };
  for (const char* service : {"", "curtail.interop.Echo"}) {
    HealthReply reply;
    const grpc::Status status = check(service, &reply);
    ASSERT_TRUE(status.ok()) << Describe(status);
    EXPECT_EQ(reply.status(), HealthReply::SERVING) << service;
  }
  HealthReply reply;
  EXPECT_EQ(check("no.such.Service", &reply).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_P(GrpcClientTest, HealthIsWatchedUntilTheServerGoes) {
  const auto channel = StartAndConnect();
  const auto stub = grpc::health::v1::peer::Health::NewStub(channel);
  const auto watch = [&stub](Call& call, const std::string& service) {
    HealthRequest request;
    request.set_service(service);
    return stub->Watch(&call.context, request);
  };
  Call known, unknown, leaves;
  const auto of_known = watch(known, "curtail.interop.Echo");
  const auto of_unknown = watch(unknown, "no.such.Service");
  const auto leaver = watch(leaves, "");
  HealthReply reply;
  ASSERT_TRUE(of_known->Read(&reply));
  EXPECT_EQ(reply.status(), HealthReply::SERVING);
  ASSERT_TRUE(of_unknown->Read(&reply));
  EXPECT_EQ(reply.status(), HealthReply::SERVICE_UNKNOWN);
  ASSERT_TRUE(leaver->Read(&reply));
  leaves.context.TryCancel();
  EXPECT_EQ(leaver->Finish().error_code(), grpc::StatusCode::CANCELLED);

  std::thread drainer([&] { EXPECT_TRUE(server_->Drain(Deadline::In(kMaxTestWait)).ok()); });
  ASSERT_TRUE(of_known->Read(&reply));
  EXPECT_EQ(reply.status(), HealthReply::NOT_SERVING);
  EXPECT_FALSE(of_known->Read(&reply));
  EXPECT_EQ(of_known->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  ASSERT_TRUE(of_unknown->Read(&reply));
  EXPECT_EQ(of_unknown->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  drainer.join();
}

TEST_P(GrpcClientTest, ReflectionDescribesTheServices) {
  namespace reflection = grpc::reflection::v1alpha;
  const auto channel = StartAndConnect();
  const auto stub = reflection::peer::ServerReflection::NewStub(channel);
  Call call;
  const auto stream = stub->ServerReflectionInfo(&call.context);
  reflection::ServerReflectionRequest request;
  reflection::ServerReflectionResponse response;

  request.set_list_services("*");
  ASSERT_TRUE(stream->Write(request));
  ASSERT_TRUE(stream->Read(&response));
  std::set<std::string> names;
  for (const auto& service : response.list_services_response().service()) names.insert(service.name());
  EXPECT_EQ(names.count("curtail.interop.Echo"), 1u);
  EXPECT_EQ(names.count("grpc.health.v1.Health"), 1u);

  request.set_file_containing_symbol("curtail.interop.Echo");
  ASSERT_TRUE(stream->Write(request));
  ASSERT_TRUE(stream->Read(&response));
  ASSERT_GE(response.file_descriptor_response().file_descriptor_proto_size(), 1)
      << response.ShortDebugString();
  google::protobuf::FileDescriptorProto file;
  ASSERT_TRUE(file.ParseFromString(response.file_descriptor_response().file_descriptor_proto(0)));
  EXPECT_EQ(file.package(), "curtail.interop");
  ASSERT_EQ(file.service_size(), 1) << "Forward is linked in, and not served";
  EXPECT_EQ(file.service(0).name(), "Echo");

  request.set_file_containing_symbol("grpc.health.v1.Health");
  ASSERT_TRUE(stream->Write(request));
  ASSERT_TRUE(stream->Read(&response));
  ASSERT_EQ(response.file_descriptor_response().file_descriptor_proto_size(), 1);
  ASSERT_TRUE(file.ParseFromString(response.file_descriptor_response().file_descriptor_proto(0)));
  ASSERT_EQ(file.service_size(), 1);
  ASSERT_EQ(file.service(0).method_size(), 2);
  EXPECT_EQ(file.service(0).method(0).name(), "Check");
  EXPECT_EQ(file.service(0).method(1).name(), "Watch");

  for (const char* symbol :
       {"no.such.Symbol", "curtail.interop.Forward", "curtail.interop.Forward.Forward"}) {
    request.set_file_containing_symbol(symbol);
    ASSERT_TRUE(stream->Write(request));
    ASSERT_TRUE(stream->Read(&response));
    EXPECT_EQ(response.error_response().error_code(), static_cast<int>(grpc::StatusCode::NOT_FOUND))
        << symbol;
  }

  stream->WritesDone();
  const grpc::Status status = stream->Finish();
  EXPECT_TRUE(status.ok()) << Describe(status);
}

TEST_P(GrpcClientTest, ChannelRecoversWhenTheServerIsBack) {
  ServerOptions options = OptionsFor(GetParam());
  const std::string address = Start(options);
  const auto channel = ChannelTo(address);
  ExpectServes(channel);
  ASSERT_TRUE(server_->Drain(Deadline::In(seconds(10))).ok());
  server_.reset();
  Call gone;
  EXPECT_EQ(gone.Echo(channel).error_code(), grpc::StatusCode::UNAVAILABLE);
  options.listen = {address};
  Start(options);
  Call back;
  back.context.set_wait_for_ready(true);
  const grpc::Status status = back.Echo(channel);
  EXPECT_TRUE(status.ok()) << Describe(status);
}

TEST_P(GrpcClientTest, DrainLetsACallInFlightFinish) {
  const auto channel = StartWithSpareThread();
  Call call;
  call.request.set_hang(true);
  call.request.set_payload("finished");
  std::future<grpc::Status> result = std::async(std::launch::async, [&] { return call.Echo(channel); });
  ASSERT_TRUE(gate_.AwaitArrivals(1));
  std::future<absl::Status> drained =
      std::async(std::launch::async, [&] { return server_->Drain(Deadline::In(kMaxTestWait)); });
  // GOAWAY has gone out when the channel leaves READY.
  ASSERT_TRUE(
      channel->WaitForStateChange(GRPC_CHANNEL_READY, std::chrono::system_clock::now() + kMaxTestWait));
  gate_.Open();
  const grpc::Status status = result.get();
  EXPECT_TRUE(status.ok()) << Describe(status);
  EXPECT_EQ(call.reply.payload(), "finished");
  const absl::Status drain_status = drained.get();
  EXPECT_TRUE(drain_status.ok()) << drain_status;
}

TEST_P(GrpcClientTest, UnixSocketsWork) {
  ServerOptions options = OptionsFor(GetParam());
  options.listen = {UnixAddress()};
  const std::string address = Start(options);
  ExpectServes(ChannelTo(address));
  server_.reset();
  EXPECT_NE(access(address.substr(5).c_str(), F_OK), 0) << "the socket file is left behind";
}

TEST_P(GrpcClientTest, LostConnectionMidCallIsUnavailableAndCancels) {
  const auto relay = RelayTo(Start(OptionsFor(WithSpareThread(GetParam()))));
  const auto channel = ChannelTo(relay->address());
  Call call;
  call.request.set_hang(true);
  std::future<grpc::Status> result = std::async(std::launch::async, [&] { return call.Echo(channel); });
  ASSERT_TRUE(gate_.AwaitArrivals(1));
  relay->Cut();
  EXPECT_EQ(result.get().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(gate_.AwaitCancelled(1)) << "the handler never learned that its caller was gone";
  ExpectServes(ChannelTo(server_->addresses()[0]));
}

INSTANTIATE_TEST_SUITE_P(Models, GrpcClientTest, testing::ValuesIn(kConfigs),
                         [](const auto& info) { return TestName(info.param); });

}  // namespace
}  // namespace curtail::interop
