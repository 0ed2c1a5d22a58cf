// SPDX-License-Identifier: Apache-2.0
//
// The ends of streams under all kinds of models: by a peer, a deadline, an error, or a server that stops.
#include <thread>

#include "curtail/rpc/stream/stream_testing.h"

namespace curtail {
namespace {

using internal::OpenStream;
using testing::HasSubstr;

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
  EXPECT_THAT(std::string(status.message()), HasSubstr("not a valid google.protobuf.StringValue"));
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
  Stream held(OpenStream(ctx, channel, "/test.Streams/Chat"));  // by the one thread without a role
  StringValue reply;
  ASSERT_TRUE(held.Write(Text("x")));
  ASSERT_TRUE(held.Read(&reply));
  Stream stream(OpenStream(ctx, channel, "/test.Streams/Chat"));
  const absl::Status status = stream.Finish();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("max_threads"));
}

}  // namespace
}  // namespace curtail
