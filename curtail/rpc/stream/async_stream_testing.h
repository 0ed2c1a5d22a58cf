// SPDX-License-Identifier: Apache-2.0
//
// async_stream_testing.h - a service whose methods stream, in coroutines, and a mid-tier that has streams of its own to
// another instance of it.
#pragma once

#include <gmock/gmock.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "curtail/rpc/async_stream.h"
#include "curtail/rpc/mid_tier_testing.h"

namespace curtail {

using AsyncBoth = AsyncServerStream<StringValue, StringValue>;
using StreamToLeaf = AsyncClientStream<StringValue, StringValue>;

// The size of the messages of a stream without an end: large enough to fill all windows with few.
inline constexpr int kEndlessBytes = 1000;

// The handlers tell what they have seen.
struct AsyncSeen {
  absl::Status End(absl::Status status) {
    log.Add(std::string(absl::StatusCodeToString(status.code())));
    return status;
  }
  Gate entered;                          // each handler that waits has come here; open
  std::atomic<Context*> waits{nullptr};  // of the last Wait() that has come there
  std::atomic<int> written{0};           // by the last handler that counts
  EventLog log;                          // the codes by which handlers that tell ended
};

class AsyncStreamService final : public Service {
 public:
  // `leaf` is null for the leaf.
  AsyncStreamService(AsyncSeen* seen, Channel* leaf) : seen_(seen), leaf_(leaf) { seen->entered.Open(); }
  std::string_view FullName() const override { return "test.Streams"; }
  std::vector<MethodHandler> Handlers() override {
    return {
        Bidirectional("Chat", [](Context& ctx, AsyncBoth& stream) { return Chat(ctx, stream); }),
        Bidirectional("Wait", [this](Context& ctx, AsyncBoth& stream) { return Wait(ctx, stream); }),
        Bidirectional("Short", [this](Context& ctx, AsyncBoth& stream) { return Short(ctx, stream); }),
        Bidirectional("Never", [this](Context& ctx, AsyncBoth& stream) { return NeverRead(ctx, stream); }),
        Bidirectional("Relay", [this](Context& ctx, AsyncBoth& stream) { return Relay(ctx, stream); }),
        Bidirectional("Pump", [this](Context& ctx, AsyncBoth& stream) { return Pump(ctx, stream); }),
        Bidirectional("Leave", [this](Context& ctx, AsyncBoth& stream) { return Leave(ctx, stream); }),
        Bidirectional("Ask", [this](Context& ctx, AsyncBoth& stream) { return Ask(ctx, stream); }),
        internal::AsyncClientStreamingMethod<StringValue, StringValue>(
            "Upload",
            [](Context&, AsyncStreamReader<StringValue>& in, StringValue* out) { return Upload(in, out); }),
        internal::AsyncServerStreamingMethod<StringValue, StringValue>(
            "Watch", [this](Context&, const StringValue& in, AsyncStreamWriter<StringValue>& out) {
              return Watch(in.value(), out);
            })};
  }

 private:
  template <class F>
  static MethodHandler Bidirectional(const char* name, F f) {
    return internal::AsyncBidirectionalMethod<StringValue, StringValue>(name, f);
  }

  static Coroutine Chat(Context& ctx, AsyncBoth& stream) {
    ctx.AddInitialMetadata("x-head", "h");
    for (StringValue in; co_await stream.Read(&in);) {
      if (in.value() == "throw") throw std::runtime_error("thrown");
      if (in.value() == "fail") co_return absl::NotFoundError("failed");
      if (!co_await stream.Write(in)) break;
    }
    ctx.AddTrailingMetadata("x-trail", "t");
    co_return stream.status();
  }
  // Waits for one message.
  Coroutine Wait(Context& ctx, AsyncBoth& stream) {
    seen_->waits = &ctx;
    seen_->entered.Pass();
    StringValue in;
    const bool came = co_await stream.Read(&in);
    co_return seen_->End(came ? absl::OkStatus() : stream.status());
  }
  Coroutine Short(Context& ctx, AsyncBoth& stream) {
    seen_->entered.Pass();
    ctx.ShortenDeadline(Deadline::In(milliseconds(30)));
    return Wait(ctx, stream);
  }
  // Writes to a client that does not read, for a while if there is a shorter deadline.
  Coroutine NeverRead(Context& ctx, AsyncBoth& stream) {
    StringValue in;
    co_await stream.Read(&in);
    if (in.value() == "short") ctx.ShortenDeadline(Deadline::In(milliseconds(300)));
    seen_->entered.Pass();
    const StringValue part = Text(std::string(60'000, 'x'));
    while (co_await stream.Write(part)) ++seen_->written;
    co_return seen_->End(stream.status());
  }
  static Coroutine Upload(AsyncStreamReader<StringValue>& in, StringValue* out) {
    size_t bytes = 0;
    int count = 0;
    for (StringValue part; co_await in.Read(&part); ++count) bytes += part.value().size();
    out->set_value(Join(count, " messages, ", bytes, " bytes"));
    co_return in.status();
  }
  Coroutine Watch(const std::string& count, AsyncStreamWriter<StringValue>& out) {
    const int n = std::stoi(count);
    for (int i = 0; n < 0 || i < n; ++i) {
      const StringValue value = Text(n < 0 ? std::string(kEndlessBytes, 'e') : std::to_string(i));
      if (!co_await out.Write(value)) co_return seen_->End(out.status());
      ++seen_->written;
    }
    co_return absl::OkStatus();
  }
  // A message to the leaf for each that comes, and its answer back.
  Coroutine Relay(Context& ctx, AsyncBoth& stream) {
    StreamToLeaf leaf(internal::OpenAsyncStream(ctx, *leaf_, "/test.Streams/Chat"));
    for (StringValue value; co_await stream.Read(&value);) {
      if (!co_await leaf.Write(value) || !co_await leaf.Read(&value) || !co_await stream.Write(value)) break;
    }
    leaf.WritesDone();
    StringValue more;
    if (co_await leaf.Read(&more)) co_return absl::InternalError("more than the answers");
    co_return seen_->End(co_await leaf.Finish());
  }
  // All that the leaf sends goes to the client.
  Coroutine Pump(Context& ctx, AsyncBoth& stream) {
    AsyncClientReader<StringValue> leaf(
        internal::OpenAsyncStream(ctx, *leaf_, "/test.Streams/Watch", Text("-1")));
    for (StringValue value; co_await leaf.Read(&value);) {
      if (!co_await stream.Write(value)) break;
      ++seen_->written;
    }
    leaf.Cancel();
    co_return seen_->End(co_await leaf.Finish());
  }
  // Leaves a stream to the leaf in the middle.
  Coroutine Leave(Context& ctx, AsyncBoth& stream) {
    StringValue value;
    {
      StreamToLeaf leaf(internal::OpenAsyncStream(ctx, *leaf_, "/test.Streams/Wait"));
      co_await stream.Read(&value);
    }
    co_await stream.Write(value);
    co_return absl::OkStatus();
  }
  // Uploads to the leaf what a unary call and a stream say, and answers what came of it.
  Coroutine Ask(Context& ctx, AsyncBoth& stream) {
    StreamToLeaf chat(internal::OpenAsyncStream(ctx, *leaf_, "/test.Streams/Chat"));
    co_await chat.Write(Text("x"));
    const std::string head((co_await chat.InitialMetadata()).Find("x-head").value_or("none"));
    absl::Status status = co_await chat.Finish();
    const std::string trail(chat.metadata().trailing.Find("x-trail").value_or("none"));
    AsyncClientWriter<StringValue, StringValue> upload(
        internal::OpenAsyncStream(ctx, *leaf_, "/test.Streams/Upload"));
    for (int i = 0; i < 3; ++i) co_await upload.Write(Text("abc"));
    StringValue reply;
    status.Update(co_await upload.Finish(&reply));
    co_await stream.Write(Text(Join(head, " ", trail, " ", reply.value())));
    co_return status;
  }

  AsyncSeen* const seen_;
  Channel* const leaf_;
};

inline std::string AsyncModel(const testing::TestParamInfo<const char*>& info) {
  return std::string(info.param).substr(0, 3);
}

// A mid-tier under the model of the test, and a client of it.
class StreamMidTier : public testing::TestWithParam<const char*> {
 protected:
  using Stream = ClientStream<StringValue, StringValue>;

  void TearDown() override { ExpectNothingInUse(server_.get()); }
  static std::unique_ptr<Server> StartServer(const char* config, AsyncSeen* seen, Channel* leaf) {
    ServerOptions options;
    options.listen = {"127.0.0.1:0"};
    options.config = *Config::Parse(config);
    std::vector<std::unique_ptr<Service>> services;
    services.push_back(std::make_unique<AsyncStreamService>(seen, leaf));
    auto server = Server::Start(std::move(options), std::move(services));
    EXPECT_TRUE(server.ok()) << server.status();
    return *std::move(server);
  }
  void ServeWith(Channel* leaf) {
    server_ = StartServer(GetParam(), &seen_, leaf);
    channel_ = std::make_unique<Channel>(&front_, server_->addresses()[0]);
  }
  Stream Open(Context& ctx, const std::string& method) {
    return Stream(internal::OpenStream(ctx, *channel_, "/test.Streams/" + method));
  }
  // Messages and their answers, one after the other.
  static void Exchange(Stream& stream, int count) {
    for (int i = 0; i < count; ++i) {
      StringValue reply;
      ASSERT_TRUE(stream.Write(Text(std::to_string(i))) && stream.Read(&reply)) << stream.Finish();
      ASSERT_EQ(reply.value(), std::to_string(i));
    }
  }

  void ExpectRelays();
  void ExpectUploads();
  void ExpectLeavesAreCancelled();
  void ExpectBackpressure(int most_bytes);
  // `method` leads to a Wait(), which tells `seen`.
  void ExpectCancelEndsAWait(const std::string& method, AsyncSeen& seen);

  AsyncSeen leaf_seen_;
  AsyncSeen seen_;
  std::unique_ptr<Server> server_;
  Client front_;
  std::unique_ptr<Channel> channel_;
};

inline void StreamMidTier::ExpectRelays() {
  Context ctx(kMaxTestWait);
  std::vector<Stream> streams;
  for (int i = 0; i < 4; ++i) streams.push_back(Open(ctx, "Relay"));
  for (int round = 0; round < 25; ++round) {
    for (Stream& stream : streams) Exchange(stream, 2);
  }
  for (Stream& stream : streams) {
    const absl::Status status = stream.Finish();
    EXPECT_TRUE(status.ok()) << status;
  }
}

inline void StreamMidTier::ExpectUploads() {
  Context ctx(kMaxTestWait);
  Stream stream = Open(ctx, "Ask");
  StringValue reply;
  ASSERT_TRUE(stream.Read(&reply)) << stream.Finish();
  EXPECT_EQ(reply.value(), "h t 3 messages, 9 bytes");
  const absl::Status status = stream.Finish();
  EXPECT_TRUE(status.ok()) << status;
}

inline void StreamMidTier::ExpectLeavesAreCancelled() {
  Context ctx(kMaxTestWait);
  Stream stream = Open(ctx, "Leave");
  ASSERT_TRUE(leaf_seen_.entered.AwaitArrivals(1));
  Exchange(stream, 1);
  EXPECT_TRUE(stream.Finish().ok());
  EXPECT_THAT(leaf_seen_.log.Await(1), testing::ElementsAre("CANCELLED"));
}

inline void StreamMidTier::ExpectBackpressure(int most_bytes) {
  {
    Context ctx(kMaxTestWait);
    Stream stream = Open(ctx, "Pump");
    StringValue reply;
    ASSERT_TRUE(stream.Read(&reply)) << stream.Finish();
    // Another stream keeps the connection driven until the leaf writes no more.
    Stream other = Open(ctx, "Chat");
    int before = -1;
    int quiet = 0;
    while (quiet < 200 && !HasFailure()) {
      Exchange(other, 1);
      const int now = leaf_seen_.written;
      quiet = now == before ? quiet + 1 : 0;
      before = now;
    }
    EXPECT_LT(before * kEndlessBytes, most_bytes);
    // It goes on when the client does.
    for (int i = 0; i < 1'000; ++i) ASSERT_TRUE(stream.Read(&reply)) << stream.Finish();
    EXPECT_TRUE(other.Finish().ok());
  }
  EXPECT_THAT(leaf_seen_.log.Await(1), testing::ElementsAre("CANCELLED"));
  EXPECT_THAT(seen_.log.Await(1), testing::ElementsAre("CANCELLED"));
}

inline void StreamMidTier::ExpectCancelEndsAWait(const std::string& method, AsyncSeen& seen) {
  Context ctx(2 * kMaxTestWait);  // a deadline ends the wait, too
  Stream stream = Open(ctx, method);
  ASSERT_TRUE(seen.entered.AwaitArrivals(1));
  Stream other = Open(ctx, "Chat");
  Exchange(other, 20);  // meanwhile it begins to wait
  seen.waits.load()->Cancel();
  EXPECT_THAT(seen.log.Await(1), testing::ElementsAre("CANCELLED"));
}

}  // namespace curtail
