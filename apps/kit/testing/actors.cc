// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/testing/actors.h"

#include <utility>

#include "curtail/base/testing.h"

namespace curtail::apps {

void AllAtOnce(size_t threads, uint64_t seed, const std::function<void(Rng&, size_t)>& act) {
  const auto run = [&](size_t thread) {
    Rng rng(seed * threads + thread);
    act(rng, thread);
  };
  std::vector<std::thread> others;
  for (size_t thread = 1; thread < threads; ++thread) others.emplace_back(run, thread);
  run(0);
  for (std::thread& other : others) other.join();
}

void Actors::Begin(uint64_t seed, std::function<void(Rng&)> act) {
  threads_.emplace_back([this, seed, act = std::move(act)] {
    Rng rng(seed);
    while (!resting_) act(rng);
  });
}

void Actors::Rest() {
  resting_ = true;
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void Actors::Note(Did did) {
  {
    const std::lock_guard lock(mu_);
    all_ += 1;
    written_ += did == Did::kWrote ? 1 : 0;
    failed_ += did == Did::kFailedToWrite ? 1 : 0;
  }
  acted_.notify_all();
}

bool Actors::Await(const int* count, int more) {
  std::unique_lock lock(mu_);
  const int wanted = *count + more;
  return acted_.wait_for(lock, kMaxTestWait, [&] { return *count >= wanted; });
}

bool Actors::AwaitFailedAfter(int failed) {
  std::unique_lock lock(mu_);
  return acted_.wait_for(lock, kMaxTestWait, [&] { return failed_ > failed; });
}

int Actors::failed() const {
  const std::lock_guard lock(mu_);
  return failed_;
}

}  // namespace curtail::apps
