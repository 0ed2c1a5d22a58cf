// SPDX-License-Identifier: Apache-2.0
//
// Streams between curtail and grpc++, both ways round.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <thread>

#include "curtail/base/strings.h"
#include "echo.grpc.pb.h"
#include "servers.h"

namespace curtail::interop {
namespace {

constexpr int kMany = 5000;

absl::Status StatusOf(const EchoRequest& request) {
  return absl::Status(static_cast<absl::StatusCode>(request.code()), request.message());
}

class OurStreams final : public Streams::Service {
 public:
  absl::Status Upload(Context&, StreamReader<EchoRequest>& in, EchoReply* reply) override {
    for (EchoRequest part; in.Read(&part);) {
      if (part.code() != 0) return StatusOf(part);
      reply->mutable_payload()->append(part.payload());
    }
    return in.status();
  }
  absl::Status Watch(Context&, const EchoRequest& request, StreamWriter<EchoReply>& out) override {
    EchoReply reply;
    reply.set_payload(request.payload());
    for (int64_t i = 0; i < request.reply_size() && out.Write(reply);) ++i;
    return StatusOf(request);
  }
  absl::Status Chat(Context& ctx, ServerStream<EchoRequest, EchoReply>& stream) override {
    ctx.AddTrailingMetadata("x-trail", "t");
    return EachMessage(stream, [](const EchoRequest& request, EchoReply* reply) {
      reply->set_payload(request.payload());
      return StatusOf(request);
    });
  }
};

class GrpcStreams final : public peer::Streams::Service {
 public:
  grpc::Status Upload(grpc::ServerContext*, grpc::ServerReader<EchoRequest>* in, EchoReply* reply) override {
    for (EchoRequest part; in->Read(&part);) {
      if (part.code() != 0) return End(part);
      reply->mutable_payload()->append(part.payload());
    }
    return grpc::Status::OK;
  }
  grpc::Status Watch(grpc::ServerContext*, const EchoRequest* request,
                     grpc::ServerWriter<EchoReply>* out) override {
    EchoReply reply;
    reply.set_payload(request->payload());
    for (int64_t i = 0; i < request->reply_size() && out->Write(reply);) ++i;
    return End(*request);
  }
  grpc::Status Chat(grpc::ServerContext* context,
                    grpc::ServerReaderWriter<EchoReply, EchoRequest>* stream) override {
    context->AddInitialMetadata("x-head", "h");
    context->AddTrailingMetadata("x-trail", "t");
    for (EchoRequest request; stream->Read(&request);) {
      if (request.code() != 0) return End(request);
      EchoReply reply;
      reply.set_payload(request.payload());
      stream->Write(reply);
    }
    return grpc::Status::OK;
  }

 private:
  static grpc::Status End(const EchoRequest& request) {
    return {static_cast<grpc::StatusCode>(request.code()), request.message()};
  }
};

EchoRequest Part(int i, int bytes) {
  EchoRequest request;
  request.set_payload(Join(i, ":", std::string(static_cast<size_t>(bytes), 'p')));
  return request;
}

// ----- a grpc++ client of curtail's server ------------------------------------------------------------------

std::shared_ptr<grpc::Channel> ChannelTo(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

class StreamsOfGrpcClient : public testing::TestWithParam<const char*> {
 protected:
  StreamsOfGrpcClient() {
    context_.set_deadline(std::chrono::system_clock::now() +
                          std::chrono::duration_cast<std::chrono::milliseconds>(kMaxTestWait));
  }

  const std::unique_ptr<Server> server_ = MustStart(OptionsFor(GetParam()), std::make_unique<OurStreams>());
  const std::unique_ptr<peer::Streams::Stub> stub_ =
      peer::Streams::NewStub(ChannelTo(server_->addresses()[0]));
  grpc::ClientContext context_;
};

TEST_P(StreamsOfGrpcClient, Upload) {
  EchoReply reply;
  const auto call = stub_->Upload(&context_, &reply);
  size_t bytes = 0;
  for (int i = 0; i < kMany; ++i) {
    const EchoRequest part = Part(i, i % 3000);
    bytes += part.payload().size();
    ASSERT_TRUE(call->Write(part));
  }
  call->WritesDone();
  const grpc::Status status = call->Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(reply.payload().size(), bytes);
}

TEST_P(StreamsOfGrpcClient, WatchAndAnErrorBehindIt) {
  EchoRequest request = Part(1, 3000);
  request.set_reply_size(kMany);
  request.set_code(5);
  request.set_message("behind");
  const auto call = stub_->Watch(&context_, request);
  int count = 0;
  for (EchoReply reply; call->Read(&reply); ++count) ASSERT_EQ(reply.payload(), request.payload());
  EXPECT_EQ(count, kMany);
  const grpc::Status status = call->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND) << status.error_message();
  EXPECT_EQ(status.error_message(), "behind");
}

TEST_P(StreamsOfGrpcClient, ChatWithLargeAndSmallMessages) {
  const auto call = stub_->Chat(&context_);
  for (const int bytes : {0, 1, 16'384, 70'000, 3 << 20}) {
    EchoReply reply;
    ASSERT_TRUE(call->Write(Part(bytes, bytes)) && call->Read(&reply));
    EXPECT_EQ(reply.payload(), Part(bytes, bytes).payload());
  }
  std::thread writer([&] {
    for (int i = 0; i < kMany && call->Write(Part(i, 100));) ++i;
    call->WritesDone();
  });
  int next = 0;
  for (EchoReply reply; call->Read(&reply) && reply.payload() == Part(next, 100).payload();) ++next;
  writer.join();
  EXPECT_EQ(next, kMany);
  const grpc::Status status = call->Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(context_.GetServerTrailingMetadata().count("x-trail"), 1u);
}

TEST_P(StreamsOfGrpcClient, Cancelled) {
  const auto call = stub_->Chat(&context_);
  EchoReply reply;
  ASSERT_TRUE(call->Write(Part(1, 1)) && call->Read(&reply));
  context_.TryCancel();
  EXPECT_FALSE(call->Read(&reply));
  EXPECT_EQ(call->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

INSTANTIATE_TEST_SUITE_P(Models, StreamsOfGrpcClient,
                         testing::Values("auto", "SIB1", "SDB1-4", "FIB1", "FIP1", "ADB1-2-2"),
                         [](const auto& info) { return TestName(info.param); });

// ----- curtail's client of a grpc++ server ------------------------------------------------------------------

class StreamsOfGrpcServer : public testing::Test {
 protected:
  StreamsOfGrpcServer() {
    grpc::ServerBuilder builder;
    builder.SetMaxReceiveMessageSize(-1);
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    channel_.emplace(&client_, Join("127.0.0.1:", port_));
  }
  ~StreamsOfGrpcServer() override { server_->Shutdown(std::chrono::system_clock::now()); }

  GrpcStreams service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  Client client_;
  std::optional<Channel> channel_;
  Context ctx_{kMaxTestWait};
};

TEST_F(StreamsOfGrpcServer, Upload) {
  auto call = Streams::Stub(&*channel_).Upload(ctx_);
  size_t bytes = 0;
  for (int i = 0; i < kMany; ++i) {
    const EchoRequest part = Part(i, i % 3000);
    bytes += part.payload().size();
    ASSERT_TRUE(call.Write(part));
  }
  EchoReply reply;
  const absl::Status status = call.Finish(&reply);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(reply.payload().size(), bytes);
}

TEST_F(StreamsOfGrpcServer, WatchAndAnErrorBehindIt) {
  EchoRequest request = Part(1, 3000);
  request.set_reply_size(kMany);
  request.set_code(5);
  request.set_message("behind");
  auto call = Streams::Stub(&*channel_).Watch(ctx_, request);
  int count = 0;
  for (EchoReply reply; call.Read(&reply); ++count) ASSERT_EQ(reply.payload(), request.payload());
  EXPECT_EQ(count, kMany);
  EXPECT_EQ(call.Finish(), absl::NotFoundError("behind"));
}

TEST_F(StreamsOfGrpcServer, ChatWithLargeAndSmallMessages) {
  auto call = Streams::Stub(&*channel_).Chat(ctx_);
  for (const int bytes : {0, 1, 16'384, 70'000, 3 << 20}) {
    EchoReply reply;
    ASSERT_TRUE(call.Write(Part(bytes, bytes)) && call.Read(&reply));
    EXPECT_EQ(reply.payload(), Part(bytes, bytes).payload());
  }
  std::thread writer([&] {
    for (int i = 0; i < kMany && call.Write(Part(i, 100));) ++i;
    call.WritesDone();
  });
  int next = 0;
  for (EchoReply reply; call.Read(&reply) && reply.payload() == Part(next, 100).payload();) ++next;
  writer.join();
  EXPECT_EQ(next, kMany);
  const absl::Status status = call.Finish();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(call.metadata().initial.Find("x-head"), "h");
  EXPECT_EQ(call.metadata().trailing.Find("x-trail"), "t");
}

TEST_F(StreamsOfGrpcServer, AnErrorInTheMiddle) {
  auto call = Streams::Stub(&*channel_).Upload(ctx_);
  EchoRequest part = Part(1, 1);
  EXPECT_TRUE(call.Write(part));
  part.set_code(3);
  part.set_message("no more");
  EXPECT_TRUE(call.Write(part));
  EchoReply reply;
  EXPECT_EQ(call.Finish(&reply), absl::InvalidArgumentError("no more"));
}

}  // namespace
}  // namespace curtail::interop
