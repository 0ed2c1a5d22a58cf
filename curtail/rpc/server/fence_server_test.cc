// SPDX-License-Identifier: Apache-2.0
//
// The fault that fences cure, and the cure: a server with eight threads, and two services behind it, one of which
// holds its replies until the test opens it.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "curtail/fence/path_class.h"
#include "curtail/rpc/continuation.h"
#include "curtail/rpc/coroutine.h"
#include "curtail/rpc/rpc_testing.h"

namespace curtail {
namespace {

inline constexpr Method<StringValue, StringValue> kHold{"/test.Hold/Hold"};
inline constexpr Method<StringValue, StringValue> kSlow{"/test.Mid/Slow"};
inline constexpr Method<StringValue, StringValue> kQuick{"/test.Mid/Quick"};
inline constexpr Method<StringValue, StringValue> kSneaky{"/test.Mid/Sneaky"};
inline constexpr Method<StringValue, StringValue> kLearned{"/test.Mid/Learned"};
inline constexpr Method<StringValue, StringValue> kEarly{"/test.Mid/Early"};

// Holds the answers until it is opened; counts the calls.
class Holder {
 public:
  void Answer(TypedResponder<StringValue> responder) {
    {
      std::lock_guard lock(mu_);
      ++calls_;
      if (!open_) return held_.push_back(std::move(responder));
    }
    responder.Finish(Text("held"));
  }
  void Open() {
    std::vector<TypedResponder<StringValue>> held;
    {
      std::lock_guard lock(mu_);
      open_ = true;
      held.swap(held_);
    }
    for (auto& responder : held) responder.Finish(Text("held"));
  }
  size_t calls() {
    std::lock_guard lock(mu_);
    return calls_;
  }

 private:
  std::mutex mu_;
  bool open_ = false;
  size_t calls_ = 0;
  std::vector<TypedResponder<StringValue>> held_;
};

class HoldService final : public Service {
 public:
  explicit HoldService(Holder* holder) : holder_(holder) {}
  std::string_view FullName() const override { return "test.Hold"; }
  std::vector<MethodHandler> Handlers() override {
    return {internal::ContinuationMethod<StringValue, StringValue>(
        "Hold", [this](Context&, const StringValue&, TypedResponder<StringValue> responder) {
          holder_->Answer(std::move(responder));
        })};
  }

 private:
  Holder* const holder_;
};

// Calls one of the two services by each method. Handlers are coroutines, which run under every model.
class FencedMid final : public Service {
 public:
  FencedMid(Channel* slow, Channel* quick, Gate* gate) : slow_(slow), quick_(quick), gate_(gate) {}
  std::string_view FullName() const override { return "test.Mid"; }
  std::vector<MethodHandler> Handlers() override {
    MethodHandler early{.name = "Early",
                        .handler = internal::UnaryHandler<StringValue, StringValue>(
                            [this](Context& ctx, const StringValue&, StringValue*) {
                              ctx.LeavePath();
                              gate_->Pass();
                              return absl::OkStatus();
                            })};
    early.continuation = [](Context&, std::string_view, Responder responder) {
      responder.Finish(absl::UnimplementedError("it blocks"));
    };
    return {To("Slow", slow_, kHold), To("Quick", quick_, kEcho), To("Sneaky", quick_, kEcho),
            To("Learned", quick_, kEcho), std::move(early)};
  }
  std::vector<DeclaredPath> Paths() const override {
    return {{"Slow", {"test.Hold"}}, {"Quick", {"test.Echo"}}, {"Sneaky", {}}, {"Early", {"test.Echo"}}};
  }

 private:
  static MethodHandler To(std::string name, Channel* channel,
                          const Method<StringValue, StringValue>& method) {
    return internal::CoroutineMethod<StringValue, StringValue>(
        std::move(name),
        [one = std::vector<Channel*>(1, channel), &method](Context& ctx, const StringValue& in,
                                                           StringValue* out) -> Coroutine {
          const std::vector<StringValue> requests(1, in);
          const auto replies = co_await fan_out(ctx, std::span<Channel* const>(one), method, requests);
          if (!replies[0].ok()) co_return replies[0].status();
          *out = *replies[0];
          co_return absl::OkStatus();
        });
  }

  Channel* const slow_;
  Channel* const quick_;
  Gate* const gate_;
};

class FenceServerTest : public RpcBase, public testing::Test {
 protected:
  ~FenceServerTest() override {
    Release();
    mid_.reset();
  }

  void Serve(FenceMode mode, const char* config) {
    ServerOptions options;
    options.config = *Config::Parse(config);
    // As many permits under models that hold no thread as under the synchronous ones: seven, of which
    // each class has three, and `unknown` one.
    options.fence = {.mode = mode, .permits = 8, .max_waiting = 4};
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
      std::this_thread::yield();
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
  // All of the stalled path is where it should be.
  void AwaitStalled(uint64_t begun, uint32_t waiting, uint64_t refused) {
    EXPECT_TRUE(Becomes([&] {
      const FenceClassStats slow = ClassOf("test.Hold");
      return slow.in_use == begun && slow.waiting == waiting && slow.refused == refused &&
             holder_.calls() == begun;
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
  Channel slow_channel_{&client_, slow_leaf_->addresses()[0]};
  Channel quick_channel_{&client_, quick_leaf_->addresses()[0]};
  std::unique_ptr<Server> mid_;
  Client front_;
  std::unique_ptr<Channel> channel_;
  std::vector<std::thread> callers_;
  std::atomic<int> answered_{0}, refused_{0}, failed_{0};
};

class Unfenced : public FenceServerTest, public testing::WithParamInterface<const char*> {};

// The fault: requests of the stalled path hold every thread, so others wait although their service is idle.
TEST_P(Unfenced, AStalledPathTakesAllThreads) {
  Serve(FenceMode::kOff, GetParam());
  CallSlow(8);
  ASSERT_TRUE(Becomes([&] { return holder_.calls() == 8; }));
  std::atomic<bool> quick{false};
  callers_.emplace_back([&] {
    EXPECT_TRUE(Call(*channel_, kQuick, "x").ok());
    quick = true;
  });
  EXPECT_TRUE(Becomes([&] { return mid_->Sample().pools.queued == 1; })) << "it waits for a thread";
  EXPECT_FALSE(quick);
  EXPECT_FALSE(mid_->Sample().fences.has_value());
  Release();
  EXPECT_TRUE(quick);
  EXPECT_EQ(answered_, 8);
}

INSTANTIATE_TEST_SUITE_P(Models, Unfenced, testing::Values("SDB1-8", "SIB8"),
                         [](const auto& info) { return std::string(info.param).substr(0, 3); });

struct FencedConfig {
  FenceMode mode;
  const char* config;
};

class FencedModels : public FenceServerTest, public testing::WithParamInterface<FencedConfig> {};

// The cure: the stalled path has its permits and its queue, and the rest is refused. Others go on.
TEST_P(FencedModels, AStalledPathHasItsPermitsAndOthersGoOn) {
  const auto [mode, config] = GetParam();
  const uint64_t permits = mode == FenceMode::kBorrow ? 4 : 3;
  Serve(mode, config);
  CallSlow(static_cast<int>(permits) + 4);
  AwaitStalled(permits, 4, 0);
  ExpectRefused();
  ExpectQuick(20);
  for (const char* next : {"FIB1", "ADB1-8-1", "SIB8", "SDB1-8"}) {
    SCOPED_TRACE(next);
    ASSERT_TRUE(mid_->SwitchTo(*Config::Parse(next)).ok());
    AwaitStalled(permits, 4, ClassOf("test.Hold").refused);
    ExpectRefused();
    ExpectQuick(3);
  }
  Release();
  EXPECT_EQ(answered_, permits + 4);
  EXPECT_EQ(refused_ + failed_, 0);
  EXPECT_TRUE(Becomes([&] { return ClassOf("test.Hold").in_use == 0; }));
  const FenceClassStats slow = ClassOf("test.Hold");
  EXPECT_EQ(slow.begun, permits + 4);
  EXPECT_EQ(slow.queued, 4u);
  EXPECT_EQ(slow.refused, 5u);
  EXPECT_EQ(slow.borrowed > 0, mode == FenceMode::kBorrow);
  EXPECT_EQ(ClassOf("test.Echo").begun, 32u);
}

INSTANTIATE_TEST_SUITE_P(
    Modes, FencedModels,
    testing::Values(FencedConfig{FenceMode::kStrict, "SDB1-8"}, FencedConfig{FenceMode::kStrict, "FIB1"},
                    FencedConfig{FenceMode::kStrict, "ADB1-8-1"}, FencedConfig{FenceMode::kBorrow, "SDB1-8"},
                    FencedConfig{FenceMode::kBorrow, "FIB1"}, FencedConfig{FenceMode::kBorrow, "ADB1-8-1"}),
    [](const auto& info) {
      return (info.param.mode == FenceMode::kStrict ? "Strict" : "Borrow") +
             std::string(info.param.config).substr(0, 3);
    });

TEST_F(FenceServerTest, ADryRunCountsAndChangesNothing) {
  Serve(FenceMode::kDryRun, "SDB1-8");
  CallSlow(8);
  EXPECT_TRUE(Becomes([&] { return holder_.calls() == 8; }));
  const FenceClassStats slow = ClassOf("test.Hold");
  EXPECT_EQ(slow.begun, 8u);
  EXPECT_EQ(slow.limit, 3u);
  EXPECT_EQ(slow.queued, 4u);
  EXPECT_EQ(slow.refused, 1u);
  Release();
  EXPECT_EQ(answered_, 8);
}

TEST_F(FenceServerTest, ARequestMayLeaveItsPathEarly) {
  Serve(FenceMode::kStrict, "SDB1-8");
  callers_.emplace_back([this] { EXPECT_TRUE(Call(*channel_, kEarly, "x").ok()); });
  ASSERT_TRUE(gate_.AwaitArrivals(1));
  EXPECT_EQ(ClassOf("test.Echo").begun, 1u);
  EXPECT_EQ(ClassOf("test.Echo").in_use, 0u) << "although its handler runs";
  Release();
  ExpectQuick(1);
  EXPECT_TRUE(Becomes([&] { return ClassOf("test.Echo").in_use == 0; }));
}

TEST_F(FenceServerTest, TellsOfCallsThatAMethodHasNotDeclared) {
  Serve(FenceMode::kStrict, "SDB1-8");
  ASSERT_TRUE(Call(*channel_, kSneaky, "x").ok());
  ASSERT_TRUE(Call(*channel_, kSneaky, "x").ok());
  const std::vector<UndeclaredCalls> undeclared = mid_->Sample().fences->undeclared;
  ASSERT_EQ(undeclared.size(), 1u);
  EXPECT_EQ(undeclared[0].method, "/test.Mid/Sneaky");
  EXPECT_EQ(undeclared[0].service, "test.Echo");
  EXPECT_EQ(undeclared[0].times, 2u);
  EXPECT_EQ(ClassOf("local").begun, 2u);
}

TEST_F(FenceServerTest, LearnsThePathOfAMethod) {
  Serve(FenceMode::kStrict, "SDB1-8");
  const uint32_t alone = ClassOf("unknown").limit;
  EXPECT_GT(alone, 0u);
  for (uint32_t i = 0; i < ClassTable::kLearned; ++i) ASSERT_TRUE(Call(*channel_, kLearned, "x").ok());
  EXPECT_EQ(ClassOf("unknown").begun, ClassTable::kLearned);
  EXPECT_TRUE(Becomes([&] { return ClassOf("unknown").in_use == 0; }));
  ASSERT_TRUE(Becomes([&] { return Call(*channel_, kLearned, "x").ok() && ClassOf("test.Echo").begun > 0; }))
      << "now it is of the class of what it calls";
}

class Misnamed final : public Service {
 public:
  std::string_view FullName() const override { return "test.Misnamed"; }
  std::vector<MethodHandler> Handlers() override { return {}; }
  std::vector<DeclaredPath> Paths() const override { return {{"None", {}}}; }
};

TEST(FenceServer, RefusesPathsOfMethodsThatThereAreNot) {
  std::vector<std::unique_ptr<Service>> services;
  services.push_back(std::make_unique<Misnamed>());
  const auto server = Server::Start({}, std::move(services));
  EXPECT_EQ(server.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(server.status().message(), "test.Misnamed declares the calls of a method that it has not: None");
}

}  // namespace
}  // namespace curtail
