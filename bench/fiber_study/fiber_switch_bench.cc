// SPDX-License-Identifier: Apache-2.0
//
// fiber_switch: what it costs to step aside and to come back, for curtail's fibers, for Boost.Fiber's and for threads.
//
// Three exchanges, each counted as one suspend and one resume a step:
//   yield     one fiber makes itself ready and steps aside
//   pingpong  two fibers, or threads, wake each other in turns and wait for their own turn: through a Parker (a
//             futex on threads), and in Boost through a condition variable
//   spawn     a fiber, or thread, is started, does nothing, and is joined
#include <benchmark/benchmark.h>

#include <functional>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#ifdef CURTAIL_HAVE_BOOST_FIBER
#include <boost/fiber/condition_variable.hpp>
#include <boost/fiber/fiber.hpp>
#include <boost/fiber/mutex.hpp>
#include <boost/fiber/operations.hpp>
#include <mutex>
#endif

#include "curtail/exec/async.h"
#include "curtail/exec/fiber.h"
#include "curtail/exec/parker.h"
#include "curtail/exec/wait.h"

namespace curtail {
namespace {

constexpr uint32_t kEnd = Parker::Signal(0);
constexpr uint32_t kTurn = Parker::Signal(1);

// A FiberLoop and the duties of its thread, as the pools of a server do them.
class Loop {
 public:
  void Start(std::function<void()> body) {
    tasks_.push_back(std::make_unique<FunctionTask>(std::move(body)));
    const ScopedWait scope(hint_);
    loop_.Start(tasks_.back().get(), hint_);
  }
  void RunAll() {
    const ScopedWait scope(hint_);
    Parker seat;
    while (loop_.live() > 0) {
      if (loop_.HasReady()) {
        loop_.RunReady();
      } else {
        loop_.Wait(seat, seat.Ticket(), nullptr);
      }
    }
  }

 private:
  class FunctionTask final : public Task {
   public:
    explicit FunctionTask(std::function<void()> body) : body_(std::move(body)) {}
    void Run(const WaitHint&) override { body_(); }

   private:
    const std::function<void()> body_;
  };

  FiberLoop loop_{FiberOptions{}};
  const WaitHint hint_{.waiting = Waiting::kFiber, .loop = &loop_};
  std::vector<std::unique_ptr<FunctionTask>> tasks_;
};

void CurtailYield(benchmark::State& state) {
  Loop loop;
  loop.Start([&state] {
    Fiber* const self = Fiber::Current();
    for (auto _ : state) {
      self->Wake();
      self->Suspend(Deadline::Infinite());
    }
  });
  loop.RunAll();
  state.SetItemsProcessed(state.iterations());
}

// One side of an exchange: waits for its turn, then gives the other the turn. False when the other has ended.
bool TakeTurn(Parker& mine, Parker& theirs) {
  for (uint32_t ticket = mine.Ticket(); (ticket & kTurn) == 0; ticket = mine.Ticket()) {
    if (ticket & kEnd) return false;
    mine.Wait(ticket, Deadline::Infinite());  // the other side ends only after a kEnd
  }
  mine.Clear(kTurn);
  theirs.Notify(kTurn);
  return true;
}

// A pass of the loop is two waits and two wake-ups, one on either side.
void MeasuredSide(benchmark::State& state, Parker& mine, Parker& theirs) {
  theirs.Notify(kTurn);
  for (auto _ : state) TakeTurn(mine, theirs);
  theirs.Notify(kEnd);
  state.SetItemsProcessed(2 * state.iterations());
}

void CurtailPingPong(benchmark::State& state) {
  Parker a, b;
  Loop loop;
  loop.Start([&] {
    while (TakeTurn(b, a)) {
    }
  });
  loop.Start([&] { MeasuredSide(state, a, b); });
  loop.RunAll();
}

void ThreadPingPong(benchmark::State& state) {
  Parker a, b;
  std::thread other([&] {
    while (TakeTurn(b, a)) {
    }
  });
  MeasuredSide(state, a, b);
  other.join();
}

void CurtailSpawn(benchmark::State& state) {
  Loop loop;
  loop.Start([&state] {
    for (auto _ : state) {
      auto future = async([] {});
      while (!future.ready()) {  // not get(), which would run the function here
        Fiber::Current()->Wake();
        Fiber::Current()->Suspend(Deadline::Infinite());
      }
    }
  });
  loop.RunAll();
  state.SetItemsProcessed(state.iterations());
}

void ThreadSpawn(benchmark::State& state) {
  for (auto _ : state) std::thread([] {}).join();
  state.SetItemsProcessed(state.iterations());
}

#ifdef CURTAIL_HAVE_BOOST_FIBER
// Beside another fiber that does nothing: alone, a fiber that yields is not switched at all.
void BoostYield(benchmark::State& state) {
  bool end = false;
  boost::fibers::fiber other([&end] {
    while (!end) boost::this_fiber::yield();
  });
  for (auto _ : state) boost::this_fiber::yield();
  end = true;
  other.join();
  state.SetItemsProcessed(2 * state.iterations());
}

// Which thread may go on, under a mutex.
class Turns {
 public:
  // Waits until it is `side`'s turn, then passes it on. False at the end.
  bool Take(int side) {
    std::unique_lock lock(mu_);
    changed_.wait(lock, [&] { return end_ || turn_ == side; });
    if (end_) return false;
    turn_ = 1 - side;
    changed_.notify_one();
    return true;
  }
  void End() {
    const std::unique_lock lock(mu_);
    end_ = true;
    changed_.notify_all();
  }

 private:
  boost::fibers::mutex mu_;
  boost::fibers::condition_variable changed_;
  int turn_ = 0;
  bool end_ = false;
};

void BoostPingPong(benchmark::State& state) {
  Turns turns;
  boost::fibers::fiber other([&turns] {
    while (turns.Take(1)) {
    }
  });
  for (auto _ : state) turns.Take(0);
  turns.End();
  other.join();
  state.SetItemsProcessed(2 * state.iterations());
}

void BoostSpawn(benchmark::State& state) {
  for (auto _ : state) boost::fibers::fiber([] {}).join();
  state.SetItemsProcessed(state.iterations());
}

BENCHMARK(BoostYield)->Name("yield/boost");
BENCHMARK(BoostPingPong)->Name("pingpong/boost");
BENCHMARK(BoostSpawn)->Name("spawn/boost");
#endif

BENCHMARK(CurtailYield)->Name("yield/curtail");
BENCHMARK(CurtailPingPong)->Name("pingpong/curtail");
BENCHMARK(ThreadPingPong)->Name("pingpong/threads")->UseRealTime();
BENCHMARK(CurtailSpawn)->Name("spawn/curtail");
BENCHMARK(ThreadSpawn)->Name("spawn/threads")->UseRealTime();

}  // namespace
}  // namespace curtail

BENCHMARK_MAIN();
