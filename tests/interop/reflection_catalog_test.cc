// SPDX-License-Identifier: Apache-2.0
//
// curtail's catalog against the server reflection of grpc++, and JSON requests to a grpc++ service.

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "curtail/load/message/catalog.h"
#include "curtail/load/message/json_workload.h"
#include "curtail/rpc/channel.h"
#include "echo.grpc.pb.h"
#include "gate.h"

namespace curtail::interop {
namespace {

class GrpcEcho final : public peer::Echo::Service {
  grpc::Status Echo(grpc::ServerContext*, const EchoRequest* request, EchoReply* reply) override {
    reply->set_payload(request->payload() + request->message());
    reply->set_timeout_ms(request->code());
    return grpc::Status::OK;
  }
};

class ReflectionCatalogTest : public testing::Test {
 protected:
  void SetUp() override {
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
    address_ = "127.0.0.1:" + std::to_string(port);
  }
  void TearDown() override {
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
  }

  GrpcEcho service_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

TEST_F(ReflectionCatalogTest, DescribesTheServices) {
  const auto catalog = Catalog::FromServer(address_, {}, kMaxTestWait);
  ASSERT_TRUE(catalog.ok()) << catalog.status();
  const auto method = catalog->FindMethod("curtail.interop.Echo/Echo");
  ASSERT_TRUE(method.ok()) << method.status();
  EXPECT_EQ(method->request_type, "curtail.interop.EchoRequest");
  EXPECT_EQ(method->reply_type, "curtail.interop.EchoReply");
  const auto absent = catalog->FindMethod("curtail.interop.Eco/Echo");
  EXPECT_EQ(absent.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(absent.status().message().find("did you mean \"curtail.interop.Echo\"?"), absl::string_view::npos)
      << absent.status();
}

TEST_F(ReflectionCatalogTest, RequestsWrittenAsJsonAreUnderstood) {
  const auto catalog = Catalog::FromServer(address_, {}, kMaxTestWait, "curtail.interop.Echo/Echo");
  ASSERT_TRUE(catalog.ok()) << catalog.status();
  const auto method = catalog->FindMethod("curtail.interop.Echo/Echo");
  ASSERT_TRUE(method.ok()) << method.status();
  const auto workload = MakeJsonWorkload(
      *method, {.text = R"({"payload": "eHk=", "message": "-{{index}}", "code": "{{uniform 5 9}}"})"}, 3);
  ASSERT_TRUE(workload.ok()) << workload.status();
  Client client;
  Channel channel(&client, address_);
  for (uint64_t i = 0; i < 20; ++i) {
    EchoRequest request;
    ASSERT_TRUE(request.ParseFromString((*workload)->Request(i)));
    Context ctx(kMaxTestWait);
    EchoReply reply;
    const absl::Status status = channel.Call(ctx, (*workload)->method(), request, &reply);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(reply.payload(), "xy-" + std::to_string(i));
    EXPECT_TRUE(reply.timeout_ms() >= 5 && reply.timeout_ms() <= 9) << reply.timeout_ms();
    const auto json = ReplyToJson(*method, reply.SerializeAsString());
    ASSERT_TRUE(json.ok()) << json.status();
    EXPECT_NE(json->find("\"timeout_ms\": \"" + std::to_string(reply.timeout_ms())), std::string::npos)
        << *json;
  }
}

}  // namespace
}  // namespace curtail::interop
