// SPDX-License-Identifier: Apache-2.0
//
// generator.h - the load: one thread, one level-triggered epoll loop, the same for every mid-tier.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "net.h"
#include "router.h"

namespace curtail::bench {

// The result of one run of load.
struct Sample {
  std::vector<float> latencies_us;  // sorted
  double seconds = 0;               // from the first send to the last answer
};

// Requests under way at one mid-tier, over some connections. Belongs to one thread.
class Generator {
 public:
  // Errors: as of connect(), or no answer to a first request on each connection within 10 s.
  static absl::StatusOr<std::unique_ptr<Generator>> Make(const std::string& address, uint32_t connections,
                                                         bool one_at_a_time);

  // Keeps `outstanding` requests under way for `duration`; a latency counts from the send.
  absl::StatusOr<Sample> RunClosedLoop(uint32_t outstanding, Nanos duration);
  // Sends at exponentially distributed intervals, `rate` a second on average, whatever the answers do; a
  // latency counts from the moment at which the request was due.
  absl::StatusOr<Sample> RunOpenLoop(double rate, Nanos duration, uint64_t seed);

 private:
  struct Connection {
    Fd fd;
    std::string in;
    std::string out;
  };

  explicit Generator(bool one_at_a_time) : one_at_a_time_(one_at_a_time) {}
  absl::Status ConnectAll(const std::string& address, uint32_t connections);
  bool full() const { return free_.empty(); }
  void Send(TimePoint counted_from);
  // Moves bytes until the first answer or `deadline`. Returns how many answers there were.
  absl::StatusOr<size_t> Collect(Deadline deadline);
  absl::Status Flush();
  absl::StatusOr<size_t> ReadFrom(Connection& connection, TimePoint now);
  absl::Status Record(const Message& reply, TimePoint now);
  absl::Status Drain();
  Sample Finish(TimePoint begin);

  const bool one_at_a_time_;  // one request a connection, so that no mid-tier thread queues them
  const Fd epoll_{epoll_create1(EPOLL_CLOEXEC)};
  std::vector<Connection> connections_;
  std::vector<uint32_t> free_;      // ids
  std::vector<TimePoint> started_;  // by id; zero when not under way
  TimePoint last_answer_{};
  Sample sample_;
};

}  // namespace curtail::bench
