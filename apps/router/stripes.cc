// SPDX-License-Identifier: Apache-2.0
#include "apps/router/stripes.h"

#include <mutex>
#include <utility>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace curtail::router {

uint64_t HashOf(std::string_view key) { return XXH3_64bits(key.data(), key.size()); }

size_t ShardOf(uint64_t hash, size_t shards) {
  // The upper half, scaled: no division, and nothing in common with Stripes::Of().
  return static_cast<size_t>((hash >> 32) * shards >> 32);
}

// A flag under a mutex, and not the mutex itself: that one cannot be waited for until a deadline, nor be
// given back by another thread than took it.
struct Stripes::Hold::Part {
  FiberMutex mu;
  FiberCondition freed;
  bool taken = false;  // guarded by mu
};

Stripes::Stripes() : parts_(std::make_unique<Hold::Part[]>(kCount)) {}
Stripes::~Stripes() = default;

Stripes::Hold Stripes::Take(size_t stripe, Deadline deadline) {
  Hold::Part& part = parts_[stripe];
  std::unique_lock<FiberMutex> lock(part.mu);
  while (part.taken) {
    if (deadline.Expired() || (!part.freed.wait_until(lock, deadline) && part.taken)) return Hold();
  }
  part.taken = true;
  return Hold(&part);
}

Stripes::Hold::Hold(Hold&& other) noexcept : part_(std::exchange(other.part_, nullptr)) {}

Stripes::Hold& Stripes::Hold::operator=(Hold&& other) noexcept {
  std::swap(part_, other.part_);
  return *this;
}

Stripes::Hold::~Hold() {
  if (part_ == nullptr) return;
  const std::lock_guard<FiberMutex> lock(part_->mu);
  part_->taken = false;
  part_->freed.notify_one();
}

}  // namespace curtail::router
