// SPDX-License-Identifier: Apache-2.0
//
// The deadline that the next hop receives. Property: each attempt at a call has the time that remains to the call when the
// attempt is sent, in every form of call, whether it is the first, a retry or a hedge.
#include <gmock/gmock.h>

#include <mutex>
#include <thread>

#include "curtail/rpc/client/channel_impl.h"
#include "curtail/rpc/coroutine.h"
#include "curtail/rpc/mid_tier_testing.h"
#include "curtail/rpc/when_all.h"

namespace curtail {
namespace {

constexpr Method<StringValue, StringValue> kDo{"/test.Hurried/Do"};

// From the first attempt to the second, at least.
constexpr Nanos kPause = milliseconds(50);
// The time of a method that has one.
constexpr Nanos kTimeout = seconds(10);
// The resolution of grpc-timeout.
constexpr Nanos kRounding = milliseconds(1);

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
    while (!ctx.cancelled() && !ctx.deadline().Expired()) std::this_thread::yield();
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
    const absl::Status status = Run(text);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_LE(had, kMaxTestWait);
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
    channel.Start(kDo.path, Deadline::In(kMaxTestWait), {}, Text(text).SerializeAsString(), &call);
    while (!call.done) client_.Poll(Deadline::In(kMaxTestWait));
    EXPECT_TRUE(call.status.ok()) << call.status;
    return kMaxTestWait;
  });
}

}  // namespace
}  // namespace curtail
