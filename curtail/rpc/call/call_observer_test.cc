// SPDX-License-Identifier: Apache-2.0
//
// The events of calls that observers hear of, and their order.
#include "curtail/rpc/call_observer.h"

#include <gmock/gmock.h>

#include <atomic>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "curtail/rpc/coroutine.h"
#include "curtail/rpc/mid_tier_testing.h"

namespace curtail {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Writes down the events of each call that it wants to hear of.
class Recorder final : public CallObserver {
 public:
  explicit Recorder(uint32_t wants) : wants_(wants) {}

  uint32_t Wants() const override { return wants_; }
  uint64_t Arrived(const CallRecord& call) override {
    std::lock_guard lock(mu_);
    const uint64_t note = calls_.size() + 1;
    Add(call, note, "arrived", call.arrived);
    return note;
  }
  void Dequeued(const CallRecord& call, uint64_t note) override {
    std::lock_guard lock(mu_);
    Add(call, note, "dequeued", call.dequeued);
  }
  void Began(const CallRecord& call, uint64_t note) override {
    std::lock_guard lock(mu_);
    Add(call, note, "began", call.began);
  }
  void ChildCalled(const CallRecord& call, const ChildCall& child, uint64_t note) override {
    std::lock_guard lock(mu_);
    EXPECT_EQ(child.answered, TimePoint());
    Add(call, note, Join("called ", child.index, " ", child.path), child.called);
    targets_.emplace_back(child.target);
  }
  void ChildAnswered(const CallRecord& call, const ChildCall& child, uint64_t note) override {
    std::lock_guard lock(mu_);
    EXPECT_LE(child.called, child.answered);
    Add(call, note, Join("answered ", child.index, " ", absl::StatusCodeToString(child.code)), child.called);
  }
  void Replied(const CallRecord& call, uint64_t note) override {
    std::lock_guard lock(mu_);
    Add(call, note, Join("replied ", absl::StatusCodeToString(call.code)), call.replied);
    last_ = call;
  }

  // The events of the call that arrived as number `note`, from 1; those of 0 are of calls whose arrival it did not want.
  std::vector<std::string> Events(uint64_t note) {
    std::lock_guard lock(mu_);
    return calls_[note].events;
  }
  size_t calls() {
    std::lock_guard lock(mu_);
    return calls_.size();
  }
  std::vector<std::string> targets() {
    std::lock_guard lock(mu_);
    return targets_;
  }
  // Of the last reply; its context is gone.
  CallRecord last() {
    std::lock_guard lock(mu_);
    return last_;
  }

 private:
  struct Call {
    std::vector<std::string> events;
    TimePoint latest;
  };

  void Add(const CallRecord& record, uint64_t note, std::string event, TimePoint when) {
    EXPECT_EQ(record.path, "/test.Mid/Run");
    EXPECT_EQ(record.method, 0u);
    EXPECT_NE(record.context->peer(), "");
    Call& call = calls_[note];
    EXPECT_LE(call.latest, when) << event;  // and so no time is left out
    call.latest = when;
    call.events.push_back(std::move(event));
  }

  const uint32_t wants_;
  std::mutex mu_;
  std::map<uint64_t, Call> calls_;
  std::vector<std::string> targets_;
  CallRecord last_;
};

class CallObserverTest : public MidTier {
 protected:
  CallObserverTest() { observers_ = {&recorder_}; }
  ~CallObserverTest() override { mid_.reset(); }  // before its observer

  void ServeForward() {
    ServeCoroutine([this](Context& ctx, const StringValue& in, StringValue* out) -> Coroutine {
      const Results results = co_await fan_out(ctx, leaves_, LeafMethod(in), ToBoth(in));
      const absl::StatusOr<std::string> joined = Joined(results);
      if (!joined.ok()) co_return joined.status();
      out->set_value(*joined);
      co_return absl::OkStatus();
    });
  }

  static inline const std::vector<std::string> kForwarded = {
      "arrived",       "dequeued",      "began",     "called 0 /test.Echo/Echo", "called 1 /test.Echo/Echo",
      "answered 0 OK", "answered 1 OK", "replied OK"};
  Recorder recorder_{kAllCallEvents};
};

INSTANTIATE_TEST_SUITE_P(Models, CallObserverTest, testing::Values("SIB1", "SDB1-4", "FIB1", "ADB1-2-2"),
                         ModelName);

TEST_P(CallObserverTest, HearsOfEachEventInOrder) {
  ServeForward();
  const absl::Status status = Run("x");
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(recorder_.calls(), 1u);
  EXPECT_EQ(recorder_.Events(1), kForwarded);
  EXPECT_THAT(recorder_.targets(), ElementsAre(leaf_channel_.target(), leaf_channel_.target()));
  ExpectHealthy();
}

TEST_P(CallObserverTest, HearsHowChildrenAndCallEnd) {
  ServeForward();
  EXPECT_EQ(Run("fail").code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(recorder_.Events(1), ElementsAre("arrived", "dequeued", "began", "called 0 /test.Echo/Echo",
                                               "called 1 /test.Echo/Echo", "answered 0 NOT_FOUND",
                                               "answered 1 NOT_FOUND", "replied NOT_FOUND"));
  ExpectHealthy();
}

TEST_P(CallObserverTest, HearsOfAChildThatCannotBeReached) {
  const std::string gone = StartServer("SIB1")->addresses()[0];
  Channel dead(&client_, gone);
  const std::vector<Channel*> channels = {&leaf_channel_, &dead};
  ServeCoroutine([&](Context& ctx, const StringValue& in, StringValue*) -> Coroutine {
    const Results results = co_await fan_out(ctx, channels, kEcho, ToBoth(in));
    co_return results[1].status();
  });
  EXPECT_EQ(Run("x").code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(recorder_.Events(1), ElementsAre("arrived", "dequeued", "began", "called 0 /test.Echo/Echo",
                                               "called 1 /test.Echo/Echo", "answered 0 OK",
                                               "answered 1 UNAVAILABLE", "replied UNAVAILABLE"));
  mid_.reset();  // before the channel to nobody
}

TEST_P(CallObserverTest, HearsOfARefusedCall) {
  max_queue_ = 0;
  ServeForward();
  EXPECT_EQ(Run("x").code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(recorder_.Events(1), ElementsAre("arrived", "replied RESOURCE_EXHAUSTED"));
  EXPECT_EQ(recorder_.last().dequeued, TimePoint());
}

TEST_P(CallObserverTest, HearsOfAThrownException) {
  ServeCoroutine([](Context&, const StringValue&, StringValue*) -> Coroutine {
    throw std::runtime_error("thrown");
    co_return absl::OkStatus();
  });
  EXPECT_EQ(Run("x").code(), absl::StatusCode::kInternal);
  EXPECT_THAT(recorder_.Events(1), ElementsAre("arrived", "dequeued", "began", "replied INTERNAL"));
}

// Property: whatever runs at the same time, each call has its own events, in order, and one reply.
TEST_P(CallObserverTest, KeepsCallsApart) {
  constexpr size_t kCallers = 4, kCalls = 25;
  ServeForward();
  std::vector<std::thread> callers;
  for (size_t i = 0; i < kCallers; ++i) {
    callers.emplace_back([this] {
      Client client;
      Channel channel(&client, mid_->addresses()[0]);
      for (size_t n = 0; n < kCalls; ++n) {
        const absl::Status status = Call(channel, kRun, "x");
        EXPECT_TRUE(status.ok()) << status;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  ASSERT_EQ(recorder_.calls(), kCallers * kCalls);
  for (uint64_t note = 1; note <= kCallers * kCalls; ++note) EXPECT_EQ(recorder_.Events(note), kForwarded);
  ExpectHealthy();
}

TEST_P(CallObserverTest, EachHearsOfWhatItWants) {
  Recorder replies(kCallReplied), children(kCallArrived | kChildAnswered);
  observers_ = {&replies, &children};
  ServeForward();
  ASSERT_TRUE(Run("x").ok());
  EXPECT_THAT(replies.Events(0), ElementsAre("replied OK"));
  EXPECT_THAT(children.Events(1), ElementsAre("arrived", "answered 0 OK", "answered 1 OK"));
  const CallRecord last = replies.last();
  EXPECT_NE(last.arrived, TimePoint());
  EXPECT_LE(last.arrived, last.dequeued);
  EXPECT_EQ(last.began, TimePoint());  // not wanted
  EXPECT_LE(last.dequeued, last.replied);
  EXPECT_THAT(recorder_.Events(1), IsEmpty());
  mid_.reset();  // before its observers
}

// How long a stream lasts is up to its client.
TEST_P(CallObserverTest, HearsOfNoStream) {
  Serve(internal::BidirectionalMethod<StringValue, StringValue>(
      "Run", [](Context&, ServerStream<StringValue, StringValue>& stream) {
        return EachMessage(stream, [](const StringValue& in, StringValue* out) {
          *out = in;
          return absl::OkStatus();
        });
      }));
  ASSERT_TRUE(Run("x").ok());
  EXPECT_EQ(recorder_.calls(), 0u);
}

// Parts of a request tell of their children as the request's.
TEST_P(CallObserverTest, HearsOfTheChildrenOfPartsOfACall) {
  ServeCoroutine([this](Context& ctx, const StringValue& in, StringValue*) -> Coroutine {
    Context part(&ctx);
    const Results results = co_await fan_out(part, leaves_, kEcho, ToBoth(in));
    co_return results[0].status();
  });
  ASSERT_TRUE(Run("x").ok());
  EXPECT_EQ(recorder_.Events(1), kForwarded);
}

// Keeps the calls of requests that end late, as it says.
class Keeper final : public CallObserver {
 public:
  uint32_t Wants() const override { return kCallReplied | kKeepsLateChildren; }
  Nanos LateAfter(const CallRecord&) const override { return late.load(); }
  void Replied(const CallRecord& call, uint64_t) override {
    std::lock_guard lock(mu_);
    kept_.clear();
    for (const ChildCall& child : call.kept) {
      EXPECT_LE(call.arrived, child.called);
      EXPECT_LE(child.called, child.answered);
      kept_.push_back(Join(child.ordinal, " ", absl::StatusCodeToString(child.code)));
    }
    left_out_ = call.children - call.kept.size();
  }
  // Of the last request: those kept, and how many were not.
  std::pair<std::vector<std::string>, size_t> Last() {
    std::lock_guard lock(mu_);
    return {kept_, left_out_};
  }

  std::atomic<Nanos> late{Nanos::max()};

 private:
  std::mutex mu_;
  std::vector<std::string> kept_;
  size_t left_out_ = 0;
};

TEST_P(CallObserverTest, KeepsCallsThatFailOrEndLate) {
  const std::string gone = StartServer("SIB1")->addresses()[0];
  Channel dead(&client_, gone);
  const std::vector<Channel*> channels = {&leaf_channel_, &dead};
  Keeper keeper;
  observers_ = {&keeper};
  ServeCoroutine([&](Context& ctx, const StringValue& in, StringValue*) -> Coroutine {
    for (int i = 0; i < 20; ++i) (void)co_await fan_out(ctx, channels, kEcho, ToBoth(in));
    co_return absl::OkStatus();
  });
  ASSERT_TRUE(Run("x").ok());
  std::vector<std::string> failed, all;
  for (int i = 1; i <= 20; ++i) failed.push_back(Join(2 * i, " UNAVAILABLE"));
  for (int i = 1; i <= 12; ++i) all.insert(all.end(), {Join(2 * i - 1, " OK"), Join(2 * i, " UNAVAILABLE")});
  EXPECT_EQ(keeper.Last(), std::pair(failed, size_t{20}));
  keeper.late = Nanos(-1);
  ASSERT_TRUE(Run("x").ok());
  EXPECT_EQ(keeper.Last(), std::pair(all, size_t{40} - all.size())) << "as many as there is room for";
  mid_.reset();  // before its observer, and the channel to nobody
}

TEST(CallObserver, TooManyAreRefused) {
  Recorder recorder(kAllCallEvents);
  ServerOptions options;
  options.observers = std::vector<CallObserver*>(5, &recorder);
  const auto server = Server::Start(std::move(options), {});
  EXPECT_EQ(server.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(server.status().message(), "a server has 4 observers of its calls at most, its policy included");
}

}  // namespace
}  // namespace curtail
