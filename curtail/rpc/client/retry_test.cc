// SPDX-License-Identifier: Apache-2.0
//
// Calls that are made again because a service config says so, in every form of call, and calls that wait for a
// connection. Property: a call is repeated as often as its policy says and no more, and ends by its deadline.
#include <gmock/gmock.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "curtail/rpc/client/channel_impl.h"
#include "curtail/rpc/client/servers/many_servers_testing.h"
#include "curtail/rpc/coroutine.h"
#include "curtail/rpc/mid_tier_testing.h"
#include "curtail/rpc/retries.h"

namespace curtail {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr Method<StringValue, StringValue> kDo{"/test.Flaky/Do"};

// A retry policy for the method, or for those that `name` says: up to four attempts.
std::string Retries(std::string_view backoff = "0.001s", std::string_view rest = "",
                    std::string_view name = R"({"service":"test.Flaky","method":"Do"})") {
  return Join(R"({"methodConfig":[{"name":[)", name, R"(],"retryPolicy":{"maxAttempts":4,"initialBackoff":")",
              backoff, R"(","maxBackoff":")", backoff,
              R"(","backoffMultiplier":2,"retryableStatusCodes":["UNAVAILABLE"]}}])", rest, "}");
}

// Fails as the test says, and then answers with the request.
class FlakyService final : public Service {
 public:
  std::string_view FullName() const override { return "test.Flaky"; }
  std::vector<MethodHandler> Handlers() override {
    return {
        {.name = "Do",
         .handler = internal::UnaryHandler<StringValue, StringValue>(
             [this](Context& ctx, const StringValue& in, StringValue* out) { return Do(ctx, in, out); })}};
  }

  absl::Status Do(Context& ctx, const StringValue& in, StringValue* out) {
    {
      std::lock_guard lock(mu_);
      seen_.emplace_back(ctx.metadata().Find(internal::kAttemptsKey).value_or("none"));
    }
    out->set_value(in.value());
    if (hangs) {
      while (!ctx.cancelled() && !ctx.deadline().Expired()) BetweenLooks();
      return absl::CancelledError("hung");
    }
    if (failures.fetch_sub(1) <= 0) return absl::OkStatus();
    if (!pushback.empty()) ctx.AddTrailingMetadata(internal::kPushbackKey, pushback);
    if (commits) ctx.AddInitialMetadata("x-head", "h");
    return absl::Status(code, "as the test wants it");
  }
  // The number of earlier attempts, as each attempt told it.
  std::vector<std::string> Seen() {
    std::lock_guard lock(mu_);
    return seen_;
  }

  std::atomic<int> failures{0};
  // Set ahead of the calls.
  absl::StatusCode code = absl::StatusCode::kUnavailable;
  std::string pushback;
  bool commits = false;
  bool hangs = false;

 private:
  std::mutex mu_;
  std::vector<std::string> seen_;
};

std::unique_ptr<Server> StartFlaky(FlakyService* service, const std::string& address = OwnLoopback()) {
  ServerOptions options;
  options.listen = {address};
  options.config = *Config::Parse("SDB1-4");
  std::vector<std::unique_ptr<Service>> services;
  services.emplace_back(service);
  auto server = Server::Start(std::move(options), std::move(services));
  EXPECT_TRUE(server.ok()) << server.status();
  return server.ok() ? *std::move(server) : nullptr;
}

// Has a fresh service listen at `address` while calls wait for it.
std::thread StartLater(const std::string& address, std::unique_ptr<Server>* server) {
  return std::thread([address, server] { *server = StartFlaky(new FlakyService, address); });
}

// Cancels `ctx` once the service has seen `calls`.
std::thread CancelAfter(FlakyService& service, size_t calls, Context& ctx) {
  return std::thread([&service, calls, &ctx] {
    for (const Deadline end = Deadline::In(kMaxTestWait); service.Seen().size() < calls && !end.Expired();)
      BetweenLooks();
    ctx.Cancel();
  });
}

class RetryTest : public testing::Test {
 protected:
  RetryTest() : flaky_(new FlakyService), server_(StartFlaky(flaky_)) {
    options_.initial_backoff = milliseconds(1);
    options_.max_backoff = milliseconds(5);
    options_.service_config = Retries();
  }
  void TearDown() override { ExpectNothingInUse(server_.get()); }

  Channel& channel() {
    if (channel_ == nullptr)
      channel_ = std::make_unique<Channel>(&client_, server_->addresses()[0], options_);
    return *channel_;
  }
  absl::Status Do(const std::string& text = "x", std::string* answer = nullptr) {
    Context ctx(kMaxTestWait);
    StringValue reply;
    const absl::Status status = channel().Call(ctx, kDo.path, Text(text), &reply);
    if (answer != nullptr) *answer = reply.value();
    return status;
  }
  // Event-driven; the message of the reply, or its status.
  std::string Start(Nanos timeout = kMaxTestWait) {
    struct Ended final : Completion {
      void OnRetry() override { ++retries; }
      void Done(absl::Status&& status, std::string&& bytes) override {
        done = true;
        StringValue value;
        text = !status.ok() ? status.ToString() : value.ParseFromString(bytes) ? value.value() : "unreadable";
      }
      bool done = false;
      int retries = 0;
      std::string text;
    } ended;
    const std::string request =
        Text(std::string(100'000, 'e')).SerializeAsString();  // too long for one frame
    channel().Start(kDo.path, Deadline::In(timeout), {}, request, &ended);
    for (const Deadline end = Deadline::In(kMaxTestWait); !ended.done && !end.Expired();) client_.Poll(end);
    EXPECT_TRUE(ended.done);
    heard_ = ended.retries;
    return ended.text;
  }

  Client client_;
  FlakyService* const flaky_;
  std::unique_ptr<Server> server_;
  ChannelOptions options_;
  std::unique_ptr<Channel> channel_;
  int heard_ = 0;  // by the completion of the last event-driven call
};

TEST_F(RetryTest, ABlockingCallIsMadeAgain) {
  flaky_->failures = 2;
  std::string answer;
  const absl::Status status = Do("hello", &answer);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(answer, "hello");
  EXPECT_THAT(flaky_->Seen(), ElementsAre("none", "1", "2"));
}

TEST_F(RetryTest, AnEventDrivenCallIsMadeAgain) {
  flaky_->failures = 3;
  EXPECT_EQ(Start(), std::string(100'000, 'e'));
  EXPECT_THAT(flaky_->Seen(), ElementsAre("none", "1", "2", "3"));
  EXPECT_EQ(heard_, 3);
}

TEST_F(RetryTest, TheLastAttemptsErrorIsTheCalls) {
  flaky_->failures = 100;
  EXPECT_EQ(Do().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(flaky_->Seen().size(), 4u);
  EXPECT_THAT(Start(), HasSubstr("as the test wants it"));
  EXPECT_EQ(heard_, 3);
  EXPECT_EQ(flaky_->Seen().size(), 8u);
}

TEST_F(RetryTest, OtherErrorsAreNotRepeated) {
  flaky_->failures = 2;
  flaky_->code = absl::StatusCode::kInternal;
  EXPECT_EQ(Do().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(Start(), HasSubstr("INTERNAL"));
  EXPECT_EQ(flaky_->Seen().size(), 2u);
}

TEST_F(RetryTest, NothingIsRepeatedWithoutAPolicy) {
  options_.service_config.clear();
  flaky_->failures = 2;
  EXPECT_EQ(Do().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(Start(), HasSubstr("UNAVAILABLE"));
  EXPECT_EQ(flaky_->Seen().size(), 2u);
}

TEST_F(RetryTest, ACallWhoseReplyHasBegunIsNotRepeated) {
  flaky_->failures = 2;
  flaky_->commits = true;
  EXPECT_EQ(Do().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(Start(), HasSubstr("UNAVAILABLE"));
  EXPECT_EQ(flaky_->Seen().size(), 2u);
}

TEST_F(RetryTest, TheUsualPolicyRetriesThatOftenTheMethodsThatItIsFor) {
  const std::vector<std::string> methods = {"/test.Other/Do", std::string(kDo.path)};
  options_.service_config = RetryConfig(kMaxRetries, methods);
  flaky_->failures = 100;
  EXPECT_EQ(Do().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(flaky_->Seen().size(), 1u + kMaxRetries);
  options_.service_config = RetryConfig(2);
  channel_.reset();
  EXPECT_EQ(Do().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(flaky_->Seen().size(), 2u + kMaxRetries) << "its .proto does not declare it idempotent";
  EXPECT_EQ(RetryConfig(0, methods), "");
}

TEST_F(RetryTest, TheServerSaysWhen) {
  options_.service_config = Retries("1000s");
  flaky_->failures = 2;
  flaky_->pushback = "1";  // not in 1000 s
  EXPECT_TRUE(Do().ok());
  EXPECT_EQ(flaky_->Seen().size(), 3u);
  for (const char* never : {"-1", "soon", "99999999999999999999"}) {
    flaky_->failures = 1;
    flaky_->pushback = never;
    EXPECT_EQ(Do().code(), absl::StatusCode::kUnavailable);
    flaky_->failures = 0;
  }
  EXPECT_EQ(flaky_->Seen().size(), 6u);
}

TEST_F(RetryTest, ABackoffBeyondTheDeadlineEndsTheCallAtOnce) {
  options_.service_config = Retries("1000s");
  flaky_->failures = 100;
  EXPECT_EQ(Do().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(Start(), HasSubstr("UNAVAILABLE"));
  EXPECT_EQ(flaky_->Seen().size(), 2u);
}

TEST_F(RetryTest, RetriesEndWhenTooManyCallsFail) {
  options_.service_config = Retries("0.001s", R"(,"retryThrottling":{"maxTokens":4,"tokenRatio":0.5})");
  flaky_->failures = 100;
  EXPECT_FALSE(Do().ok());  // 4 - 1 tokens: again; 4 - 2: no more
  EXPECT_EQ(flaky_->Seen().size(), 2u);
  EXPECT_FALSE(Do().ok());
  EXPECT_EQ(flaky_->Seen().size(), 3u);
}

TEST_F(RetryTest, ACancelledCallDoesNotWaitForItsBackoff) {
  options_.service_config = Retries("10s");
  flaky_->failures = 1;
  Context ctx(kMaxTestWait);
  std::thread cancels = CancelAfter(*flaky_, 1, ctx);
  StringValue reply;
  EXPECT_EQ(channel().Call(ctx, kDo.path, Text("x"), &reply).code(), absl::StatusCode::kCancelled);
  cancels.join();
}

TEST_F(RetryTest, AMethodHasLimits) {
  options_.service_config =
      R"({"methodConfig":[{"name":[{"service":"test.Flaky"}],"maxRequestMessageBytes":200000,
          "maxResponseMessageBytes":20}]})";
  const absl::Status large = Do(std::string(30, 'x'));
  EXPECT_EQ(large.code(), absl::StatusCode::kResourceExhausted) << large;
  EXPECT_THAT(std::string(Message(large)), HasSubstr("a reply of 32 bytes; the service config allows 20"));
  EXPECT_THAT(Start(), HasSubstr("RESOURCE_EXHAUSTED"));
  const absl::Status larger = Do(std::string(300'000, 'x'));
  EXPECT_THAT(std::string(Message(larger)), HasSubstr("a request of 300004 bytes"));
}

TEST_F(RetryTest, AMethodHasATimeout) {
  options_.service_config = R"({"methodConfig":[{"name":[{"service":"test.Flaky"}],"timeout":"0.02s"}]})";
  flaky_->hangs = true;
  EXPECT_EQ(Do().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(Start(), HasSubstr("DEADLINE_EXCEEDED"));
}

TEST_F(RetryTest, AWrongConfigEndsEachCall) {
  options_.service_config = R"({"methodConfig":[{"name":[{}],"timeout":3}]})";
  const absl::Status status = Do();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("methodConfig[0].timeout"));
}

TEST_F(RetryTest, AMethodThatIsNotDeclaredIdempotentIsCalledOnceUnlessItIsNamed) {
  for (const std::string_view name : {"{}", R"({"service":"test.Flaky"})"}) {
    options_.service_config = Retries("0.001s", "", name);
    channel_.reset();
    flaky_->failures = 1;
    EXPECT_EQ(Do().code(), absl::StatusCode::kUnavailable);
    flaky_->failures = 1;
    EXPECT_EQ(Start(), "UNAVAILABLE: as the test wants it");
  }
  EXPECT_EQ(flaky_->Seen(), std::vector<std::string>(4, "none"));
}

TEST_F(RetryTest, ACallThatWaitsForItsServerIsAnsweredWhenThatStarts) {
  const std::string address = server_->addresses()[0];
  server_.reset();
  options_.service_config.clear();
  options_.wait_for_ready = true;
  channel_ = std::make_unique<Channel>(&client_, address, options_);
  std::thread starts = StartLater(address, &server_);
  std::string answer;
  const absl::Status status = Do("late", &answer);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(answer, "late");
  starts.join();
  server_.reset();
}

TEST_F(RetryTest, ACallMayAskToWaitForItsServer) {
  const std::string address = server_->addresses()[0];
  server_.reset();
  for (const std::string& config : {std::string(), Retries()}) {
    options_.service_config = config;
    channel_ = std::make_unique<Channel>(&client_, address, options_);
    EXPECT_EQ(Do().code(), absl::StatusCode::kUnavailable);
    Context ctx(milliseconds(30));
    ctx.SetWaitForReady(true);
    StringValue reply;
    EXPECT_EQ(channel().Call(ctx, kDo.path, Text("x"), &reply).code(), absl::StatusCode::kDeadlineExceeded);
    channel_.reset();
  }
}

TEST_F(RetryTest, ACallWaitsForItsServerUntilItsDeadline) {
  const std::string address = server_->addresses()[0];
  server_.reset();
  options_.service_config.clear();
  options_.wait_for_ready = true;
  channel_ = std::make_unique<Channel>(&client_, address, options_);
  Context ctx(milliseconds(30));
  StringValue reply;
  const absl::Status status = channel().Call(ctx, kDo.path, Text("x"), &reply);
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_THAT(std::string(Message(status)), HasSubstr("cannot connect"));
  EXPECT_THAT(Start(milliseconds(30)), HasSubstr("DEADLINE_EXCEEDED"));
}

// The threading models of a mid-tier that asks a flaky service.
class RetryModelTest : public MidTier {
 protected:
  RetryModelTest() : flaky_(new FlakyService), flaky_server_(StartFlaky(flaky_)) {}
  void ServeWith(const std::string& config) {
    channel_options_.service_config = config;
    to_flaky_ = std::make_unique<Channel>(&client_, flaky_server_->addresses()[0], channel_options_);
    all_ = {to_flaky_.get(), to_flaky_.get(), to_flaky_.get()};
    ServeCoroutine([this](Context& ctx, const StringValue& in, StringValue* out) -> Coroutine {
      return Ask(ctx, in, out);
    });
  }
  Coroutine Ask(Context& ctx, const StringValue& in, StringValue* out) {
    const auto replies = co_await broadcast(ctx, std::span<Channel* const>(all_), kDo, in);
    for (const auto& reply : replies) {
      if (!reply.ok()) co_return reply.status();
      out->set_value(out->value() + reply->value());
    }
    co_return absl::OkStatus();
  }

  void ExpectThatACancellationEndsTheRequest() {
    Context ctx(kMaxTestWait);
    std::thread cancels = CancelAfter(*flaky_, all_.size(), ctx);
    StringValue reply;
    EXPECT_EQ(channel_->Call(ctx, kRun.path, Text("x"), &reply).code(), absl::StatusCode::kCancelled);
    cancels.join();
    // It has ended in the mid-tier, too, long before its deadline: nothing is in flight.
    EXPECT_TRUE(mid_->Drain(Deadline::In(seconds(5))).ok());
  }

  FlakyService* const flaky_;
  std::unique_ptr<Server> flaky_server_;
  ChannelOptions channel_options_;
  std::unique_ptr<Channel> to_flaky_;
  std::vector<Channel*> all_;
};
INSTANTIATE_TEST_SUITE_P(Models, RetryModelTest,
                         testing::Values("SIB1", "SDB1-4", "FIB1", "FDB1-2", "ADB1-2-2", "AIB1-1"),
                         ModelName);

TEST_P(RetryModelTest, TheFailedCallsOfAFanOutAreMadeAgain) {
  ServeWith(Retries());
  for (const int failures : {1, 3, 4}) {
    flaky_->failures = failures;
    std::string answer;
    const absl::Status status = Run("x", &answer);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(answer, "xxx");
  }
  EXPECT_EQ(flaky_->Seen().size(), 9u + 8u);
  flaky_->failures = 1000;
  EXPECT_EQ(Run("x").code(), absl::StatusCode::kUnavailable);
}

TEST_P(RetryModelTest, ACallerThatGoesEndsTheBackoff) {
  ServeWith(Retries("10s"));
  flaky_->failures = 3;
  ExpectThatACancellationEndsTheRequest();
}

TEST_P(RetryModelTest, ACallerThatGoesEndsTheCalls) {
  ServeWith("");
  flaky_->hangs = true;
  ExpectThatACancellationEndsTheRequest();
}

TEST_P(RetryModelTest, ATimeoutOfTheMethodEndsTheCalls) {
  ServeWith(R"({"methodConfig":[{"name":[{}],"timeout":"0.02s"}]})");
  flaky_->hangs = true;
  EXPECT_EQ(Run("x").code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_P(RetryModelTest, CallsWaitForAServerThatStartsLater) {
  const std::string address = flaky_server_->addresses()[0];
  flaky_server_.reset();
  channel_options_.initial_backoff = milliseconds(1);
  channel_options_.max_backoff = milliseconds(5);
  to_flaky_ = std::make_unique<Channel>(&client_, address, channel_options_);
  channel_options_.wait_for_ready = true;
  auto waits = std::make_unique<Channel>(&client_, address, channel_options_);
  all_ = {waits.get(), waits.get()};
  ServeCoroutine([this](Context& ctx, const StringValue& in, StringValue* out) -> Coroutine {
    return Ask(ctx, in, out);
  });
  std::thread starts = StartLater(address, &flaky_server_);
  std::string answer;
  const absl::Status status = Run("y", &answer);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(answer, "yy");
  starts.join();
  EXPECT_TRUE(mid_->Drain(Deadline::In(seconds(5))).ok());
}

}  // namespace
}  // namespace curtail
