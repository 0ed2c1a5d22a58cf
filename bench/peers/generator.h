// SPDX-License-Identifier: Apache-2.0
//
// generator.h - the load generator: one thread, one loop, the same for every stack; only how a request is
// sent differs.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "setup.h"
#include "stack.h"

namespace curtail::bench {

// A Generator has requests under way at one mid-tier, told apart by slots. Belongs to one thread.
class Generator {
 public:
  struct Done {
    uint32_t slot;
    absl::Status status;  // OK: answered with as many bytes as were sent
  };

  virtual ~Generator() = default;
  // Slots are 0 up to this, exclusive. Where each is a connection, they are taken in turn if `in_turn`, otherwise
  // the one that was free last, so that as few as possible are in use.
  virtual uint32_t slots() const = 0;
  virtual bool in_turn() const = 0;
  // Begins a request, whose bytes leave with the next Poll(). REQUIRES: `slot` is not under way.
  virtual void Send(uint32_t slot) = 0;
  // Moves bytes; waits until `deadline` for the first completion, an expired deadline for none. Appends to
  // `done`.
  virtual absl::Status Poll(Deadline deadline, std::vector<Done>* done) = 0;
};

// The generator for a mid-tier at `address` that speaks `protocol`.
absl::StatusOr<std::unique_ptr<Generator>> MakeGenerator(Protocol protocol, const std::string& address,
                                                         const Setup& setup);
// For raw sockets and Thrift, for gRPC, and for Cap'n Proto.
absl::StatusOr<std::unique_ptr<Generator>> MakeFrameGenerator(Protocol protocol, const std::string& address,
                                                              const Setup& setup);
std::unique_ptr<Generator> MakeRpcGenerator(const std::string& address, const Setup& setup);
absl::StatusOr<std::unique_ptr<Generator>> MakeCapnpGenerator(const std::string& address, const Setup& setup);

// A call of Query as Thrift's framed binary protocol has it; kThriftIdOffset is where its id stands.
std::string ThriftRequest(size_t payload);
inline constexpr size_t kThriftIdOffset = 17;

// The result of one run of load.
struct Sample {
  std::vector<float> latencies_us;  // of requests answered, sorted
  uint64_t failed = 0;              // answered wrongly or not at all
  absl::Status first_error;
  double seconds = 0;  // from the first send to the last answer counted
};

// Keeps `outstanding` requests under way, or as many as there are slots, for `duration` or for `requests`; a latency
// counts from the send. This and the following are CANCELLED soon after `stop` is set; the generator is then of no more
// use.
absl::StatusOr<Sample> RunClosedLoop(Generator& generator, uint32_t outstanding, Nanos duration,
                                     const std::atomic<bool>& stop);
absl::StatusOr<Sample> RunRequests(Generator& generator, uint32_t outstanding, uint64_t requests,
                                   const std::atomic<bool>& stop);

// Sends at exponentially distributed intervals, `rate` a second on average, whatever the answers do; a
// latency counts from the moment at which the request was due.
absl::StatusOr<Sample> RunOpenLoop(Generator& generator, double rate, Nanos duration, uint64_t seed,
                                   const std::atomic<bool>& stop);

}  // namespace curtail::bench
