// SPDX-License-Identifier: Apache-2.0
//
// Replies that a thread holds back. Property: they leave before the thread waits (rule R5 of executor.cc).
#include "curtail/rpc/server/parts/reply_output.h"

#include <gmock/gmock.h>

#include <atomic>
#include <coroutine>

#include "curtail/exec/fiber.h"
#include "curtail/rpc/mid_tier_testing.h"

namespace curtail {
namespace {

class HeldReplyTest : public MidTier {
 protected:
  struct Answer final : Completion {
    void Done(absl::Status&& s, std::string&&) override {
      status = std::move(s);
      done = true;
    }
    bool done = false;
    absl::Status status;
  };

  // Sends a quick request and one that waits, in one write; `release` ends the wait.
  template <class Release>
  void ExpectThatTheQuickReplyComesFirst(Release release) {
    ASSERT_TRUE(Run("quick").ok());  // connects
    Answer quick, waits;
    Begin("quick", &quick);
    Begin("wait", &waits);
    PollUntil(quick);
    EXPECT_TRUE(quick.done);
    EXPECT_FALSE(waits.done);
    release();
    PollUntil(waits);
    PollUntil(quick);
    EXPECT_TRUE(quick.status.ok() && waits.status.ok()) << quick.status << waits.status;
  }

 private:
  void Begin(const std::string& text, Answer* answer) {
    channel_->Start(kRun.path, Deadline::In(kMaxTestWait), {}, Text(text).SerializeAsString(), answer);
  }
  void PollUntil(const Answer& answer) {
    for (const Deadline end = Deadline::In(kMaxTestWait / 2); !answer.done && !end.Expired();)
      front_.Poll(Deadline::In(milliseconds(1)));
  }
};
INSTANTIATE_TEST_SUITE_P(Models, HeldReplyTest, testing::Values("SIB1", "SDB1-1", "FIB1"), ModelName);

TEST_P(HeldReplyTest, LeavesBeforeAHandlerSleeps) {
  std::atomic<bool> released = false;
  Serve({.name = "Run",
         .handler = internal::UnaryHandler<StringValue, StringValue>(
             [&](Context&, const StringValue& in, StringValue*) -> absl::Status {
               while (in.value() == "wait" && !released) SleepUntil(Deadline::In(milliseconds(1)));
               return absl::OkStatus();
             })});
  ExpectThatTheQuickReplyComesFirst([&] { released = true; });
}

// Suspends its coroutine until the test resumes it.
struct Suspended {
  bool await_ready() const { return false; }
  void await_suspend(std::coroutine_handle<> self) { *waits = self.address(); }
  void await_resume() const {}
  std::atomic<void*>* waits;
};

TEST_P(HeldReplyTest, LeavesBeforeACoroutineIsWaitedFor) {
  std::atomic<void*> waits = nullptr;
  ServeCoroutine([&](Context&, const StringValue& in, StringValue*) -> Coroutine {
    if (in.value() == "wait") co_await Suspended{&waits};
    co_return absl::OkStatus();
  });
  ExpectThatTheQuickReplyComesFirst([&] {
    for (const Deadline end = Deadline::In(kMaxTestWait); waits == nullptr && !end.Expired();) BetweenLooks();
    std::coroutine_handle<>::from_address(waits).resume();
  });
}

}  // namespace
}  // namespace curtail
