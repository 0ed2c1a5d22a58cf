// SPDX-License-Identifier: Apache-2.0
//
// link.h - a network between two processes of one machine, slower and less reliable than its own.
//
// A link carries streams, so loss is what a stream makes of it: its bytes come later, and so do
// those behind them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "curtail/base/rng.h"

namespace curtail::deploy {

// A LinkShape says how bytes travel, in each direction.
struct LinkShape {
  Nanos delay{0};          // from one end to the other
  Nanos jitter{0};         // the delay is up to so much longer or shorter, uniformly
  double loss = 0;         // the share of packets that are sent again, 0 to 1
  double bytes_per_s = 0;  // 0: no bound
};

// "delay=20ms,jitter=5ms,loss=0.1%,rate=10mbit"; each part may be left out. Errors:
// INVALID_ARGUMENT.
absl::StatusOr<LinkShape> ParseLink(std::string_view text);

// A LinkQueue is one direction of a connection over a link: it knows which bytes are where, when.
// Thread-compatible; it has no clock and no socket.
class LinkQueue {
 public:
  // How long a lost packet is missed: the least time after which Linux sends one again.
  static constexpr Nanos kResend = std::chrono::milliseconds(200);
  static constexpr size_t kPacketBytes = 1448;  // of Ethernet

  LinkQueue(const LinkShape& shape, uint64_t seed) : shape_(shape), rng_(seed) {}

  // Bytes enter the link.
  void Put(TimePoint now, std::string_view bytes);
  // The first bytes that have left it by `now`; empty if there are none.
  std::string_view Ready(TimePoint now) const;
  // Forgets the first bytes.
  void Take(size_t bytes);
  // When more bytes leave it; never if it is empty.
  TimePoint next() const { return parts_.empty() ? TimePoint::max() : parts_.front().leaves; }
  // Bytes in it.
  size_t size() const { return size_; }

 private:
  struct Part {
    TimePoint leaves;
    std::string bytes;
  };

  const LinkShape shape_;
  Rng rng_;
  std::deque<Part> parts_;
  size_t taken_ = 0;  // of the first part
  size_t size_ = 0;
  TimePoint free_{};  // when the next packet may enter
  TimePoint last_{};  // when the last one leaves
};

}  // namespace curtail::deploy
