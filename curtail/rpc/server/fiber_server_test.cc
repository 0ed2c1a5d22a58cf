// SPDX-License-Identifier: Apache-2.0
//
// Servers under the fiber models, and what their handlers may do there.
#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>

#include "curtail/exec/async.h"
#include "curtail/exec/fiber.h"
#include "curtail/exec/sync.h"
#include "curtail/rpc/async.h"
#include "curtail/rpc/rpc_testing.h"

namespace curtail {
namespace {

using Body = std::function<absl::Status(Context&, const StringValue&, StringValue*)>;

// Methods given as functions.
class FunctionService final : public Service {
 public:
  explicit FunctionService(std::map<std::string, Body> bodies) : bodies_(std::move(bodies)) {}
  std::string_view FullName() const override { return "test.Functions"; }
  std::vector<MethodHandler> Handlers() override {
    std::vector<MethodHandler> handlers;
    for (const auto& [name, body] : bodies_) {
      handlers.push_back({.name = name, .handler = internal::UnaryHandler<StringValue, StringValue>(body)});
    }
    return handlers;
  }

 private:
  const std::map<std::string, Body> bodies_;
};

class FiberServerTest : public RpcBase, public testing::Test {
 protected:
  void TearDown() override { ExpectNothingInUse(server_.get()); }
  void Serve(ServerOptions options, std::map<std::string, Body> bodies) {
    std::vector<std::unique_ptr<Service>> services;
    services.push_back(std::make_unique<FunctionService>(std::move(bodies)));
    auto server = Server::Start(std::move(options), std::move(services));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    channel_ = std::make_unique<Channel>(&front_, server_->addresses()[0]);
  }
  void Serve(const char* config, std::map<std::string, Body> bodies) {
    ServerOptions options;
    options.config = *Config::Parse(config);
    Serve(std::move(options), std::move(bodies));
  }

  struct Answer final : Completion {
    void Done(absl::Status&& s, std::string&&) override {
      status = std::move(s);
      done = true;
    }
    absl::Status status;
    bool done = false;
  };
  // Begins a call; answers_ has its outcome once PollUntil() has seen it.
  Answer& Begin(const std::string& method) {
    channel_->Start("/test.Functions/" + method, Deadline::In(kMaxTestWait), {},
                    Text("x").SerializeAsString(), &answers_.emplace_back());
    return answers_.back();
  }
  bool PollUntil(const std::function<bool()>& condition) {
    const Deadline deadline = Deadline::In(kMaxTestWait);
    while (!condition() && !deadline.Expired()) front_.Poll(Deadline::In(milliseconds(2)));
    return condition();
  }
  size_t Answered() const {
    return static_cast<size_t>(
        std::count_if(answers_.begin(), answers_.end(), [](auto& a) { return a.done; }));
  }

  std::unique_ptr<Server> server_;
  Client front_;
  std::unique_ptr<Channel> channel_;
  std::deque<Answer> answers_;
};

// A gate for handlers on fibers.
struct FiberGate {
  FiberMutex mutex;
  FiberCondition changed;
  bool open = false;
  std::atomic<int> inside{0};

  absl::Status Pass() {
    std::unique_lock lock(mutex);
    ++inside;
    const Deadline deadline = Deadline::In(kMaxTestWait);
    while (!open && !deadline.Expired()) changed.wait_until(lock, deadline);
    return absl::OkStatus();
  }
  void Open() {
    const std::lock_guard lock(mutex);
    open = true;
    changed.notify_all();
  }
};

TEST_F(FiberServerTest, BeyondTheBoundRequestsQueueThenAreRefused) {
  FiberGate gate;
  ServerOptions options;
  options.config = *Config::Parse("FIB1");
  options.max_fibers = 2;
  options.max_queue = 3;
  Serve(std::move(options),
        {{"Wait", [&](Context&, const StringValue&, StringValue*) { return gate.Pass(); }}});
  for (int i = 0; i < 2; ++i) Begin("Wait");
  ASSERT_TRUE(PollUntil([&] { return gate.inside == 2; }));
  for (int i = 0; i < 4; ++i) Begin("Wait");
  ASSERT_TRUE(PollUntil([&] { return Answered() == 1; }));  // the one too many
  EXPECT_EQ(answers_.back().status.code(), absl::StatusCode::kResourceExhausted) << answers_.back().status;
  EXPECT_EQ(gate.inside, 2);
  EXPECT_EQ(server_->Sample().pools.fibers, 2u);
  gate.Open();
  ASSERT_TRUE(PollUntil([&] { return Answered() == 6; }));
  for (size_t i = 0; i < 5; ++i) EXPECT_TRUE(answers_[i].status.ok()) << answers_[i].status;
}

TEST_F(FiberServerTest, AMutexMayBeHeldWhileTheHandlerWaits) {
  auto leaf = StartServer("SIB1");
  Client back;
  Channel leaf_channel(&back, leaf->addresses()[0]);
  FiberMutex mutex;
  std::atomic<int> inside{0};
  for (const char* config : {"FIB1", "FDB1-2", "SDB1-4"}) {
    Serve(config, {{"Guarded", [&](Context& ctx, const StringValue& in, StringValue* out) {
                      const std::lock_guard lock(mutex);
                      EXPECT_EQ(++inside, 1);
                      const absl::Status status = leaf_channel.Call(ctx, kEcho.path, in, out);
                      --inside;
                      return status;
                    }}});
    answers_.clear();
    for (int i = 0; i < 32; ++i) Begin("Guarded");
    ASSERT_TRUE(PollUntil([&] { return Answered() == 32; })) << config;
    for (const Answer& answer : answers_) EXPECT_TRUE(answer.status.ok()) << config << ": " << answer.status;
    channel_.reset();
    server_.reset();
  }
}

TEST_F(FiberServerTest, WhatBlocksIsOffLoadedWhileOthersAreServed) {
  Gate gate;
  Serve("FIB1", {{"Block",
                  [&](Context&, const StringValue&, StringValue*) {
                    return Offload([&] { return gate.Pass(); }) ? absl::OkStatus()
                                                                : absl::InternalError("stuck");
                  }},
                 {"Quick", [](Context&, const StringValue&, StringValue*) { return absl::OkStatus(); }}});
  Answer& blocked = Begin("Block");
  ASSERT_TRUE(PollUntil([&] { return gate.arrived() == 1; }));
  Answer& quick = Begin("Quick");
  ASSERT_TRUE(PollUntil([&] { return quick.done; }));
  EXPECT_FALSE(blocked.done);
  gate.Open();
  ASSERT_TRUE(PollUntil([&] { return blocked.done; }));
  EXPECT_TRUE(blocked.status.ok()) << blocked.status;
}

TEST_F(FiberServerTest, UnderAutoWhatBlocksHasThreadsOfItsOwn) {
  constexpr int kCalls = 20;
  Gate gate;
  ServerOptions options;
  EXPECT_EQ(options.config.ToString(), "auto");
  Serve(
      std::move(options),
      {{"Block", [&](Context&, const StringValue&,
                     StringValue*) { return gate.Pass() ? absl::OkStatus() : absl::InternalError("stuck"); }},
       {"Quick", [](Context&, const StringValue&, StringValue*) { return absl::OkStatus(); }}});
  testing::internal::CaptureStderr();
  for (int i = 0; i < kCalls; ++i) Begin("Block");
  ASSERT_TRUE(PollUntil([&] { return gate.arrived() == kCalls; }));
  Answer& quick = Begin("Quick");
  ASSERT_TRUE(PollUntil([&] { return quick.done; }));
  EXPECT_EQ(Answered(), 1u);
  gate.Open();
  ASSERT_TRUE(PollUntil([&] { return Answered() == kCalls + 1; }));
  for (const Answer& answer : answers_) EXPECT_TRUE(answer.status.ok()) << answer.status;
  const std::vector<HeldUpMethod> held_up = server_->Sample(/*process=*/false).held_up;
  ASSERT_EQ(held_up.size(), 1u);
  EXPECT_EQ(held_up[0].path, "/test.Functions/Block");
  EXPECT_TRUE(held_up[0].blocks);
  EXPECT_GE(held_up[0].times, 1u);
  channel_.reset();
  server_.reset();
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "curtail: /test.Functions/Block sleeps outside of curtail's waits, in a lock, a file or a "
            "blocking call; "
            "from now on each of its calls has a thread of its own\n");
}

// That all twenty are in their handlers at once, however busy the machine is, is what the test above shows. This one measures:
// docs/performance/auto.md has its numbers.
TEST_F(FiberServerTest, UnderAutoTwentyCallsThatSleepOverlap) {
  constexpr int kCalls = 20, kTurns = 5;
  static constexpr Nanos kSleep = milliseconds(50);
  Serve(ServerOptions{}, {{"Sleep", [](Context&, const StringValue&, StringValue*) {
                             std::this_thread::sleep_for(kSleep);
                             return absl::OkStatus();
                           }}});
  testing::internal::CaptureStderr();  // the server says that the method blocks
  Nanos least = Nanos::max();
  for (int turn = 0; turn < kTurns; ++turn) {
    const TimePoint begun = Now();
    answers_.clear();
    for (int i = 0; i < kCalls; ++i) Begin("Sleep");
    ASSERT_TRUE(PollUntil([&] { return Answered() == kCalls; }));
    const Nanos took = Now() - begun;
    std::printf("turn %d: %d calls that sleep for 50 ms took %.1f ms\n", turn + 1, kCalls,
                static_cast<double>(took.count()) / 1e6);
    for (const Answer& answer : answers_) EXPECT_TRUE(answer.status.ok()) << answer.status;
    least = std::min(least, took);
  }
  channel_.reset();
  server_.reset();
  (void)testing::internal::GetCapturedStderr();
  EXPECT_LT(least, kCalls * kSleep / 2) << "one after the other they take twice that";
}

TEST_F(FiberServerTest, PartsOfARequestCallOthersAtTheSameTime) {
  for (const char* config : {"FIB1", "FDB1-1", "SIB1", "SDB1-2"}) {
    Gate gate;
    ServerOptions options;
    options.config = *Config::Parse("SDB1-8");
    std::vector<std::unique_ptr<Service>> services;
    services.push_back(std::make_unique<EchoService>(&gate, std::vector<Channel*>{}, nullptr));
    auto leaf = Server::Start(std::move(options), std::move(services));
    ASSERT_TRUE(leaf.ok()) << leaf.status();
    Client back;
    Channel leaf_channel(&back, (*leaf)->addresses()[0]);
    Serve(config, {{"Compose", [&](Context& ctx, const StringValue&, StringValue*) {
                      const auto part = [&](const char* text) {
                        return async(ctx, [&leaf_channel, text](Context& mine) {
                          StringValue reply;
                          const absl::Status status = leaf_channel.Call(mine, kHang.path, Text(text), &reply);
                          return status.ok() ? reply.value() : std::string(Message(status));
                        });
                      };
                      auto a = part("a"), b = part("b"), c = part("c");
                      return a.get() + b.get() + c.get() == "abc" ? absl::OkStatus()
                                                                  : absl::InternalError("mixed up");
                    }}});
    answers_.clear();
    Answer& answer = Begin("Compose");
    // All three are at the leaf at the same time, for a server with one thread too.
    EXPECT_TRUE(PollUntil([&] { return gate.arrived() == 3; })) << config;
    gate.Open();
    EXPECT_TRUE(PollUntil([&] { return answer.done; })) << config;
    EXPECT_TRUE(answer.status.ok()) << config << ": " << answer.status;
    channel_.reset();
    server_.reset();
  }
}

TEST_F(FiberServerTest, CancellationReachesPartsOfARequest) {
  auto leaf = StartServer("SDB1-4");
  Client back;
  Channel leaf_channel(&back, leaf->addresses()[0]);
  std::atomic<int> cancelled{0};
  Serve("FIB1", {{"Compose", [&](Context& ctx, const StringValue&, StringValue*) {
                    auto part = async(ctx, [&](Context& mine) {
                      StringValue reply;
                      return leaf_channel.Call(mine, kHang.path, Text("x"), &reply);
                    });
                    const absl::Status status = part.get();
                    if (absl::IsDeadlineExceeded(status) || absl::IsCancelled(status)) ++cancelled;
                    return status;
                  }}});
  channel_->Start("/test.Functions/Compose", Deadline::In(milliseconds(50)), {},
                  Text("x").SerializeAsString(), &answers_.emplace_back());
  ASSERT_TRUE(PollUntil([&] { return answers_.back().done && cancelled == 1; }));
  EXPECT_TRUE(absl::IsDeadlineExceeded(answers_.back().status)) << answers_.back().status;
  gate_.Open();
}

TEST_F(FiberServerTest, DrainIsBoundedWhenAHandlerNeverEnds) {
  std::atomic<bool> stop{false}, entered{false};
  Serve("FIB1", {{"Stubborn", [&](Context&, const StringValue&, StringValue*) {
                    entered = true;
                    while (!stop) SleepUntil(Deadline::In(milliseconds(1)));  // ignores its cancellation
                    return absl::OkStatus();
                  }}});
  Begin("Stubborn");
  ASSERT_TRUE(PollUntil([&] { return entered.load(); }));
  const TimePoint begin = Now();
  const absl::Status drained = server_->Drain(Deadline::In(milliseconds(20)));
  EXPECT_TRUE(absl::IsAborted(drained)) << drained;
  EXPECT_LT(Now() - begin, seconds(10));
  stop = true;  // otherwise the server could not be destroyed
  server_.reset();
  EXPECT_TRUE(PollUntil([&] { return Answered() == 1; }));
}

TEST_F(FiberServerTest, AHandlerMayWaitWhileItHandlesAnException) {
  auto leaf = StartServer("SIB1");
  Client back;
  Channel leaf_channel(&back, leaf->addresses()[0]);
  Serve("FIB1", {{"Throw", [&](Context& ctx, const StringValue& in, StringValue* out) -> absl::Status {
                    try {
                      throw std::runtime_error("mine");
                    } catch (const std::exception& e) {
                      const absl::Status status = leaf_channel.Call(ctx, kEcho.path, in, out);
                      if (!status.ok()) return status;
                      if (std::string(e.what()) != "mine") return absl::InternalError("another's exception");
                      throw;  // ... is answered INTERNAL
                    }
                  }}});
  for (int i = 0; i < 64; ++i) Begin("Throw");
  ASSERT_TRUE(PollUntil([&] { return Answered() == 64; }));
  for (const Answer& answer : answers_) {
    EXPECT_EQ(answer.status.code(), absl::StatusCode::kInternal);
    EXPECT_NE(answer.status.message().find("mine"), absl::string_view::npos) << answer.status;
  }
}

TEST_F(FiberServerTest, TheSampleTellsWhoDoesWhat) {
  Serve("SDB1-4", {{"Quick", [](Context&, const StringValue&, StringValue*) { return absl::OkStatus(); }}});
  Answer& answer = Begin("Quick");
  ASSERT_TRUE(PollUntil([&] { return answer.done; }));
  ServerStats stats;
  const auto settled = [&] {  // each worker takes its role by itself
    stats = server_->Sample(/*process=*/true);
    return stats.pools.pools.size() == 2 && stats.pools.pools[1].threads == 4;
  };
  ASSERT_TRUE(PollUntil(settled));
  EXPECT_EQ(stats.pools.config.ToString(), "SDB1-4");
  EXPECT_EQ(stats.pools.pools[0].name, "network");
  EXPECT_EQ(stats.pools.pools[0].threads, 1);
  EXPECT_EQ(stats.pools.pools[1].name, "workers");
  EXPECT_EQ(stats.pools.pools[1].threads, 4);
  for (const ExecutorStats::Pool& pool : stats.pools.pools) {
    EXPECT_EQ(pool.active + pool.waiting + pool.parked, pool.threads) << pool.name;
  }
  EXPECT_EQ(stats.pools.begun, 1u);
  EXPECT_GT(stats.pools.queue_wait, Nanos::zero());
  EXPECT_EQ(stats.connections, 1u);
  EXPECT_GE(stats.process.threads, 64);
}

// How many epoll instances of this process watch another one.
int NestedPollers() {
  std::error_code error;
  std::set<std::string> pollers;
  for (const auto& fd : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    if (std::filesystem::read_symlink(fd, error) == "anon_inode:[eventpoll]")
      pollers.insert(fd.path().filename());
  }
  int nested = 0;
  for (const std::string& poller : pollers) {
    std::ifstream info("/proc/self/fdinfo/" + poller);
    bool found = false;
    for (std::string word; info >> word;) {
      if (word == "tfd:" && info >> word) found |= pollers.contains(word);
    }
    nested += found;
  }
  return nested;
}

// Each poller that watches the reception's takes its share of the time of whoever sends a byte to the server.
TEST_F(FiberServerTest, OnlyAThreadThatReceivesWatchesTheReception) {
  Serve("FIB1", {{"Echo", [](Context&, const StringValue&, StringValue*) { return absl::OkStatus(); }}});
  for (const auto& [config, watching] : {std::pair("FIB1", 1), {"SIB1", 0}, {"SDB1-4", 0}, {"FIB1", 1}}) {
    ASSERT_TRUE(server_->SwitchTo(*Config::Parse(config)).ok());
    const Answer& answer = Begin("Echo");
    ASSERT_TRUE(PollUntil([&] { return answer.done; })) << config;
    EXPECT_TRUE(answer.status.ok()) << config << answer.status;
    EXPECT_TRUE(PollUntil([watching = watching] { return NestedPollers() == watching; }))
        << config << ": " << NestedPollers();
  }
}

TEST_F(FiberServerTest, AForkedAndJoinedFanOutAnswersTheSame) {
  auto leaf = StartServer("SDB1-4");
  Client back({.lanes = 8, .fork_join = true});
  Channel leaf_channel(&back, leaf->addresses()[0]);
  for (const char* config : {"SIB1", "SDB1-4", "SDP1-2", "FIB1"}) {
    auto mid = StartServer(config, {&leaf_channel, &leaf_channel, &leaf_channel});
    Channel channel(&front_, mid->addresses()[0]);
    std::string answer;
    for (int i = 0; i < 50; ++i) {
      ASSERT_TRUE(Call(channel, kForward, "x", &answer).ok()) << config;
      ASSERT_EQ(answer, "x;x;x;") << config;
    }
    EXPECT_TRUE(absl::IsNotFound(Call(channel, kForward, "fail"))) << config;
  }
}

// Uses `depth` frames of some 4 KiB.
[[gnu::noinline]] int Recurse(int depth) {
  volatile char frame[4096];
  std::memset(const_cast<char*>(frame), depth & 1, sizeof frame);
  if (depth == 0) return frame[0];
  return Recurse(depth - 1) + frame[100];
}

using FiberServerDeathTest = FiberServerTest;

TEST_F(FiberServerDeathTest, AnOverrunNamesTheMethod) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto overrun = [this] {
    Serve("FIB1", {{"Recurse", [](Context&, const StringValue&, StringValue* out) {
                      out->set_value(Join(Recurse(1'000'000)));
                      return absl::OkStatus();
                    }}});
    Answer& answer = Begin("Recurse");
    PollUntil([&] { return answer.done; });
  };
  EXPECT_DEATH(overrun(), "stack overflow on a fiber, in the handler of /test.Functions/Recurse");
}

}  // namespace
}  // namespace curtail
