// SPDX-License-Identifier: Apache-2.0
#include "curtail/exec/semaphore.h"

#include <gmock/gmock.h>

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "curtail/base/testing.h"
#include "curtail/exec/aside.h"
#include "curtail/rpc/mid_tier_testing.h"
#include "curtail/rpc/server_testing.h"

namespace curtail {
namespace {

using testing::ElementsAre;

// Numbers of callers.
constexpr uint32_t kPasser = 0, kLate = 100, kLeaves = 101;

struct Counter {
  Semaphore semaphore{/*permits=*/1, /*most_waiting=*/3};
  Gate gate;
  std::atomic<const Context*> watched{nullptr};  // of the caller that is late, or leaves, while it is there
  std::mutex mu;
  std::vector<uint32_t> served;  // guarded by mu; in order
};

// A caller has the permit until the test opens the gate, or the error of the semaphore. A passer wants none.
Coroutine Serve(Counter& counter, Context& ctx, const StringValue& request) {
  const auto number = static_cast<uint32_t>(std::stoul(request.value()));
  if (number == kPasser) co_return absl::OkStatus();
  if (number == kLate) ctx.ShortenDeadline(Deadline::In(milliseconds(1)));
  if (number == kLate || number == kLeaves) counter.watched = &ctx;
  const absl::StatusOr<Semaphore::Permit> permit = co_await counter.semaphore.Acquire(ctx);
  if (!permit.ok()) co_return permit.status();
  {
    const std::lock_guard lock(counter.mu);
    counter.served.push_back(number);
  }
  const bool opened = co_await Offloading([&] { return counter.gate.Pass(); });
  co_return opened ? absl::OkStatus() : absl::InternalError("the gate stays closed");
}

std::unique_ptr<Service> ServiceOf(Counter& counter) {
  return std::make_unique<OneMethod>(internal::CoroutineMethod<StringValue, StringValue>(
      "Run", [&counter](Context& ctx, const StringValue& request, StringValue*) {
        return Serve(counter, ctx, request);
      }));
}

class SemaphoreTest : public testing::TestWithParam<std::string> {
 protected:
  ~SemaphoreTest() override { counter_.gate.Open(); }

  std::future<absl::Status> Call(uint32_t number, Context* given = nullptr) {
    return std::async(std::launch::async, [this, number, given] {
      Context own(kMaxTestWait);
      StringValue request, reply;
      request.set_value(Join(number));
      return channel_.Call(given == nullptr ? own : *given, kRun.path, request, &reply);
    });
  }
  static void Await(const std::function<bool()>& seen) {
    const Deadline deadline = Deadline::In(kMaxTestWait);
    while (!seen() && !deadline.Expired()) BetweenLooks();
    EXPECT_TRUE(seen());
  }
  void AwaitWaiting(size_t count) {
    Await([&] { return counter_.semaphore.waiting() == count; });
  }
  std::future<absl::Status> TakeThePermit() {
    std::future<absl::Status> call = Call(1);
    EXPECT_TRUE(counter_.gate.AwaitArrivals(1));
    return call;
  }
  // Returns when the caller is the last of so many in line.
  std::future<absl::Status> Queue(uint32_t number, size_t waiting, Context* given = nullptr) {
    std::future<absl::Status> call = Call(number, given);
    AwaitWaiting(waiting);
    return call;
  }
  std::vector<uint32_t> Served() {
    const std::lock_guard lock(counter_.mu);
    return counter_.served;
  }

  Counter counter_;
  const std::unique_ptr<Server> server_ = StartServer(GetParam(), ServiceOf(counter_));
  Client client_;
  Channel channel_{&client_, server_->addresses()[0]};
};

// Under the first, those who wait have a thread each.
INSTANTIATE_TEST_SUITE_P(Models, SemaphoreTest,
                         testing::Values("SDB1-8", "FIB1", "FDB1-2", "AIB1-1", "ADB1-1-1"),
                         [](const auto& info) { return info.param.substr(0, 3); });

TEST_P(SemaphoreTest, CallersHaveTheirTurnsInTheOrderOfArrivalAndHoldNoThread) {
  std::future<absl::Status> first = TakeThePermit(), second = Queue(2, 1), third = Queue(3, 2),
                            fourth = Queue(4, 3);
  EXPECT_TRUE(Call(kPasser).get().ok());
  EXPECT_THAT(Served(), ElementsAre(1));
  counter_.gate.Open();
  for (auto* call : {&first, &second, &third, &fourth}) EXPECT_EQ(call->get(), absl::OkStatus());
  EXPECT_THAT(Served(), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(counter_.semaphore.waiting(), 0U);
}

TEST_P(SemaphoreTest, AFullLineRefusesAtOnce) {
  std::future<absl::Status> first = TakeThePermit(), second = Queue(2, 1), third = Queue(3, 2),
                            fourth = Queue(4, 3);
  const absl::Status refused = Call(5).get();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_EQ(counter_.semaphore.waiting(), 3U);
  counter_.gate.Open();
  for (auto* call : {&first, &second, &third, &fourth}) EXPECT_EQ(call->get(), absl::OkStatus());
  EXPECT_EQ(Call(6).get(), absl::OkStatus());
  EXPECT_THAT(Served(), ElementsAre(1, 2, 3, 4, 6));
}

TEST_P(SemaphoreTest, ACallerWhoseDeadlinePassesHasItsErrorAndTheNextItsPermit) {
  std::future<absl::Status> first = TakeThePermit(), late = Queue(kLate, 1), second = Queue(2, 2);
  Await([&] { return counter_.watched.load()->deadline().Expired(); });
  counter_.gate.Open();
  EXPECT_TRUE(absl::IsDeadlineExceeded(late.get()));
  EXPECT_EQ(first.get(), absl::OkStatus());
  EXPECT_EQ(second.get(), absl::OkStatus());
  EXPECT_THAT(Served(), ElementsAre(1, 2));
}

TEST_P(SemaphoreTest, ALateCallerMakesRoomInAFullLine) {
  std::future<absl::Status> first = TakeThePermit(), second = Queue(2, 1), late = Queue(kLate, 2),
                            third = Queue(3, 3);
  Await([&] { return counter_.watched.load()->deadline().Expired(); });
  std::future<absl::Status> fourth = Call(4);
  EXPECT_TRUE(absl::IsDeadlineExceeded(late.get())) << "while the permit is taken";
  AwaitWaiting(3);
  counter_.gate.Open();
  for (auto* call : {&first, &second, &third, &fourth}) EXPECT_EQ(call->get(), absl::OkStatus());
  EXPECT_THAT(Served(), ElementsAre(1, 2, 3, 4));
}

TEST_P(SemaphoreTest, ACallerThatLeavesHasNoTurn) {
  Context leaves(kMaxTestWait);
  std::future<absl::Status> first = TakeThePermit(), gone = Queue(kLeaves, 1, &leaves), second = Queue(2, 2);
  leaves.Cancel();
  EXPECT_TRUE(absl::IsCancelled(gone.get()));
  Await([&] { return counter_.watched.load()->cancelled(); });
  counter_.gate.Open();
  EXPECT_EQ(first.get(), absl::OkStatus());
  EXPECT_EQ(second.get(), absl::OkStatus());
  EXPECT_THAT(Served(), ElementsAre(1, 2));
}

}  // namespace
}  // namespace curtail
