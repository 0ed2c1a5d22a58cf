// SPDX-License-Identifier: Apache-2.0
//
// unread_reply.h - when the sending thread may sleep though a reply may come.
#pragma once

#include <cstddef>

#include "curtail/base/clock.h"
#include "curtail/load/drive/runner.h"

namespace curtail::internal {

// An UnreadReply says whether a reply may stay in its socket while the thread of an open loop sleeps until the next send,
// which saves a wake-up. The kernel notes when it came. Thread-compatible.
class UnreadReply {
 public:
  static constexpr Nanos kLongest = std::chrono::milliseconds(5);
  // A socket holds a message of this size whole. Of a longer one the thread may have to move the rest.
  static constexpr size_t kMostBytes = 16u << 10;
  // How much longer than a sleep the timeout is at least.
  static constexpr int kTimeouts = 50;

  // `may_stay` where nothing but the next send is due. Retries, hedges and credits need a client that acts at once.
  UnreadReply(const RunOptions& options, bool may_stay)
      : allowed_(may_stay && options.timeout >= kTimeouts * kLongest &&
                 options.channel.service_config.empty() && !options.channel.credits) {}

  void Sent(size_t bytes) { long_ |= bytes > kMostBytes; }
  // `arrival_known`: the kernel said when.
  void Ended(bool arrival_known, size_t bytes) {
    known_ = arrival_known;
    long_ |= bytes > kMostBytes;
  }
  // For so long. The kernel knows the time of the last reply only, so there may be one.
  bool MayStay(size_t in_flight, Nanos length) const {
    return allowed_ && known_ && !long_ && in_flight == 1 && length <= kLongest;
  }

 private:
  const bool allowed_;
  bool known_ = false;  // when the last reply came
  bool long_ = false;   // a message was
};

}  // namespace curtail::internal
