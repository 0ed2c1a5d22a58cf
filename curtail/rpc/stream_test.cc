// SPDX-License-Identifier: Apache-2.0
//
// Streams of all kinds under all kinds of models: order, backpressure, ends.
#include "curtail/rpc/stream.h"

#include <gmock/gmock.h>

#include <thread>

#include "curtail/rpc/rpc_testing.h"

namespace curtail {
namespace {

using internal::BidirectionalMethod;
using internal::ClientStreamingMethod;
using internal::OpenStream;
using internal::ServerStreamingMethod;
using testing::HasSubstr;
using Both = ServerStream<StringValue, StringValue>;

// Messages that are written without a wait.
constexpr int kBurst = 10;

// The handlers tell what they have seen.
struct Seen {
  Gate stalled;
  Gate turns[3];
  Gate ended;
  std::atomic<bool> stop{false};
  std::atomic<int> written{0};
  std::mutex mu;
  absl::Status last;  // of the handler that ended last

  absl::Status End(absl::Status status) {
    {
      std::lock_guard lock(mu);
      last = status;
    }
    ended.Open();
    ended.Pass();
    return status;
  }
  absl::Status Last() {
    std::lock_guard lock(mu);
    return last;
  }
};

class StreamService final : public Service {
 public:
  StreamService(Seen* seen, Channel* leaf) : seen_(seen), leaf_(leaf) {}
  std::string_view FullName() const override { return "test.Streams"; }
  std::vector<MethodHandler> Handlers() override {
    return {Bidirectional("Chat", [](Context&, Both& stream) { return Echo(stream); }),
            Bidirectional("Meta", [](Context& ctx, Both& stream) { return Meta(ctx, stream); }),
            Bidirectional("Stall", [this](Context&, Both& stream) { return Stall(stream); }),
            Bidirectional("Push", [this](Context&, Both& stream) { return Push(stream); }),
            Bidirectional("Burst", [this](Context&, Both& stream) { return Burst(stream); }),
            Bidirectional("Count", [this](Context&, Both& stream) { return Count(stream); }),
            Bidirectional("Forward", [this](Context& ctx, Both&) { return Forward(ctx); }),
            Bidirectional("Endless", [this](Context&, Both& stream) { return Endless(stream); }),
            ServerStreamingMethod<StringValue, StringValue>(
                "Stop",
                [this](Context&, const StringValue&, StreamWriter<StringValue>&) {
                  seen_->stop = true;
                  return absl::OkStatus();
                }),
            Bidirectional("Wait", [this](Context&, Both& stream) { return Wait(stream); }),
            Bidirectional("Fail", [](Context&, Both& stream) { return Fail(stream); }),
            Bidirectional("Relay", [this](Context& ctx, Both& stream) { return Relay(ctx, stream); }),
            ClientStreamingMethod<StringValue, StringValue>(
                "Upload",
                [](Context&, StreamReader<StringValue>& in, StringValue* out) {
                  size_t bytes = 0;
                  int count = 0;
                  for (StringValue part; in.Read(&part); ++count) bytes += part.value().size();
                  out->set_value(Join(count, " messages, ", bytes, " bytes"));
                  return in.status();
                }),
            ServerStreamingMethod<StringValue, StringValue>(
                "Watch", [this](Context&, const StringValue& in, StreamWriter<StringValue>& out) {
                  return Watch(in.value(), out);
                })};
  }

 private:
  template <class F>
  static MethodHandler Bidirectional(const char* name, F f) {
    return BidirectionalMethod<StringValue, StringValue>(
        name, [f](Context& ctx, Both& stream) -> absl::Status { return f(ctx, stream); });
  }

  static absl::Status Echo(Both& stream) {
    return EachMessage(stream, [](const StringValue& in, StringValue* out) {
      if (in.value() == "throw") throw std::runtime_error("thrown");
      out->set_value(in.value());
      return absl::OkStatus();
    });
  }
  static absl::Status Meta(Context& ctx, Both& stream) {
    ctx.AddInitialMetadata("x-head", "h");
    StringValue in;
    while (stream.Read(&in)) stream.Write(in);
    ctx.AddTrailingMetadata("x-trail", "t");
    return absl::OkStatus();
  }
  absl::Status Stall(Both& stream) {
    seen_->stalled.Pass();
    StringValue in;
    while (stream.Read(&in)) ++seen_->written;
    return seen_->End(stream.status());
  }
  // Holds its thread up after each message, without a wait that the model knows of.
  absl::Status Push(Both& stream) {
    for (int i = 0; i < 3; ++i) {
      stream.Write(Text("now"));
      if (!seen_->turns[i].Pass()) return absl::DeadlineExceededError("the message did not arrive");
    }
    return absl::OkStatus();
  }
  // As Push(), after a burst.
  absl::Status Burst(Both& stream) {
    for (int i = 0; i < kBurst; ++i) stream.Write(Text("now"));
    return Blocked();
  }
  absl::Status Blocked() {
    if (seen_->turns[0].Pass()) return absl::OkStatus();
    return absl::DeadlineExceededError("not all messages arrived");
  }
  // Says when the burst has come.
  absl::Status Count(Both& stream) {
    int count = 0;
    for (StringValue in; stream.Read(&in);) {
      if (++count == kBurst) seen_->turns[0].Open();
    }
    return absl::OkStatus();
  }
  // The burst goes to the leaf, once there is a connection.
  absl::Status Forward(Context& ctx) {
    ClientStream<StringValue, StringValue> first(OpenStream(ctx, *leaf_, "/test.Streams/Chat"));
    StringValue answer;
    if (!first.Write(Text("x")) || !first.Read(&answer)) return first.Finish();
    ClientStream<StringValue, StringValue> leaf(OpenStream(ctx, *leaf_, "/test.Streams/Count"));
    for (int i = 0; i < kBurst; ++i) leaf.Write(Text("now"));
    absl::Status status = Blocked();
    return status.ok() ? leaf.Finish() : status;
  }
  absl::Status Endless(Both& stream) {
    while (!seen_->stop && stream.Write(Text("on"))) continue;
    return stream.status();
  }
  // Notes how its only read ended.
  absl::Status Wait(Both& stream) {
    seen_->stalled.Open();
    seen_->stalled.Pass();
    StringValue in;
    return seen_->End(stream.Read(&in) ? absl::OkStatus() : stream.status());
  }
  static absl::Status Fail(Both& stream) {
    StringValue in;
    stream.Read(&in);
    stream.Write(in);
    return absl::NotFoundError("after one message");
  }
  absl::Status Watch(const std::string& count, StreamWriter<StringValue>& out) {
    const int n = std::stoi(count);
    StringValue value = Text(std::string(n < 0 ? 60'000 : 0, 'x'));
    for (int i = 0; n < 0 || i < n; ++i) {
      if (n > 0) value.set_value(std::to_string(i));
      if (!out.Write(value)) return seen_->End(out.status());
      ++seen_->written;
    }
    return absl::OkStatus();
  }
  absl::Status Relay(Context& ctx, Both& stream) {
    ClientStream<StringValue, StringValue> leaf(OpenStream(ctx, *leaf_, "/test.Streams/Chat"));
    StringValue value;
    while (stream.Read(&value)) {
      if (!leaf.Write(value) || !leaf.Read(&value) || !stream.Write(value)) break;
    }
    return leaf.Finish();
  }

  Seen* const seen_;
  Channel* const leaf_;
};

std::string ModelOf(const testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

class StreamTest : public testing::TestWithParam<const char*> {
 protected:
  using Stream = ClientStream<StringValue, StringValue>;

  std::unique_ptr<Server> StartServer(Channel* leaf = nullptr, int max_threads = 64) {
    ServerOptions options;
    options.listen = {"127.0.0.1:0"};
    options.config = *Config::Parse(GetParam());
    options.default_timeout = milliseconds(1);  // not for streams
    options.max_threads = max_threads;
    std::vector<std::unique_ptr<Service>> services;
    services.push_back(std::make_unique<StreamService>(&seen_, leaf));
    auto server = Server::Start(std::move(options), std::move(services));
    EXPECT_TRUE(server.ok()) << server.status();
    return *std::move(server);
  }
  std::string Target() const { return server_->addresses()[0]; }
  Stream Open(Context& ctx, const std::string& method) {
    return Stream(OpenStream(ctx, channel_, "/test.Streams/" + method));
  }
  absl::Status Upload(Context& ctx, int count, const std::string& part, std::string* answer) {
    ClientWriter<StringValue, StringValue> call(OpenStream(ctx, channel_, "/test.Streams/Upload"));
    for (int i = 0; i < count; ++i) call.Write(Text(part));
    StringValue reply;
    absl::Status status = call.Finish(&reply);
    *answer = reply.value();
    return status;
  }

  Seen seen_;
  Client client_;
  const std::unique_ptr<Server> server_ = StartServer();
  Channel channel_{&client_, Target()};
};
INSTANTIATE_TEST_SUITE_P(Models, StreamTest,
                         testing::Values("auto", "SIB1", "SIP1", "SDB1-2", "FIB1", "FDB1-2", "FIP1", "AIB1-1",
                                         "ADB1-2-2"),
                         ModelOf);

TEST_P(StreamTest, AnswersEachMessageAsItComes) {
  Context ctx(kMaxTestWait);
  Stream stream = Open(ctx, "Chat");
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(stream.Write(Text(std::to_string(i))));
    StringValue reply;
    ASSERT_TRUE(stream.Read(&reply)) << stream.Finish();
    EXPECT_EQ(reply.value(), std::to_string(i));
  }
  stream.WritesDone();
  StringValue reply;
  EXPECT_FALSE(stream.Read(&reply));
  EXPECT_FALSE(stream.Write(reply));
  const absl::Status status = stream.Finish();
  EXPECT_TRUE(status.ok()) << status;
}

TEST_P(StreamTest, AMessageLeavesWhileItsHandlerGoesOn) {
  Context ctx(kMaxTestWait);
  Stream stream = Open(ctx, "Push");
  for (Gate& turn : seen_.turns) {
    StringValue reply;
    EXPECT_TRUE(stream.Read(&reply));
    turn.Open();
  }
  const absl::Status status = stream.Finish();
  EXPECT_TRUE(status.ok()) << status;
}

TEST_P(StreamTest, ABurstLeavesWhileItsHandlerHoldsItsThread) {
  Context ctx(kMaxTestWait);
  Stream stream = Open(ctx, "Burst");
  for (int i = 0; i < kBurst; ++i) {
    StringValue reply;
    EXPECT_TRUE(stream.Read(&reply)) << i;
  }
  seen_.turns[0].Open();
  const absl::Status status = stream.Finish();
  EXPECT_TRUE(status.ok()) << status;
}

TEST_P(StreamTest, ABurstOfAClientLeavesWhileItsThreadIsBusy) {
  Context ctx(kMaxTestWait);
  Stream stream = Open(ctx, "Count");
  for (int i = 0; i < kBurst; ++i) stream.Write(Text("now"));
  EXPECT_TRUE(seen_.turns[0].Pass());
  const absl::Status status = stream.Finish();
  EXPECT_TRUE(status.ok()) << status;
}

TEST_P(StreamTest, ABurstOfAMidTierLeavesWhileItsHandlerHoldsItsThread) {
  Client client;
  Channel leaf(&client, Target());
  const std::unique_ptr<Server> mid = StartServer(&leaf);
  Channel channel(&client_, mid->addresses()[0]);
  Context ctx(kMaxTestWait);
  Stream stream(OpenStream(ctx, channel, "/test.Streams/Forward"));
  const absl::Status status = stream.Finish();
  EXPECT_TRUE(status.ok()) << status;
}

TEST_P(StreamTest, AHandlerThatWritesWithoutEndKeepsNoRequestFromItsThread) {
  Context ctx(kMaxTestWait);
  Stream stream = Open(ctx, "Endless");
  StringValue reply;
  ASSERT_TRUE(stream.Read(&reply)) << stream.Finish();
  std::thread other([&] {
    Client client;
    Channel channel(&client, Target());
    Context other_ctx(kMaxTestWait);
    ClientReader<StringValue> call(OpenStream(other_ctx, channel, "/test.Streams/Stop", Text("")));
    const absl::Status status = call.Finish();
    EXPECT_TRUE(status.ok()) << status;
  });
  while (stream.Read(&reply)) continue;
  other.join();
  const absl::Status status = stream.Finish();
  EXPECT_TRUE(status.ok()) << status;
}

TEST_P(StreamTest, KeepsTheOrderOfManyMessagesBothWays) {
  constexpr int kCount = 20'000;
  Context ctx(kMaxTestWait);
  Stream stream = Open(ctx, "Chat");
  std::thread writer([&] {
    for (int i = 0; i < kCount; ++i) {
      if (!stream.Write(Text(std::to_string(i)))) break;
    }
    stream.WritesDone();
  });
  int next = 0;
  for (StringValue reply; stream.Read(&reply); ++next) {
    if (reply.value() != std::to_string(next)) break;
  }
  writer.join();
  EXPECT_EQ(next, kCount);
  const absl::Status status = stream.Finish();
  EXPECT_TRUE(status.ok()) << status;
}

TEST_P(StreamTest, TakesWhatTheClientUploads) {
  Context ctx(kMaxTestWait);
  std::string answer;
  for (const auto& [count, size] : {std::pair{0, 0}, {10'000, 10}, {3, 5 << 20}}) {
    const absl::Status status = Upload(ctx, count, std::string(static_cast<size_t>(size), 'x'), &answer);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(answer, Join(count, " messages, ", int64_t{count} * size, " bytes"));
  }
}

TEST_P(StreamTest, SendsWhatTheClientReads) {
  Context ctx(kMaxTestWait);
  for (const int count : {0, 1, 20'000}) {
    ClientReader<StringValue> call(
        OpenStream(ctx, channel_, "/test.Streams/Watch", Text(std::to_string(count))));
    int next = 0;
    for (StringValue reply; call.Read(&reply) && (count == 0 || reply.value() == std::to_string(next));)
      ++next;
    EXPECT_EQ(next, count);
    const absl::Status status = call.Finish();
    EXPECT_TRUE(status.ok()) << status;
  }
}

// The peer's window, our own queues, and a message: no more is taken than that.
constexpr int kMostTaken = (4 << 20) + (1 << 20);

TEST_P(StreamTest, AWriterWaitsForAHandlerThatDoesNotRead) {
  Context ctx(milliseconds(300));
  Stream stream = Open(ctx, "Stall");
  const StringValue part = Text(std::string(1000, 'x'));
  int written = 0;
  while (written < 100'000 && stream.Write(part)) ++written;
  EXPECT_LT(written * 1000, kMostTaken);
  const absl::Status status = stream.Finish();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  seen_.stalled.Open();
  ASSERT_TRUE(seen_.ended.AwaitArrivals(1));
  EXPECT_FALSE(seen_.Last().ok());
}

TEST_P(StreamTest, AHandlerGoesOnWhenItReadsAgain) {
  Context ctx(kMaxTestWait);
  Stream stream = Open(ctx, "Stall");
  std::thread opener([&] {
    EXPECT_TRUE(seen_.stalled.AwaitArrivals(1));
    seen_.stalled.Open();
  });
  const StringValue part = Text(std::string(1000, 'x'));
  for (int i = 0; i < 20'000; ++i) ASSERT_TRUE(stream.Write(part)) << stream.Finish();
  const absl::Status status = stream.Finish();
  opener.join();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(seen_.written, 20'000);
}

TEST_P(StreamTest, AHandlerWaitsForAClientThatDoesNotRead) {
  {
    Context ctx(milliseconds(300));
    ClientReader<StringValue> call(OpenStream(ctx, channel_, "/test.Streams/Watch", Text("-1")));
    // Another stream keeps the connection driven, and works.
    Stream other = Open(ctx, "Chat");
    StringValue reply;
    while (other.Write(Text("x")) && other.Read(&reply)) {
    }
    const absl::Status status = other.Finish();
    EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  }
  ASSERT_TRUE(seen_.ended.AwaitArrivals(1));
  EXPECT_FALSE(seen_.Last().ok()) << "CANCELLED, or DEADLINE_EXCEEDED if that was noticed first";
  EXPECT_GT(seen_.written, 0);
  EXPECT_LT(seen_.written * 60'000, kMostTaken + (16 << 20)) << "and the buffers of the socket";
}

TEST_P(StreamTest, AClientThatGoesAwayEndsTheHandlersWait) {
  Context ctx(kMaxTestWait);
  {
    Stream stream = Open(ctx, "Wait");
    EXPECT_TRUE(seen_.stalled.AwaitArrivals(1));
  }
  ASSERT_TRUE(seen_.ended.AwaitArrivals(1));
  EXPECT_TRUE(absl::IsCancelled(seen_.Last())) << seen_.Last();
}

TEST_P(StreamTest, CancellingTheContextEndsTheClientsWait) {
  Context ctx(kMaxTestWait);
  Stream stream = Open(ctx, "Wait");
  std::thread other([&] {
    EXPECT_TRUE(seen_.stalled.AwaitArrivals(1));
    ctx.Cancel();
  });
  StringValue reply;
  EXPECT_FALSE(stream.Read(&reply));
  other.join();
  const absl::Status status = stream.Finish();
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  ASSERT_TRUE(seen_.ended.AwaitArrivals(1));
  EXPECT_TRUE(absl::IsCancelled(seen_.Last())) << seen_.Last();
}

TEST_P(StreamTest, TheDeadlineEndsTheWaitsOfBothSides) {
  Context ctx(milliseconds(50));
  Stream stream = Open(ctx, "Wait");
  StringValue reply;
  EXPECT_FALSE(stream.Read(&reply));
  const absl::Status status = stream.Finish();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  // Unless the call never reached the handler.
  if (seen_.stalled.arrived() == 0) return;
  ASSERT_TRUE(seen_.ended.AwaitArrivals(1));
  EXPECT_FALSE(seen_.Last().ok());
}

TEST_P(StreamTest, OutlivesTheServersDefaultTimeout) {
  Context ctx(kMaxTestWait);
  Stream stream = Open(ctx, "Chat");
  for (const TimePoint end = Now() + milliseconds(30); Now() < end;) {
    StringValue reply;
    ASSERT_TRUE(stream.Write(Text("x")) && stream.Read(&reply)) << stream.Finish();
  }
  const absl::Status status = stream.Finish();
  EXPECT_TRUE(status.ok()) << status;
}

TEST_P(StreamTest, AnErrorComesBehindTheMessages) {
  Context ctx(kMaxTestWait);
  Stream stream = Open(ctx, "Fail");
  stream.Write(Text("x"));
  StringValue reply;
  EXPECT_TRUE(stream.Read(&reply));
  EXPECT_FALSE(stream.Read(&reply));
  EXPECT_EQ(stream.Finish(), absl::NotFoundError("after one message"));
}

TEST_P(StreamTest, AnExceptionEndsTheCall) {
  Context ctx(kMaxTestWait);
  Stream stream = Open(ctx, "Chat");
  stream.Write(Text("throw"));
  const absl::Status status = stream.Finish();
  EXPECT_TRUE(absl::IsInternal(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("thrown"));
}

TEST_P(StreamTest, BytesThatAreNoMessageEndTheCall) {
  Context ctx(kMaxTestWait);
  const auto call = OpenStream(ctx, channel_, "/test.Streams/Upload");
  call->Write("\xff");
  const absl::Status status = call->Finish();
  EXPECT_TRUE(absl::IsInternal(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("no valid google.protobuf.StringValue"));
}

TEST_P(StreamTest, CallsWithOneRequestCarryOne) {
  Context ctx(kMaxTestWait);
  for (const int count : {0, 2}) {
    const auto call = OpenStream(ctx, channel_, "/test.Streams/Watch");
    for (int i = 0; i < count; ++i) call->Write(Text("0").SerializeAsString());
    const absl::Status status = call->Finish();
    EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
  }
}

TEST_P(StreamTest, CarriesMetadataBothWays) {
  Context ctx(kMaxTestWait);
  for (const bool message : {false, true}) {
    Stream stream = Open(ctx, "Meta");
    StringValue reply;
    if (message) {
      EXPECT_TRUE(stream.Write(Text("x")) && stream.Read(&reply));
    }
    EXPECT_TRUE(stream.Finish().ok());
    EXPECT_EQ(stream.metadata().initial.Find("x-head"), "h");
    EXPECT_EQ(stream.metadata().trailing.Find("x-trail"), "t");
  }
}

// The handler ends while its messages, and the metadata ahead of them, are still on their way.
TEST_P(StreamTest, TheEndTakesNoMetadataFromTheMessagesAhead) {
  Context ctx(kMaxTestWait);
  for (int round = 0; round < 50; ++round) {
    Stream stream = Open(ctx, "Meta");
    for (int i = 0; i <= round % 3; ++i) EXPECT_TRUE(stream.Write(Text("x")));
    EXPECT_TRUE(stream.Finish().ok());
    EXPECT_EQ(stream.metadata().initial.Find("x-head"), "h") << round;
    EXPECT_EQ(stream.metadata().trailing.Find("x-trail"), "t") << round;
  }
}

TEST_P(StreamTest, ManyAtATimeOnOneConnection) {
  Context ctx(kMaxTestWait);
  std::vector<Stream> streams;
  for (int i = 0; i < 30; ++i) streams.push_back(Open(ctx, "Chat"));
  for (int round = 0; round < 10; ++round) {
    for (Stream& stream : streams) ASSERT_TRUE(stream.Write(Text(std::to_string(round))));
    for (Stream& stream : streams) {
      StringValue reply;
      ASSERT_TRUE(stream.Read(&reply)) << stream.Finish();
      EXPECT_EQ(reply.value(), std::to_string(round));
    }
  }
  for (Stream& stream : streams) EXPECT_TRUE(stream.Finish().ok());
}

TEST_P(StreamTest, AMidTierRelays) {
  Client client;
  Channel leaf(&client, Target());
  const std::unique_ptr<Server> mid = StartServer(&leaf);
  Channel channel(&client_, mid->addresses()[0]);
  Context ctx(kMaxTestWait);
  std::vector<Stream> streams;
  for (int i = 0; i < 4; ++i) streams.emplace_back(OpenStream(ctx, channel, "/test.Streams/Relay"));
  for (int round = 0; round < 100; ++round) {
    for (Stream& stream : streams) {
      StringValue reply;
      ASSERT_TRUE(stream.Write(Text(std::to_string(round))) && stream.Read(&reply)) << stream.Finish();
      EXPECT_EQ(reply.value(), std::to_string(round));
    }
  }
  for (Stream& stream : streams) {
    const absl::Status status = stream.Finish();
    EXPECT_TRUE(status.ok()) << status;
  }
}

TEST_P(StreamTest, AServerThatStopsEndsTheCall) {
  Context ctx(kMaxTestWait);
  Client client;
  std::unique_ptr<Server> server = StartServer();
  Channel channel(&client, server->addresses()[0]);
  Stream stream(OpenStream(ctx, channel, "/test.Streams/Wait"));
  ASSERT_TRUE(seen_.stalled.AwaitArrivals(1));
  server->Drain(Deadline::In(milliseconds(1))).IgnoreError();
  StringValue reply;
  EXPECT_FALSE(stream.Read(&reply));
  EXPECT_FALSE(stream.Finish().ok());
}

TEST_P(StreamTest, WatchersOfItsHealthHoldNoServerUp) {
  const std::string serving("\x08\x01"), not_serving("\x08\x02"), unknown("\x08\x03");
  Context ctx(kMaxTestWait);
  Client client;
  // Neither the threads nor the fibers that there are suffice for as many streams.
  std::unique_ptr<Server> server = StartServer(nullptr, 6);
  Channel channel(&client, server->addresses()[0]);
  std::vector<std::unique_ptr<internal::ClientStreamCall>> watchers;
  for (int i = 0; i < 1'100; ++i) {
    watchers.push_back(OpenStream(ctx, channel, "/grpc.health.v1.Health/Watch", Text(i > 0 ? "" : "none")));
  }
  std::string state;
  for (const auto& watcher : watchers) {
    ASSERT_TRUE(watcher->Read(&state)) << watcher->Finish();
    EXPECT_EQ(state, watcher == watchers[0] ? unknown : serving);
  }
  ClientReader<StringValue> other(OpenStream(ctx, channel, "/test.Streams/Watch", Text("1")));
  EXPECT_TRUE(other.Finish().ok()) << "watchers take no place";

  std::thread drainer([&] {
    const absl::Status drained = server->Drain(Deadline::In(kMaxTestWait));
    EXPECT_TRUE(drained.ok()) << drained;
  });
  for (const auto& watcher : watchers) {
    EXPECT_TRUE(watcher->Read(&state));
    EXPECT_EQ(state, watcher == watchers[0] ? unknown : not_serving);
    EXPECT_FALSE(watcher->Read(&state));
    const absl::Status status = watcher->Finish();
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  }
  drainer.join();
}

TEST_P(StreamTest, AServerThatIsNotThereIsUnavailable) {
  Context ctx(kMaxTestWait);
  Channel nowhere(&client_, "127.0.0.1:1");
  Stream stream(OpenStream(ctx, nowhere, "/test.Streams/Chat"));
  stream.Write(Text("x"));
  StringValue reply;
  EXPECT_FALSE(stream.Read(&reply));
  const absl::Status status = stream.Finish();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
}

class StreamThreadTest : public StreamTest {};
INSTANTIATE_TEST_SUITE_P(Models, StreamThreadTest, testing::Values("SIB1", "SDB1-2", "ADB1-2-2"), ModelOf);

TEST_P(StreamThreadTest, WithoutAFreeThreadAStreamIsRefused) {
  const std::unique_ptr<Server> server = StartServer(nullptr, 1);
  Channel channel(&client_, server->addresses()[0]);
  Context ctx(kMaxTestWait);
  Stream stream(OpenStream(ctx, channel, "/test.Streams/Chat"));
  const absl::Status status = stream.Finish();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("max_threads"));
}

}  // namespace
}  // namespace curtail
