// SPDX-License-Identifier: Apache-2.0
//
// download_places.h - a bound of how many downloads go on at once, in which slow readers are in no other's way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "curtail/base/clock.h"
#include "curtail/base/mutex.h"
#include "curtail/rpc/context.h"

namespace curtail::apps {

// A DownloadPlaces has so many places. A download that finds none goes away instead of waiting. Thread-safe.
//
// A reader is behind once it has held a place for 2 s and for as long as the bytes that it took need at the least rate. It
// keeps the place all the same, as one does that shows a paused video, until another download needs it. A download that loses
// its place is cancelled at once.
//
// No reader, such as an address, keeps others out: where no place is free, a download of a reader that has two fewer than the one that
// has most takes the place that is most behind of that one's.
class DownloadPlaces {
 public:
  // So many of the bytes that were asked for are on their way to the reader, and not yet taken.
  static constexpr uint64_t kOnTheirWay = 1u << 20;

  // A Hold has a place, or not, until its end. Thread-compatible.
  class Hold {
   public:
    // Takes a free place, else the place of the download that is most behind, else a place of the reader that has most.
    // `download` is cancelled if another takes the place.
    Hold(DownloadPlaces& places, const std::string& reader, Context& download);
    ~Hold() { End(); }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

    // It found a place.
    explicit operator bool() const { return holder_ != 0; }
    // So many bytes more are asked for. False: it has no place, or no longer.
    bool Ask(uint64_t bytes);
    // Gives the place back. False: it had none, or none any more. The download is not cancelled from now on.
    bool End();

   private:
    DownloadPlaces& places_;
    size_t place_ = 0;
    uint64_t holder_ = 0;  // 0: none
    uint64_t asked_ = 0;
  };

  // `rate`: bytes a second. REQUIRES: neither is 0.
  DownloadPlaces(size_t most, uint64_t rate, const TimeSource& time = RealTime());

 private:
  struct Place {
    uint64_t holder = 0;               // 0: none
    Context* download = nullptr;       // its
    TimePoint due = TimePoint::min();  // its holder is behind from then on
    std::string reader;
  };
  // So that another may take it.
  void Free(Place& place) CURTAIL_REQUIRES(mu_);

  const double rate_;
  const TimeSource& time_;
  Mutex mu_;
  std::vector<Place> places_ CURTAIL_GUARDED_BY(mu_);
  std::map<std::string, size_t> readers_ CURTAIL_GUARDED_BY(mu_);  // how many places each has
  uint64_t last_holder_ CURTAIL_GUARDED_BY(mu_) = 0;
};

}  // namespace curtail::apps
