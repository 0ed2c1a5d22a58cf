// SPDX-License-Identifier: Apache-2.0
//
// fence_server_testing.h - a server with eight threads and two services behind it, one of which holds its replies until
// the test opens it.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "curtail/rpc/server/fence/fence_services_testing.h"

namespace curtail {

class FenceServerTest : public RpcBase, public testing::Test {
 protected:
  // `via`: the address by which the server reaches the one that holds, whose own it gets.
  explicit FenceServerTest(std::function<std::string(std::string leaf)> via = nullptr)
      : via_(std::move(via)) {}
  ~FenceServerTest() override {
    Release();
    mid_.reset();
  }
  void TearDown() override {
    Release();
    ExpectNothingInUse(mid_.get());
  }

  void Serve(FenceMode mode, const char* config) {
    ServerOptions options;
    options.config = *Config::Parse(config);
    // As many permits under models that hold no thread as under the synchronous ones. Strict: seven, of
    // which each class has three, and `unknown` one.
    options.fence = {.mode = mode, .permits = 8, .max_waiting = 4, .limit = limit_};
    std::vector<std::unique_ptr<Service>> services;
    services.push_back(std::make_unique<FencedMid>(&slow_channel_, &quick_channel_, &gate_));
    auto server = Server::Start(std::move(options), std::move(services));
    ASSERT_TRUE(server.ok()) << server.status();
    mid_ = *std::move(server);
    channel_ = std::make_unique<Channel>(&front_, mid_->addresses()[0]);
  }
  // Makes calls of Slow that wait, each on a thread of the test.
  void CallSlow(int count) {
    for (int i = 0; i < count; ++i) {
      callers_.emplace_back([this] {
        const absl::Status status = Call(*channel_, kSlow, "x");
        ++(status.ok() ? answered_ : absl::IsResourceExhausted(status) ? refused_ : failed_);
      });
    }
  }
  void Release() {
    holder_.Open();
    gate_.Open();
    for (std::thread& caller : callers_) caller.join();
    callers_.clear();
  }
  template <class F>
  static bool Becomes(F condition) {
    const Deadline deadline = Deadline::In(kMaxTestWait);
    while (!condition()) {
      if (deadline.Expired()) return false;
      BetweenLooks();
    }
    return true;
  }
  FenceClassStats ClassOf(std::string_view name) {
    const ServerStats sample = mid_->Sample();
    for (const FenceClassStats& stats : sample.fences->classes) {
      if (stats.name == name) return stats;
    }
    return {};
  }
  // All of the stalled path is where it should be; `earlier` calls had reached the leaf before.
  void AwaitStalled(uint64_t begun, uint32_t waiting, uint64_t refused, uint64_t earlier = 0) {
    EXPECT_TRUE(Becomes([&] {
      const FenceClassStats slow = ClassOf("test.Hold");
      return slow.in_use == begun && slow.waiting == waiting && slow.refused == refused &&
             holder_.calls() == begun + earlier;
    })) << ClassOf("test.Hold").in_use
        << " begun, " << ClassOf("test.Hold").waiting << " waiting, " << ClassOf("test.Hold").refused
        << " refused, " << holder_.calls() << " calls";
  }
  void ExpectQuick(int calls) {
    for (int i = 0; i < calls; ++i) {
      const absl::Status status = Call(*channel_, kQuick, "x");
      ASSERT_TRUE(status.ok()) << status;
    }
  }
  void ExpectRefused() {
    Context ctx(kMaxTestWait);
    ReplyMetadata metadata;
    StringValue reply;
    const absl::Status status = channel_->Call(ctx, kSlow.path, Text("x"), &reply, &metadata);
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(status.message(), "too many requests wait for the same services: test.Hold");
    EXPECT_TRUE(metadata.trailing.Find("grpc-retry-pushback-ms"));
  }

  const std::function<std::string(std::string leaf)> via_;
  std::string limit_ = "fixed";  // of the server that Serve() starts
  Holder holder_;
  Client client_;
  std::unique_ptr<Server> slow_leaf_ = [this] {
    ServerOptions options;
    options.config = *Config::Parse("AIB1-1");
    std::vector<std::unique_ptr<Service>> services;
    services.push_back(std::make_unique<HoldService>(&holder_));
    return *Server::Start(std::move(options), std::move(services));
  }();
  std::unique_ptr<Server> quick_leaf_ = StartServer("SIB1");
  Channel slow_channel_{&client_, via_ ? via_(slow_leaf_->addresses()[0]) : slow_leaf_->addresses()[0]};
  Channel quick_channel_{&client_, quick_leaf_->addresses()[0]};
  std::unique_ptr<Server> mid_;
  Client front_;
  std::unique_ptr<Channel> channel_;
  std::vector<std::thread> callers_;
  std::atomic<int> answered_{0}, refused_{0}, failed_{0};
};

}  // namespace curtail
