// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/fair_semaphore.h"

#include <utility>

namespace curtail::apps {

FairSemaphore::Place::~Place() {
  MutexLock lock(all_.mu_);
  --all_.taken_;
  if (--line_->second.places == 0) all_.lines_.erase(line_);
}

std::unique_ptr<FairSemaphore::Place> FairSemaphore::Take(std::string key) {
  MutexLock lock(mu_);
  const auto line = lines_.try_emplace(std::move(key), of_key_).first;
  size_t& places = line->second.places;
  if (2 * places >= places_ - taken_) {
    if (places == 0) lines_.erase(line);
    return nullptr;
  }
  ++places, ++taken_;
  return std::make_unique<Place>(*this, line);
}

Co<absl::StatusOr<FairSemaphore::Permit>> FairSemaphore::Acquire(const Context& ctx, std::string key) {
  std::unique_ptr<Place> place = Take(std::move(key));
  if (place == nullptr) co_return absl::ResourceExhaustedError("too many at once; try again");
  absl::StatusOr<Semaphore::Permit> own = co_await place->own().Acquire(ctx);
  if (!own.ok()) co_return own.status();
  absl::StatusOr<Semaphore::Permit> one = co_await all_.Acquire(ctx);
  if (!one.ok()) co_return one.status();
  co_return Permit(std::move(place), *std::move(own), *std::move(one));
}

}  // namespace curtail::apps
