// SPDX-License-Identifier: Apache-2.0
//
// Interceptors of servers and channels, in every form of call.
#include "curtail/rpc/interceptor.h"

#include <gmock/gmock.h>

#include "curtail/rpc/in_process.h"
#include "curtail/rpc/mid_tier_testing.h"
#include "curtail/rpc/stream.h"
#include "curtail/rpc/when_all.h"

namespace curtail {
namespace {

using internal::OpenStream;
using testing::ElementsAre;
using Both = ServerStream<StringValue, StringValue>;

constexpr Method<StringValue, StringValue> kGuardedHere{"/test.Here/Echo"};

// Refuses requests that have its name in "x-refuse"; notes what it sees.
class Guard final : public ServerInterceptor {
 public:
  Guard(std::string name, EventLog* log) : name_(std::move(name)), log_(log) {}

  absl::Status Before(const IncomingCall& call) override {
    const std::string_view key = call.context.metadata().Find("x-key").value_or("none");
    log_->Add(Join(name_, " before ", call.path, " ", key));
    if (call.context.deadline().infinite() || call.context.peer().empty()) {
      return absl::InternalError("no deadline, or no peer");
    }
    if (call.context.metadata().Find("x-refuse") == name_) {
      call.context.AddTrailingMetadata("x-by", name_);
      return absl::PermissionDeniedError("not here");
    }
    call.context.AddInitialMetadata("x-guard", name_);
    call.context.AddProperty("guard", name_);
    return absl::OkStatus();
  }
  void After(const IncomingCall& call, const absl::Status& status, Nanos took) override {
    log_->Add(Join(name_, " after ", call.path, " ", absl::StatusCodeToString(status.code()),
                   took > Nanos::zero() ? "" : " in no time"));
  }

 private:
  const std::string name_;
  EventLog* const log_;
};

// The same before a channel. Adds its name as "x-key".
class Gateway final : public ClientInterceptor {
 public:
  Gateway(std::string name, EventLog* log) : name_(std::move(name)), log_(log) {}

  absl::Status Before(const OutgoingCall& call, Metadata& metadata) override {
    log_->Add(Join(name_, " before ", call.path, call.target.empty() ? " nowhere" : "",
                   call.secure ? " secure" : ""));
    if (metadata.Find("x-stop") == name_) return absl::UnauthenticatedError("stopped");
    metadata.Add("x-key", name_);
    return absl::OkStatus();
  }
  void After(const OutgoingCall& call, const absl::Status& status, Nanos took) override {
    log_->Add(Join(name_, " after ", call.path, " ", absl::StatusCodeToString(status.code()),
                   took > Nanos::zero() ? "" : " in no time"));
  }

 private:
  const std::string name_;
  EventLog* const log_;
};

const auto kModels = testing::Values("SIB1", "SIP1", "SDB1-2", "SDP1-2", "AIB1-1", "AIP1-1", "ADB1-2-2",
                                     "ADP1-2-2", "FIB1", "FIP1", "FDB1-2", "FDP1-2");

class InterceptorTest : public MidTier {
 protected:
  absl::Status RunWith(const Metadata& metadata, const std::string& text, ReplyMetadata* reply_metadata,
                       std::string* answer = nullptr) {
    Context ctx(kMaxTestWait);
    for (const auto& [key, value] : metadata) ctx.AddMetadata(key, value);
    StringValue reply;
    const absl::Status status = channel_->Call(ctx, kRun.path, Text(text), &reply, reply_metadata);
    if (answer != nullptr) *answer = reply.value();
    return status;
  }

  Guard first_{"first", &log_}, second_{"second", &log_};
  Gateway gateway_{"gateway", &log_}, behind_{"behind", &log_};
};
INSTANTIATE_TEST_SUITE_P(Models, InterceptorTest, kModels, ModelName);

TEST_P(InterceptorTest, OfAServerStandAroundEachHandler) {
  interceptors_ = {&first_, &second_};
  ServeCoroutine([&](Context& ctx, const StringValue& in, StringValue* out) -> Coroutine {
    const auto replies = co_await broadcast(ctx, leaves_, kEcho, in);
    log_.Add("handler");
    out->set_value(std::string(ctx.properties().Find("guard").value_or("none")));
    co_return replies[0].status();
  });
  Metadata metadata;
  metadata.Add("x-key", "k");
  ReplyMetadata back;
  std::string answer;
  EXPECT_TRUE(RunWith(metadata, "x", &back, &answer).ok());
  EXPECT_EQ(answer, "first");
  EXPECT_EQ(back.initial.Find("x-guard"), "first");
  EXPECT_THAT(log_.Await(5),
              ElementsAre("first before /test.Mid/Run k", "second before /test.Mid/Run k", "handler",
                          "second after /test.Mid/Run OK", "first after /test.Mid/Run OK"));
  EXPECT_EQ(RunWith({}, "fail", nullptr).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(log_.Await(10).back(), "first after /test.Mid/Run NOT_FOUND");
}

TEST_P(InterceptorTest, RefuseACallBeforeItsHandler) {
  interceptors_ = {&first_, &second_};
  ServeCoroutine([&](Context&, const StringValue&, StringValue*) -> Coroutine {
    log_.Add("handler");
    co_return absl::OkStatus();
  });
  Metadata metadata;
  metadata.Add("x-refuse", "second");
  ReplyMetadata back;
  const absl::Status status = RunWith(metadata, "x", &back);
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(std::string(Message(status)), "not here");
  EXPECT_EQ(back.trailing.Find("x-by"), "second");
  EXPECT_THAT(log_.Await(3),
              ElementsAre("first before /test.Mid/Run none", "second before /test.Mid/Run none",
                          "first after /test.Mid/Run PERMISSION_DENIED"));
  const auto limits = mid_->Sample().limits;
  ASSERT_EQ(limits.size(), 1u);
  EXPECT_EQ(limits[0].name, "refused");
  EXPECT_EQ(limits[0].times, 1u);
  EXPECT_TRUE(RunWith({}, "x", nullptr).ok());
}

TEST_P(InterceptorTest, StandAroundStreams) {
  interceptors_ = {&first_, &second_};
  Serve(internal::BidirectionalMethod<StringValue, StringValue>(
      "Run", [&](Context&, Both& stream) -> absl::Status {
        log_.Add("handler");
        return EachMessage(stream, [](const StringValue& in, StringValue* out) {
          *out = in;
          return in.value() == "end" ? absl::AbortedError("ended") : absl::OkStatus();
        });
      }));
  const auto refused = [&] {
    Context ctx(kMaxTestWait);
    ctx.AddMetadata("x-refuse", "first");
    ClientStream<StringValue, StringValue> stream(OpenStream(ctx, *channel_, kRun.path));
    return stream.Finish();
  }();
  EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(log_.Await(1), ElementsAre("first before /test.Mid/Run none"));
  Context ctx(kMaxTestWait);
  ClientStream<StringValue, StringValue> stream(OpenStream(ctx, *channel_, kRun.path));
  StringValue back;
  for (const char* text : {"a", "b", "end"}) EXPECT_TRUE(stream.Write(Text(text)));
  EXPECT_TRUE(stream.Read(&back) && stream.Read(&back));
  EXPECT_EQ(stream.InitialMetadata().Find("x-guard"), "first");
  EXPECT_EQ(stream.Finish().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(log_.Await(6).back(), "first after /test.Mid/Run ABORTED");
  {
    Context other(kMaxTestWait);
    ClientStream<StringValue, StringValue> dropped(OpenStream(other, *channel_, kRun.path));
    EXPECT_TRUE(dropped.Write(Text("a")) && dropped.Read(&back));
  }
  EXPECT_EQ(log_.Await(11).back(), "first after /test.Mid/Run CANCELLED");
}

TEST_P(InterceptorTest, OfAChannelStandAroundEachCall) {
  Channel guarded(&client_, leaf_->addresses()[0], {.interceptors = {&gateway_, &behind_}});
  const std::vector<Channel*> both = {&guarded, &leaf_channel_};
  ServeCoroutine([&](Context& ctx, const StringValue& in, StringValue* out) -> Coroutine {
    const auto replies = co_await broadcast(ctx, both, kEcho, in);
    auto [again] = co_await WhenAll(ctx, Ask(&guarded, kEcho, in));
    if (!again.ok()) co_return again.status();
    out->set_value(replies[0]->value() + replies[1]->value() + again->value());
    co_return absl::OkStatus();
  });
  std::string answer;
  EXPECT_TRUE(Run("meta", &answer).ok());
  EXPECT_EQ(answer, "gatewaynonegateway");
  EXPECT_EQ(Run("fail").code(), absl::StatusCode::kNotFound);
  const auto log = log_.Await(16);
  const std::vector<std::string> once = {"gateway before /test.Echo/Echo", "behind before /test.Echo/Echo",
                                         "behind after /test.Echo/Echo OK",
                                         "gateway after /test.Echo/Echo OK"};
  ASSERT_EQ(log.size(), 16u);
  EXPECT_EQ(std::vector(log.begin(), log.begin() + 4), once);
  EXPECT_EQ(std::vector(log.begin() + 4, log.begin() + 8), once);
  EXPECT_EQ(log.back(), "gateway after /test.Echo/Echo NOT_FOUND");
}

TEST_P(InterceptorTest, OfAChannelRefuseACallBeforeItIsSent) {
  Channel guarded(&client_, "127.0.0.1:1", {.interceptors = {&gateway_, &behind_}});
  ServeCoroutine([&](Context& ctx, const StringValue& in, StringValue*) -> Coroutine {
    Context one(&ctx);
    one.AddMetadata("x-stop", "behind");
    auto [stopped] = co_await WhenAll(one, Ask(&guarded, kEcho, in));
    co_return stopped.status();
  });
  EXPECT_EQ(Run("x").code(), absl::StatusCode::kUnauthenticated);
  EXPECT_THAT(log_.Await(3), ElementsAre("gateway before /test.Echo/Echo", "behind before /test.Echo/Echo",
                                         "gateway after /test.Echo/Echo UNAUTHENTICATED"));
}

// The handler is a coroutine, which asynchronous models resume elsewhere.
TEST_P(InterceptorTest, StandAroundCallsWithinTheProcess) {
  class Here final : public Service {
   public:
    explicit Here(Channel* leaf) : leaf_(leaf) {}
    std::string_view FullName() const override { return "test.Here"; }
    std::vector<MethodHandler> Handlers() override {
      return {internal::CoroutineMethod<StringValue, StringValue>(
          "Echo", [leaf = leaf_](Context& ctx, const StringValue& in, StringValue* out) -> Coroutine {
            auto [reply] = co_await WhenAll(ctx, Ask(leaf, kEcho, in));
            if (!reply.ok()) co_return reply.status();
            out->set_value(Join(ctx.metadata().Find("x-key").value_or("none"), ctx.properties().size()));
            co_return absl::OkStatus();
          })};
    }

   private:
    Channel* const leaf_;
  } service(&leaf_channel_);
  InProcess in_process("here", {&first_, &second_});
  ASSERT_TRUE(in_process.Serve(service).ok());
  Channel here(&client_, &in_process, {.interceptors = {&gateway_}});
  ServeCoroutine([&](Context& ctx, const StringValue& in, StringValue* out) -> Coroutine {
    Context one(&ctx);
    if (in.value() == "refuse") one.AddMetadata("x-refuse", "second");
    if (in.value() == "stop") one.AddMetadata("x-stop", "gateway");
    ReplyMetadata back;
    auto [reply, none] =
        co_await WhenAll(one, Ask(&here, kGuardedHere, in, &back), Ask(&leaf_channel_, kEcho, in));
    if (!reply.ok()) co_return reply.status();
    out->set_value(Join(reply->value(), back.initial.Find("x-guard").value_or("none")));
    co_return absl::OkStatus();
  });
  std::string answer;
  EXPECT_TRUE(Run("x", &answer).ok());
  EXPECT_EQ(answer, "gateway2first");
  EXPECT_THAT(log_.Await(6),
              ElementsAre("gateway before /test.Here/Echo secure", "first before /test.Here/Echo gateway",
                          "second before /test.Here/Echo gateway", "second after /test.Here/Echo OK",
                          "first after /test.Here/Echo OK", "gateway after /test.Here/Echo OK"));
  EXPECT_EQ(Run("refuse").code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(log_.Await(11).back(), "gateway after /test.Here/Echo PERMISSION_DENIED");
  EXPECT_EQ(Run("stop").code(), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(log_.Await(12).back(), "gateway before /test.Here/Echo secure");
}

TEST_P(InterceptorTest, OfAChannelStandAroundStreams) {
  channel_options_.interceptors = {&gateway_};
  Serve(internal::BidirectionalMethod<StringValue, StringValue>(
      "Run", [&](Context& ctx, Both& stream) -> absl::Status {
        EXPECT_EQ(ctx.metadata().Find("x-key"), "gateway");
        return EachMessage(stream, [](const StringValue& in, StringValue* out) {
          *out = in;
          return absl::OkStatus();
        });
      }));
  StringValue back;
  Context ctx(kMaxTestWait);
  {
    ClientStream<StringValue, StringValue> stream(OpenStream(ctx, *channel_, kRun.path));
    EXPECT_TRUE(stream.Write(Text("a")) && stream.Read(&back));
    EXPECT_TRUE(stream.Finish().ok());
  }
  EXPECT_THAT(log_.Await(2), ElementsAre("gateway before /test.Mid/Run", "gateway after /test.Mid/Run OK"));
  {
    ClientStream<StringValue, StringValue> dropped(OpenStream(ctx, *channel_, kRun.path));
    EXPECT_TRUE(dropped.Write(Text("a")) && dropped.Read(&back));
  }
  EXPECT_EQ(log_.Await(4).back(), "gateway after /test.Mid/Run CANCELLED");
  Context stopped(kMaxTestWait);
  stopped.AddMetadata("x-stop", "gateway");
  ClientStream<StringValue, StringValue> never(OpenStream(stopped, *channel_, kRun.path));
  EXPECT_FALSE(never.Write(Text("a")));
  EXPECT_EQ(never.Finish().code(), absl::StatusCode::kUnauthenticated);
}

// Event-driven calls, as of load generators.
TEST(ClientInterceptor, StandsAroundStartedCalls) {
  struct Result final : Completion {
    void Done(absl::Status&& s, std::string&&) override {
      status = std::move(s);
      done = true;
    }
    absl::Status status;
    bool done = false;
  };
  EventLog log;
  Gateway gateway("gateway", &log);
  Client client;
  Channel channel(&client, "unix:/nowhere/at/all", {.interceptors = {&gateway}});
  for (const bool stop : {false, true}) {
    Metadata metadata;
    if (stop) metadata.Add("x-stop", "gateway");
    Result result;
    channel.Start(kEcho.path, Deadline::In(kMaxTestWait), metadata, "", &result);
    while (!result.done) client.Poll(Deadline::In(kMaxTestWait));
    EXPECT_EQ(result.status.code(),
              stop ? absl::StatusCode::kUnauthenticated : absl::StatusCode::kUnavailable);
  }
  EXPECT_THAT(log.Await(3), ElementsAre("gateway before /test.Echo/Echo secure",
                                        "gateway after /test.Echo/Echo UNAVAILABLE",
                                        "gateway before /test.Echo/Echo secure"));
}

}  // namespace
}  // namespace curtail
