// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/server/parts/listener.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

namespace curtail::internal {
namespace {

// Connections accepted before other handlers have a turn.
constexpr int kAcceptBatch = 64;
// When descriptors have run out.
constexpr Nanos kPause = std::chrono::milliseconds(100);

int OpenSpare() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }

}  // namespace

Listener::Listener(UniqueFd fd, std::shared_ptr<Poller> poller, std::shared_ptr<TimerClock> clock,
                   std::function<void(UniqueFd)> accepted)
    : poller_(std::move(poller)),
      clock_(std::move(clock)),
      accepted_(std::move(accepted)),
      fd_(std::move(fd)),
      spare_(OpenSpare()) {}

absl::Status Listener::Register(std::shared_ptr<Listener> self) {
  MutexLock lock(mu_);
  return poller_->Add(fd_.get(), std::move(self));
}

void Listener::OnEvents(uint32_t events, TaskList*) {
  if (!(events & EPOLLIN)) return;
  MutexLock lock(mu_);
  if (!spare_) spare_.Reset(OpenSpare());
  bool starved = false;
  for (int i = 0; fd_ && i < kAcceptBatch; ++i) {
    const int accepted = accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (accepted >= 0) {
      accepted_(UniqueFd(accepted));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return;
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      if (!std::exchange(starved, true)) accepted_(UniqueFd());
      if (!spare_) break;
      spare_.Reset();
      UniqueFd refused(accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      refused.Reset();
      spare_.Reset(OpenSpare());
    }
    // Any other error is that connection's own (accept(2)), or passes.
  }
  if (!fd_) return;
  if (starved) return clock_->Arm(*this, Now() + kPause);
  poller_->Rearm(fd_.get());  // other handlers have a turn first
}

void Listener::OnClock(TaskList*) {
  MutexLock lock(mu_);
  if (fd_) poller_->Rearm(fd_.get());
}

void Listener::Close() {
  MutexLock lock(mu_);
  if (!fd_) return;
  poller_->Remove(fd_.get());
  const std::string address = BoundAddress(fd_.get());
  fd_.Reset();
  if (address.starts_with("unix:")) unlink(address.c_str() + 5);
}

}  // namespace curtail::internal
