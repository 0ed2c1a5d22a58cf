// SPDX-License-Identifier: Apache-2.0
//
// Continuation handlers under the asynchronous models (muTune, section 3): ProcessRequest calls InvokeLeafAsync, whose
// last reply runs FinalizeResponse.
#include "curtail/rpc/continuation.h"

#include <gmock/gmock.h>

#include <thread>

#include "curtail/rpc/mid_tier_testing.h"

namespace curtail {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ContinuationTest : public MidTier {
 protected:
  // FinalizeResponse that answers as Forward does.
  static void Finalize(TextResponder responder, const Results& results) {
    const absl::StatusOr<std::string> joined = Joined(results);
    if (joined.ok()) {
      responder.Finish(Text(*joined));
    } else {
      responder.Fail(joined.status());
    }
  }
  // Begins a fan-out that goes on with Finalize. `end` is destroyed when that has returned.
  void Invoke(Context& ctx, const StringValue& in, TextResponder responder, AtEnd end = AtEnd(nullptr)) {
    InvokeLeafAsync(ctx, leaves_, LeafMethod(in), ToBoth(in), std::move(responder),
                    [this, end = std::move(end)](TextResponder r, const Results& results) {
                      log_.Add(Codes(results));
                      Finalize(std::move(r), results);
                    });
  }
};

INSTANTIATE_TEST_SUITE_P(Models, ContinuationTest,
                         testing::Values("AIB1-1", "AIP1-1", "ADB1-2-2", "ADP1-2-2"), ModelName);

TEST_P(ContinuationTest, AnswersWithWhatTheLeavesAnswered) {
  ServeContinuation([&](Context& ctx, const StringValue& in, TextResponder responder) {
    Invoke(ctx, in, std::move(responder));
  });
  std::string answer;
  for (int i = 0; i < 50; ++i) {
    const absl::Status status = Run(Join(i), &answer);
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ(answer, Join(i, ";", i, ";"));
  }
  const absl::Status failed = Run("fail");
  EXPECT_EQ(failed.code(), absl::StatusCode::kNotFound) << failed;
  ExpectHealthy();
}

TEST_P(ContinuationTest, TakesOneRequestForAll) {
  ServeContinuation([&](Context& ctx, const StringValue& in, TextResponder responder) {
    InvokeLeafAsync(ctx, leaves_, kEcho, Text(in.value()), std::move(responder),
                    [](TextResponder r, const Results& results) { Finalize(std::move(r), results); });
  });
  std::string answer;
  const absl::Status status = Run("x", &answer);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(answer, "x;x;");
  ExpectHealthy();
}

TEST_P(ContinuationTest, AnswersWithoutAnyLeaf) {
  ServeContinuation([&](Context& ctx, const StringValue& in, TextResponder responder) {
    if (in.value() == "x") return Invoke(ctx, in, std::move(responder));
    responder.Finish(Text("at once"));
  });
  std::string answer;
  ASSERT_TRUE(Run("", &answer).ok());
  EXPECT_EQ(answer, "at once");
  ExpectHealthy();
}

// ProcessRequest waits at a gate that opens when FinalizeResponse has returned and all it held is destroyed.
TEST_P(ContinuationTest, FinalizeEndsBeforeProcessReturns) {
  Gate finalized;
  ServeContinuation(
      [&](Context& ctx, const StringValue& in, TextResponder responder) {
        Invoke(ctx, in, std::move(responder), AtEnd([&] {
                 log_.Add("finalized");
                 finalized.Open();
               }));
        EXPECT_TRUE(finalized.Pass());
      },
      [&] { log_.Add("returned"); });
  std::string answer;
  const absl::Status status = Run("a", &answer);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(answer, "a;a;");
  EXPECT_THAT(log_.Await(3), ElementsAre("OK;OK;", "finalized", "returned"));
  ExpectHealthy();
}

// The leaf waits at a gate that opens when ProcessRequest has returned.
TEST_P(ContinuationTest, ProcessReturnsBeforeFinalizeBegins) {
  ServeContinuation(
      [&](Context& ctx, const StringValue& in, TextResponder responder) {
        Invoke(ctx, in, std::move(responder), AtEnd([&] { log_.Add("finalized"); }));
      },
      [&] {
        log_.Add("returned");
        gate_.Open();
      });
  std::string answer;
  const absl::Status status = Run("hang", &answer);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(answer, "hang;hang;");
  EXPECT_THAT(log_.Await(3), ElementsAre("returned", "OK;OK;", "finalized"));
  ExpectHealthy();
}

TEST_P(ContinuationTest, AResponderDestroyedWithoutAnAnswerIsInternal) {
  ServeContinuation([&](Context& ctx, const StringValue& in, TextResponder responder) {
    if (in.value() == "at once") return;
    if (in.value() == "x") return Invoke(ctx, in, std::move(responder));
    InvokeLeafAsync(ctx, leaves_, kEcho, ToBoth(in), std::move(responder),
                    [](TextResponder, const Results&) {});
  });
  for (const char* text : {"at once", "later"}) {
    const absl::Status status = Run(text);
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << text << ": " << status;
    EXPECT_THAT(Message(status), HasSubstr("without an answer"));
  }
  ExpectHealthy();
}

TEST_P(ContinuationTest, AnExceptionBeforeTheResponderIsHandedOnIsInternal) {
  ServeContinuation([&](Context& ctx, const StringValue& in, TextResponder responder) {
    if (in.value() == "held") throw std::runtime_error("thrown early");
    if (in.value() == "moved") {
      const TextResponder mine = std::move(responder);
      throw 1;
    }
    Invoke(ctx, in, std::move(responder));
  });
  const absl::Status held = Run("held");
  EXPECT_EQ(held.code(), absl::StatusCode::kInternal) << held;
  EXPECT_THAT(Message(held), HasSubstr("thrown early"));
  const absl::Status moved = Run("moved");
  EXPECT_EQ(moved.code(), absl::StatusCode::kInternal) << moved;
  ExpectHealthy();
}

TEST_P(ContinuationTest, AnExceptionAfterTheResponderWasHandedOnChangesNothing) {
  Gate finalized;
  ServeContinuation(
      [&](Context& ctx, const StringValue& in, TextResponder responder) {
        if (in.value() == "x") return Invoke(ctx, in, std::move(responder));
        if (in.value() == "answered") {
          responder.Finish(Text("answered"));
          throw std::runtime_error("thrown after the answer");
        }
        Invoke(ctx, in, std::move(responder), AtEnd([&] { finalized.Open(); }));
        EXPECT_TRUE(in.value() != "finalized first" || finalized.Pass());
        throw std::runtime_error("thrown late");
      },
      [&] { gate_.Open(); });
  std::string answer;
  // Its leaves are held until the handler has thrown.
  const absl::Status late = Run("hang", &answer);
  EXPECT_TRUE(late.ok()) << late;
  EXPECT_EQ(answer, "hang;hang;");
  const absl::Status first = Run("finalized first", &answer);
  EXPECT_TRUE(first.ok()) << first;
  EXPECT_EQ(answer, "finalized first;finalized first;");
  const absl::Status answered = Run("answered", &answer);
  EXPECT_TRUE(answered.ok()) << answered;
  EXPECT_EQ(answer, "answered");
  ExpectHealthy();
}

TEST_P(ContinuationTest, AnExceptionInFinalizeIsInternal) {
  ServeContinuation([&](Context& ctx, const StringValue& in, TextResponder responder) {
    if (in.value() == "x") return Invoke(ctx, in, std::move(responder));
    InvokeLeafAsync(ctx, leaves_, kEcho, ToBoth(in), std::move(responder),
                    [](TextResponder r, const Results& results) {
                      if (results[0]->value() == "answered") r.Finish(*results[0]);
                      throw std::runtime_error("thrown in finalize");
                    });
  });
  const absl::Status thrown = Run("thrown");
  EXPECT_EQ(thrown.code(), absl::StatusCode::kInternal) << thrown;
  std::string answer;
  const absl::Status answered = Run("answered", &answer);
  EXPECT_TRUE(answered.ok()) << answered;
  EXPECT_EQ(answer, "answered");
  ExpectHealthy();
}

TEST_P(ContinuationTest, TheDeadlineRunsFinalize) {
  ServeContinuation([&](Context& ctx, const StringValue& in, TextResponder responder) {
    if (in.value() == "late") ctx.ShortenDeadline(Deadline::In(milliseconds(50)));
    Invoke(ctx, in, std::move(responder));
  });
  const absl::Status status = Run("late");
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_THAT(log_.Await(1), ElementsAre("DEADLINE_EXCEEDED;DEADLINE_EXCEEDED;"));
  ExpectHealthy();
}

TEST_P(ContinuationTest, ACallerThatCancelsRunsFinalize) {
  ServeContinuation([&](Context& ctx, const StringValue& in, TextResponder responder) {
    Invoke(ctx, in, std::move(responder));
  });
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

TEST_P(ContinuationTest, RunsUnderNoOtherModel) {
  const auto body = [](Context&, const StringValue&, TextResponder responder) { responder.Finish({}); };
  const MethodHandler method = internal::ContinuationMethod<StringValue, StringValue>("Run", body);
  for (const char* config : {"SIB1", "FIB1"}) {
    const auto server = TryServe(config, method);
    EXPECT_EQ(server.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(Message(server.status()), HasSubstr("/test.Mid/Run"));
  }
  Serve(method);
  for (const char* config : {"SIB1", "auto"}) {
    EXPECT_EQ(mid_->SwitchTo(*Config::Parse(config)).code(), absl::StatusCode::kInvalidArgument) << config;
  }
  EXPECT_TRUE(Run("").ok());
}

TEST(Continuation, NeedsAServersThread) {
  Client client;
  Channel channel(&client, "127.0.0.1:1");
  Context ctx(kMaxTestWait);
  Channel* const leaf = &channel;
  Results results;
  InvokeLeafAsync(ctx, std::span<Channel* const>(&leaf, 1), kEcho, std::vector{Text("")}, &results,
                  [](Results* out, Results got) { *out = std::move(got); });
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace curtail
