// SPDX-License-Identifier: Apache-2.0
//
// A context's options for the calls that it makes: deadline, authority, sizes.
#include <gmock/gmock.h>

#include <mutex>

#include "curtail/rpc/in_process.h"
#include "curtail/rpc/mid_tier_testing.h"
#include "curtail/rpc/stream.h"
#include "curtail/rpc/transport/transport_testing.h"
#include "curtail/rpc/when_all.h"
#include "curtail/wire/internal/frame.h"
#include "curtail/wire/internal/hpack.h"

namespace curtail {
namespace {

using internal::OpenStream;
using testing::HasSubstr;

constexpr Method<StringValue, StringValue> kBoundedHere{"/test.Here/Echo"};

class CallOptionsTest : public MidTier {};
INSTANTIATE_TEST_SUITE_P(Models, CallOptionsTest,
                         testing::Values("SIB1", "SDB1-2", "FIB1", "FDB1-2", "AIB1-1", "ADB1-2-2"),
                         ModelName);

TEST_P(CallOptionsTest, OneCallEndsBeforeItsParent) {
  ServeCoroutine([&](Context& ctx, const StringValue&, StringValue* out) -> Coroutine {
    Context one(&ctx);
    one.ShortenDeadline(Deadline::In(milliseconds(5)));
    const auto late = co_await broadcast(one, leaves_, kHang, Text("late"));
    gate_.Open();
    const auto then = co_await broadcast(ctx, leaves_, kEcho, Text("x"));
    out->set_value(Codes(late) + then[1]->value());
    co_return absl::OkStatus();
  });
  std::string answer;
  EXPECT_TRUE(Run("", &answer).ok());
  EXPECT_EQ(answer, "DEADLINE_EXCEEDED;DEADLINE_EXCEEDED;x");
}

// The others have the context's time.
TEST_P(CallOptionsTest, OneOfSeveralCallsHasLessTime) {
  ServeCoroutine([&](Context& ctx, const StringValue&, StringValue* out) -> Coroutine {
    auto [late, there] =
        co_await WhenAll(ctx, Ask(&leaf_channel_, kHang, Text("late")).Within(milliseconds(5)),
                         Ask(&leaf_channel_, kEcho, Text("x")).Within(kMaxTestWait));
    gate_.Open();
    auto [then] = co_await WhenAll(ctx, Ask(&leaf_channel_, kHang, Text("y")));
    out->set_value(absl::StatusCodeToString(late.status().code()) + ";" + there->value() + ";" +
                   absl::StatusCodeToString(then.status().code()));
    co_return absl::OkStatus();
  });
  std::string answer;
  EXPECT_TRUE(Run("", &answer).ok());
  EXPECT_EQ(answer, "DEADLINE_EXCEEDED;x;OK");
}

// A write that must reach all replicas, whatever becomes of its client.
TEST_P(CallOptionsTest, OneCallGoesOnWhenItsParentIsCancelled) {
  ServeCoroutine([&](Context& ctx, const StringValue&, StringValue* out) -> Coroutine {
    Context ends(&ctx);
    Context goes_on(&ctx, Deadline::In(kMaxTestWait));
    ctx.Cancel();
    const auto ended = co_await broadcast(ends, leaves_, kEcho, Text("x"));
    const auto done = co_await broadcast(goes_on, leaves_, kEcho, Text("x"));
    out->set_value(Codes(ended) + Codes(done));
    co_return absl::OkStatus();
  });
  std::string answer;
  EXPECT_TRUE(Run("", &answer).ok());
  EXPECT_EQ(answer, "CANCELLED;CANCELLED;OK;OK;");
}

TEST_P(CallOptionsTest, SizesOfOneCallAreBounded) {
  class Here final : public Service {
   public:
    std::string_view FullName() const override { return "test.Here"; }
    std::vector<MethodHandler> Handlers() override {
      return {internal::CoroutineMethod<StringValue, StringValue>(
          "Echo", [](Context& ctx, const StringValue& in, StringValue* out) -> Coroutine {
            if (ctx.call_options().max_reply_bytes != SIZE_MAX) co_return absl::InternalError("inherited");
            out->set_value(in.value());
            co_return absl::OkStatus();
          })};
    }
  } service;
  InProcess in_process("here");
  ASSERT_TRUE(in_process.Serve(service).ok());
  Channel here(&client_, &in_process);
  ServeCoroutine([&](Context& ctx, const StringValue& in, StringValue* out) -> Coroutine {
    Context one(&ctx);
    one.SetMaxReplyBytes(100);
    if (in.value() == "request") one.SetMaxRequestBytes(100);
    std::string codes;
    for (const size_t size : {98, 99}) {
      const StringValue text = Text(std::string(size, 'x'));
      const auto replies = co_await broadcast(one, leaves_, kEcho, text);
      auto [there, in_here] =
          co_await WhenAll(one, Ask(&leaf_channel_, kEcho, text), Ask(&here, kBoundedHere, text));
      Context part(&one);
      auto [alone] = co_await WhenAll(part, Ask(&here, kBoundedHere, text));
      codes += Codes(replies) + absl::StatusCodeToString(there.status().code()) + ";" +
               absl::StatusCodeToString(in_here.status().code()) + ";" +
               absl::StatusCodeToString(alone.status().code()) + "|";
      if (!alone.ok())
        codes += std::string(Message(alone.status())) + "|" + std::string(Message(there.status()));
    }
    out->set_value(codes);
    co_return absl::OkStatus();
  });
  const std::string five =
      "RESOURCE_EXHAUSTED;RESOURCE_EXHAUSTED;RESOURCE_EXHAUSTED;RESOURCE_EXHAUSTED;"
      "RESOURCE_EXHAUSTED|";
  std::string answer;
  EXPECT_TRUE(Run("reply", &answer).ok());
  EXPECT_EQ(answer, "OK;OK;OK;OK;OK|" + five + "message exceeds 100 bytes|message exceeds 100 bytes");
  EXPECT_TRUE(Run("request", &answer).ok());
  const std::string why = "the request has 101 bytes; this call may send 100";
  EXPECT_EQ(answer, "OK;OK;OK;OK;OK|" + five + why + "|" + why);
}

TEST_P(CallOptionsTest, SizesOnAStreamAreBounded) {
  const MethodHandler twice = internal::BidirectionalMethod<StringValue, StringValue>(
      "Run", [](Context&, ServerStream<StringValue, StringValue>& stream) -> absl::Status {
        return EachMessage(stream, [](const StringValue& in, StringValue* out) {
          out->set_value(in.value() + in.value());
          return absl::OkStatus();
        });
      });
  Serve(twice);
  OneMethod service(twice);
  InProcess in_process("here");
  ASSERT_TRUE(in_process.Serve(service).ok());
  Channel here(&client_, &in_process);
  for (Channel* const channel : {channel_.get(), &here}) {
    for (const bool reply : {false, true}) {
      Context ctx(kMaxTestWait);
      reply ? ctx.SetMaxReplyBytes(100) : ctx.SetMaxRequestBytes(100);
      ClientStream<StringValue, StringValue> stream(OpenStream(ctx, *channel, kRun.path));
      StringValue back;
      EXPECT_TRUE(stream.Write(Text(std::string(reply ? 49 : 98, 'x'))) && stream.Read(&back)) << "exactly";
      const bool sent = stream.Write(Text(std::string(99, 'x')));
      EXPECT_EQ(sent, reply);
      EXPECT_FALSE(stream.Read(&back));
      EXPECT_EQ(stream.Finish().code(), absl::StatusCode::kResourceExhausted);
    }
  }
}

// The limits of a channel, of a method and of a server, for blocking and event-driven calls, plain and compressed.
class ExactLimitTest : public RpcBase, public testing::Test {
 protected:
  static constexpr size_t kLimit = 1000, kOverhead = 3;  // of a message beside its text

  std::unique_ptr<Server> StartNarrow() {
    ServerOptions options;
    options.config = *Config::Parse("SIB1");
    options.max_message_bytes = kLimit;
    std::vector<std::unique_ptr<Service>> services;
    services.push_back(std::make_unique<EchoService>(&gate_, std::vector<Channel*>(), nullptr));
    return *Server::Start(std::move(options), std::move(services));
  }
  // Event-driven.
  static absl::StatusCode Start(Client& client, Channel& channel, const std::string& text) {
    struct Ended final : Completion {
      void Done(absl::Status&& s, std::string&&) override { code = s.code(), done = true; }
      absl::StatusCode code = absl::StatusCode::kUnknown;
      bool done = false;
    } call;
    const Deadline end = Deadline::In(kMaxTestWait);
    channel.Start(kEcho.path, end, {}, Text(text).SerializeAsString(), &call);
    while (!call.done) client.Poll(end);
    return call.code;
  }
  void ExpectExactly(Client& client, Channel& channel) {
    for (const size_t beyond : {0, 1}) {
      const std::string text(kLimit - kOverhead + beyond, 'x');
      const auto expected = beyond == 0 ? absl::StatusCode::kOk : absl::StatusCode::kResourceExhausted;
      EXPECT_EQ(Call(channel, kEcho, text).code(), expected);
      EXPECT_EQ(Start(client, channel, text), expected);
    }
  }
};

TEST_F(ExactLimitTest, IsTakenAndOneByteMoreIsNot) {
  const auto wide = StartServer("SIB1"), narrow = StartNarrow();
  const auto of_method = [](const char* field) {
    return Join(R"({"methodConfig":[{"name":[{}],")", field, R"(":)", kLimit, "}]}");
  };
  for (const wire::Encoding encoding : {wire::Encoding::kIdentity, wire::Encoding::kGzip}) {
    SCOPED_TRACE(encoding == wire::Encoding::kGzip ? "compressed" : "plain");
    ChannelOptions server, replies, request, reply;
    replies.max_message_bytes = kLimit;
    request.service_config = of_method("maxRequestMessageBytes");
    reply.service_config = of_method("maxResponseMessageBytes");
    for (ChannelOptions* const options : {&server, &replies, &request, &reply}) {
      options->encoding = encoding;
      Client client;
      Channel channel(&client, (options == &server ? narrow : wide)->addresses()[0], *options);
      ExpectExactly(client, channel);
    }
  }
}

// The :authority of the first request in what a client sends, if it is there whole.
std::string AuthorityIn(std::string_view bytes) {
  using wire::internal::FrameHeader;
  using wire::internal::FrameType;
  using wire::internal::kFrameHeaderBytes;
  std::string authority;
  if (bytes.size() < wire::internal::kPreface.size()) return authority;
  bytes.remove_prefix(wire::internal::kPreface.size());
  while (bytes.size() >= kFrameHeaderBytes) {
    const FrameHeader header = FrameHeader::Parse(bytes.data());
    if (bytes.size() < kFrameHeaderBytes + header.length) break;
    if (header.type == FrameType::kHeaders) {
      wire::internal::HpackDecoder decoder;
      EXPECT_TRUE(decoder.Decode(bytes.substr(kFrameHeaderBytes, header.length),
                                 [&](const wire::internal::HeaderField& field) {
                                   if (field.name == ":authority") authority = field.value;
                                 }));
      break;
    }
    bytes.remove_prefix(kFrameHeaderBytes + header.length);
  }
  return authority;
}

TEST(CallOptions, TheAuthorityOfACallReachesItsServer) {
  Context ctx(kMaxTestWait);
  std::mutex mu;
  std::string authority;
  const TestListener listener([&](internal::UniqueFd connection, int stop) {
    std::string heard;
    while (AuthorityIn(heard).empty() && TestListener::Wait(connection.get(), stop)) {
      char bytes[4096];
      const ssize_t n = recv(connection.get(), bytes, sizeof bytes, 0);
      if (n <= 0) return;
      heard.append(bytes, static_cast<size_t>(n));
    }
    {
      std::lock_guard lock(mu);
      authority = AuthorityIn(heard);
    }
    ctx.Cancel();
    char rest[64];  // the connection stands until the call has ended
    while (TestListener::Wait(connection.get(), stop) && recv(connection.get(), rest, sizeof rest, 0) > 0) {
    }
  });
  Client client;
  Channel channel(&client, listener.address());
  StringValue reply;
  {
    Context one(&ctx);
    one.SetAuthority("no authority");
    const absl::Status wrong = channel.Call(one, kEcho.path, Text("x"), &reply);
    EXPECT_EQ(wrong.code(), absl::StatusCode::kInvalidArgument) << wrong;
    EXPECT_THAT(std::string(Message(wrong)), HasSubstr("no authority"));
  }
  ctx.SetAuthority("shop.example:443");
  EXPECT_EQ(channel.Call(ctx, kEcho.path, Text("x"), &reply).code(), absl::StatusCode::kCancelled);
  std::lock_guard lock(mu);
  EXPECT_EQ(authority, "shop.example:443");
}

}  // namespace
}  // namespace curtail
