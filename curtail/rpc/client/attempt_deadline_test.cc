// SPDX-License-Identifier: Apache-2.0
//
// The deadline that the next hop receives. Property: each attempt at a call has the time that remains to the call when the
// attempt is sent, in every form of call, whether it is the first, a retry or a hedge.
#include <gmock/gmock.h>

#include <mutex>
#include <thread>

#include "curtail/rpc/client/channel_impl.h"
#include "curtail/rpc/coroutine.h"
#include "curtail/rpc/in_process.h"
#include "curtail/rpc/mid_tier_testing.h"
#include "curtail/rpc/stream.h"
#include "curtail/rpc/when_all.h"

namespace curtail {
namespace {

constexpr Method<StringValue, StringValue> kDo{"/test.Hurried/Do"};

// From the first attempt to the second, at least.
constexpr Nanos kPause = milliseconds(50);
// The time of a method that has one.
constexpr Nanos kTimeout = seconds(10);
// Of a call; less than ten seconds, of which grpc-timeout has four digits.
constexpr Nanos kTime = seconds(9);
constexpr Nanos kRounding = milliseconds(10);

std::string ConfigOf(std::string_view policy, bool timeout) {
  return Join(R"({"methodConfig":[{"name":[{"service":"test.Hurried","method":"Do"}],)",
              timeout ? R"("timeout":"10s",)" : "", policy, "}]}");
}
constexpr std::string_view kRetry =
    R"("retryPolicy":{"maxAttempts":2,"initialBackoff":"1s","maxBackoff":"1s","backoffMultiplier":1,
       "retryableStatusCodes":["UNAVAILABLE"]})";
constexpr std::string_view kHedge = R"("hedgingPolicy":{"maxAttempts":2,"hedgingDelay":"0.05s"})";

// Notes how much time each attempt has. The first fails, to be made again after kPause, or waits for its end.
class HurriedService final : public Service {
 public:
  std::string_view FullName() const override { return "test.Hurried"; }
  std::vector<MethodHandler> Handlers() override {
    return {{.name = "Do",
             .handler = internal::UnaryHandler<StringValue, StringValue>(
                 [this](Context& ctx, const StringValue& in, StringValue*) { return Do(ctx, in); })}};
  }
  std::vector<Nanos> TakeLeft() {
    std::lock_guard lock(mu_);
    return std::exchange(left_, {});
  }

 private:
  absl::Status Do(Context& ctx, const StringValue& in) {
    const Nanos left = ctx.deadline().Remaining();
    {
      std::lock_guard lock(mu_);
      left_.push_back(left);
      if (left_.size() > 1) return absl::OkStatus();
    }
    if (in.value() == "fail") {
      ctx.AddTrailingMetadata(internal::kPushbackKey, Join(kPause / milliseconds(1)));
      return absl::UnavailableError("as the test wants it");
    }
    while (!ctx.cancelled() && !ctx.deadline().Expired()) BetweenLooks();
    return absl::CancelledError("was slow");
  }

  std::mutex mu_;
  std::vector<Nanos> left_;
};

class AttemptDeadlineTest : public MidTier {
 protected:
  AttemptDeadlineTest() {
    ServerOptions options;
    options.config = *Config::Parse("SDB1-4");
    std::vector<std::unique_ptr<Service>> services;
    services.emplace_back(hurried_);
    hurried_server_ = *Server::Start(std::move(options), std::move(services));
  }
  // Calls with each policy, with and without a timeout of the method: call(channel, text) returns how much time the call
  // had, at most, when it was made.
  template <class F>
  void ExpectWhatIsLeft(F call) {
    for (const auto& [policy, text] : {std::pair(kRetry, "fail"), std::pair(kHedge, "wait")}) {
      for (const bool timeout : {false, true}) {
        SCOPED_TRACE(Join(policy, timeout ? " with a timeout" : ""));
        Channel channel(&client_, hurried_server_->addresses()[0],
                        {.service_config = ConfigOf(policy, timeout)});
        const Nanos had = std::min(call(channel, text), timeout ? kTimeout : Nanos::max());
        const std::vector<Nanos> left = hurried_->TakeLeft();
        ASSERT_EQ(left.size(), 2u);
        EXPECT_LE(left[0], had + kRounding);
        EXPECT_LE(left[1], had - kPause + kRounding);
        EXPECT_GT(left[1], Nanos::zero());
      }
    }
  }

  HurriedService* const hurried_ = new HurriedService;
  std::unique_ptr<Server> hurried_server_;
};
INSTANTIATE_TEST_SUITE_P(Models, AttemptDeadlineTest,
                         testing::Values("SIB1", "SDB1-4", "FIB1", "FDB1-2", "AIB1-1", "ADB1-2-2"),
                         ModelName);

TEST_P(AttemptDeadlineTest, EachHasWhatIsLeftOfTheRequest) {
  ExpectWhatIsLeft([this](Channel& channel, const char* text) {
    Nanos had{0};
    ServeCoroutine([&](Context& ctx, const StringValue& in, StringValue*) -> Coroutine {
      had = ctx.deadline().Remaining();
      auto [reply] = co_await WhenAll(ctx, Ask(&channel, kDo, in));
      co_return reply.status();
    });
    const absl::Status status = Run(text, nullptr, kTime);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_LE(had, kTime + kRounding);
    mid_.reset();  // before the channel
    return had;
  });
}

class StartedAttemptDeadlineTest : public AttemptDeadlineTest {};
INSTANTIATE_TEST_SUITE_P(NoModel, StartedAttemptDeadlineTest, testing::Values("SIB1"), ModelName);

TEST_P(StartedAttemptDeadlineTest, EachHasWhatIsLeftOfTheCall) {
  struct Ended final : Completion {
    void Done(absl::Status&& s, std::string&&) override {
      status = std::move(s);
      done = true;
    }
    absl::Status status;
    bool done = false;
  };
  ExpectWhatIsLeft([this](Channel& channel, const char* text) -> Nanos {
    Ended call;
    channel.Start(kDo.path, Deadline::In(kTime), {}, Text(text).SerializeAsString(), &call);
    while (!call.done) client_.Poll(Deadline::In(kMaxTestWait));
    EXPECT_TRUE(call.status.ok()) << call.status;
    return kTime;
  });
}

constexpr Method<StringValue, StringValue> kSay{"/test.Left/Say"};
constexpr Method<StringValue, StringValue> kChat{"/test.Left/Chat"};

// Answers a call, and each message of a stream, with the time that it has left, in ns.
class LeftService final : public Service {
 public:
  std::string_view FullName() const override { return "test.Left"; }
  std::vector<MethodHandler> Handlers() override {
    const auto say = [](const Context& ctx, StringValue* out) {
      out->set_value(Join(ctx.deadline().Remaining().count()));
      return absl::OkStatus();
    };
    return {internal::StraightLineMethod<StringValue, StringValue>(
                "Say", /*never_waits=*/true,
                [say](Context& ctx, const StringValue&, StringValue* out) { return say(ctx, out); }),
            internal::BidirectionalMethod<StringValue, StringValue>(
                "Chat", [say](Context& ctx, ServerStream<StringValue, StringValue>& stream) {
                  return EachMessage(stream,
                                     [&](const StringValue&, StringValue* out) { return say(ctx, out); });
                })};
  }
};

enum class Form { kCall, kStart, kStream };

class NextHopDeadlineTest : public testing::TestWithParam<Form> {
 protected:
  static std::unique_ptr<Server> Serve(const std::string& address = OwnLoopback()) {
    ServerOptions options;
    options.listen = {address};
    options.config = *Config::Parse("SDB1-2");
    options.default_timeout = milliseconds(1);  // for calls that bring none
    std::vector<std::unique_ptr<Service>> services;
    services.push_back(std::make_unique<LeftService>());
    return *Server::Start(std::move(options), std::move(services));
  }

  absl::Status Say(Channel& channel, Context& ctx, StringValue* reply) {
    switch (GetParam()) {
      case Form::kCall:
        return channel.Call(ctx, kSay.path, Text("x"), reply);
      case Form::kStart:
        return Start(channel, ctx.deadline(), reply);
      case Form::kStream:
        break;
    }
    ClientStream<StringValue, StringValue> stream(internal::OpenStream(ctx, channel, kChat.path));
    EXPECT_TRUE(stream.Write(Text("x")) && stream.Read(reply));
    return stream.Finish();
  }

  // Of a call that was not sent before `sent()`, which is asked once it has ended.
  template <class Sent>
  void ExpectWhatIsLeft(Channel& channel, Sent sent) {
    Context ctx(kMaxTestWait);
    const TimePoint deadline = ctx.deadline().when();
    StringValue reply;
    const absl::Status status = Say(channel, ctx, &reply);
    const TimePoint answered = Now();
    ASSERT_TRUE(status.ok()) << status;
    const Nanos left(std::stoll(reply.value()));
    EXPECT_LE(left, deadline - sent() + kRounding);
    EXPECT_GE(left, deadline - answered - kRounding);
  }

  Client client_;

 private:
  absl::Status Start(Channel& channel, Deadline deadline, StringValue* reply) {
    struct Ended final : Completion {
      void Done(absl::Status&& s, std::string&& r) override {
        status = std::move(s), bytes = std::move(r), done = true;
      }
      absl::Status status;
      std::string bytes;
      bool done = false;
    } call;
    channel.Start(kSay.path, deadline, {}, Text("x").SerializeAsString(), &call);
    while (!call.done) client_.Poll(deadline);
    EXPECT_TRUE(reply->ParseFromString(call.bytes));
    return call.status;
  }
};
std::string FormName(const testing::TestParamInfo<Form>& info) {
  constexpr const char* kNames[] = {"Call", "Start", "Stream"};
  return kNames[static_cast<size_t>(info.param)];
}
INSTANTIATE_TEST_SUITE_P(Forms, NextHopDeadlineTest,
                         testing::Values(Form::kCall, Form::kStart, Form::kStream), FormName);

TEST_P(NextHopDeadlineTest, IsTheCallersOverAConnection) {
  const auto server = Serve();
  Channel channel(&client_, server->addresses()[0]);
  ExpectWhatIsLeft(channel, [began = Now()] { return began; });
}

TEST_P(NextHopDeadlineTest, IsWhatAWaitForTheServerHasLeft) {
  std::unique_ptr<Server> server = Serve();
  const std::string address = server->addresses()[0];
  server.reset();
  Channel channel(
      &client_, address,
      {.initial_backoff = milliseconds(1), .max_backoff = milliseconds(5), .wait_for_ready = true});
  TimePoint started;
  std::thread starts([&, began = Now()] {
    while (Now() < began + kPause) BetweenLooks();
    started = Now();
    server = Serve(address);
  });
  ExpectWhatIsLeft(channel, [&] {
    starts.join();
    return started;
  });
}

TEST_P(NextHopDeadlineTest, IsTheCallersInTheProcess) {
  if (GetParam() == Form::kStart) return;  // takes a connection
  LeftService service;
  InProcess here("here");
  ASSERT_TRUE(here.Serve(service).ok());
  Channel channel(&client_, &here);
  ExpectWhatIsLeft(channel, [began = Now()] { return began; });
}

}  // namespace
}  // namespace curtail
