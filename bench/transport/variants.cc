// SPDX-License-Identifier: Apache-2.0
#include "variants.h"

#include <algorithm>
#include <cstdlib>

#include "sender.h"

namespace curtail::bench {

#ifndef CURTAIL_BENCH_URING
absl::Status UringAvailable() { return absl::UnimplementedError("built without liburing (liburing-dev)"); }
std::unique_ptr<Mid> MakeUringMid(const UringOptions&) { std::abort(); }
absl::StatusOr<std::unique_ptr<Sender>> MakeRingSender(const Sockets&) { return UringAvailable(); }
#endif

const std::vector<Variant>& AllVariants() {
  static const auto* const variants = new std::vector<Variant>{
      {.name = "blocking", .what = "a thread a connection, blocking send and recv", .one_at_a_time = true},
      {.name = "blocking-rev",
       .what = "the same, the last leaf's reply awaited first",
       .one_at_a_time = true},
      {.name = "epoll-et", .what = "edge-triggered epoll, one send a connection and turn: as curtail does"},
      {.name = "epoll-lt", .what = "level-triggered epoll, otherwise the same"},
      {.name = "epoll-busy", .what = "epoll-et with SO_BUSY_POLL of 50 us on each socket"},
      {.name = "epoll-yield", .what = "epoll-et with a sched_yield before each wait for replies"},
      {.name = "uring-send",
       .what = "epoll-et, but the sends of a turn in one io_uring_enter",
       .uring = true},
      {.name = "uring-ready",
       .what = "multishot poll instead of epoll, sends with the wait, then recv",
       .uring = true},
      {.name = "uring-one",
       .what = "sends and receives with the wait, awake at the first completion",
       .uring = true},
      {.name = "uring-all",
       .what = "the same, awake when all replies of the only request are in",
       .uring = true},
      {.name = "uring-coop", .what = "uring-all with COOP_TASKRUN for DEFER_TASKRUN", .uring = true},
      {.name = "uring-nofix", .what = "uring-all without registered files", .uring = true},
      {.name = "uring-pollf", .what = "uring-all with POLL_FIRST receives", .uring = true},
      {.name = "uring-multi", .what = "uring-all, multishot receives into provided buffers", .uring = true},
      {.name = "large-send", .what = "one send of contiguous memory", .large = true},
      {.name = "large-copy", .what = "frames copied together, then send: as curtail does", .large = true},
      {.name = "large-writev", .what = "writev of frame headers and bodies", .large = true},
      {.name = "large-zero", .what = "large-send with MSG_ZEROCOPY", .large = true},
  };
  return *variants;
}

const Variant* FindVariant(const std::string& name) {
  const auto& all = AllVariants();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Variant& v) { return v.name == name; });
  return found == all.end() ? nullptr : &*found;
}

std::unique_ptr<Mid> MakeMid(const std::string& name) {
  if (name == "blocking") return MakeBlockingMid(false);
  if (name == "blocking-rev") return MakeBlockingMid(true);
  if (name == "epoll-et") return MakeEpollMid({});
  if (name == "epoll-lt") return MakeEpollMid({.edge_triggered = false});
  if (name == "epoll-busy") return MakeEpollMid({.busy_poll_us = 50});
  if (name == "epoll-yield") return MakeEpollMid({.yield = true});
  if (name == "uring-send") return MakeEpollMid({.sends_in_a_ring = true});
  if (name == "uring-ready") return MakeUringMid({.wait_for_all = false, .readiness = true});
  if (name == "uring-one") return MakeUringMid({.wait_for_all = false});
  if (name == "uring-coop") return MakeUringMid({.defer_taskrun = false});
  if (name == "uring-nofix") return MakeUringMid({.registered_files = false});
  if (name == "uring-pollf") return MakeUringMid({.poll_first = true});
  if (name == "uring-multi") return MakeUringMid({.multishot = true});
  return MakeUringMid({});
}

Reply ReplyOf(const std::string& name) {
  if (name == "large-copy") return Reply::kCopyAndSend;
  if (name == "large-writev") return Reply::kWritev;
  if (name == "large-zero") return Reply::kZeroCopy;
  return Reply::kSend;
}

}  // namespace curtail::bench
