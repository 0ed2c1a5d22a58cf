// SPDX-License-Identifier: Apache-2.0
//
// curtail as the mid-tier of a fan-out to grpc++ servers, under each synchronous model.

#include <gtest/gtest.h>

#include <future>
#include <map>
#include <thread>

#include "grpc_server_testing.h"

namespace curtail::interop {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A mid-tier of curtail between a client of curtail and four leaves of grpc++.
class GrpcLeavesTest : public testing::TestWithParam<const char*> {
 protected:
  static constexpr int kLeaves = 4;

  // Leaf 0 stands behind a relay.
  GrpcLeavesTest() {
    for (int i = 0; i < kLeaves; ++i) servers_.push_back(std::make_unique<GrpcServer>(&gate_));
    relay_ = RelayTo(servers_[0]->address());
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
  std::unique_ptr<deploy::Relay> relay_;
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
