// SPDX-License-Identifier: Apache-2.0
//
// Coroutine handlers under all models.
#include "curtail/rpc/coroutine.h"

#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "curtail/exec/aside.h"
#include "curtail/rpc/mid_tier_testing.h"

namespace curtail {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class CoroutineBase : public MidTier {
 protected:
  Coroutine Forward(Context& ctx, const StringValue& in, StringValue* out) {
    ++begun_;
    if (in.value() == "late") ctx.ShortenDeadline(Deadline::In(milliseconds(50)));
    const Results results = co_await fan_out(ctx, leaves_, LeafMethod(in), ToBoth(in));
    log_.Add(Codes(results));
    const absl::StatusOr<std::string> joined = Joined(results);
    if (!joined.ok()) co_return joined.status();
    out->set_value(*joined);
    co_return absl::OkStatus();
  }
  void ServeForward() {
    ServeCoroutine(
        [this](Context& ctx, const StringValue& in, StringValue* out) { return Forward(ctx, in, out); });
  }
  // The length of both leaves' answers together.
  Co<int> Measure(Context& ctx, StringValue in) {
    const Results results = co_await fan_out(ctx, leaves_, LeafMethod(in), ToBoth(in));
    if (in.value() == "throw") throw std::runtime_error("thrown in a nested coroutine");
    int length = 0;
    for (const auto& result : results) length += static_cast<int>(result->value().size());
    co_return length;
  }

  // Atomic, alone: the mid-tier's threads count handlers that began, the test's thread reads.
  std::atomic<int> begun_{0};
};

class CoroutineTest : public CoroutineBase {};
INSTANTIATE_TEST_SUITE_P(Models, CoroutineTest,
                         testing::Values("SIB1", "SDB1-2", "FIB1", "FDB1-2", "AIB1-1", "AIP1-1", "ADB1-2-2",
                                         "ADP1-2-2"),
                         ModelName);

TEST_P(CoroutineTest, AnswersWithWhatTheLeavesAnswered) {
  ServeForward();
  std::string answer;
  for (int i = 0; i < 50; ++i) {
    const absl::Status status = Run(Join(i), &answer);
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ(answer, Join(i, ";", i, ";"));
  }
  ExpectHealthy();
}

TEST_P(CoroutineTest, GetsTheStatusOfEachLeaf) {
  const std::string gone = StartServer("SIB1")->addresses()[0];
  Channel dead(&client_, gone);
  const std::vector<Channel*> channels = {&leaf_channel_, &dead, &leaf_channel_};
  const std::vector<StringValue> requests = {Text("fail"), Text("x"), Text("x")};
  ServeCoroutine([&](Context& ctx, const StringValue&, StringValue* out) -> Coroutine {
    const Results results = co_await fan_out(ctx, channels, kEcho, requests);
    out->set_value(Codes(results));
    co_return results[0].status().message().empty() ? absl::InternalError("no message") : absl::OkStatus();
  });
  std::string answer;
  const absl::Status status = Run("", &answer);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(answer, "NOT_FOUND;UNAVAILABLE;OK;");
  mid_.reset();  // before the channel to nobody
}

TEST_P(CoroutineTest, ALeafsErrorCanBeTheAnswer) {
  ServeForward();
  const absl::Status status = Run("fail");
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Message(status), "no such thing: \xc3\xa9 100%");
  ExpectHealthy();
}

TEST_P(CoroutineTest, ForwardedMetadataReachesTheLeaves) {
  forward_metadata_ = {"x-key"};
  ServeForward();
  Context ctx(kMaxTestWait);
  ctx.AddMetadata("x-key", "value");
  StringValue reply;
  const absl::Status status = channel_->Call(ctx, kRun.path, Text("meta"), &reply);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(reply.value(), "value;value;");
}

TEST_P(CoroutineTest, MetadataThatTheHandlerAddsReachesTheLeaves) {
  ServeCoroutine([&](Context& ctx, const StringValue& in, StringValue* out) -> Coroutine {
    ctx.AddMetadata("x-key", "own");
    return Forward(ctx, in, out);
  });
  std::string answer;
  ASSERT_TRUE(Run("meta", &answer).ok());
  EXPECT_EQ(answer, "own;own;");
}

TEST_P(CoroutineTest, CallsAMethodByItsPath) {
  ServeCoroutine([&](Context& ctx, const StringValue& in, StringValue* out) -> Coroutine {
    co_return co_await call(ctx, &leaf_channel_, LeafMethod(in), in, out);
  });
  std::string answer;
  ASSERT_TRUE(Run("abc", &answer).ok());
  EXPECT_EQ(answer, "abc");
  EXPECT_EQ(Run("fail").code(), absl::StatusCode::kNotFound);
}

TEST_P(CoroutineTest, WhatSurroundsAHandlerMayWaitAndMayAnswer) {
  const auto forward = [this](Context& ctx, const StringValue& in, StringValue* out) {
    return Forward(ctx, in, out);
  };
  Serve(Surround(internal::CoroutineMethod<StringValue, StringValue>("Run", forward),
                 [this](Context& ctx, Exchange messages, const CoroutineHandler& handler) -> Coroutine {
                   const auto& in = static_cast<const StringValue&>(*messages.request);
                   StringValue said;
                   const absl::Status status = co_await call(ctx, &leaf_channel_, LeafMethod(in), in, &said);
                   if (!status.ok() || said.value() == "stop") co_return status;
                   co_return co_await handler(ctx, messages);
                 }));
  std::string answer;
  ASSERT_TRUE(Run("abc", &answer).ok());
  EXPECT_EQ(answer, "abc;abc;");
  EXPECT_EQ(begun_, 1);
  ASSERT_TRUE(Run("stop", &answer).ok());
  EXPECT_EQ(answer, "");
  EXPECT_EQ(Run("fail").code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(begun_, 1) << "neither has reached the handler";
  ExpectHealthy();
}

TEST_P(CoroutineTest, AwaitsOtherCoroutinesOneAfterTheOther) {
  ServeCoroutine([&](Context& ctx, const StringValue& in, StringValue* out) -> Coroutine {
    const int first = co_await Measure(ctx, in);
    const int second = co_await Measure(ctx, Text(std::string(first, 'x')));
    out->set_value(Join(first, ",", second));
    co_return absl::OkStatus();
  });
  std::string answer;
  ASSERT_TRUE(Run("abc", &answer).ok());
  EXPECT_EQ(answer, "6,12");
}

TEST_P(CoroutineTest, AFanOutToNobodyOrOfAWrongSizeEndsAtOnce) {
  ServeCoroutine([&](Context& ctx, const StringValue& in, StringValue* out) -> Coroutine {
    const Results nobody = co_await fan_out(ctx, {}, kEcho, {});
    const Results wrong = co_await fan_out(ctx, leaves_, kEcho, std::vector(1, in));
    out->set_value(Join(nobody.size(), " ", Codes(wrong)));
    co_return absl::OkStatus();
  });
  std::string answer;
  ASSERT_TRUE(Run("", &answer).ok());
  EXPECT_EQ(answer, "0 INVALID_ARGUMENT;INVALID_ARGUMENT;");
}

TEST_P(CoroutineTest, ExceptionsBecomeInternal) {
  ServeCoroutine([&](Context& ctx, const StringValue& in, StringValue* out) -> Coroutine {
    if (in.value() == "before") throw std::runtime_error("thrown before");
    if (in.value() == "int") throw 1;
    if (in.value() == "throw") out->set_value(Join(co_await Measure(ctx, in)));
    const Results results = co_await fan_out(ctx, leaves_, kEcho, ToBoth(in));
    if (in.value() == "after") throw std::runtime_error("thrown after");
    out->set_value(*Joined(results));
    co_return absl::OkStatus();
  });
  for (const auto& [text, says] :
       std::vector<std::pair<std::string, std::string>>{{"before", "thrown before"},
                                                        {"after", "thrown after"},
                                                        {"throw", "nested"},
                                                        {"int", "exception"}}) {
    const absl::Status status = Run(text);
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << text << ": " << status;
    EXPECT_THAT(Message(status), HasSubstr(says));
  }
  ExpectHealthy();
}

TEST_P(CoroutineTest, TheDeadlineEndsTheWait) {
  ServeForward();
  const absl::Status status = Run("late");
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_THAT(log_.Await(1), ElementsAre("DEADLINE_EXCEEDED;DEADLINE_EXCEEDED;"));
  ExpectHealthy();
}

TEST_P(CoroutineTest, TheCallersDeadlineEndsTheWait) {
  ServeForward();
  // On a busy machine a deadline may pass before the handler begins: the next one is longer.
  for (milliseconds timeout(50); begun_ == 0 && timeout < kMaxTestWait; timeout *= 2) {
    const absl::Status status = Run("hang", nullptr, timeout);
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  }
  // The handler goes on although no leaf has answered: its deadline has passed, or it hears that its caller left.
  EXPECT_THAT(
      log_.Await(1),
      AllOf(Not(IsEmpty()), Each(AnyOf("DEADLINE_EXCEEDED;DEADLINE_EXCEEDED;", "CANCELLED;CANCELLED;"))));
  ExpectHealthy();
}

// Models that hear of a cancellation: the only thread of SIB1 waits for the leaf.
class CoroutineCancelTest : public CoroutineBase {};
INSTANTIATE_TEST_SUITE_P(Models, CoroutineCancelTest,
                         testing::Values("SIB2", "SDB1-2", "FIB1", "FDB1-2", "AIB1-1", "AIP1-1", "ADB1-2-2",
                                         "ADP1-2-2"),
                         ModelName);

TEST_P(CoroutineCancelTest, ACallerThatCancelsEndsTheWait) {
  ServeForward();
  Context ctx(kMaxTestWait);
  std::thread caller([&] {
    StringValue reply;
    const absl::Status status = channel_->Call(ctx, kRun.path, Text("hang"), &reply);
    EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
  });
  EXPECT_TRUE(gate_.AwaitArrivals(2));
  ctx.Cancel();
  caller.join();
  EXPECT_THAT(log_.Await(1), ElementsAre("CANCELLED;CANCELLED;"));
  ExpectHealthy();
}

TEST_P(CoroutineTest, AsideReturnsAndThrows) {
  ServeCoroutine([](Context&, const StringValue& in, StringValue* out) -> Coroutine {
    const std::string text = co_await Aside([&] {
      if (in.value() == "throw") throw std::runtime_error("thrown aside");
      return in.value() + "!";
    });
    out->set_value(text);
    co_return absl::OkStatus();
  });
  std::string answer;
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(Run(Join(i), &answer).ok());
    ASSERT_EQ(answer, Join(i, "!"));
  }
  EXPECT_EQ(Run("throw", &answer).code(), absl::StatusCode::kInternal);
}

class AsideTest : public CoroutineBase {
 protected:
  // A request is asked while another one waits for it in `wait`, which is given a function that blocks its thread.
  template <class Wait>
  void ExpectTheThreadIsLeft(Wait wait) {
    std::atomic<bool> begun{false}, other{false};
    ServeCoroutine([&](Context&, const StringValue& in, StringValue* out) -> Coroutine {
      if (in.value() == "other") {
        other = true;
        co_return absl::OkStatus();
      }
      begun = true;
      const bool seen = co_await wait([&] {
        const Deadline deadline = Deadline::In(kMaxTestWait);
        while (!other && !deadline.Expired()) BetweenLooks();
        return other.load();
      });
      out->set_value(seen ? "seen" : "alone");
      co_return absl::OkStatus();
    });
    std::string first, second;
    std::thread caller([&] { EXPECT_TRUE(Run("first", &first).ok()); });
    const Deadline deadline = Deadline::In(kMaxTestWait);
    while (!begun && !deadline.Expired()) BetweenLooks();
    EXPECT_TRUE(Run("other", &second).ok());
    caller.join();
    EXPECT_EQ(first, "seen");
  }
};
INSTANTIATE_TEST_SUITE_P(Models, AsideTest, testing::Values("AIB1-1", "ADB1-1-1"), ModelName);

TEST_P(AsideTest, LeavesTheThreadToOtherRequests) {
  ExpectTheThreadIsLeft([](auto f) { return Aside(f); });
}

class OffloadingTest : public AsideTest {};
INSTANTIATE_TEST_SUITE_P(Models, OffloadingTest, testing::Values("AIB1-1", "ADB1-1-1", "FIB1", "FDB1-1"),
                         ModelName);

TEST_P(OffloadingTest, LeavesTheThreadToOtherRequests) {
  ExpectTheThreadIsLeft([](auto f) { return Offloading(f); });
}

struct Answer final : Completion {
  void Done(absl::Status&& s, std::string&& reply) override {
    StringValue value;
    right = s.ok() && value.ParseFromString(reply) && value.value() == expected;
    status = std::move(s);
    ++times;
  }
  std::string expected;
  absl::Status status;
  int times = 0;
  bool right = false;
};

// Property: of 2000 requests that wait at the same time each is answered once, with its own answer.
class CoroutineManyTest : public CoroutineBase {};
INSTANTIATE_TEST_SUITE_P(Models, CoroutineManyTest, testing::Values("AIB1-1", "ADB1-2-2", "ADP1-2-2"),
                         ModelName);

TEST_P(CoroutineManyTest, EachOf2000WaitingRequestsIsAnsweredOnceStress) {
  constexpr int kRequests = 2000;
  std::atomic<int> begun{0};
  std::atomic<int> ended{0};
  ServeCoroutine([&](Context& ctx, const StringValue& in, StringValue* out) -> Coroutine {
    ++begun;
    const Results results = co_await fan_out(ctx, leaves_, kHang, ToBoth(in));
    const absl::StatusOr<std::string> joined = Joined(results);
    if (joined.ok()) out->set_value(*joined);
    ++ended;
    co_return joined.status();
  });
  std::vector<Answer> answers(kRequests);
  for (int i = 0; i < kRequests; ++i) {
    answers[i].expected = Join(i, ";", i, ";");
    channel_->Start(kRun.path, Deadline::In(kMaxTestWait), {}, Text(Join(i)).SerializeAsString(),
                    &answers[i]);
  }
  const Deadline deadline = Deadline::In(kMaxTestWait);
  size_t answered = 0;
  while (begun < kRequests && !deadline.Expired()) answered += front_.Poll(Deadline::In(milliseconds(1)));
  EXPECT_EQ(begun, kRequests);
  EXPECT_EQ(answered, 0u);
  EXPECT_EQ(ended, 0);
  gate_.Open();
  while (answered < kRequests && !deadline.Expired()) answered += front_.Poll(deadline);
  EXPECT_EQ(ended, kRequests);
  for (const Answer& answer : answers) {
    ASSERT_TRUE(answer.right) << answer.expected << " " << answer.status;
    ASSERT_EQ(answer.times, 1);
  }
  const absl::Status drained = mid_->Drain(Deadline::In(seconds(5)));
  EXPECT_TRUE(drained.ok()) << drained;
}

}  // namespace
}  // namespace curtail
