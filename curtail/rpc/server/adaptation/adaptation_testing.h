// SPDX-License-Identifier: Apache-2.0
//
// adaptation_testing.h - servers with a policy, their profiles, and callers that load them.
#pragma once

#include <gmock/gmock.h>
#include <unistd.h>

#include <deque>
#include <fstream>
#include <functional>

#include "curtail/adapt/profile_testing.h"
#include "curtail/rpc/coroutine.h"
#include "curtail/rpc/rpc_testing.h"

namespace curtail {

// A file that goes with the object.
class TempFile {
 public:
  explicit TempFile(const std::string& text)
      : path_(Join(testing::TempDir(), "adaptation-", getpid(), "-", ++made_)) {
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~TempFile() { unlink(path_.c_str()); }
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  static inline int made_ = 0;
  const std::string path_;
};

inline std::string TextOf(Profile profile) {
  profile.service = "test.Echo";
  return ProfileJson(profile).value();
}

// `low` answers sooner and sustains 300 requests a second, `high` sustains all.
inline Profile LowAndHigh(std::string_view low, std::string_view high) {
  return MakeProfile({100, 300, 1000, 10'000, 100'000},
                     {{low, 300, [](double) { return 100; }}, {high, 1e18, [](double) { return 500; }}});
}

// Echo as a coroutine, for all models.
class CoroutineEcho final : public Service {
 public:
  std::string_view FullName() const override { return "test.Echo"; }
  std::vector<MethodHandler> Handlers() override {
    return {internal::CoroutineMethod<StringValue, StringValue>(
        "Echo", [](Context&, const StringValue& in, StringValue* out) -> Coroutine {
          out->set_value(in.value());
          co_return absl::OkStatus();
        })};
  }
};

// Makes calls of kEcho and checks that each is answered once.
class Caller {
 public:
  explicit Caller(const std::string& address) : channel_(&client_, address) {}

  // Keeps `in_flight` calls open until `enough` or the longest wait; returns whether it was enough.
  bool Drive(size_t in_flight, const std::function<bool()>& enough) {
    const Deadline deadline = Deadline::In(kMaxTestWait);
    bool reached = false;
    while (!(reached = enough()) && !deadline.Expired()) {
      while (answers_.size() - done_ < in_flight) Start();
      done_ += client_.Poll(Deadline::In(milliseconds(10)));
    }
    while (done_ < answers_.size() && !deadline.Expired()) done_ += client_.Poll(deadline);
    return reached;
  }
  // One call in each `gap` at most, whether or not those before are answered.
  bool Trickle(const std::function<bool()>& enough, Nanos gap = milliseconds(20)) {
    const Deadline deadline = Deadline::In(kMaxTestWait);
    while (!enough()) {
      if (deadline.Expired()) return false;
      Start();
      const Deadline next = Deadline::In(gap);
      while (!next.Expired()) done_ += client_.Poll(next);
    }
    return true;
  }
  // That all calls succeeded, and how many they are.
  void ExpectAllAnsweredOnce(size_t at_least) {
    const Deadline deadline = Deadline::In(kMaxTestWait);
    while (done_ < answers_.size() && !deadline.Expired()) done_ += client_.Poll(deadline);
    EXPECT_EQ(done_, answers_.size());
    EXPECT_GE(done_, at_least);
    for (const Answer& answer : answers_) {
      ASSERT_TRUE(answer.good) << answer.status;
      ASSERT_EQ(answer.times, 1);
    }
  }
  size_t done() const { return done_; }

 private:
  struct Answer final : Completion {
    void Done(absl::Status&& s, std::string&& reply) override {
      StringValue value;
      good = s.ok() && value.ParseFromString(reply) && value.value() == expected;
      status = std::move(s);
      ++times;
    }
    std::string expected;
    absl::Status status;
    int times = 0;
    bool good = false;
  };

  void Start() {
    const size_t n = answers_.size();
    answers_.emplace_back().expected = Join(n);
    channel_.Start(kEcho.path, Deadline::In(kMaxTestWait), {}, Text(Join(n)).SerializeAsString(),
                   &answers_.back());
  }

  Client client_;
  std::deque<Answer> answers_;  // stay where they are; after the client that may still refer to them
  Channel channel_;
  size_t done_ = 0;
};

class AdaptationTest : public RpcBase, public testing::Test {
 protected:
  static ServerOptions Options(std::string policy, std::string config = "SIB1") {
    ServerOptions options;
    options.config = *Config::Parse(config);
    options.max_threads = 16;
    options.policy = std::move(policy);
    options.any_machine = true;
    return options;
  }
  absl::StatusOr<std::unique_ptr<Server>> TryStart(ServerOptions options, bool coroutine = false) {
    std::vector<std::unique_ptr<Service>> services;
    if (coroutine) {
      services.push_back(std::make_unique<CoroutineEcho>());
    } else {
      services.push_back(std::make_unique<EchoService>(&gate_, std::vector<Channel*>{}, &cancelled_));
    }
    return Server::Start(std::move(options), std::move(services));
  }
  std::unique_ptr<Server> Start(ServerOptions options, bool coroutine = false) {
    auto server = TryStart(std::move(options), coroutine);
    EXPECT_TRUE(server.ok()) << server.status();
    return server.ok() ? *std::move(server) : nullptr;
  }
  // Why a server does not start with these options.
  std::string Refusal(ServerOptions options) {
    auto server = TryStart(std::move(options));
    EXPECT_TRUE(absl::IsInvalidArgument(server.status())) << server.status();
    return std::string(Message(server.status()));
  }
  static std::string ConfigOfServer(Server& server) { return server.config().ToString(); }

  // A burst takes a server under `mutune` from `low` to `high`, and a trickle back.
  void ExpectUpAndBack(const std::string& low, const std::string& high, bool coroutine) {
    const TempFile profile(TextOf(LowAndHigh(low, high)));
    ServerOptions options = Options("mutune", low);
    options.profile = profile.path();
    ExpectUpAndBack(std::move(options), low, high, "the load is beyond the present config", coroutine);
  }
  // The same for any policy that goes up at 300 requests a second, with `reason`.
  void ExpectUpAndBack(ServerOptions options, const std::string& low, const std::string& high,
                       const std::string& reason, bool coroutine) {
    const auto server = Start(std::move(options), coroutine);
    ASSERT_NE(server, nullptr);
    const auto threads_now = [&] { return static_cast<int>(server->Sample(true).process.threads); };
    const int threads = threads_now();
    Caller caller(server->addresses()[0]);
    ASSERT_TRUE(caller.Trickle([&] { return caller.done() >= 5; }));
    EXPECT_EQ(ConfigOfServer(*server), low);
    EXPECT_TRUE(caller.Drive(16, [&] { return ConfigOfServer(*server) == high; }));
    // A switch is in force a moment before it is noted.
    EXPECT_TRUE(caller.Trickle([&] {
      return ConfigOfServer(*server) == low && server->Sample().policy.value().decisions.size() >= 2;
    }));
    caller.ExpectAllAnsweredOnce(20);
    const PolicyStats stats = server->Sample().policy.value();
    ASSERT_GE(stats.decisions.size(), 2u);
    EXPECT_EQ(stats.decisions.front().to.ToString(), high);
    EXPECT_EQ(stats.decisions.front().reason, reason);
    EXPECT_GT(stats.decisions.front().rate_per_s, 300);
    EXPECT_EQ(stats.decisions.back().to.ToString(), low);
    EXPECT_EQ(stats.switches, stats.decisions.size());
    EXPECT_EQ(stats.arrivals, caller.done());
    // The kernel counts a thread that was joined for a moment longer: also one of the test before.
    const Deadline gone = Deadline::In(kMaxTestWait);
    while (threads_now() > threads && !gone.Expired()) BetweenLooks();
    EXPECT_LE(threads_now(), threads);
    EXPECT_TRUE(server->Drain(Deadline::In(kMaxTestWait)).ok());
  }
};

}  // namespace curtail
