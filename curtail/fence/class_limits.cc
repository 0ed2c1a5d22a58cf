// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. A limiter begins with the share that its class has, and never asks for more than its class could get: what
// the shares of the others leave, or an equal part. Otherwise it would climb while its class has no more permits, and
// its cuts would then change nothing for a while. Where permits are lent, a class could get all. A class whose limit
// falls leaves permits to those whose limits rise.
#include "curtail/fence/class_limits.h"

#include <bit>

#include "curtail/fence/shares.h"

namespace curtail {

ClassLimits::Closed ClassLimits::Close(TimePoint now) {
  Closed closed;
  if (now <= began_) return closed;
  fence_.meter()->Hear(now);
  Shares shares{};     // 0: it has no permits
  uint64_t known = 0;  // those that have some, or had, as bits
  for (uint8_t c = Fence::kLocal + 1; c < Fence::kMaxClasses; ++c) {
    shares[c] = fence_.share(c);
    known |= uint64_t{shares[c] > 0 || classes_[c].limiter != nullptr} << c;
  }
  for (uint64_t left = known; left != 0; left &= left - 1) {
    const auto c = static_cast<uint8_t>(std::countr_zero(left));
    CloseOf(c, fence_.Sample(c), now, shares, &closed);
  }
  began_ = now;
  return closed;
}

void ClassLimits::CloseOf(uint8_t path_class, const FenceClassStats& stats, TimePoint now, Shares& shares,
                          Closed* closed) {
  Class& c = classes_[path_class];
  if (c.limiter == nullptr) c.limiter = MakeLimiter(fence_.options().limit, stats.limit);
  const FenceMeter::Reading read = fence_.meter()->Read(path_class, now);
  const uint64_t waited = stats.queued + stats.refused;
  const Nanos length = now - began_;
  const LoadBin bin{.length = length,
                    .concurrency = read.held / InSeconds(length),
                    .completed = read.answered,
                    .dropped = read.dropped,
                    .limited = waited != c.waited || stats.waiting > 0,
                    .most = MostOf(path_class, shares)};
  closed->busy |= bin.limited || stats.begun != c.begun || stats.in_use > 0;
  c.waited = waited;
  c.begun = stats.begun;
  if (stats.limit == 0) return;  // its methods are of other classes now
  const uint32_t limit = c.limiter->Next(bin);
  if (limit == stats.limit) return;
  fence_.SetLimit(path_class, limit);
  shares[path_class] = limit;
  closed->changed = true;
}

uint32_t ClassLimits::MostOf(uint8_t path_class, const Shares& shares) const {
  if (fence_.options().mode == FenceMode::kOn) return fence_.permits();
  Shares claims;
  size_t count = 0;
  size_t mine = 0;
  for (uint8_t c = 0; c < Fence::kMaxClasses; ++c) {
    if (c != path_class && shares[c] == 0) continue;
    if (c == path_class) mine = count;
    claims[count++] = c == path_class ? fence_.permits() : shares[c];
  }
  FitClaims({claims.data(), count}, fence_.permits());
  return claims[mine];
}

}  // namespace curtail
