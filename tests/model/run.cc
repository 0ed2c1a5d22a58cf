// SPDX-License-Identifier: Apache-2.0
#include "tests/model/run.h"

#include <algorithm>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <cstdlib>
#include <map>
#include <sstream>

namespace curtail::model {
namespace {

using boost::context::fiber;

constexpr int64_t kYieldNs = 10'000;  // longer than nothing, so that brief spinning ends
constexpr size_t kMaxSteps = 20'000;  // programs take hundreds
constexpr size_t kStackBytes = 256 << 10;

// Stacks are used again: mapping one costs more than a whole run.
class StackPool {
 public:
  boost::context::stack_context allocate() {
    if (Free().empty()) return boost::context::protected_fixedsize_stack(kStackBytes).allocate();
    boost::context::stack_context stack = Free().back();
    Free().pop_back();
    return stack;
  }
  void deallocate(boost::context::stack_context& stack) { Free().push_back(stack); }

 private:
  static std::vector<boost::context::stack_context>& Free() {
    static std::vector<boost::context::stack_context> free;
    return free;
  }
};

}  // namespace

void Run::Execute(const std::function<void()>& program) {
  Spawn(program);
  while (next_ != kNone && failure_.empty()) {
    current_ = next_;
    Thread& t = *threads_[current_];
    t.locals.Exchange();
    t.context = std::move(t.context).resume();
    t.locals.Exchange();
  }
  if (failure_.empty()) return;
  for (auto& thread : threads_) thread.release();  // abandoned: see scheduler.h
}

int Run::Spawn(std::function<void()> body) {
  const int id = static_cast<int>(threads_.size());
  threads_.push_back(std::make_unique<Thread>());
  Thread& t = *threads_.back();
  t.known = steps_.size();
  t.body = std::move(body);
  t.context = fiber(std::allocator_arg, StackPool(), [this, &t](fiber&& main) {
    main_ = std::move(main);
    t.body();
    t.done = true;
    Decide();
    return std::move(main_);
  });
  chooser_->Spawned(id);
  return id;
}

bool Run::Block(const char* what, const void* object, bool (*ready)(const void*), const void* context,
                int64_t until, bool may_be_spurious) {
  Thread& self = *threads_[current_];
  self.what = what;
  self.object = object;
  self.ready = ready;
  self.ready_context = context;
  self.until = until;
  self.may_be_spurious = may_be_spurious;
  Decide();
  if (next_ != current_ || !failure_.empty()) Suspend();
  steps_.push_back({current_, what, object});
  if (ready != nullptr) Synchronize(steps_.size());
  const bool was_ready = ready == nullptr || ready(context);
  self.ready = nullptr;
  return was_ready;
}

bool Run::ReadsStale(const LastWrite& write, bool seq_cst) {
  const bool seen = ((write.seen_by >> current_) & 1) != 0;
  if (stale_left_ == 0 || seen || (seq_cst && write.seq_cst) || write.step <= threads_[current_]->known)
    return false;
  candidates_ = {{current_}, {current_, true}};
  if (Pick(1) == 0) return false;
  --stale_left_;
  steps_.push_back({current_, "finds the value before the last write", nullptr});
  return true;
}

void Run::Yield() {
  threads_[current_]->yielded = true;
  now_ += kYieldNs;
  chooser_->Yielded(current_);
  Point("yield", nullptr);
}

void Run::Settle() {
  settling_ = true;
  const auto others_wait = [this, self = current_] {
    for (size_t i = 0; i < threads_.size(); ++i) {
      if (static_cast<int>(i) != self && Enabled(*threads_[i])) return false;
    }
    return true;
  };
  using Ready = decltype(others_wait);
  Block(
      "settle", nullptr, [](const void* f) { return (*static_cast<Ready*>(f))(); }, &others_wait, kForever,
      false);
  settling_ = false;
}

int64_t Run::NextMoment() const {
  int64_t next = kForever;
  for (const int64_t m : moments_) {
    if (m > now_) next = std::min(next, m);
  }
  for (const auto& t : threads_) {
    if (!t->done && t->ready != nullptr && t->until > now_) next = std::min(next, t->until);
  }
  return next - kStart > horizon_ ? kForever : next;
}

size_t Run::List() {
  candidates_.clear();
  const int count = static_cast<int>(threads_.size());
  const bool goes_on = Enabled(*threads_[current_]);
  for (int i = 0; i < count; ++i) {
    const int id = (current_ + i) % count;
    if (Enabled(*threads_[id])) candidates_.push_back({id});
  }
  if (NextMoment() != kForever && (!patient_clock_ || candidates_.empty())) candidates_.push_back({kClock});
  size_t free = goes_on ? 1 : candidates_.size();
  if (candidates_.empty()) {  // spinners alone; nothing but they can change anything
    for (int i = 1; i <= count; ++i) {
      const int id = (current_ + i) % count;
      if (threads_[id]->yielded) candidates_.push_back({id});
    }
    if (!candidates_.empty() && ++idle_yields_ > 100) candidates_.clear();
    free = candidates_.size();
  } else {
    idle_yields_ = 0;
  }
  if (candidates_.empty() || spurious_left_ == 0) return free;
  for (int id = 0; id < count; ++id) {
    const Thread& t = *threads_[id];
    if (!t.done && t.ready != nullptr && t.may_be_spurious && !Enabled(t)) candidates_.push_back({id, true});
  }
  return free;
}

size_t Run::Pick(size_t free) {
  if (candidates_.size() == 1 || settling_) return 0;
  const size_t index = chooser_->Choose(candidates_, free);
  if (index != 0) deviations_.push_back({decisions_, index});
  ++decisions_;
  return index;
}

void Run::Decide() {
  // Whoever got here took a step: spinners may find news.
  for (size_t i = 0; i < threads_.size(); ++i) {
    if (static_cast<int>(i) != current_) threads_[i]->yielded = false;
  }
  while (true) {
    const size_t free = List();
    if (candidates_.empty()) {
      next_ = kNone;
      if (!std::all_of(threads_.begin(), threads_.end(), [](const auto& t) { return t->done; }))
        RecordFailure("deadlock: " + Blocked());
      return;
    }
    if (steps_.size() > kMaxSteps) return RecordFailure("livelock: " + Blocked());
    const Candidate chosen = candidates_[Pick(free)];
    if (chosen.thread != kClock) {
      if (chosen.spurious) --spurious_left_;
      threads_[chosen.thread]->yielded = false;
      next_ = chosen.thread;
      return;
    }
    now_ = NextMoment();
    steps_.push_back({kClock, "moves to the next deadline", nullptr});
    for (auto& t : threads_) t->yielded = false;
  }
}

void Run::RecordFailure(const std::string& what) {
  if (failure_.empty()) failure_ = what;
}

void Run::Fail(const std::string& what) {
  RecordFailure("thread " + std::to_string(current_) + ": " + what);
  Suspend();
  std::abort();  // abandoned threads are not resumed
}

std::string Run::Blocked() const {
  std::string text;
  for (size_t i = 0; i < threads_.size(); ++i) {
    if (threads_[i]->done) continue;
    text += (text.empty() ? "thread " : ", thread ") + std::to_string(i) + " waits in " + threads_[i]->what;
  }
  return text;
}

std::string Run::Trace() const {
  std::map<const void*, size_t> names;
  std::ostringstream out;
  for (const Step& step : steps_) {
    out << "  " << (step.thread == kClock ? "clock" : "thread " + std::to_string(step.thread)) << ": "
        << step.what;
    if (step.object != nullptr) out << " #" << names.emplace(step.object, names.size()).first->second;
    out << '\n';
  }
  return out.str();
}

std::string Run::Choices() const {
  std::ostringstream out;
  for (const auto& [decision, index] : deviations_)
    out << (out.tellp() > 0 ? "," : "") << decision << '=' << index;
  return deviations_.empty() ? "none" : out.str();
}

}  // namespace curtail::model
