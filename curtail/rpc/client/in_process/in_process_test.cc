// SPDX-License-Identifier: Apache-2.0
//
// Calls that stay in the process, and different methods called at once, under all models.
#include "curtail/rpc/in_process.h"

#include <gmock/gmock.h>

#include <atomic>
#include <stdexcept>

#include "curtail/rpc/mid_tier_testing.h"
#include "curtail/rpc/when_all.h"

namespace curtail {
namespace {

using testing::HasSubstr;

constexpr Method<StringValue, StringValue> kHere{"/test.Here/Echo"};
constexpr Method<StringValue, StringValue> kStraight{"/test.Here/Straight"};
constexpr Method<StringValue, StringValue> kFails{"/test.Here/Fails"};
constexpr Method<StringValue, StringValue> kThrows{"/test.Here/Throws"};
constexpr Method<StringValue, StringValue> kWaits{"/test.Here/Waits"};
constexpr Method<StringValue, StringValue> kDeeper{"/test.Here/Deeper"};
constexpr Method<StringValue, StringValue> kMetadata{"/test.Here/Metadata"};
constexpr Method<StringValue, StringValue> kNone{"/test.Here/None"};

StringValue Text(std::string text) {
  StringValue value;
  value.set_value(std::move(text));
  return value;
}

class InProcessTest : public MidTier {
 protected:
  // The service whose callers are in this process.
  class Here final : public Service {
   public:
    explicit Here(InProcessTest* test) : test_(test) {}
    std::string_view FullName() const override { return "test.Here"; }
    std::vector<MethodHandler> Handlers() override {
      std::vector<MethodHandler> handlers;
      const auto add = [&](const char* name, auto body) {
        handlers.push_back(internal::CoroutineMethod<StringValue, StringValue>(name, std::move(body)));
      };
      add("Echo", [this](Context&, const StringValue& in, StringValue* out) { return test_->Echo(in, out); });
      add("Fails", [](Context&, const StringValue& in, StringValue*) -> Coroutine {
        co_return absl::DataLossError(in.value());
      });
      add("Throws", [](Context&, const StringValue&, StringValue*) -> Coroutine {
        throw std::runtime_error("thrown");
        co_return absl::OkStatus();
      });
      add("Metadata", [](Context& ctx, const StringValue&, StringValue* out) -> Coroutine {
        for (const auto& [key, value] : ctx.metadata())
          out->mutable_value()->append(Join(key, "=", value, ";"));
        co_return absl::OkStatus();
      });
      add("Waits", [this](Context& ctx, const StringValue& in, StringValue* out) {
        return test_->Wait(ctx, in, out);
      });
      add("Deeper",
          [this](Context& ctx, const StringValue& in, StringValue*) { return test_->Deeper(ctx, in); });
      handlers.push_back(internal::StraightLineMethod<StringValue, StringValue>(
          "Straight", /*never_waits=*/true, [](Context&, const StringValue& in, StringValue* out) {
            out->set_value(in.value() + "-");
            return absl::OkStatus();
          }));
      return handlers;
    }

   private:
    InProcessTest* const test_;
  };

  InProcessTest() { EXPECT_TRUE(target_.Serve(service_).ok()); }

  Coroutine Echo(const StringValue& in, StringValue* out) {
    seen_.store(&in);
    out->set_value(in.value() + "!");
    co_return absl::OkStatus();
  }
  // Answers when the leaf, another process to it, does.
  Coroutine Wait(Context& ctx, const StringValue& in, StringValue*) {
    co_return (co_await broadcast(ctx, leaves_, LeafMethod(in), in))[0].status();
  }
  Coroutine Deeper(Context& ctx, const StringValue& in) {
    auto [deeper] = co_await WhenAll(ctx, Ask(&here_, kDeeper, in));
    co_return deeper.status();
  }

  std::atomic<const StringValue*> seen_{nullptr};  // the request that Echo got last
  Here service_{this};
  InProcess target_{"here"};
  Channel here_{&client_, &target_};
};

INSTANTIATE_TEST_SUITE_P(Models, InProcessTest,
                         testing::Values("SIB1", "SDB1-2", "FIB1", "FDB1-2", "AIB1-1", "ADB1-2-2"),
                         ModelName);

TEST_P(InProcessTest, CallsBesideThoseInTheProcessKeepTheirOwnTimes) {
  ServeCoroutine([&](Context& ctx, const StringValue& in, StringValue*) -> Coroutine {
    const TimePoint begun = Now();
    auto [here, there] =
        co_await WhenAll(ctx, Ask(&here_, kHere, in), Ask(&leaf_channel_, kHang, in).Within(milliseconds(5)));
    EXPECT_TRUE(here.ok()) << here.status();
    EXPECT_TRUE(absl::IsDeadlineExceeded(there.status())) << there.status();
    EXPECT_LT(Now() - begun, kMaxTestWait / 2);
    co_return absl::OkStatus();
  });
  const absl::Status status = Run("hang");
  EXPECT_TRUE(status.ok()) << status;
}

TEST_P(InProcessTest, TheHandlerGetsTheCallersMessage) {
  std::atomic<bool> same{false};
  ServeCoroutine([&](Context& ctx, const StringValue& in, StringValue* out) -> Coroutine {
    Channel* const here = &here_;
    const auto replies = co_await broadcast(ctx, std::span(&here, 1), kHere, in);
    same = seen_.load() == &in;
    if (replies[0].ok()) *out = *replies[0];
    co_return replies[0].status();
  });
  std::string answer;
  ASSERT_TRUE(Run("a", &answer).ok());
  EXPECT_EQ(answer, "a!");
  EXPECT_TRUE(same);
}

TEST_P(InProcessTest, CallsThatStayAndCallsThatLeaveGoTogether) {
  ServeCoroutine([&](Context& ctx, const StringValue& in, StringValue* out) -> Coroutine {
    auto [here, leaf, failed, straight, none] =
        co_await WhenAll(ctx, Ask(&here_, kHere, in), Ask(&leaf_channel_, kEcho, in), Ask(&here_, kFails, in),
                         Ask(&here_, kStraight, in), Ask(&here_, kNone, in));
    if (!here.ok() || !leaf.ok() || !straight.ok()) co_return absl::InternalError("a call failed");
    if (!absl::IsDataLoss(failed.status()) || !absl::IsUnimplemented(none.status())) {
      co_return absl::InternalError("a call did not fail");
    }
    out->set_value(here->value() + leaf->value() + straight->value());
    co_return absl::OkStatus();
  });
  std::string answer;
  for (int i = 0; i < 20; ++i) {
    const absl::Status status = Run("b", &answer);
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ(answer, "b!bb-");
  }
}

TEST_P(InProcessTest, ACallThatStaysCarriesTheMetadataOfOneThatLeaves) {
  forward_metadata_ = {"x-key"};
  ServeCoroutine([&](Context& ctx, const StringValue& in, StringValue* out) -> Coroutine {
    ctx.AddMetadata("x-own", "o");
    auto [one] = co_await WhenAll(ctx, Ask(&here_, kMetadata, in));
    auto [two, leaf] = co_await WhenAll(ctx, Ask(&here_, kMetadata, in), Ask(&leaf_channel_, kEcho, in));
    if (!one.ok() || !two.ok() || !leaf.ok()) co_return absl::InternalError("a call failed");
    out->set_value(Join(one->value(), " ", two->value(), " ", leaf->value()));
    co_return absl::OkStatus();
  });
  Context ctx(kMaxTestWait);
  ctx.AddMetadata("x-key", "k");
  ctx.AddMetadata("x-own", "c");
  ctx.AddMetadata("authorization", "Bearer of the caller");
  StringValue reply;
  const absl::Status status = channel_->Call(ctx, kRun.path, Text("meta"), &reply);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(reply.value(), "x-own=o;x-key=k; x-own=o;x-key=k; k");
}

// The calls that hang end only when the gate opens, or cancelled.
TEST_P(InProcessTest, TheFirstErrorCancelsTheOthers) {
  ServeCoroutine([&](Context& ctx, const StringValue& in, StringValue*) -> Coroutine {
    auto leaves = co_await WhenAllOk(ctx, Ask(&leaf_channel_, kHang, in), Ask(&leaf_channel_, kThrow, in));
    log_.Add(std::string(Message(leaves.status())));
    auto mixed = co_await WhenAllOk(ctx, Ask(&leaf_channel_, kHang, in), Ask(&here_, kFails, in));
    log_.Add(std::string(Message(mixed.status())));
    co_return mixed.status();
  });
  const absl::Status status = Run("c");
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(log_.Await(2), testing::ElementsAre(HasSubstr("exception"), "c"));
}

TEST_P(InProcessTest, ExceptionsBecomeInternal) {
  ServeCoroutine([&](Context& ctx, const StringValue& in, StringValue*) -> Coroutine {
    auto [thrown] = co_await WhenAll(ctx, Ask(&here_, kThrows, in));
    co_return thrown.status();
  });
  const absl::Status status = Run("d");
  EXPECT_TRUE(absl::IsInternal(status)) << status;
  EXPECT_THAT(std::string(Message(status)), HasSubstr("thrown"));
}

TEST_P(InProcessTest, TheCallersDeadlineHolds) {
  ServeCoroutine([&](Context& ctx, const StringValue&, StringValue*) -> Coroutine {
    Context part(&ctx);
    part.ShortenDeadline(Deadline::In(milliseconds(50)));
    auto [late] = co_await WhenAll(part, Ask(&here_, kWaits, Text("hang")));
    co_return late.status();
  });
  EXPECT_TRUE(absl::IsDeadlineExceeded(Run("e")));
}

TEST_P(InProcessTest, ACircleOfCallsEnds) {
  ServeCoroutine([&](Context& ctx, const StringValue& in, StringValue*) { return Deeper(ctx, in); });
  const absl::Status status = Run("f");
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(Message(status)), HasSubstr("circle"));
}

TEST_P(InProcessTest, ALoopOfCallsNeedsNoStack) {
  ServeCoroutine([&](Context& ctx, const StringValue& in, StringValue* out) -> Coroutine {
    for (int i = 0; i < 20'000; ++i) {
      auto [reply] = co_await WhenAll(ctx, Ask(&here_, kHere, in));
      if (!reply.ok()) co_return reply.status();
      *out = *reply;
    }
    co_return absl::OkStatus();
  });
  std::string answer;
  const absl::Status status = Run("g", &answer);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(answer, "g!");
}

TEST_P(InProcessTest, StraightLineHandlersWaitForSeveral) {
  if (std::string_view(GetParam()).starts_with("A")) return;  // they run under the other models
  MethodHandler handler = internal::StraightLineMethod<StringValue, StringValue>(
      "Run", false, [this](Context& ctx, const StringValue& in, StringValue* out) -> absl::Status {
        auto both = AwaitAllOk(ctx, Ask(&here_, kHere, in), Ask(&leaf_channel_, kEcho, in));
        if (!both.ok()) return both.status();
        out->set_value(std::get<0>(*both).value() + std::get<1>(*both).value());
        auto [failed] = AwaitAll(ctx, Ask(&here_, kFails, in));
        return absl::IsDataLoss(failed.status()) ? absl::OkStatus() : absl::InternalError("it did not fail");
      });
  Serve(std::move(handler));
  std::string answer;
  ASSERT_TRUE(Run("h", &answer).ok());
  EXPECT_EQ(answer, "h!h");
}

}  // namespace
}  // namespace curtail
