// SPDX-License-Identifier: Apache-2.0
#include "curtail/exec/poller.h"

#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "absl/status/status.h"

#include "curtail/base/boundary.h"
#include "curtail/exec/blocking.h"
#include "curtail/exec/internal/calls_kernel.h"

namespace curtail {
namespace {

constexpr int kMaxEvents = 64;
constexpr uint32_t kInterest = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;

int WaitMillis(int epoll_fd, epoll_event* events, int ms) {
#if CURTAIL_CALLS_KERNEL
  return static_cast<int>(syscall(SYS_epoll_pwait, epoll_fd, events, kMaxEvents, ms, nullptr, 0));
#else
  return epoll_wait(epoll_fd, events, kMaxEvents, ms);
#endif
}

// Sets `*late` when `deadline` had passed, and clears `*precise` if the kernel counts in milliseconds alone.
int EpollWait(int epoll_fd, epoll_event* events, Deadline deadline, bool* late, bool* precise) {
  if (deadline.infinite()) return WaitMillis(epoll_fd, events, -1);
  const Nanos left = deadline == Deadline::At(TimePoint()) ? Nanos::zero() : deadline.Remaining();
  *late = left == Nanos::zero();
  if (*late) return WaitMillis(epoll_fd, events, 0);
  if (*precise) {  // milliseconds would round every short wait up
    const timespec time = {.tv_sec = left.count() / 1'000'000'000, .tv_nsec = left.count() % 1'000'000'000};
    const long n = syscall(SYS_epoll_pwait2, epoll_fd, events, kMaxEvents, &time, nullptr, 0);
    // ENOSYS: a kernel before 5.11; EPERM: a container runtime that does not know the call.
    if (n >= 0 || (errno != ENOSYS && errno != EPERM)) return static_cast<int>(n);
    *precise = false;
  }
  const int64_t ms = std::min<int64_t>((left.count() + 999'999) / 1'000'000, INT_MAX);
  return WaitMillis(epoll_fd, events, static_cast<int>(ms));
}

// The numbers that are in use. Never destroyed: pollers may outlive everything else.
class Ids {
 public:
  static Ids& Get() {
    static Ids* const ids = new Ids;
    return *ids;
  }
  uint32_t Take() {
    MutexLock lock(mu_);
    const size_t i = std::find(used_.begin(), used_.end(), false) - used_.begin();
    if (i == used_.size()) used_.push_back(false);
    used_[i] = true;
    return static_cast<uint32_t>(i);
  }
  void Return(uint32_t id) {
    MutexLock lock(mu_);
    used_[id] = false;
  }

 private:
  Mutex mu_;
  std::vector<bool> used_ CURTAIL_GUARDED_BY(mu_);
};

}  // namespace

uint32_t Poller::TakeId() {
  MutexLock lock(mu_);
  if (id_.load(std::memory_order_relaxed) == kNoId) id_.store(Ids::Get().Take(), std::memory_order_relaxed);
  return id_.load(std::memory_order_relaxed);
}

Poller::Poller() {
  epoll_fd_ = epoll_create1(EPOLL_CLOEXEC);
  wake_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  // The eventfd is edge-triggered and never read: each write is a new edge, and its counter cannot overflow
  // in use.
  epoll_event event = {.events = EPOLLIN | EPOLLET, .data = {.fd = wake_fd_}};
  if (epoll_fd_ < 0 || wake_fd_ < 0 || epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, wake_fd_, &event) != 0) {
    status_ =
        absl::ErrnoToStatus(errno, "cannot create an epoll instance (file descriptor limit? see ulimit -n)");
  }
}

Poller::~Poller() {
  std::vector<std::shared_ptr<PollHandler>>
      handlers;  // some may live only here, and call Remove() as they go
  {
    MutexLock lock(mu_);
    handlers.swap(handlers_);
  }
  handlers.clear();
  if (const uint32_t id = id_.load(std::memory_order_relaxed); id != kNoId) Ids::Get().Return(id);
  if (wake_fd_ >= 0) close(wake_fd_);
  if (epoll_fd_ >= 0) close(epoll_fd_);
}

absl::Status Poller::Add(int fd, std::shared_ptr<PollHandler> handler) {
  epoll_event event = {.events = kInterest, .data = {.fd = fd}};
  int error = 0;
  {
    // Both under the lock: the thread that takes the first event takes it too, and may close the descriptor.
    MutexLock lock(mu_);
    if (handlers_.size() <= static_cast<size_t>(fd)) handlers_.resize(fd + 1);
    handlers_[fd] = std::move(handler);
    if (epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event) != 0) error = errno;
  }
  if (error == 0) return absl::OkStatus();
  Remove(fd);
  return absl::ErrnoToStatus(error, "epoll_ctl");
}

void Poller::Remove(int fd) {
  epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, fd, nullptr);
  std::shared_ptr<PollHandler> last;  // destroyed outside the lock
  MutexLock lock(mu_);
  if (static_cast<size_t>(fd) < handlers_.size()) last = std::move(handlers_[fd]);
}

void Poller::Rearm(int fd) {
  epoll_event event = {.events = kInterest, .data = {.fd = fd}};
  epoll_ctl(epoll_fd_, EPOLL_CTL_MOD, fd, &event);
}

void Poller::Disarm(int fd) {
  epoll_event event = {.events = 0, .data = {.fd = fd}};
  epoll_ctl(epoll_fd_, EPOLL_CTL_MOD, fd, &event);
}

void Poller::Wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = write(wake_fd_, &one, sizeof one);
}

bool Poller::Collect(Deadline deadline, std::vector<Ready>* ready, bool* late) {
  epoll_event events[kMaxEvents];
  const int n = EpollWait(epoll_fd_, events, deadline, late, &precise_);
  internal::event_clock.time = TimePoint();
  more_ = n == kMaxEvents;
  if (n <= 0) return false;
  MutexLock lock(mu_);
  for (int i = 0; i < n; ++i) {
    const size_t fd = events[i].data.fd;
    if (static_cast<int>(fd) == wake_fd_ || fd >= handlers_.size() || handlers_[fd] == nullptr) continue;
    // A descriptor number that was closed and used again gets an event that was not its own: an edge too
    // many, which costs it one read that finds nothing.
    ready->push_back({handlers_[fd], events[i].events});
  }
  return true;
}

bool Poller::SpinUntil(Deadline deadline, const SpinBudget& spin, std::vector<Ready>* ready, bool* late) {
  bool polled = false;
  while (true) {
    // Collect with an expired deadline never sleeps. Give way after each miss: the sender may need this very
    // CPU.
    if (Collect(Deadline::At(TimePoint()), ready, &polled)) return true;
    *late = Now() >= deadline.when();
    if (*late || !spin.open()) return false;
    sched_yield();
  }
}

void Poller::Ready::Handle(TaskList* tasks) const {
  if (Contain("a socket", [&] { handler->OnEvents(events, tasks); })) return;
  Contain("a socket", [&] { handler->OnException(); });
}

bool Poller::Wait(Deadline deadline, SpinBudget* spin, std::vector<Ready>* ready) {
  ready->clear();
  bool late = false;
  if (spin != nullptr && spin->open()) {
    if (spin->TryAcquire()) {
      const bool came = SpinUntil(deadline, *spin, ready, &late);
      spin->Release();
      if (came || late) return late;
    } else if (spin->slots() > 0 &&
               SpinUntil(std::min(deadline, Deadline::In(SpinBudget::kBriefSpin)), *spin, ready, &late)) {
      return false;
    }
    late = false;  // that was the end of the brief spin
  }
  const ScopedBlocking blocking;
  Collect(deadline, ready, &late);
  return late;
}

}  // namespace curtail
