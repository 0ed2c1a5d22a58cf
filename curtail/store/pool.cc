// SPDX-License-Identifier: Apache-2.0
#include "curtail/store/pool.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "curtail/base/strings.h"
#include "curtail/exec/fiber.h"
#include "curtail/exec/wait.h"

namespace curtail {

// The connections of one poller's thread, or of all threads that are no fiber threads.
struct StreamPool::Part {
  std::shared_ptr<Poller> poller;  // null: for threads
  FiberMutex mu;
  FiberCondition freed;
  std::vector<std::unique_ptr<Stream>> idle;  // guarded by mu; the one used last is taken first
  int open = 0;                               // guarded by mu: idle or in use
};

StreamPool::StreamPool(StoreAddress address, std::string store, int limit)
    : address_(std::move(address)), store_(std::move(store)), limit_(limit) {}

StreamPool::~StreamPool() = default;

StreamPool::Part& StreamPool::PartOfCaller() {
  const FiberLoop* const loop = Fiber::Current() == nullptr ? nullptr : CurrentWait().loop;
  const Poller* const poller = loop == nullptr ? nullptr : loop->poller().get();
  const MutexLock lock(mu_);
  for (Part& part : parts_) {
    if (part.poller.get() == poller) return part;
  }
  Part& part = parts_.emplace_back();
  if (loop != nullptr) part.poller = loop->poller();
  return part;
}

absl::Status StreamPool::Take(bool fresh, Deadline deadline, Lease* lease) {
  Part& part = PartOfCaller();
  {
    std::vector<std::unique_ptr<Stream>> dead;  // closed without the lock
    std::unique_lock<FiberMutex> lock(part.mu);
    if (fresh) {
      dead.swap(part.idle);
      part.open -= static_cast<int>(dead.size());
    }
    while (part.idle.empty() && part.open >= limit_) {
      if (!part.freed.wait_until(lock, deadline) && deadline.Expired()) {
        return absl::DeadlineExceededError(
            Join("all ", part.open, " connections to ", store_, " ", address_.text, " are in use"));
      }
    }
    lease->part_ = &part;
    lease->reused_ = !part.idle.empty();
    if (lease->reused_) {
      lease->stream_ = std::move(part.idle.back());
      part.idle.pop_back();
      return absl::OkStatus();
    }
    ++part.open;
  }
  auto opened = Stream::Open(address_, store_, part.poller, deadline);
  if (!opened.ok()) {
    lease->Return();
    return opened.status();
  }
  lease->stream_ = *std::move(opened);
  return absl::OkStatus();
}

bool StreamPool::AnyIdleBroken() {
  std::vector<Part*> parts;  // they stay
  {
    const MutexLock lock(mu_);
    for (Part& part : parts_) parts.push_back(&part);
  }
  return std::ranges::any_of(parts, [](Part* part) {
    const std::lock_guard<FiberMutex> lock(part->mu);
    return std::ranges::any_of(
        part->idle, [](const auto& stream) { return stream->TryReceive() != Stream::State::kQuiet; });
  });
}

std::unique_ptr<Stream> StreamPool::Lease::Remove() {
  auto stream = std::move(stream_);
  Return();
  return stream;
}

void StreamPool::Lease::Return() {
  if (part_ == nullptr) return;
  const std::lock_guard<FiberMutex> lock(part_->mu);
  if (stream_ == nullptr) {
    --part_->open;
  } else {
    part_->idle.push_back(std::move(stream_));
  }
  part_->freed.notify_one();
  part_ = nullptr;
}

}  // namespace curtail
