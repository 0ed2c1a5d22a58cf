// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/blobs/download_places.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace curtail::apps {

constexpr Nanos kGrace = std::chrono::seconds(2);

DownloadPlaces::DownloadPlaces(size_t most, uint64_t rate, const TimeSource& time)
    : rate_(static_cast<double>(rate)), time_(time), places_(most) {}

void DownloadPlaces::Free(Place& place) {
  if (const auto reader = readers_.find(place.reader); --reader->second == 0) readers_.erase(reader);
  place = {};
}

DownloadPlaces::Hold::Hold(DownloadPlaces& places, const std::string& reader, Context& download)
    : places_(places) {
  const TimePoint now = places.time_.Now();
  MutexLock lock(places.mu_);
  auto place = std::ranges::min_element(places.places_, {}, &Place::due);
  if (place->due >= now) {
    const auto own = places.readers_.find(reader);
    const auto most =
        std::ranges::max_element(places.readers_, {}, [](const auto& one) { return one.second; });
    if (most->second < 2 + (own == places.readers_.end() ? 0 : own->second)) return;
    place = std::ranges::min_element(
        places.places_, {}, [&](const Place& one) { return std::pair(one.reader != most->first, one.due); });
  }
  if (place->holder != 0) {
    place->download->Cancel();
    places.Free(*place);
  }
  holder_ = ++places.last_holder_;
  *place = {.holder = holder_, .download = &download, .due = now + kGrace, .reader = reader};
  ++places.readers_[reader];
  place_ = static_cast<size_t>(place - places.places_.begin());
}

bool DownloadPlaces::Hold::End() {
  if (holder_ == 0) return false;
  MutexLock lock(places_.mu_);
  Place& place = places_.places_[place_];
  if (place.holder != std::exchange(holder_, 0)) return false;
  places_.Free(place);
  return true;
}

bool DownloadPlaces::Hold::Ask(uint64_t bytes) {
  if (holder_ == 0) return false;
  const uint64_t on_their_way = std::min(bytes, kOnTheirWay - std::min(asked_, kOnTheirWay));
  asked_ += bytes;
  MutexLock lock(places_.mu_);
  Place& place = places_.places_[place_];
  if (place.holder != holder_) return false;
  place.due += FromSeconds(static_cast<double>(bytes - on_their_way) / places_.rate_);
  return true;
}

}  // namespace curtail::apps
