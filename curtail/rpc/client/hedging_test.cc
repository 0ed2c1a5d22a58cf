// SPDX-License-Identifier: Apache-2.0
//
// Calls whose method has a hedging policy, in every form of call. Property: the first attempt that is answered counts,
// the others are cancelled, and there are never more attempts than the policy, the servers and the budget of retries
// allow.
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "curtail/rpc/client/channel_impl.h"
#include "curtail/rpc/client/servers/many_servers_testing.h"
#include "curtail/rpc/coroutine.h"
#include "curtail/rpc/mid_tier_testing.h"
#include "curtail/rpc/when_all.h"

namespace curtail {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::SizeIs;
using testing::UnorderedElementsAre;

constexpr Method<StringValue, StringValue> kSlow{"/test.Hedged/Do"};

// Answers with its name, at once or never, or fails.
class HedgedService final : public Service {
 public:
  explicit HedgedService(std::string name) : name_(std::move(name)) {}
  std::string_view FullName() const override { return "test.Hedged"; }
  std::vector<MethodHandler> Handlers() override {
    return {{.name = "Do",
             .handler = internal::UnaryHandler<StringValue, StringValue>(
                 [this](Context& ctx, const StringValue&, StringValue* out) { return Do(ctx, out); })}};
  }
  absl::Status Do(Context& ctx, StringValue* out) {
    {
      std::lock_guard lock(mu_);
      seen_.emplace_back(ctx.metadata().Find(internal::kAttemptsKey).value_or("none"));
      demands_.push_back(std::count_if(ctx.metadata().begin(), ctx.metadata().end(), [](const auto& field) {
        return field.first == internal::kDemandKey;
      }));
    }
    out->set_value(name_);
    ctx.AddTrailingMetadata("x-server", name_);
    if (slow) {
      while (slow && !ctx.cancelled() && !ctx.deadline().Expired()) BetweenLooks();
      if (!slow) return absl::OkStatus();
      ++cancelled;
      return absl::CancelledError("was slow");
    }
    if (!pushback.empty()) ctx.AddTrailingMetadata(internal::kPushbackKey, pushback);
    return absl::Status(code, "as the test wants it");
  }
  // The number of earlier attempts, as each attempt told it.
  std::vector<std::string> Seen() {
    std::lock_guard lock(mu_);
    return seen_;
  }
  // How many demands each attempt had.
  std::vector<std::ptrdiff_t> Demands() {
    std::lock_guard lock(mu_);
    return demands_;
  }

  std::atomic<int> cancelled{0};
  std::atomic<bool> slow{false};
  // Set ahead of the calls.
  absl::StatusCode code = absl::StatusCode::kOk;
  std::string pushback;

 private:
  const std::string name_;
  std::mutex mu_;
  std::vector<std::string> seen_;
  std::vector<std::ptrdiff_t> demands_;
};

std::string Hedges(std::string_view delay, std::string_view rest = "") {
  return Join(
      R"({"loadBalancingConfig":[{"round_robin":{}}],"methodConfig":[{"name":[{"service":"test.Hedged","method":"Do"}],)",
      R"("hedgingPolicy":{"maxAttempts":3,"hedgingDelay":")", delay,
      R"(","nonFatalStatusCodes":["UNAVAILABLE"]}}])", rest, "}");
}
constexpr std::string_view kSoon = "0.001s";
constexpr std::string_view kNever = "1000s";

// Three servers, "0" to "2".
class HedgedServers {
 public:
  HedgedServers() {
    std::string addresses;
    for (int i = 0; i < 3; ++i) {
      services_.push_back(new HedgedService(std::to_string(i)));
      ServerOptions options;
      options.config = *Config::Parse("SDB1-8");
      std::vector<std::unique_ptr<Service>> services;
      services.emplace_back(services_.back());
      servers_.push_back(*Server::Start(std::move(options), std::move(services)));
      addresses += Join(i == 0 ? "" : ",", servers_.back()->addresses()[0]);
    }
    target_ = Join("ipv4:", addresses);
  }
  HedgedService& operator[](size_t i) { return *services_[i]; }
  const std::string& target() const { return target_; }
  void SetAll(absl::StatusCode code, const std::string& pushback = "") {
    for (HedgedService* service : services_) service->code = code, service->pushback = pushback;
  }
  std::vector<std::string> Seen() {
    std::vector<std::string> all;
    for (HedgedService* service : services_) {
      for (std::string& one : service->Seen()) all.push_back(std::move(one));
    }
    return all;
  }
  // That the handlers of all attempts at slow servers heard of their end.
  void ExpectThatSlowOnesAreCancelled() {
    for (HedgedService* service : services_) {
      if (!service->slow) continue;
      const auto ended = [&] { return service->cancelled == static_cast<int>(service->Seen().size()); };
      for (const Deadline end = Deadline::In(kMaxTestWait); !ended() && !end.Expired();) BetweenLooks();
      EXPECT_TRUE(ended());
    }
  }
  void SetSlow(std::initializer_list<size_t> which) {
    for (const size_t i : which) services_[i]->slow = true;
  }

 private:
  std::vector<HedgedService*> services_;
  std::string target_;
  std::vector<std::unique_ptr<Server>> servers_;
};

// A thread makes a call and waits for it, or starts it and polls.
enum class Way { kCall, kStart };

class HedgingTest : public testing::TestWithParam<Way> {
 protected:
  void Connect(const std::string& config, bool credits = false) {
    channel_ = std::make_unique<Channel>(&client_, servers_.target(),
                                         ChannelOptions{.service_config = config, .credits = credits});
  }
  absl::Status Do(std::string* answer = nullptr, Nanos timeout = kMaxTestWait,
                  ReplyMetadata* metadata = nullptr) {
    if (GetParam() == Way::kCall) {
      Context ctx(timeout);
      StringValue reply;
      const absl::Status status = channel_->Call(ctx, kSlow.path, Text("x"), &reply, metadata);
      if (answer != nullptr) *answer = reply.value();
      return status;
    }
    Started call = std::move(Start(1, timeout).front());
    if (answer != nullptr) *answer = call.answer;
    if (metadata != nullptr) *metadata = std::move(call.metadata);
    return call.status;
  }

  struct Started final : Completion {
    void OnMetadata(ReplyMetadata&& m) override { metadata = std::move(m); }
    void OnRetry() override { ++retries; }
    void Done(absl::Status&& s, std::string&& bytes) override {
      StringValue value;
      EXPECT_TRUE(value.ParseFromString(bytes));
      status = std::move(s);
      answer = value.value();
      done = true;
    }
    bool done = false;
    absl::Status status;
    std::string answer;
    ReplyMetadata metadata;
    int retries = 0;
  };
  // `n` calls that are in flight together, once they have ended.
  std::vector<Started> Start(size_t n, Nanos timeout = kMaxTestWait) {
    std::vector<Started> calls(n);
    const std::string request = Text("x").SerializeAsString();
    for (Started& call : calls) channel_->Start(kSlow.path, Deadline::In(timeout), {}, request, &call);
    const auto open = [&] {
      return std::any_of(calls.begin(), calls.end(), [](const Started& call) { return !call.done; });
    };
    for (const Deadline end = Deadline::In(kMaxTestWait); open() && !end.Expired();) client_.Poll(end);
    EXPECT_FALSE(open());
    return calls;
  }

  // Cancels a call that has come so far.
  template <class Condition>
  void CancelOnce(Condition there) {
    Started call;
    const Channel::CallId id =
        channel_->Start(kSlow.path, Deadline::In(kMaxTestWait), {}, Text("x").SerializeAsString(), &call);
    const Deadline end = Deadline::In(kMaxTestWait / 2);
    while (!there(call) && !end.Expired()) client_.Poll(Deadline::In(milliseconds(1)));
    channel_->Cancel(id);
    channel_->Cancel(id);
    while (!call.done && !end.Expired()) client_.Poll(end);
    EXPECT_EQ(call.status.code(), absl::StatusCode::kCancelled) << call.status;
  }

  Client client_;
  HedgedServers servers_;
  std::unique_ptr<Channel> channel_;
};
INSTANTIATE_TEST_SUITE_P(Ways, HedgingTest, testing::Values(Way::kCall, Way::kStart), [](const auto& info) {
  return std::string(info.param == Way::kCall ? "Call" : "Start");
});

TEST_P(HedgingTest, ACallAtASlowServerIsAnsweredByAFastOne) {
  servers_.SetSlow({0, 1});
  for (const std::string_view delay : {kSoon, std::string_view("0s")}) {
    Connect(Hedges(delay));
    for (int i = 0; i < 6; ++i) {
      std::string answer;
      ReplyMetadata metadata;
      const absl::Status status = Do(&answer, kMaxTestWait, &metadata);
      EXPECT_TRUE(status.ok()) << status;
      EXPECT_EQ(answer, "2");
      EXPECT_EQ(metadata.trailing.Find("x-server"), "2");
    }
    servers_.ExpectThatSlowOnesAreCancelled();
  }
  EXPECT_LE(servers_[0].Seen().size() + servers_[1].Seen().size(), 24u);
  EXPECT_EQ(servers_[2].Seen().size(), 12u) << "no attempt goes where one is";
}

TEST_P(HedgingTest, EachAttemptHasOneDemandForCredits) {
  servers_.SetSlow({0, 1});
  Connect(Hedges(kSoon), /*credits=*/true);
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(Do().ok());
  servers_.SetAll(absl::StatusCode::kUnavailable);
  Connect(Hedges(kSoon), /*credits=*/true);
  EXPECT_FALSE(Do(nullptr, milliseconds(50)).ok());
  servers_.ExpectThatSlowOnesAreCancelled();
  EXPECT_GT(servers_.Seen().size(), 8u) << "some are hedged";
  for (size_t i = 0; i < 3; ++i) EXPECT_THAT(servers_[i].Demands(), Each(1)) << i;
}

TEST_P(HedgingTest, ThereAreNoMoreAttemptsThanThePolicySays) {
  servers_.SetSlow({0, 1, 2});
  Connect(Hedges("0s"));
  std::thread frees([&] {
    for (const Deadline end = Deadline::In(kMaxTestWait); servers_.Seen().size() < 3 && !end.Expired();)
      BetweenLooks();
    servers_[1].slow = false;
  });
  std::string answer;
  EXPECT_TRUE(Do(&answer).ok());
  frees.join();
  EXPECT_EQ(answer, "1");
  servers_.ExpectThatSlowOnesAreCancelled();
  EXPECT_THAT(servers_.Seen(), UnorderedElementsAre("none", "1", "2"));
  for (size_t i = 0; i < 3; ++i) EXPECT_THAT(servers_[i].Seen(), SizeIs(1)) << i;
}

TEST_P(HedgingTest, TheDeadlineAndTheMethodsTimeoutEndAllAttempts) {
  servers_.SetSlow({0, 1, 2});
  Connect(Hedges("0s"));
  EXPECT_EQ(Do(nullptr, milliseconds(20)).code(), absl::StatusCode::kDeadlineExceeded);
  Connect(R"({"methodConfig":[{"name":[{"service":"test.Hedged","method":"Do"}],"timeout":"0.02s",
              "hedgingPolicy":{"maxAttempts":3}}]})");
  EXPECT_EQ(Do().code(), absl::StatusCode::kDeadlineExceeded);
  servers_.ExpectThatSlowOnesAreCancelled();
}

TEST_P(HedgingTest, OtherMethodsAreNotHedged) {
  servers_.SetSlow({0, 1, 2});
  size_t calls = 0;
  // The policy of another service; and those that do not name the method, which no .proto declares idempotent.
  for (const std::string_view name : {R"({"service":"test.Other"})", R"({"service":"test.Hedged"})", "{}"}) {
    Connect(Join(R"({"methodConfig":[{"name":[)", name,
                 R"(],"hedgingPolicy":{"maxAttempts":3,"hedgingDelay":"0s"}}]})"));
    EXPECT_EQ(Do(nullptr, milliseconds(20)).code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_LE(servers_.Seen().size(), ++calls) << name;
  }
}

TEST_P(HedgingTest, AFatalStatusEndsTheCall) {
  servers_.SetAll(absl::StatusCode::kInternal);
  Connect(Hedges(kNever));
  EXPECT_EQ(Do().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(servers_.Seen(), ElementsAre("none"));
}

TEST_P(HedgingTest, AFatalStatusCancelsTheOtherAttempts) {
  servers_.SetSlow({0, 1});
  servers_.SetAll(absl::StatusCode::kInternal);
  Connect(Hedges(kSoon));
  EXPECT_EQ(Do().code(), absl::StatusCode::kInternal);
  servers_.ExpectThatSlowOnesAreCancelled();
}

TEST_P(HedgingTest, AfterAStatusThatIsNotFatalTheNextAttemptIsMadeAtOnce) {
  Connect(Hedges(kNever));
  servers_.SetAll(absl::StatusCode::kUnavailable);
  servers_[2].code = absl::StatusCode::kOk;
  for (int i = 0; i < 3; ++i) {
    std::string answer;
    const absl::Status status = Do(&answer);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(answer, "2");
  }
  const size_t before = servers_.Seen().size();
  servers_[2].code = absl::StatusCode::kUnavailable;
  EXPECT_EQ(Do().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(servers_.Seen(), SizeIs(before + 3));
}

TEST_P(HedgingTest, AServerSaysWhenOrThatThereAreNoMore) {
  Connect(Hedges(kNever));
  servers_.SetAll(absl::StatusCode::kUnavailable, "1");
  EXPECT_EQ(Do().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(servers_.Seen(), UnorderedElementsAre("none", "1", "2"));
  for (const char* never : {"-1", "soon"}) {
    const size_t before = servers_.Seen().size();
    servers_.SetAll(absl::StatusCode::kUnavailable, never);
    EXPECT_EQ(Do().code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(servers_.Seen(), SizeIs(before + 1));
  }
}

TEST_P(HedgingTest, ThereAreNoHedgesWhileTooManyCallsFail) {
  Connect(Hedges(kNever, R"(,"retryThrottling":{"maxTokens":4,"tokenRatio":0.5})"));
  servers_.SetAll(absl::StatusCode::kUnavailable);
  EXPECT_FALSE(Do().ok());  // 4 - 1 tokens: another; 4 - 2: no more
  EXPECT_THAT(servers_.Seen(), SizeIs(2));
  EXPECT_FALSE(Do().ok());
  EXPECT_THAT(servers_.Seen(), SizeIs(3));
  servers_.SetAll(absl::StatusCode::kOk);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(Do().ok());  // 1 + 5 * 0.5 tokens
  servers_.SetAll(absl::StatusCode::kUnavailable);
  EXPECT_FALSE(Do().ok());
  EXPECT_THAT(servers_.Seen(), SizeIs(3 + 5 + 2));
}

using HedgedStartTest = HedgingTest;
INSTANTIATE_TEST_SUITE_P(Ways, HedgedStartTest, testing::Values(Way::kStart),
                         [](const auto&) { return "Start"; });

TEST_P(HedgedStartTest, CallsInFlightTogetherAreHedgedEach) {
  servers_.SetSlow({0, 1});
  for (const std::string_view delay : {kSoon, std::string_view("0s")}) {
    Connect(Hedges(delay));
    for (int i = 0; i < 4; ++i) {
      for (const Started& call : Start(5)) EXPECT_EQ(call.answer, "2") << call.status;
    }
    servers_.ExpectThatSlowOnesAreCancelled();
  }
}

// With three attempts open, with one, and before any has left.
TEST_P(HedgedStartTest, ACancelledCallEndsAtOnce) {
  servers_.SetSlow({0, 1, 2});
  for (const auto& [config, attempts] : std::vector<std::pair<std::string, size_t>>{
           {Hedges("0s"), 3}, {Hedges(kNever), 1}, {"", 1}, {"", 0}}) {
    Connect(config);
    const size_t seen = servers_.Seen().size() + attempts;
    CancelOnce([&](const Started&) { return servers_.Seen().size() >= seen; });
    servers_.ExpectThatSlowOnesAreCancelled();
  }
}

TEST_P(HedgedStartTest, ACancelledCallIsNotMadeAgain) {
  servers_.SetAll(absl::StatusCode::kAborted);
  Connect(
      R"({"methodConfig":[{"name":[{"service":"test.Hedged","method":"Do"}],"retryPolicy":{"maxAttempts":3,
          "initialBackoff":"8s","maxBackoff":"8s","backoffMultiplier":1,"retryableStatusCodes":["ABORTED"]}}]})");
  CancelOnce([](const Started& call) { return call.retries > 0; });
  EXPECT_THAT(servers_.Seen(), SizeIs(1));
}

// The threading models of a mid-tier that calls the three.
class HedgingModelTest : public MidTier {
 protected:
  template <class Body>
  void ServeWith(const std::string& config, Body body) {
    channel_options_to_them_.service_config = config;
    to_them_ = std::make_unique<Channel>(&client_, servers_.target(), channel_options_to_them_);
    all_ = {to_them_.get(), to_them_.get(), to_them_.get()};
    ServeCoroutine(std::move(body));
  }
  void ServeWith(const std::string& config) {
    ServeWith(config, [this](Context& ctx, const StringValue& in, StringValue* out) -> Coroutine {
      return AskAll(ctx, in, out);
    });
  }
  Coroutine AskAll(Context& ctx, const StringValue& in, StringValue* out) {
    const auto replies = co_await broadcast(ctx, std::span<Channel* const>(all_), kSlow, in);
    for (const auto& reply : replies) {
      if (!reply.ok()) co_return reply.status();
      out->set_value(out->value() + reply->value());
    }
    co_return absl::OkStatus();
  }

  HedgedServers servers_;
  ChannelOptions channel_options_to_them_;
  std::unique_ptr<Channel> to_them_;
  std::vector<Channel*> all_;
};
INSTANTIATE_TEST_SUITE_P(Models, HedgingModelTest,
                         testing::Values("SIB1", "SDB1-4", "FIB1", "FDB1-2", "ADB1-2-2", "AIB1-1"),
                         ModelName);

TEST_P(HedgingModelTest, EachCallOfAFanOutIsHedged) {
  servers_.SetSlow({0, 1});
  ServeWith(Hedges(kSoon));
  for (int i = 0; i < 3; ++i) {
    std::string answer;
    const absl::Status status = Run("x", &answer);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(answer, "222");
  }
  servers_.ExpectThatSlowOnesAreCancelled();
  EXPECT_TRUE(mid_->Drain(Deadline::In(seconds(5))).ok());
}

// A call that cannot succeed any more ends the fan-out; the one that may does not.
TEST_P(HedgingModelTest, AFatalStatusEndsTheOtherCallsOfAFanOut) {
  ServeWith(Hedges(kNever), [this](Context& ctx, const StringValue& in, StringValue* out) -> Coroutine {
    auto both = co_await WhenAllOk(ctx, Ask(to_them_.get(), kSlow, in), Ask(&leaf_channel_, kHang, in));
    if (both.ok()) out->set_value(std::get<0>(*both).value());
    co_return both.status();
  });
  servers_.SetAll(absl::StatusCode::kInternal);
  EXPECT_EQ(Run("x").code(), absl::StatusCode::kInternal);
  servers_.SetAll(absl::StatusCode::kUnavailable);
  EXPECT_EQ(Run("x").code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(servers_.Seen(), SizeIs(1 + 3));
  gate_.Open();
  servers_[1].code = absl::StatusCode::kOk;
  std::string answer;
  EXPECT_TRUE(Run("x", &answer).ok());
  EXPECT_EQ(answer, "1");
}

TEST_P(HedgingModelTest, AFailedAttemptLeavesTheCallToTheNext) {
  servers_[0].code = servers_[1].code = absl::StatusCode::kUnavailable;
  ServeWith(Hedges(kNever));
  std::string answer;
  const absl::Status status = Run("x", &answer);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(answer, "222");
}

TEST_P(HedgingModelTest, ACallerThatGoesEndsAllAttempts) {
  servers_.SetSlow({0, 1, 2});
  ServeWith(Hedges("0s"));
  Context ctx(kMaxTestWait);
  std::thread cancels([&] {
    for (const Deadline end = Deadline::In(kMaxTestWait); servers_.Seen().size() < 9 && !end.Expired();)
      BetweenLooks();
    ctx.Cancel();
  });
  StringValue reply;
  EXPECT_EQ(channel_->Call(ctx, kRun.path, Text("x"), &reply).code(), absl::StatusCode::kCancelled);
  cancels.join();
  servers_.ExpectThatSlowOnesAreCancelled();
  EXPECT_TRUE(mid_->Drain(Deadline::In(seconds(5))).ok());
}

}  // namespace
}  // namespace curtail
