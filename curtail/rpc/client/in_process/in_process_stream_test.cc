// SPDX-License-Identifier: Apache-2.0
//
// Streams to a service of the same process, from handlers of all models and from a plain thread.
#include <gmock/gmock.h>

#include <thread>

#include "curtail/rpc/in_process.h"
#include "curtail/rpc/interceptor.h"
#include "curtail/rpc/stream/async_stream_testing.h"

namespace curtail {
namespace {

using internal::BidirectionalMethod;
using internal::OpenAsyncStream;
using internal::OpenStream;
using testing::ElementsAre;
using testing::HasSubstr;

// Handlers in straight lines, and one that calls itself.
class StraightStreams final : public Service {
 public:
  explicit StraightStreams(EventLog* log) : log_(log) {}
  std::string_view FullName() const override { return "test.Streams"; }
  std::vector<MethodHandler> Handlers() override {
    using Stream = ServerStream<StringValue, StringValue>;
    std::vector<MethodHandler> handlers;
    handlers.push_back(BidirectionalMethod<StringValue, StringValue>(
        "Chat", [](Context& ctx, Stream& stream) -> absl::Status {
          if (const auto key = ctx.metadata().Find("x-key")) ctx.AddInitialMetadata("x-head", *key);
          ctx.AddTrailingMetadata("x-trail", "t");
          for (StringValue in; stream.Read(&in);) {
            if (in.value() == "throw") throw std::runtime_error("thrown");
            if (in.value() == "fail") return absl::NotFoundError("failed");
            if (in.value() == "wrong") ctx.AddTrailingMetadata("te", "x");
            stream.Write(in);
          }
          return stream.status();
        }));
    handlers.push_back(BidirectionalMethod<StringValue, StringValue>(
        "Wait", [this](Context&, Stream& stream) -> absl::Status {
          for (StringValue in; stream.Read(&in);) continue;
          log_->Add(std::string(absl::StatusCodeToString(stream.status().code())));
          return stream.status();
        }));
    handlers.push_back(BidirectionalMethod<StringValue, StringValue>(
        "Linger", [this](Context&, Stream& stream) -> absl::Status {
          for (StringValue in; stream.Read(&in);) continue;
          log_->Add("cut off");
          log_->Await(2);
          return stream.status();
        }));
    handlers.push_back(internal::StraightLineMethod<StringValue, StringValue>(
        "One", /*never_waits=*/true,
        [](Context&, const StringValue&, StringValue*) { return absl::OkStatus(); }));
    return handlers;
  }

 private:
  EventLog* const log_;
};

// Counts, and refuses calls whose metadata says so.
class StreamDoor final : public ServerInterceptor, public ClientInterceptor {
 public:
  absl::Status Before(const IncomingCall& call) override {
    ++before;
    return call.context.metadata().Find("x-refuse") ? absl::PermissionDeniedError("refused")
                                                    : absl::OkStatus();
  }
  void After(const IncomingCall&, const absl::Status& status, Nanos) override { AddCode(status); }
  absl::Status Before(const OutgoingCall&, Metadata& metadata) override {
    metadata.Add("x-key", "from the door");
    return absl::OkStatus();
  }
  void After(const OutgoingCall&, const absl::Status& status, Nanos) override { AddCode(status); }

  std::atomic<int> before{0};
  EventLog codes;

 private:
  void AddCode(const absl::Status& status) {
    codes.Add(std::string(absl::StatusCodeToString(status.code())));
  }
};

class InProcessStreamTest : public StreamMidTier {
 protected:
  InProcessStreamTest() {
    EXPECT_TRUE(here_.Serve(leaf_).ok());
    ServeWith(&here_channel_);
  }
  ~InProcessStreamTest() override { server_.reset(); }

  Client client_;
  AsyncStreamService leaf_{&leaf_seen_, nullptr};
  InProcess here_{"here"};
  Channel here_channel_{&client_, &here_};
};
INSTANTIATE_TEST_SUITE_P(Models, InProcessStreamTest,
                         testing::Values("SIB1", "SIP1", "SDB1-2", "SDP1-2", "FIB1", "FIP1", "FDB1-2",
                                         "FDP1-2", "AIB1-1", "AIP1-1", "ADB1-2-2", "ADP1-2-2"),
                         AsyncModel);

TEST_P(InProcessStreamTest, AMidTierRelays) { ExpectRelays(); }

TEST_P(InProcessStreamTest, AMidTierUploadsAndReadsWhatComesWithTheAnswer) { ExpectUploads(); }

TEST_P(InProcessStreamTest, AStreamThatIsLeftIsCancelled) { ExpectLeavesAreCancelled(); }

TEST_P(InProcessStreamTest, AClientThatStopsReadingStopsTheLeaf) { ExpectBackpressure(32 << 20); }

TEST_P(InProcessStreamTest, AHandlersContextCancelledByAnotherThreadEndsItsWait) {
  ExpectCancelEndsAWait("Leave", leaf_seen_);
}

TEST_P(InProcessStreamTest, CancellationReachesTheLeaf) {
  Context ctx(kMaxTestWait);
  Stream stream = Open(ctx, "Pump");
  StringValue reply;
  EXPECT_TRUE(stream.Read(&reply));
  ctx.Cancel();
  while (stream.Read(&reply)) continue;
  EXPECT_EQ(stream.Finish().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(leaf_seen_.log.Await(1).size(), 1u) << "the leaf goes on";
}

TEST_P(InProcessStreamTest, DeadlineReachesTheLeaf) {
  // A stream that ends before the leaf has begun it shows nothing: the next one gets twice the time.
  Nanos timeout = milliseconds(50);
  for (bool reached = false; !reached; timeout *= 2) {
    ASSERT_LT(timeout, kMaxTestWait);
    const size_t ended = leaf_seen_.log.Await(0).size();
    Context ctx(timeout);
    Stream stream = Open(ctx, "Pump");
    StringValue reply;
    reached = stream.Read(&reply);
    while (stream.Read(&reply)) continue;
    EXPECT_EQ(stream.Finish().code(), absl::StatusCode::kDeadlineExceeded);
    if (reached) {
      EXPECT_GT(leaf_seen_.log.Await(ended + 1).size(), ended) << "the leaf goes on";
    }
  }
}

// Two coroutines that wake each other keep the pool from nothing else.
TEST_P(InProcessStreamTest, ALongExchangeHoldsNoOtherRequestUp) {
  Context ctx(kMaxTestWait);
  Stream busy = Open(ctx, "Pump");
  std::atomic<bool> over{false};
  std::thread reader([&] {
    for (StringValue reply; !over && busy.Read(&reply);) continue;
  });
  EXPECT_TRUE([&] {
    for (const TimePoint end = Now() + kMaxTestWait; Now() < end;) {
      if (seen_.written > 1'000) return true;
    }
    return false;
  }());
  Client client;
  Channel channel(&client, server_->addresses()[0]);
  Stream other(OpenStream(ctx, channel, "/test.Streams/Relay"));
  Exchange(other, 20);
  EXPECT_TRUE(other.Finish().ok());
  over = true;
  reader.join();
}

// Callers are plain threads, or handlers; these handlers are straight-line.
class InProcessStraightTest : public testing::Test {
 protected:
  using Stream = ClientStream<StringValue, StringValue>;

  InProcessStraightTest() { EXPECT_TRUE(here_.Serve(service_).ok()); }
  Stream Open(Context& ctx, const std::string& method) {
    return Stream(OpenStream(ctx, channel_, "/test.Streams/" + method));
  }

  EventLog log_;
  StreamDoor door_;
  StraightStreams service_{&log_};
  InProcess here_{"here", {&door_}};
  Client client_;
  Channel channel_{&client_, &here_, {.interceptors = {&door_}}};
};

TEST_F(InProcessStraightTest, CarriesMessagesMetadataAndTheEnd) {
  Context ctx(kMaxTestWait);
  Stream stream = Open(ctx, "Chat");
  StringValue reply;
  for (int i = 0; i < 1'000; ++i) {
    ASSERT_TRUE(stream.Write(Text(std::to_string(i))) && stream.Read(&reply)) << stream.Finish();
    ASSERT_EQ(reply.value(), std::to_string(i));
  }
  EXPECT_EQ(stream.InitialMetadata().Find("x-head"), "from the door");
  stream.WritesDone();
  EXPECT_FALSE(stream.Read(&reply));
  EXPECT_FALSE(stream.Write(reply));
  const absl::Status status = stream.Finish();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(stream.metadata().trailing.Find("x-trail"), "t");
  EXPECT_THAT(door_.codes.Await(2), ElementsAre("OK", "OK"));
}

TEST_F(InProcessStraightTest, ErrorsAndExceptionsAreTheCallersStatus) {
  Context ctx(kMaxTestWait);
  Stream fails = Open(ctx, "Chat");
  fails.Write(Text("fail"));
  EXPECT_EQ(fails.Finish(), absl::NotFoundError("failed"));
  Stream throws = Open(ctx, "Chat");
  throws.Write(Text("throw"));
  EXPECT_THAT(std::string(throws.Finish().message()), HasSubstr("thrown"));
  Stream wrong = Open(ctx, "Chat");
  wrong.Write(Text("wrong"));
  EXPECT_TRUE(absl::IsInternal(wrong.Finish())) << "metadata that may not be sent";
  EXPECT_TRUE(absl::IsUnimplemented(Open(ctx, "None").Finish()));
  EXPECT_TRUE(absl::IsUnimplemented(Open(ctx, "One").Finish())) << "a unary method";
  ctx.AddMetadata("x-refuse", "please");
  EXPECT_TRUE(absl::IsPermissionDenied(Open(ctx, "Chat").Finish()));
}

TEST_F(InProcessStraightTest, AWriterWaitsForAPeerThatDoesNotRead) {
  Context ctx(milliseconds(100));
  Stream stream = Open(ctx, "Chat");
  const StringValue part = Text(std::string(10'000, 'x'));
  int written = 0;
  while (written < 1'000 && stream.Write(part)) ++written;
  EXPECT_LT(written, 30) << "two directions of 64 KiB";
  const absl::Status status = stream.Finish();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
}

// The caller finds its deadline passed, although the handler takes its time to end.
TEST_F(InProcessStraightTest, AWriterWaitsForAHandlerThatIsCutOff) {
  Context ctx(milliseconds(20));
  Stream stream = Open(ctx, "Linger");
  log_.Await(1);
  const StringValue part = Text(std::string(10'000, 'x'));
  int written = 0;
  while (written < 1'000 && stream.Write(part)) ++written;
  EXPECT_LT(written, 10) << "one direction of 64 KiB";
  log_.Add("go on");
  EXPECT_TRUE(absl::IsDeadlineExceeded(stream.Finish()));
}

TEST_F(InProcessStraightTest, FinishingSkipsWhatWasNotRead) {
  Context ctx(kMaxTestWait);
  Stream stream = Open(ctx, "Chat");
  const StringValue part = Text(std::string(10'000, 'x'));
  for (int i = 0; i < 12; ++i) ASSERT_TRUE(stream.Write(part));
  const absl::Status status = stream.Finish();
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(InProcessStraightTest, ACallerThatLeavesCancels) {
  Context ctx(kMaxTestWait);
  {
    Stream stream = Open(ctx, "Wait");
  }
  Stream stream = Open(ctx, "Wait");
  ctx.Cancel();
  EXPECT_TRUE(absl::IsCancelled(stream.Finish()));
  EXPECT_THAT(log_.Await(2), ElementsAre("CANCELLED", "CANCELLED"));
}

TEST_F(InProcessStraightTest, TheCallersLimitsHold) {
  Context ctx(kMaxTestWait);
  ctx.SetMaxReplyBytes(1'000);
  Stream replies = Open(ctx, "Chat");
  StringValue reply;
  replies.Write(Text(std::string(2'000, 'x')));
  EXPECT_FALSE(replies.Read(&reply));
  EXPECT_TRUE(absl::IsResourceExhausted(replies.Finish()));
  ctx.SetMaxRequestBytes(1'000);
  Stream requests = Open(ctx, "Chat");
  EXPECT_FALSE(requests.Write(Text(std::string(2'000, 'x'))));
  EXPECT_TRUE(absl::IsResourceExhausted(requests.Finish()));
}

// Coroutine callers of straight-line handlers, which then take threads or fibers of their own.
class InProcessMixedTest : public StreamMidTier {
 protected:
  InProcessMixedTest() {
    EXPECT_TRUE(here_.Serve(service_).ok());
    ServeWith(&here_channel_);
  }
  ~InProcessMixedTest() override { server_.reset(); }

  Client client_;
  StraightStreams service_{&leaf_seen_.log};
  InProcess here_{"here"};
  Channel here_channel_{&client_, &here_};
};
INSTANTIATE_TEST_SUITE_P(Models, InProcessMixedTest,
                         testing::Values("SIB1", "SDB1-2", "FIB1", "FDB1-2", "AIB1-1", "ADB1-2-2"),
                         AsyncModel);

TEST_P(InProcessMixedTest, AMidTierRelays) { ExpectRelays(); }

}  // namespace
}  // namespace curtail
