// SPDX-License-Identifier: Apache-2.0
//
// Property: a call whose deadline has passed ends with DEADLINE_EXCEEDED for its caller, in every form of call, even if
// its handler says that it was cancelled.
#include <gmock/gmock.h>

#include <atomic>

#include "curtail/rpc/in_process.h"
#include "curtail/rpc/mid_tier_testing.h"
#include "curtail/rpc/stream.h"
#include "curtail/rpc/transport/transport_testing.h"
#include "curtail/wire/session.h"

namespace curtail {
namespace {

using testing::HasSubstr;

// The status of a handler whose time is over, if it was told to run `late`.
absl::Status GivesUp(Context& ctx, bool late) {
  if (late) ctx.ShortenDeadline(Deadline::At(TimePoint()));
  return absl::CancelledError("gave up");
}

bool IsLate(const StringValue& in) { return in.value() == "late"; }

void ExpectTheDeadline(const absl::Status& status) {
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_THAT(std::string(Message(status)), HasSubstr("gave up"));
}

void ExpectTheHandlersOwn(const absl::Status& status) {
  EXPECT_EQ(status, absl::CancelledError("gave up")) << status;
}

// The server's side, under models that wait in each way.
class LateHandlerTest : public MidTier {
 protected:
  void ExpectBoth() {
    ExpectTheDeadline(Run("late"));
    ExpectTheHandlersOwn(Run("early"));
  }
};
INSTANTIATE_TEST_SUITE_P(Models, LateHandlerTest, testing::Values("SIB1", "SDB1-2", "FIB1", "ADB1-2-2"),
                         ModelName);

TEST_P(LateHandlerTest, ACoroutineIsAnsweredDeadlineExceeded) {
  ServeCoroutine([](Context& ctx, const StringValue& in, StringValue*) -> Coroutine {
    co_return GivesUp(ctx, IsLate(in));
  });
  ExpectBoth();
}

TEST_P(LateHandlerTest, AStraightLineHandlerIsAnsweredDeadlineExceeded) {
  Serve(internal::StraightLineMethod<StringValue, StringValue>(
      "Run", /*never_waits=*/true,
      [](Context& ctx, const StringValue& in, StringValue*) { return GivesUp(ctx, IsLate(in)); }));
  ExpectBoth();
}

TEST_P(LateHandlerTest, AStreamIsAnsweredDeadlineExceeded) {
  Serve(internal::StreamMethod("Run", [](Context& ctx, internal::MessageStream& stream) {
    std::string text;
    return stream.Read(&text) ? GivesUp(ctx, text == "late") : absl::InternalError("no message");
  }));
  for (const bool late : {true, false}) {
    Context ctx(kMaxTestWait);
    auto call = internal::OpenStream(ctx, *channel_, kRun.path);
    EXPECT_TRUE(call->Write(late ? "late" : "early"));
    const absl::Status status = call->Finish();
    late ? ExpectTheDeadline(status) : ExpectTheHandlersOwn(status);
  }
}

TEST(LateHandler, OfTheSameProcessIsAnsweredDeadlineExceeded) {
  OneMethod service(internal::StraightLineMethod<StringValue, StringValue>(
      "Run", /*never_waits=*/true,
      [](Context& ctx, const StringValue& in, StringValue*) { return GivesUp(ctx, IsLate(in)); }));
  InProcess here("here");
  ASSERT_TRUE(here.Serve(service).ok());
  Client client;
  Channel channel(&client, &here);
  for (const bool late : {true, false}) {
    Context ctx(kMaxTestWait);
    StringValue reply;
    const absl::Status status = channel.Call(ctx, kRun.path, Text(late ? "late" : "early"), &reply);
    late ? ExpectTheDeadline(status) : ExpectTheHandlersOwn(status);
  }
}

// A server of another make: once the deadline of a call has passed, it says that the call was cancelled. It answers a
// call without a deadline at once.
class LateServer {
 public:
  LateServer() : listener_([this](internal::UniqueFd fd, int stop) { Serve(fd.get(), stop); }) {}

  const std::string& address() const { return listener_.address(); }
  // Calls with a deadline that have come.
  int held() const { return held_; }
  // ... whose answer has left.
  int answered() const { return answered_; }

 private:
  struct Answers final : wire::Events {
    explicit Answers(std::atomic<int>* h) : held(h) {}
    void* OnRequest(wire::StreamId id, wire::RequestHead&& head) override {
      if (!head.timeout) return this;
      ++*held;
      const Deadline deadline = Deadline::In(*head.timeout);
      while (!deadline.Expired()) BetweenLooks();
      session->EndCall(id, absl::CancelledError("too late"));
      ++late;
      return this;
    }
    void OnMessage(wire::StreamId id, void*, std::string&& message) override {
      session->SendMessage(id, std::move(message));
    }
    void OnRequestEnd(wire::StreamId id, void*) override { session->EndCall(id, absl::OkStatus()); }
    void OnCallEnd(wire::StreamId, void*, absl::Status&&, wire::Metadata&&) override {}
    TimePoint now() override { return Now(); }
    std::atomic<int>* const held;
    wire::Session* session = nullptr;
    int late = 0;
  };

  void Serve(int fd, int stop) {
    Answers answers(&held_);
    wire::Session session(wire::Role::kServer, {}, &answers);
    answers.session = &session;
    char bytes[65536];
    while (TestListener::Wait(fd, stop)) {
      const ssize_t n = recv(fd, bytes, sizeof bytes, 0);
      std::string said;
      if (n <= 0 || !session.Receive(std::string(bytes, static_cast<size_t>(n))).ok()) return;
      while (session.Pull(&said)) continue;
      if (send(fd, said.data(), said.size(), MSG_NOSIGNAL) < 0) return;
      answered_ = answers.late;
    }
  }

  // Atomic: the listener's thread counts, the test reads.
  std::atomic<int> held_{0};
  std::atomic<int> answered_{0};
  TestListener listener_;
};

class LateAnswerTest : public testing::Test {
 protected:
  static constexpr Nanos kTime = milliseconds(100);

  void AwaitAnswer() {
    for (const Deadline end = Deadline::In(kMaxTestWait); server_.answered() == 0 && !end.Expired();)
      BetweenLooks();
  }

  LateServer server_;
  Client client_;
  Channel channel_{&client_, server_.address()};
};

TEST_F(LateAnswerTest, EndsABlockingCallWithDeadlineExceeded) {
  Context ctx(kTime);
  StringValue reply;
  EXPECT_EQ(channel_.Call(ctx, kEcho.path, Text("x"), &reply).code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(LateAnswerTest, EndsAnEventDrivenCallWithDeadlineExceeded) {
  struct Ended final : Completion {
    void Done(absl::Status&& s, std::string&&) override { status = std::move(s), done = true; }
    absl::Status status;
    bool done = false;
  } ended;
  channel_.Start(kEcho.path, Deadline::In(kTime), {}, "", &ended);
  // Nothing moves from here until the answer has come. The next poll meets it, and the timer.
  while (!ended.done && server_.held() == 0) client_.Poll(Deadline::At(TimePoint()));
  if (!ended.done) AwaitAnswer();
  for (const Deadline end = Deadline::In(kMaxTestWait); !ended.done && !end.Expired();) client_.Poll(end);
  EXPECT_EQ(ended.status.code(), absl::StatusCode::kDeadlineExceeded) << ended.status;
}

TEST_F(LateAnswerTest, EndsAStreamWithDeadlineExceeded) {
  Context ctx(kTime);
  auto call = internal::OpenStream(ctx, channel_, kEcho.path);
  call->EndWrites();
  AwaitAnswer();
  // Another call of the lane takes what has come.
  Context forever(Deadline::Infinite());
  StringValue reply;
  const absl::Status other = channel_.Call(forever, kEcho.path, Text("x"), &reply);
  EXPECT_TRUE(other.ok()) << other;
  EXPECT_EQ(call->Finish().code(), absl::StatusCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace curtail
