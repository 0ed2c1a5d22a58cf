// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. A loop is one thread; its fibers take turns on it, and each gives its turn up only in Suspend() or
// at its end. So fibers of one loop share its state without a lock. Other threads only wake. The protocol:
//
//  F1  A fiber is resumed from a ready list only. The waker that sets ready_ puts it there. A waker that finds
//      ready_ set returns, because the fiber is yet to be resumed, and the loop clears ready_ before it resumes:
//      the fiber will see what the waker did before.
//  F2  A wake-up may reach a fiber that does not wait, or that waits for something else by now. It is then
//      dropped, or makes a wait return early. Fibers live as long as their loop, so a late wake-up never meets
//      a dead fiber; and every waker must be done with the fiber before the loop is destroyed. (In a server the
//      wakers are pool threads, which have ended by then, and the caller of Drain().)
//  F3  Before the thread sleeps it sets sleeping_, then looks at the seat's epoch and at the remote list. A
//      waker changes one of these first, then takes sleeping_ away, and wakes the poller if it was set. All
//      four steps are sequentially consistent: one of the two sees the other.
//
// Switching goes through Resume() and SwitchOut() only. They tell AddressSanitizer and ThreadSanitizer which
// stack comes next, and give every fiber its own state of exception handling, so that a handler may wait in a
// catch block.
//
// Not offered: moving fibers between threads, priorities among fibers.
#include "curtail/exec/fiber.h"

#include <cxxabi.h>
#include <unistd.h>

#include <boost/context/detail/fcontext.hpp>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "curtail/base/strings.h"
#include "curtail/exec/internal/stack.h"
#include "curtail/exec/wait.h"

#if defined(__SANITIZE_ADDRESS__)
#define CURTAIL_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CURTAIL_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define CURTAIL_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define CURTAIL_TSAN 1
#endif
#endif

#ifdef CURTAIL_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef CURTAIL_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace curtail {
namespace {

thread_local Fiber* current_fiber = nullptr;

// A fiber that does not wait gives others a turn after so long.
constexpr Nanos kSlice = std::chrono::microseconds(100);

// The C++ runtime's record of exceptions in flight (Itanium C++ ABI, 2.2.2); one for each stack.
struct ExceptionState {
  void* caught = nullptr;
  unsigned int uncaught = 0;

  void Exchange() {
    auto* mine = reinterpret_cast<ExceptionState*>(abi::__cxa_get_globals());
    std::swap(caught, mine->caught);
    std::swap(uncaught, mine->uncaught);
  }
};

// A place to come back to, as the sanitizers see it.
class Place {
 public:
#ifdef CURTAIL_TSAN
  void* tsan = nullptr;
#endif
#ifdef CURTAIL_ASAN
  const void* bottom = nullptr;
  size_t size = 0;
  void* fake_stack = nullptr;
#endif
  // Just before the stack is left for `to`'s.
  void Leave([[maybe_unused]] Place& to) {
#ifdef CURTAIL_ASAN
    __sanitizer_start_switch_fiber(&fake_stack, to.bottom, to.size);
#endif
#ifdef CURTAIL_TSAN
    __tsan_switch_to_fiber(to.tsan, 0);
#endif
  }
  // Just after it was entered. `from` learns its bounds if they were not known.
  void Enter([[maybe_unused]] Place& from) {
#ifdef CURTAIL_ASAN
    __sanitizer_finish_switch_fiber(fake_stack, &from.bottom, &from.size);
#endif
  }
};

}  // namespace

struct FiberLoop::Main {
  Place place;
};

struct Fiber::Context {
  explicit Context(FiberStack s) : stack(std::move(s)) {
#ifdef CURTAIL_TSAN
    place.tsan = __tsan_create_fiber(0);
#endif
#ifdef CURTAIL_ASAN
    place.bottom = stack.bottom();
    place.size = stack.size();
#endif
  }
  // A suspended context needs no end of its own: its memory just goes.
  ~Context() {
#ifdef CURTAIL_TSAN
    __tsan_destroy_fiber(place.tsan);
#endif
#ifdef CURTAIL_ASAN
    __asan_unpoison_memory_region(stack.bottom(), stack.size());
#endif
  }

  FiberStack stack;
  boost::context::detail::fcontext_t inside = nullptr;   // valid while suspended
  boost::context::detail::fcontext_t outside = nullptr;  // valid while running
  ExceptionState exceptions;
  Place place;
};

namespace {

void Write(std::string_view text) {
  [[maybe_unused]] const ssize_t n = write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace

Fiber::Fiber(FiberLoop* loop) : loop_(loop) {}
Fiber::~Fiber() = default;

Fiber* Fiber::Current() { return current_fiber; }

bool Fiber::InGuard(const void* address) const { return context_->stack.InGuard(address); }

void Fiber::Main() {
  context_->place.Enter(loop_->main_->place);
  while (true) {
    task_->RunContained(hint_);
    task_ = nullptr;
    loop_->free_.push_back(this);
    --loop_->live_;
    SwitchOut();
  }
}

void Fiber::SwitchOut() {
  context_->place.Leave(loop_->main_->place);
  context_->outside = boost::context::detail::jump_fcontext(context_->outside, nullptr).fctx;
  context_->place.Enter(loop_->main_->place);
}

void Fiber::LookAtTime() {
  const TimePoint now = Now();
  if (seen_at_ == TimePoint()) seen_at_ = now;
  if (now - seen_at_ < kSlice) return;
  ++loop_->yields_;
  Wake();
  Suspend(Deadline::Infinite());
}

void Fiber::Suspend(Deadline deadline) {
  if (!deadline.infinite()) loop_->timers_.Insert(*this, deadline.when());
  const TimePoint from = timed_ ? Now() : TimePoint();
  waiting_ = true;
  SwitchOut();
  if (timed_) suspended_ += Now() - from;
  loop_->timers_.Remove(*this);
}

void Fiber::Wake() {
  if (ready_.exchange(true, std::memory_order_acq_rel)) return;  // F1
  FiberLoop* const loop = loop_;
  if (CurrentWait().loop == loop) return loop->ready_.Push(this);
  next_ = loop->remote_.load(std::memory_order_relaxed);
  while (!loop->remote_.compare_exchange_weak(next_, this, std::memory_order_seq_cst,
                                              std::memory_order_relaxed)) {
  }
  loop->Rouse();  // F3
}

void FiberLoop::List::Push(Fiber* fiber) {
  fiber->next_ = nullptr;
  (tail ? tail->next_ : head) = fiber;
  tail = fiber;
}

Fiber* FiberLoop::List::Pop() {
  Fiber* fiber = head;
  if (fiber == nullptr) return nullptr;
  head = fiber->next_;
  if (head == nullptr) tail = nullptr;
  return fiber;
}

// Says in whose stack the fault is, from inside a signal handler.
static bool DescribeOverrun(const void* fault);

FiberLoop::FiberLoop(const FiberOptions& options)
    : options_(options), poller_(std::make_shared<Poller>()), main_(std::make_unique<Main>()) {}

FiberLoop::~FiberLoop() = default;

Fiber* FiberLoop::Take() {
  if (full()) return nullptr;
  ++live_;
  if (!free_.empty()) {
    Fiber* const fiber = free_.back();
    free_.pop_back();
    return fiber;
  }
  EnsureSignalStack();
  InstallOverrunHandler(DescribeOverrun);
  absl::StatusOr<FiberStack> stack = FiberStack::New(options_.stack_bytes);
  if (!stack.ok()) {
    --live_;
    return nullptr;
  }
  fibers_.emplace_back(new Fiber(this), [](Fiber* f) { delete f; });
  Fiber* const fiber = fibers_.back().get();
  fiber->context_ = std::make_unique<Fiber::Context>(*std::move(stack));
  Fiber::Context& context = *fiber->context_;
  context.inside = boost::context::detail::make_fcontext(context.stack.top(), context.stack.size(),
                                                         [](boost::context::detail::transfer_t from) {
                                                           auto* const self = static_cast<Fiber*>(from.data);
                                                           self->context_->outside = from.fctx;
                                                           self->Main();  // never returns
                                                         });
  return fiber;
}

bool FiberLoop::Start(Task* task, const WaitHint& hint) {
  Fiber* const fiber = Take();
  if (fiber == nullptr) return false;
  fiber->task_ = task;
  fiber->kind_ = task->kind();
  fiber->hint_ = hint;
  fiber->TimeSuspensions(false);
  Resume(fiber);
  return true;
}

bool FiberLoop::Spawn(Task* task, const WaitHint& hint) {
  Fiber* const fiber = Take();
  if (fiber == nullptr) return false;
  fiber->task_ = task;
  fiber->kind_ = task->kind();
  fiber->hint_ = hint;
  fiber->TimeSuspensions(false);
  fiber->waiting_ = true;
  fiber->Wake();
  return true;
}

void FiberLoop::Resume(Fiber* fiber) {
  Fiber::Context& context = *fiber->context_;
  fiber->waiting_ = false;
  fiber->seen_at_ = TimePoint();
  current_fiber = fiber;
  const uint64_t number = run_number_.load(std::memory_order_relaxed);
  run_kind_.store(fiber->kind_, std::memory_order_release);
  run_number_.store(number + 1, std::memory_order_release);
  context.exceptions.Exchange();
#ifdef CURTAIL_TSAN
  main_->place.tsan = __tsan_get_current_fiber();
#endif
  main_->place.Leave(context.place);
  context.inside = boost::context::detail::jump_fcontext(context.inside, fiber).fctx;
  main_->place.Enter(context.place);
  context.exceptions.Exchange();
  run_number_.store(number + 2, std::memory_order_release);
  current_fiber = nullptr;
}

FiberLoop::Run FiberLoop::run() const {
  const uint64_t number = run_number_.load(std::memory_order_acquire);
  TaskKind* const kind = run_kind_.load(std::memory_order_acquire);
  return {number, run_number_.load(std::memory_order_acquire) == number ? kind : nullptr};
}

void FiberLoop::TakeRemote() {
  if (remote_.load(std::memory_order_seq_cst) == nullptr) return;
  Fiber* fiber = remote_.exchange(nullptr, std::memory_order_acq_rel);
  while (fiber != nullptr) {
    Fiber* const next = fiber->next_;
    ready_.Push(fiber);
    fiber = next;
  }
}

bool FiberLoop::HasReady() {
  TakeRemote();
  return ready_.head != nullptr;
}

void FiberLoop::RunReady() {
  TakeRemote();
  Fiber* const last = ready_.tail;
  while (Fiber* fiber = ready_.Pop()) {
    fiber->ready_.exchange(false, std::memory_order_acq_rel);  // F1
    const bool end = fiber == last;
    if (fiber->waiting_) Resume(fiber);  // F2
    if (end) break;
  }
}

void FiberLoop::HandleEvents(bool late) {
  for (const Poller::Ready& event : events_) event.Handle(nullptr);
  events_.clear();
  if (late) ExpireTimers();
}

void FiberLoop::ExpireTimers() {
  if (timers_.empty()) return;
  const TimePoint now = TimeOfTurn();
  while (!timers_.empty() && timers_.first().when() <= now) {
    Fiber& fiber = static_cast<Fiber&>(timers_.first());
    timers_.Remove(fiber);
    fiber.Wake();
  }
}

void FiberLoop::Wait(const Parker& seat, uint32_t ticket, SpinBudget* spin) {
  sleeping_.store(true, std::memory_order_seq_cst);  // F3
  const bool news = seat.Ticket() != ticket || remote_.load(std::memory_order_seq_cst) != nullptr;
  Deadline deadline = Deadline::Infinite();
  if (news) {
    deadline = Deadline::At(TimePoint());
  } else if (!timers_.empty()) {
    deadline = Deadline::At(timers_.first().when());
  }
  // A wait that events have ended reads no clock: if a timer is due by then, the next wait begins late.
  const bool late = poller_->Wait(deadline, spin, &events_) || spin != nullptr || events_.empty();
  sleeping_.store(false, std::memory_order_relaxed);
  HandleEvents(late);
}

void FiberLoop::Poll() {
  poller_->Wait(Deadline::At(TimePoint()), nullptr, &events_);
  HandleEvents(/*late=*/true);
}

void FiberLoop::Rouse() {
  if (sleeping_.exchange(false, std::memory_order_seq_cst)) poller_->Wake();
}

static bool DescribeOverrun(const void* fault) {
  const Fiber* const fiber = current_fiber;
  if (fiber == nullptr || !fiber->InGuard(fault)) return false;
  Write("curtail: stack overflow on a fiber, in the handler of ");
  Write(fiber->task_name());
  Write(": raise the size of fibers' stacks (--fiber-stack, ServerOptions::fiber_stack_bytes)\n");
  return true;
}

void SleepUntil(Deadline deadline) {
  if (deadline.Expired()) return;
  FlushBeforeWait();
  Parker parker;
  while (!deadline.Expired()) parker.Wait(parker.Ticket(), deadline);
}

}  // namespace curtail
