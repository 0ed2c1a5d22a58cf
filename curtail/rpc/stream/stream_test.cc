// SPDX-License-Identifier: Apache-2.0
//
// Streams of all kinds under all kinds of models: order and backpressure.
#include <thread>

#include "curtail/rpc/stream/stream_testing.h"

namespace curtail {
namespace {

using internal::OpenStream;

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

// Messages that the client has not read pause its peer, which then goes on to its end.
TEST_P(StreamTest, FinishingLetsAPeerGoOnThatWaitedForTheReader) {
  Context ctx(kMaxTestWait);
  ClientReader<StringValue> call(OpenStream(ctx, channel_, "/test.Streams/Heap", Text("")));
  // Calls of the same connection take what comes, until nothing does.
  std::string answer;
  for (int before = -1, still = 0; still < 50;) {
    ASSERT_TRUE(Upload(ctx, 1, "x", &answer).ok());
    const int written = seen_.written;
    still = written > 0 && written == before ? still + 1 : 0;
    before = written;
  }
  EXPECT_LT(seen_.written, kHeap);
  const absl::Status status = call.Finish();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(seen_.written, kHeap);
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

}  // namespace
}  // namespace curtail
