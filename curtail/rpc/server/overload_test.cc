// SPDX-License-Identifier: Apache-2.0
//
// Overload control as a client and an operator see it: the answers, and the counts.
#include <gmock/gmock.h>

#include <array>
#include <functional>
#include <thread>

#include "curtail/rpc/rpc_testing.h"

namespace curtail {
namespace {

inline constexpr Method<StringValue, StringValue> kPass{"/test.Gates/Pass"};

// The first four requests wait at a gate each, in order.
class GatesService final : public Service {
 public:
  explicit GatesService(std::array<Gate, 4>* gates) : gates_(gates) {}
  std::string_view FullName() const override { return "test.Gates"; }
  std::vector<MethodHandler> Handlers() override {
    return {{.name = "Pass",
             .handler = internal::UnaryHandler<StringValue, StringValue>(
                 [this](Context& ctx, const StringValue& in, StringValue* out) {
                   const size_t mine = next_++;
                   if (mine < gates_->size()) (*gates_)[mine].Pass();
                   const Metadata carried = ctx.ChildMetadata();
                   *out = in;
                   out->set_value(std::string(carried.Find(kPriorityKey).value_or("none")));
                   return absl::OkStatus();
                 })}};
  }

  // Local: a class that waits for permits is looked at when requests come, whenever that is on a busy machine.
  std::vector<DeclaredPath> Paths() const override { return {{"Pass", {}}}; }

 private:
  std::array<Gate, 4>* const gates_;
  std::atomic<size_t> next_{0};
};

struct Answer {
  StringValue reply;
  absl::Status status;
  ReplyMetadata metadata;
};

// A server with one thread for requests.
class OverloadTest : public RpcBase, public testing::TestWithParam<FenceMode> {
 protected:
  ~OverloadTest() override { Join(); }
  void TearDown() override {
    Join();
    ExpectNothingInUse(server_.get());
  }

  void Serve(const QueueOptions& queue, const PriorityOptions& priorities = {}) {
    ServerOptions options;
    options.config = *Config::Parse("SDB1-1");
    options.queue = queue;
    options.priorities = priorities;
    options.fence.mode = GetParam();
    std::vector<std::unique_ptr<Service>> services;
    services.push_back(std::make_unique<GatesService>(&gates_));
    auto server = Server::Start(std::move(options), std::move(services));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    channel_ = std::make_unique<Channel>(&client_, server_->addresses()[0]);
  }
  // Makes a call on a thread of its own; returns when the server has queued it, behind `queued` others.
  void Begin(size_t queued, std::string_view priority = {}) {
    answers_.emplace_back(std::make_unique<Answer>());
    callers_.emplace_back([this, answer = answers_.back().get(), priority = std::string(priority)] {
      Context ctx(kMaxTestWait);
      if (!priority.empty()) ctx.AddMetadata(kPriorityKey, priority);
      answer->status = channel_->Call(ctx, kPass.path, Text("x"), &answer->reply, &answer->metadata);
    });
    EXPECT_TRUE(Becomes([&] { return server_->Sample().pools.queued == queued; }));
  }
  void Join() {
    for (Gate& gate : gates_) gate.Open();
    for (std::thread& caller : callers_) caller.join();
    callers_.clear();
  }
  static bool Becomes(const std::function<bool()>& condition) {
    const Deadline deadline = Deadline::In(kMaxTestWait);
    while (!condition()) {
      if (deadline.Expired()) return false;
      BetweenLooks();
    }
    return true;
  }
  // Lets so much time pass, at least.
  static void Pass(Nanos time) {
    const TimePoint until = Now() + time;
    EXPECT_TRUE(Becomes([&] { return Now() > until; }));
  }
  uint64_t Refused(std::string_view reason) {
    for (const RefusalCount& refusal : server_->Sample().refusals) {
      if (refusal.reason == reason) return refusal.times;
    }
    return 0;
  }
  // One request runs. A second one waits for at least `time`, and runs; then as many wait for that time as `others`.
  void Stand(Nanos time, size_t others) {
    Begin(0);
    EXPECT_TRUE(gates_[0].AwaitArrivals(1));
    for (size_t i = 0; i <= others; ++i) Begin(i + 1);
    Pass(time);
    gates_[0].Open();
    EXPECT_TRUE(gates_[1].AwaitArrivals(1));
    Pass(time);
  }

  std::array<Gate, 4> gates_;
  std::unique_ptr<Server> server_;
  Client client_;
  std::unique_ptr<Channel> channel_;
  std::vector<std::unique_ptr<Answer>> answers_;
  std::vector<std::thread> callers_;
};

constexpr Nanos kTarget = milliseconds(1);

TEST_P(OverloadTest, AQueueThatStandsShedsAndSaysWhenToTryAgain) {
  Serve({.shed = ShedMode::kCodel, .target = kTarget, .interval = 2 * kTarget});
  Stand(3 * kTarget, 2);
  gates_[2].Open();
  Join();
  for (size_t i = 0; i < 4; ++i) {
    SCOPED_TRACE(i);
    const Answer& answer = *answers_[i];
    if (i < 2) {
      EXPECT_TRUE(answer.status.ok()) << answer.status;
      continue;
    }
    EXPECT_EQ(answer.status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(Message(answer.status)),
                testing::ContainsRegex(
                    "the server is overloaded: the request waited [0-9]+ ms, and its queue stands"));
    EXPECT_TRUE(answer.metadata.trailing.Find("grpc-retry-pushback-ms"));
  }
  EXPECT_EQ(Refused("waited too long"), 2u);
  const ServerStats stats = server_->Sample();
  if (stats.fences) {
    EXPECT_EQ(stats.fences->classes[0].name, "local");
    EXPECT_EQ(stats.fences->classes[0].shed, 2u);
  }
  EXPECT_TRUE(Becomes([&] { return Call(*channel_, kPass, "x").ok(); })) << "the queue stands no more";
}

TEST_P(OverloadTest, NothingIsShedByDefault) {
  Serve({});
  Stand(3 * kTarget, 2);
  Join();
  for (const auto& answer : answers_) EXPECT_TRUE(answer->status.ok()) << answer->status;
  EXPECT_TRUE(server_->Sample().refusals.empty());
}

// The requests that run and wait make the server overloaded. The least important one is refused then.
TEST_P(OverloadTest, PrioritiesRefuseTheLeastImportantAndAreCarriedOn) {
  Serve({}, {.on = true, .target = kTarget, .window = 2 * kTarget});
  Begin(0, "3.64");
  EXPECT_TRUE(gates_[0].AwaitArrivals(1));
  Begin(1, "3.64");
  Pass(3 * kTarget);
  gates_[0].Open();
  EXPECT_TRUE(gates_[1].AwaitArrivals(1));
  Begin(1, "127.127");
  Begin(2, "3.64");
  Join();
  for (const size_t served : {0, 1, 3}) {
    EXPECT_TRUE(answers_[served]->status.ok()) << answers_[served]->status;
    EXPECT_EQ(answers_[served]->reply.value(), "3.64");
  }
  EXPECT_EQ(answers_[2]->status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(Message(answers_[2]->status)),
              testing::HasSubstr("priority, 127.127, is less important"));
  EXPECT_EQ(answers_[2]->metadata.trailing.Find("grpc-retry-pushback-ms"), "1000");
  EXPECT_EQ(Refused("less important"), 1u);
  const ServerStats stats = server_->Sample();
  if (stats.fences) {
    EXPECT_EQ(stats.fences->classes[0].shed, 1u);
  }
}

TEST_P(OverloadTest, APriorityThatCannotBeReadIsCountedAndTheDefaultHolds) {
  Serve({}, {.on = true});
  gates_[0].Open();
  Begin(0, "128.0");
  Join();
  EXPECT_TRUE(answers_[0]->status.ok()) << answers_[0]->status;
  const std::vector<LimitCount> limits = server_->Sample().limits;
  ASSERT_EQ(limits.size(), 1u);
  EXPECT_EQ(limits[0].name, "priority");
  EXPECT_EQ(limits[0].times, 1u);
}

TEST_P(OverloadTest, APriorityIsNotReadWhenOff) {
  Serve({});
  gates_[0].Open();
  Begin(0, "128.0");
  Join();
  EXPECT_EQ(answers_[0]->reply.value(), "none") << "nor carried on";
  EXPECT_TRUE(server_->Sample().limits.empty());
}

INSTANTIATE_TEST_SUITE_P(Fences, OverloadTest,
                         testing::Values(FenceMode::kOff, FenceMode::kDryRun, FenceMode::kStrict),
                         [](const auto& info) {
                           return info.param == FenceMode::kOff      ? "Off"
                                  : info.param == FenceMode::kDryRun ? "DryRun"
                                                                     : "Strict";
                         });

TEST(OverloadOptions, AreChecked) {
  ServerOptions options;
  options.queue.target = Nanos(0);
  EXPECT_EQ(Server::Start(std::move(options), {}).status().code(), absl::StatusCode::kInvalidArgument);
  ServerOptions other;
  other.priorities.target = Nanos(0);
  EXPECT_EQ(Server::Start(std::move(other), {}).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace curtail
