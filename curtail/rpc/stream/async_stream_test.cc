// SPDX-License-Identifier: Apache-2.0
//
// Streams of coroutine handlers under all twelve models: a leaf, and a mid-tier whose handlers have streams of their
// own to it.
#include <gmock/gmock.h>

#include <thread>

#include "curtail/rpc/stream/async_stream_testing.h"

namespace curtail {
namespace {

using internal::OpenStream;
using testing::HasSubstr;

class AsyncStreamTest : public StreamMidTier {
 protected:
  AsyncStreamTest() { ServeWith(&leaf_channel_); }
  // Before what its handlers use.
  ~AsyncStreamTest() override { server_.reset(); }

  const std::unique_ptr<Server> leaf_ = StartServer("FIB1", &leaf_seen_, nullptr);
  Client client_;
  Channel leaf_channel_{&client_, leaf_->addresses()[0]};
};
INSTANTIATE_TEST_SUITE_P(Models, AsyncStreamTest,
                         testing::Values("SIB1", "SIP1", "SDB1-2", "SDP1-2", "FIB1", "FIP1", "FDB1-2",
                                         "FDP1-2", "AIB1-1", "AIP1-1", "ADB1-2-2", "ADP1-2-2"),
                         AsyncModel);

TEST_P(AsyncStreamTest, AnswersEachMessageAsItComes) {
  Context ctx(kMaxTestWait);
  Stream stream = Open(ctx, "Chat");
  Exchange(stream, 100);
  stream.WritesDone();
  StringValue reply;
  EXPECT_FALSE(stream.Read(&reply)) << "the half that the client closed ends the other";
  const absl::Status status = stream.Finish();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(stream.metadata().initial.Find("x-head"), "h");
  EXPECT_EQ(stream.metadata().trailing.Find("x-trail"), "t");
}

TEST_P(AsyncStreamTest, KeepsTheOrderOfManyMessagesBothWays) {
  constexpr int kCount = 10'000;
  Context ctx(kMaxTestWait);
  Stream stream = Open(ctx, "Chat");
  std::thread writer([&] {
    for (int i = 0; i < kCount && stream.Write(Text(std::to_string(i))); ++i) continue;
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

TEST_P(AsyncStreamTest, TakesUploadsAndSendsWhatIsWatched) {
  Context ctx(kMaxTestWait);
  for (const auto& [count, size] : {std::pair{0, 0}, {2'000, 10}, {3, 2 << 20}}) {
    ClientWriter<StringValue, StringValue> call(OpenStream(ctx, *channel_, "/test.Streams/Upload"));
    for (int i = 0; i < count; ++i) call.Write(Text(std::string(static_cast<size_t>(size), 'x')));
    StringValue reply;
    const absl::Status status = call.Finish(&reply);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(reply.value(), Join(count, " messages, ", int64_t{count} * size, " bytes"));
  }
  for (const int count : {0, 1, 5'000}) {
    ClientReader<StringValue> call(
        OpenStream(ctx, *channel_, "/test.Streams/Watch", Text(std::to_string(count))));
    int next = 0;
    for (StringValue reply; call.Read(&reply) && reply.value() == std::to_string(next);) ++next;
    EXPECT_EQ(next, count);
    const absl::Status status = call.Finish();
    EXPECT_TRUE(status.ok()) << status;
  }
}

TEST_P(AsyncStreamTest, CallsWithOneRequestCarryOne) {
  Context ctx(kMaxTestWait);
  for (const int count : {0, 2}) {
    const auto call = OpenStream(ctx, *channel_, "/test.Streams/Watch");
    for (int i = 0; i < count; ++i) call->Write(Text("0").SerializeAsString());
    const absl::Status status = call->Finish();
    EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
  }
}

TEST_P(AsyncStreamTest, ErrorsExceptionsAndBadBytesEndTheCall) {
  Context ctx(kMaxTestWait);
  Stream fails = Open(ctx, "Chat");
  Exchange(fails, 1);
  fails.Write(Text("fail"));
  EXPECT_EQ(fails.Finish(), absl::NotFoundError("failed"));
  Stream throws = Open(ctx, "Chat");
  throws.Write(Text("throw"));
  const absl::Status thrown = throws.Finish();
  EXPECT_TRUE(absl::IsInternal(thrown)) << thrown;
  EXPECT_THAT(std::string(thrown.message()), HasSubstr("thrown"));
  const auto call = OpenStream(ctx, *channel_, "/test.Streams/Upload");
  call->Write("\xff");
  const absl::Status status = call->Finish();
  EXPECT_THAT(std::string(status.message()), HasSubstr("not a valid google.protobuf.StringValue"));
}

TEST_P(AsyncStreamTest, AMidTierRelays) { ExpectRelays(); }

TEST_P(AsyncStreamTest, AMidTierUploadsAndReadsWhatComesWithTheAnswer) { ExpectUploads(); }

TEST_P(AsyncStreamTest, AStreamThatIsLeftIsCancelled) { ExpectLeavesAreCancelled(); }

// Windows, queues and sockets take some, on the way from the leaf over the mid-tier.
TEST_P(AsyncStreamTest, AClientThatStopsReadingStopsTheLeaf) { ExpectBackpressure(64 << 20); }

TEST_P(AsyncStreamTest, CancellationEndsAReadAndAWrite) {
  for (const std::string method : {"Wait", "Never"}) {
    const int before = seen_.entered.arrived();
    Context ctx(kMaxTestWait);
    Stream stream = Open(ctx, method);
    if (method == "Never") {
      ASSERT_TRUE(stream.Write(Text("go")));
    }
    ASSERT_TRUE(seen_.entered.AwaitArrivals(before + 1));
    ctx.Cancel();
    const absl::Status status = stream.Finish();
    EXPECT_TRUE(absl::IsCancelled(status)) << status;
  }
  EXPECT_THAT(seen_.log.Await(2), testing::ElementsAre("CANCELLED", "CANCELLED"));
}

TEST_P(AsyncStreamTest, AHandlersContextCancelledByAnotherThreadEndsItsWait) {
  ExpectCancelEndsAWait("Wait", seen_);
}

TEST_P(AsyncStreamTest, CancellationReachesTheLeaf) {
  Context ctx(kMaxTestWait);
  Stream stream = Open(ctx, "Relay");
  Exchange(stream, 1);
  stream.Cancel();
  EXPECT_TRUE(absl::IsCancelled(stream.Finish()));
  EXPECT_THAT(seen_.log.Await(1), testing::ElementsAre("CANCELLED"));
}

TEST_P(AsyncStreamTest, TheHandlersDeadlineEndsAReadAndAWrite) {
  Context ctx(kMaxTestWait);
  Stream reads = Open(ctx, "Short");
  const absl::Status read = reads.Finish();
  // Its own deadline, unless the client's end of messages came first.
  EXPECT_TRUE(read.ok() || absl::IsDeadlineExceeded(read)) << read;
  Stream waits = Open(ctx, "Short");
  StringValue reply;
  EXPECT_FALSE(waits.Read(&reply));
  EXPECT_TRUE(absl::IsDeadlineExceeded(waits.Finish()));
  Stream writes = Open(ctx, "Never");
  writes.Write(Text("short"));
  Stream other = Open(ctx, "Chat");  // keeps the connection driven
  while (seen_.log.Await(0).size() < 3 && !HasFailure()) Exchange(other, 1);
  EXPECT_EQ(seen_.log.Await(3).back(), "DEADLINE_EXCEEDED");
  EXPECT_TRUE(other.Finish().ok());
}

TEST_P(AsyncStreamTest, TheClientsDeadlineReachesMidTierAndLeaf) {
  Context ctx(milliseconds(200));
  Stream stream = Open(ctx, "Relay");
  StringValue reply;
  while (stream.Write(Text("x")) && stream.Read(&reply)) continue;
  const absl::Status status = stream.Finish();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  const std::vector<std::string> ended = seen_.log.Await(1);
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_THAT(ended[0], testing::AnyOf("DEADLINE_EXCEEDED", "CANCELLED"));
}

TEST_P(AsyncStreamTest, AServerThatStopsEndsTheWaits) {
  Context ctx(kMaxTestWait);
  AsyncSeen seen;
  std::unique_ptr<Server> server = StartServer(GetParam(), &seen, &leaf_channel_);
  Client client;
  Channel channel(&client, server->addresses()[0]);
  Stream waits(OpenStream(ctx, channel, "/test.Streams/Wait"));
  Stream relays(OpenStream(ctx, channel, "/test.Streams/Relay"));
  Exchange(relays, 1);
  ASSERT_TRUE(seen.entered.AwaitArrivals(1));
  server->Drain(Deadline::In(milliseconds(1))).IgnoreError();
  server.reset();
  StringValue reply;
  EXPECT_FALSE(waits.Read(&reply));
  EXPECT_FALSE(waits.Finish().ok());
  EXPECT_FALSE(relays.Finish().ok());
}

TEST_P(AsyncStreamTest, SwitchingTheConfigLosesNoMessage) {
  Context ctx(kMaxTestWait);
  Stream chat = Open(ctx, "Chat");
  Stream relay = Open(ctx, "Relay");
  for (const char* config : {"ADB1-2-2", "SDB1-2", "FIB1", "AIB1-1", "FDB1-2", GetParam()}) {
    ASSERT_TRUE(server_->SwitchTo(*Config::Parse(config)).ok()) << config;
    Exchange(chat, 20);
    Exchange(relay, 20);
    Stream fresh = Open(ctx, "Relay");
    Exchange(fresh, 5);
    EXPECT_TRUE(fresh.Finish().ok());
  }
  EXPECT_TRUE(chat.Finish().ok());
  EXPECT_TRUE(relay.Finish().ok());
}

class AsyncStreamThreadTest : public AsyncStreamTest {};
INSTANTIATE_TEST_SUITE_P(Models, AsyncStreamThreadTest,
                         testing::Values("AIB1-1", "AIP1-1", "ADB1-2-2", "ADP1-2-2"), AsyncModel);

// Far more than there are threads.
TEST_P(AsyncStreamThreadTest, ManyStreamsThatWaitHoldNoThread) {
  constexpr int kStreams = 100;
  Context ctx(kMaxTestWait);
  std::vector<Stream> streams;
  for (int i = 0; i < kStreams; ++i) streams.push_back(Open(ctx, "Relay"));
  for (Stream& stream : streams) Exchange(stream, 1);
  for (Stream& stream : streams) Exchange(stream, 1);
  for (Stream& stream : streams) EXPECT_TRUE(stream.Finish().ok());
}

// One that writes as fast as it can, on the only thread of the response pool.
TEST_P(AsyncStreamThreadTest, AHandlerThatNeverWaitsKeepsNoOtherFromTheThread) {
  Context ctx(kMaxTestWait);
  std::atomic<bool> over{false};
  std::thread reader([&] {
    Client client;
    Channel channel(&client, server_->addresses()[0]);
    ClientReader<StringValue> call(OpenStream(ctx, channel, "/test.Streams/Watch", Text("-1")));
    for (StringValue reply; !over && call.Read(&reply);) continue;
  });
  EXPECT_TRUE([&] {
    for (const TimePoint end = Now() + kMaxTestWait; Now() < end;) {
      if (seen_.written > 100) return true;
    }
    return false;
  }());
  Stream stream = Open(ctx, "Relay");
  Exchange(stream, 50);
  EXPECT_TRUE(stream.Finish().ok());
  over = true;
  reader.join();
}

}  // namespace
}  // namespace curtail
