// SPDX-License-Identifier: Apache-2.0
//
// Metadata that comes with replies, in every form of call, and metadata that may not be sent.
#include <gmock/gmock.h>

#include "absl/strings/ascii.h"
#include "curtail/rpc/in_process.h"
#include "curtail/rpc/mid_tier_testing.h"
#include "curtail/rpc/stream.h"
#include "curtail/rpc/when_all.h"

namespace curtail {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string AsText(const Metadata& metadata) {
  std::string text;
  for (const auto& [key, value] : metadata) text += Join(key, "=", value, ";");
  return text;
}

// "initial|trailing" of a reply to "meta", and of one to "meta fail".
std::string AsText(const ReplyMetadata& metadata) {
  return AsText(metadata.initial) + "|" + AsText(metadata.trailing);
}
const std::string kOfReply = "x-head=h;|x-trail=t;";
const std::string kOfError = std::string("x-head-bin=\0\n;|x-trail=t;", 25);

class ReplyMetadataTest : public MidTier {};
INSTANTIATE_TEST_SUITE_P(Models, ReplyMetadataTest,
                         testing::Values("SIB1", "SDB1-2", "FIB1", "FDB1-2", "AIB1-1", "ADB1-2-2"),
                         ModelName);

TEST_P(ReplyMetadataTest, ReachesCoroutines) {
  ServeCoroutine([&](Context& ctx, const StringValue&, StringValue* out) -> Coroutine {
    std::vector<StringValue> requests = ToBoth(Text("meta"));
    requests[1] = Text("meta fail");
    const auto replies = co_await fan_out(ctx, leaves_, kEcho, std::move(requests));
    ReplyMetadata first, second;
    auto [one, other] = co_await WhenAll(ctx, Ask(&leaf_channel_, kEcho, Text("meta fail"), &first),
                                         Ask(&leaf_channel_, kEcho, Text("meta"), &second));
    const auto none = co_await broadcast(ctx, leaves_, kEcho, Text("none"));
    if (!none.metadata(0).empty() || !none.metadata(1).empty()) co_return absl::InternalError("not empty");
    out->set_value(AsText(replies.metadata(0)) + AsText(replies.metadata(1)) + AsText(first) +
                   AsText(second));
    co_return absl::OkStatus();
  });
  std::string answer;
  const absl::Status status = Run("", &answer);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(answer, kOfReply + kOfError + kOfError + kOfReply);
}

TEST_P(ReplyMetadataTest, OfACoroutineReachesItsCallers) {
  ServeCoroutine([&](Context& ctx, const StringValue& in, StringValue* out) -> Coroutine {
    ctx.AddInitialMetadata("x-head", "h");
    const auto replies = co_await broadcast(ctx, leaves_, kEcho, in);
    ctx.AddTrailingMetadata("X-Trail", "t");
    out->set_value(replies[0]->value());
    co_return in.value() == "breaks" ? absl::AbortedError("failed") : absl::OkStatus();
  });
  for (const char* text : {"works", "breaks"}) {
    Context ctx(kMaxTestWait);
    StringValue reply;
    ReplyMetadata metadata;
    metadata.initial.Add("left", "over");
    const bool ok = channel_->Call(ctx, kRun.path, Text(text), &reply, &metadata).ok();
    EXPECT_EQ(ok, text == std::string("works"));
    EXPECT_EQ(AsText(metadata), kOfReply) << text;
  }
}

TEST_P(ReplyMetadataTest, OfCallsThatStayInTheProcessReachesTheCaller) {
  class Here final : public Service {
   public:
    std::string_view FullName() const override { return "test.Here"; }
    std::vector<MethodHandler> Handlers() override {
      return {internal::CoroutineMethod<StringValue, StringValue>(
          "Echo", [](Context& ctx, const StringValue& in, StringValue*) -> Coroutine {
            ctx.AddInitialMetadata("x-head", "h");
            ctx.AddTrailingMetadata(in.value(), "t");
            co_return in.value() == "x-trail" ? absl::AbortedError("failed") : absl::OkStatus();
          })};
    }
  } service;
  InProcess in_process("here");
  ASSERT_TRUE(in_process.Serve(service).ok());
  Channel here(&client_, &in_process);
  constexpr Method<StringValue, StringValue> kHere{"/test.Here/Echo"};
  ServeCoroutine([&](Context& ctx, const StringValue&, StringValue* out) -> Coroutine {
    ReplyMetadata own, failed, wrong, leaf;
    auto [one, aborted, two, three] = co_await WhenAll(
        ctx, Ask(&here, kHere, Text("X-Trail"), &own), Ask(&here, kHere, Text("x-trail"), &failed),
        Ask(&here, kHere, Text("grpc-trail"), &wrong), Ask(&leaf_channel_, kEcho, Text("meta"), &leaf));
    Context sender(&ctx);
    sender.AddMetadata("grpc-own", "x");
    auto [refused] = co_await WhenAll(sender, Ask(&here, kHere, Text("x-trail")));
    out->set_value(AsText(own) + AsText(failed) + AsText(wrong) + AsText(leaf) + two.status().ToString() +
                   refused.status().ToString());
    const bool as_expected = one.ok() && absl::IsAborted(aborted.status()) && three.ok();
    co_return as_expected ? absl::OkStatus() : absl::InternalError("a call ended otherwise");
  });
  std::string answer;
  const absl::Status status = Run("", &answer);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(answer, testing::StartsWith(kOfReply + kOfReply + "|" + kOfReply));
  EXPECT_THAT(answer, AllOf(HasSubstr("INTERNAL"), HasSubstr("\"grpc-trail\""), HasSubstr("INVALID_ARGUMENT"),
                            HasSubstr("\"grpc-own\"")));
}

// Over a connection and in the process, with a message ahead of the error and without.
TEST_P(ReplyMetadataTest, OfAStreamThatFailsReachesItsCaller) {
  const MethodHandler fails = internal::BidirectionalMethod<StringValue, StringValue>(
      "Run", [](Context& ctx, ServerStream<StringValue, StringValue>& stream) {
        ctx.AddInitialMetadata("x-head", "h");
        StringValue in;
        while (stream.Read(&in)) stream.Write(in);
        ctx.AddTrailingMetadata("x-trail", "t");
        return absl::NotFoundError("failed");
      });
  OneMethod service(fails);
  InProcess in_process("here");
  ASSERT_TRUE(in_process.Serve(service).ok());
  Channel here(&client_, &in_process);
  Serve(fails);
  for (Channel* const channel : {channel_.get(), &here}) {
    for (const int messages : {0, 1}) {
      SCOPED_TRACE(Join(channel->target(), ", messages: ", messages));
      Context ctx(kMaxTestWait);
      ClientStream<StringValue, StringValue> stream(internal::OpenStream(ctx, *channel, kRun.path));
      StringValue back;
      for (int i = 0; i < messages; ++i) EXPECT_TRUE(stream.Write(Text("a")) && stream.Read(&back));
      EXPECT_EQ(stream.Finish(), absl::NotFoundError("failed"));
      EXPECT_EQ(AsText(stream.metadata()), kOfReply);
    }
  }
}

// The client waits for it before any message, which the handler holds back until then.
TEST_P(ReplyMetadataTest, OfAStreamArrivesBeforeItsMessages) {
  using Both = ServerStream<StringValue, StringValue>;
  Serve(internal::BidirectionalMethod<StringValue, StringValue>("Run", [&](Context& ctx, Both& stream) {
    const bool empty = ctx.metadata().Find("x-empty").has_value();
    if (!empty) ctx.AddInitialMetadata("x-head", "h");
    const bool wrong = ctx.metadata().Find("x-wrong").has_value();
    if (wrong) ctx.AddInitialMetadata("grpc-own", "x");
    stream.SendInitialMetadata();
    stream.SendInitialMetadata();
    if (!wrong) ctx.AddInitialMetadata("x-late", "l");
    StringValue in;
    while (stream.Read(&in)) stream.Write(in);
    return stream.status();
  }));
  for (const char* kind : {"x-full", "x-empty", "x-wrong"}) {
    SCOPED_TRACE(kind);
    Context ctx(kMaxTestWait);
    ctx.AddMetadata(kind, "1");
    ClientStream<StringValue, StringValue> stream(internal::OpenStream(ctx, *channel_, kRun.path));
    StringValue back;
    if (kind == std::string("x-wrong")) {
      stream.WritesDone();
      EXPECT_EQ(AsText(stream.InitialMetadata()), "");
      EXPECT_EQ(stream.Finish().code(), absl::StatusCode::kInternal);
      continue;
    }
    EXPECT_EQ(AsText(stream.InitialMetadata()), kind == std::string("x-full") ? "x-head=h;" : "");
    EXPECT_TRUE(stream.Write(Text("a")) && stream.Read(&back));
    EXPECT_EQ(back.value(), "a");
    EXPECT_TRUE(stream.Finish().ok());
    EXPECT_EQ(AsText(stream.metadata()), kind == std::string("x-full") ? "x-head=h;|" : "|");
  }
  // A call that never reaches a server has none.
  Channel nowhere(&client_, "unix:/nowhere/at/all");
  Context ctx(kMaxTestWait);
  ClientStream<StringValue, StringValue> stream(internal::OpenStream(ctx, nowhere, kRun.path));
  EXPECT_TRUE(stream.InitialMetadata().empty());
  EXPECT_EQ(stream.Finish().code(), absl::StatusCode::kUnavailable);
}

// A child call that would carry it fails, whatever the handler then makes of that.
TEST_P(ReplyMetadataTest, ChildCallsWithWhatMayNotBeSentFailAndNameIt) {
  ServeCoroutine([&](Context& ctx, const StringValue& in, StringValue* out) -> Coroutine {
    ctx.AddMetadata(in.value(), "two\nlines");
    const auto replies = co_await broadcast(ctx, leaves_, kEcho, in);
    out->set_value("reached the leaf");
    co_return replies[1].status();
  });
  for (const char* key : {"x-own", "grpc-own", "Content-Type", "sp ace"}) {
    const absl::Status status = Run(key);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << key;
    EXPECT_THAT(std::string(Message(status)), HasSubstr(absl::AsciiStrToLower(key)));
  }
  EXPECT_TRUE(Run("x-own-bin").ok());
}

class ContinuationMetadataTest : public MidTier {};
INSTANTIATE_TEST_SUITE_P(Models, ContinuationMetadataTest, testing::Values("AIB1-1", "ADB1-2-2"), ModelName);

TEST_P(ContinuationMetadataTest, ReachesAndComesFromContinuations) {
  ServeContinuation([&](Context& ctx, const StringValue& in, TextResponder responder) {
    ctx.AddInitialMetadata("x-head", "h");
    struct Tag {
      Context* ctx;
      TextResponder responder;
    };
    InvokeLeafAsync(ctx, leaves_, kEcho, std::vector{in, in}, Tag{&ctx, std::move(responder)},
                    [](Tag tag, Replies<StringValue> replies) {
                      tag.ctx->AddTrailingMetadata("x-trail", "t");
                      tag.responder.Finish(Text(AsText(replies.metadata(0)) + AsText(replies.metadata(1))));
                    });
  });
  Context ctx(kMaxTestWait);
  StringValue reply;
  ReplyMetadata metadata;
  const absl::Status status = channel_->Call(ctx, kRun.path, Text("meta"), &reply, &metadata);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(reply.value(), kOfReply + kOfReply);
  EXPECT_EQ(AsText(metadata), kOfReply);
}

TEST_P(ContinuationMetadataTest, OfAFailureReachesItsCaller) {
  ServeContinuation([](Context& ctx, const StringValue&, TextResponder responder) {
    ctx.AddInitialMetadata("x-head", "h");
    ctx.AddTrailingMetadata("x-trail", "t");
    responder.Fail(absl::AbortedError("failed"));
  });
  Context ctx(kMaxTestWait);
  StringValue reply;
  ReplyMetadata metadata;
  EXPECT_TRUE(absl::IsAborted(channel_->Call(ctx, kRun.path, Text(""), &reply, &metadata)));
  EXPECT_EQ(AsText(metadata), kOfReply);
}

class RefusedMetadataTest : public RpcBase, public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Models, RefusedMetadataTest, testing::Values("SIB1", "SDB1-2", "FIB1"), ModelName);

TEST_P(RefusedMetadataTest, AnswersWithWhatMayNotBeSentAreInternalAndNameIt) {
  auto server = StartServer(GetParam());
  Client client;
  Channel channel(&client, server->addresses()[0]);
  const absl::Status initial = Call(channel, kEcho, "meta initial");
  EXPECT_EQ(initial.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(Message(initial)), HasSubstr("\"te\""));
  const absl::Status trailing = Call(channel, kEcho, "meta trailing");
  EXPECT_EQ(trailing.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(Message(trailing)), HasSubstr("\"x-trail\""));
  EXPECT_TRUE(Call(channel, kEcho, "still here").ok());
}

// Event-driven calls hear of metadata before they are done, and of none if there is none.
TEST_P(RefusedMetadataTest, EventDrivenCallsHearOfMetadata) {
  struct Outcome final : Completion {
    void OnMetadata(ReplyMetadata&& m) override { log += AsText(m); }
    void Done(absl::Status&& status, std::string&&) override {
      log += absl::StatusCodeToString(status.code());
      done = true;
    }
    std::string log;
    bool done = false;
  };
  auto server = StartServer(GetParam());
  Client client;
  Channel channel(&client, server->addresses()[0]);
  const auto run = [&](const char* text, const Metadata& metadata = {}) {
    Outcome outcome;
    channel.Start(kEcho.path, Deadline::In(kMaxTestWait), metadata, Text(text).SerializeAsString(), &outcome);
    for (const Deadline end = Deadline::In(kMaxTestWait); !outcome.done && !end.Expired();) client.Poll(end);
    return outcome.log;
  };
  EXPECT_EQ(run("meta"), kOfReply + "OK");
  EXPECT_EQ(run("meta fail"), kOfError + "NOT_FOUND");
  EXPECT_EQ(run("none"), "OK");
  Metadata reserved;
  reserved.Add("grpc-own", "x");
  EXPECT_EQ(run("none", reserved), "INVALID_ARGUMENT");
}

}  // namespace
}  // namespace curtail
